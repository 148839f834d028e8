"""The competitive brief from input to mail, with real packages, a real model over HTTP and a real mail folder."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from examples.drafting import EXTRACTIVE
from examples.extractive import MADE_HOW
from examples.graphs import MAIL_KEY, brief
from examples.mail import message_id
from runs.core.errors import CodecError
from runs.core.rehearsal import Rehearsal, rehearse
from tests.examples.model_server import ModelServer

GIVEN = {"goal": "Choose a library for background tasks", "to": "lead@example.com"}
ASKED = f"{MAIL_KEY}?"
APPROVE = {"verdict": "approve", "by": "ada"}


@pytest.fixture(autouse=True)
def without_model(monkeypatch) -> None:
    for name in ("BRIEF_MODEL_URL", "BRIEF_MODEL_NAME", "DURABLEWEB_SECRET_MODEL_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def sent(settings, tmp_path) -> Callable[[], list[EmailMessage]]:
    """The messages that are in the mail folder."""
    folder = tmp_path / "mail"
    settings.EMAIL_BACKEND, settings.EMAIL_FILE_PATH = "examples.mail_folder.EmailBackend", str(folder)

    def read(path: Path) -> EmailMessage:
        return email.message_from_bytes(path.read_bytes(), policy=email.policy.default)

    return lambda: [read(path) for path in sorted(folder.iterdir())] if folder.exists() else []


class Reviewer:
    """Gives its answers one after the other, and keeps what it was asked."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        self.answers, self.asked = list(answers), []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        answer = self.answers.pop(0)
        change = answer.pop("change", {})
        return {**answer, "payload": {**request["payload"], **change}} if change else answer


def run(*answers: dict[str, Any], **given: Any) -> tuple[Rehearsal, Reviewer]:
    reviewer = Reviewer(*answers)
    return rehearse(brief, GIVEN | given, {ASKED: reviewer}), reviewer


def test_an_approved_brief_is_sent_once_as_approved(sent):
    ended, reviewer = run({**APPROVE})

    assert ended.status == "completed", ended.error
    assert ended.path == ["research"] * 4 + ["draft", "email"]
    assert list(ended.state.findings) == ["django-q2", "channels", "django-htmx"]
    assert (ended.state.outcome, ended.state.drafted_by) == ("sent to lead@example.com", EXTRACTIVE)
    (message,) = sent()
    (request,) = reviewer.asked
    assert message["To"] == request["payload"]["to"] == "lead@example.com"
    assert message["Subject"] == request["payload"]["subject"] == f"Competitive brief: {GIVEN['goal']}"
    assert message.get_content().strip() == request["payload"]["body"].strip()
    assert MADE_HOW in request["payload"]["body"].replace("\n", " ")
    assert message["Message-ID"] == message_id(MAIL_KEY.format(run_id=ended.ledger.run_id))


def test_the_reviewer_is_told_what_was_found(sent):
    _, reviewer = run({**APPROVE})

    (request,) = reviewer.asked
    assert request["reviewers"] == ["pm"]
    assert request["due"] == 8 * 3600
    assert "| django\\-q2 1.11.1 | MIT |" in request["why"]
    assert "Draft 1 of at most 3, drafted by: extractive" in request["why"]
    assert "Shorter, please" in request["reasons"]


def test_what_the_reviewer_edited_is_what_is_sent(sent):
    change = {"to": "boss@example.com", "subject": "In short", "body": "Take channels.\n"}
    ended, _ = run({"verdict": "edit", "by": "ada", "change": change})

    (message,) = sent()
    assert ended.state.outcome == "sent to boss@example.com"
    assert (message["To"], message["Subject"]) == ("boss@example.com", "In short")
    assert message.get_content().strip() == "Take channels."


def test_a_rejection_leads_to_another_draft_that_heeds_its_reason(sent):
    ended, reviewer = run({"verdict": "reject", "reason": "Shorter, please", "by": "bob"}, {**APPROVE})

    first, second = (request["payload"]["body"] for request in reviewer.asked)
    assert len(second.splitlines()) < len(first.splitlines()) + 3  # two lines quote the reason
    assert '- "Shorter, please"' in second
    assert "Rejected draft 1: Shorter, please" in reviewer.asked[1]["why"]
    assert (ended.state.drafts, ended.state.feedback) == (2, ["Shorter, please"])
    (message,) = sent()
    assert message.get_content().strip() == second.strip()


def test_three_rejections_end_the_run_without_mail(sent):
    reasons = ["no", "still no", "na\u0308chstes Mal\n'x'"]
    ended, reviewer = run(*({"verdict": "reject", "reason": reason} for reason in reasons))

    assert (ended.status, ended.state.outcome) == ("completed", "rejected three times")
    assert ended.state.feedback == reasons
    assert len(reviewer.asked) == 3
    assert sent() == []


def test_nobody_answering_ends_the_run_without_mail(sent):
    ended, _ = run({"verdict": "reject", "outcome": "expired", "by": ""})

    assert (ended.status, ended.state.outcome) == ("completed", "expired: nobody answered in time")
    assert sent() == []


def test_it_waits_while_nobody_has_answered(sent):
    waiting = rehearse(brief, GIVEN)

    assert (waiting.status, waiting.waits_for) == ("waiting", (ASKED,))
    assert sent() == []


def test_a_model_drafts_and_its_tokens_are_counted(sent, monkeypatch):
    with ModelServer(["500", "429", "ok"], retry_after="2", api_key="a-long-key-1") as server:
        monkeypatch.setenv("BRIEF_MODEL_URL", server.url)
        monkeypatch.setenv("BRIEF_MODEL_NAME", "tiny-1")
        monkeypatch.setenv("DURABLEWEB_SECRET_MODEL_KEY", "a-long-key-1")
        ended = rehearse(brief, GIVEN, {ASKED: Reviewer({**APPROVE})}, secrets={"MODEL_KEY": "a-long-key-1"})

    assert ended.status == "completed", ended.error
    assert [question["word"] for question in server.questions] == ["500", "429", "ok"]
    assert ended.state.drafted_by == "tiny-1"
    (spent,) = [entry.value for key, entry in ended.ledger.past.items() if key.startswith("spend")]
    assert spent["tokens"] > 100
    assert "We compared django-q2, channels, django-htmx." in sent()[0].get_content()
    assert "a-long-key-1" not in repr(ended.ledger.past)


def test_a_vendor_that_is_not_installed_fails_the_run_by_name(sent):
    failed, _ = run(vendors=["channels", "no-such-thing"])

    assert (failed.status, failed.error_kind, failed.node) == ("failed", "permanent", "research")
    assert "No installed Python distribution is named 'no-such-thing'." in failed.error


def test_a_vendor_given_twice_is_looked_up_once(sent):
    ended, _ = run({**APPROVE}, vendors=["channels", "channels"])

    assert ended.path == ["research"] * 2 + ["draft", "email"]
    assert ended.state.outcome == "sent to lead@example.com"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"to": "nobody"}, "to: .*'nobody' is not one plain e-mail address"),
        ({"to": None}, "to: "),
        ({"goal": ""}, "goal: "),
        ({"goal": " \n"}, "goal: "),
        ({"goal": "x" * 501}, "goal: "),
        ({"vendors": []}, "vendors: "),
        ({"vendors": "channels"}, "vendors: "),
        ({"vendors": ["x" * 201]}, r"vendors\.0: "),
        ({"recipient": "a@example.com"}, "recipient: "),
    ],
)
def test_input_that_does_not_fit_is_refused_by_field(wrong, words):
    with pytest.raises(CodecError, match=f"does not fit Brief: {words}"):
        brief.begin(GIVEN | wrong)
