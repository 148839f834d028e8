"""The competitive brief under the crash kit: killed at each durable boundary in turn, it always ends the same."""

from __future__ import annotations

import email
import email.policy

import pytest

from examples.graphs import MAIL_KEY, brief
from runs.models import Run
from runs.testing import crash_everywhere
from tests.amounts import KILLS
from tests.runs.driving import kills_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

GIVEN = {"goal": "Which of these should carry our background work?", "to": "board@example.com"}
EDITED = {"to": "helen@example.com", "body": "Dear Helen,\n\nTake django-q2.\n\nYours, pm\n"}


def edited(request: dict) -> dict:
    return {"verdict": "edit", "payload": request["payload"] | EDITED, "by": "pm"}


def test_the_brief_is_sent_once_as_edited_wherever_its_process_is_killed(settings, tmp_path, monkeypatch):
    """P1, P3, P4: the folder of mails is the witness, beside the kit's own journal."""
    for name in ("BRIEF_MODEL_URL", "BRIEF_MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "mail"
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = "examples.mail_folder.EmailBackend", str(folder)
    report = crash_everywhere(brief, GIVEN, answers={f"{MAIL_KEY}?": edited}, kills=KILLS)
    assert report.status == "completed"
    assert report.effects == {"send_email": 1}
    assert report.boundaries.count("blob's rows") == 1, "the draft; later runs share its bytes"
    assert report.kills in (kills_of(report) - 1, kills_of(report)), "the unharmed has one boundary more"
    assert {"called", "change effect", "committed complete"} <= set(report.boundaries)
    mails = [
        email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
        for path in folder.glob("[!.]*")
    ]
    assert len(mails) == len({mail["X-Idempotency-Key"] for mail in mails})
    assert len(mails) == Run.objects.filter(graph=brief.name).count(), "one for each run, killed or not"
    for mail in mails:
        assert (mail["To"], mail.get_content()) == (EDITED["to"], EDITED["body"])
    assert report.in_doubt == 0, "the folder can always be asked"
