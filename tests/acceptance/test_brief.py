"""The competitive brief on the parts that `bin/up` starts, while these are killed: one mail, as approved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import override_settings

from approvals.models import Approval
from examples.graphs import MAIL_KEY
from examples.mail import message_id
from runs import start
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, LedgerEntry, Run
from tests.acceptance.installation import ended, until
from tests.acceptance.life import ASKED, DECIDED, KILLS, STRETCHED, Life
from tests.acceptance.parts import MODEL, Parts, started
from tests.amounts import THOROUGH
from tests.examples.smtp_server import Postbox, listening

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

GIVEN = {"goal": "Which of these should carry our background work?", "to": "board@example.com"}
EDITED = {"to": "helen@example.com", "body": "Dear Helen,\n\nTake django-q2.\n\nYours, pm\n"}
END_SECONDS = 180.0


@pytest.fixture
def begun(person) -> Callable[[], Run]:
    requester = person("requester")
    return lambda: start("competitive-brief", GIVEN, by=requester)


@pytest.mark.postgres_only
def test_ten_kills_at_random_moments_and_one_mail(process_environment, tmp_path, person, begun):
    """P1, P3, P4, P8; the command decides."""
    person("pm", "pm")
    with started(process_environment, tmp_path, **STRETCHED) as parts:
        life = Life(parts, begun())
        life.kill_before_the_question()
        life.kill_in(ASKED)
        decide(parts, question(life.run))
        life.kill_in(DECIDED)
        was_sent_once(parts, life.run)
        every_kill_is_told(life)


@pytest.mark.browser
def test_ten_kills_at_random_moments_and_one_mail_decided_in_a_browser(process_environment, tmp_path, begun):
    """P1, P3, P4, P8; a PM signs in, edits the e-mail in the inbox and approves it."""
    with started(process_environment, tmp_path, **STRETCHED) as parts, parts.pages() as site:
        with signed_in(site, "pm", parts.demo_people()["pm"]) as page:
            life = Life(parts, begun())
            life.kill_before_the_question()
            question(life.run)
            edit(page, site)
            life.kill_in(ASKED)
            page.locator(".action-bar .button-primary").click()
            until(lambda: Approval.objects.get().outcome)
            life.kill_in(DECIDED)
        was_sent_once(parts, life.run)
        every_kill_is_told(life)


def test_kills_between_the_decision_and_the_mail_and_between_the_mail_and_its_record(
    process_environment, tmp_path, person, begun
):
    """P3, P4: in the undo window; after the intent, before the mail is out; and when it is out but not yet recorded."""
    person("pm", "pm")
    with started(process_environment, tmp_path, send=8, undo=15) as parts:
        brief = begun()
        decide(parts, question(brief))
        parts.kill_tree(brief)
        assert effect(brief) is None, "too late: the decision had been taken"
        assert not parts.mails
        until(lambda: (sending := effect(brief)) and sending.tried_at)
        parts.kill_driver(brief)
        assert effect(brief).status == "open"
        assert not parts.mails
        until(lambda: parts.mails)
        parts.kill_driver(brief)
        assert effect(brief).status == "open"
        was_sent_once(parts, brief)
        assert effect(brief).attempts == 2
        assert len(parts.cut_off) == 2


@pytest.mark.sqlite_only  # once is enough: what the engine makes of doubt is tested on both databases
def test_a_kill_after_a_mail_server_took_the_mail_is_settled_by_a_person(
    process_environment, tmp_path, person, begun
):
    """P3: SMTP cannot be asked, so nobody sends it again; an operator who looked says that it happened."""
    person("pm", "pm"), person("olga", "ops")
    postbox = Postbox()
    with listening(postbox) as port:
        smtp = {"DURABLEWEB_EMAIL_URL": f"smtp://127.0.0.1:{port}"}
        with started(process_environment, tmp_path, send=6, **smtp) as parts:
            brief = begun()
            decide(parts, question(brief))
            until(lambda: postbox.messages)
            parts.kill_driver(brief)
            doubt = question(brief)
            assert effect(brief).status == "in_doubt"
            happened = {"outcome": "happened", "result": message_id(effect(brief).idempotency_key)}
            parts.manage("decide", str(doubt.pk), "--by", "olga", "--verdict", "respond",
                         "--payload", json.dumps(happened), "--reason", "It is in the server's log.")  # fmt: skip
            was_sent_once(parts, brief, postbox.messages)
            assert not parts.mails


# -- what people do


def question(run: Run) -> Approval:
    """What waits for a person."""
    return until(lambda: Approval.objects.filter(run=run, outcome="").first(), END_SECONDS)


def decide(parts: Parts, approval: Approval) -> None:
    """By the command, in this process: the undo window is not to run out while another one ends."""
    undo = float(parts.environment["DURABLEWEB_UNDO_SECONDS"])
    payload = json.dumps(approval.payload | EDITED)
    with override_settings(DURABLEWEB={**settings.DURABLEWEB, "undo_seconds": undo}):
        call_command("decide", str(approval.pk), by="pm", verdict="edit", payload=payload)
    assert Approval.objects.get(pk=approval.pk).outcome == "approved_with_edits"


@contextmanager
def signed_in(site: str, name: str, password: str) -> Iterator[Any]:
    """A page of Chromium, in which somebody has signed in by name and password."""
    from playwright.sync_api import sync_playwright

    from tests.browser.conftest import CHROMIUM, QUIET

    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # playwright's loop runs in this thread
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{site}/")
        page.get_by_label("User name").fill(name)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url(f"{site}/")
        yield page
        browser.close()


def edit(page: Any, site: str) -> None:
    """Open the brief from the inbox and write another recipient and another text."""
    from playwright.sync_api import expect

    page.goto(f"{site}/")
    page.get_by_role("link", name="Send the competitive brief to").click()
    page.get_by_label("To", exact=True).fill(EDITED["to"])
    page.get_by_role("textbox", name="Body", exact=True).fill(EDITED["body"])
    expect(page.locator(".action-bar .button-primary")).to_contain_text("Approve with edits")


# -- what must have come of it


def effect(run: Run) -> LedgerEntry | None:
    return LedgerEntry.objects.filter(idempotency_key=MAIL_KEY.format(run_id=run.pk)).first()


def was_sent_once(parts: Parts, run: Run, mails: list[Any] | None = None) -> None:
    run = ended(run, END_SECONDS)
    assert (run.status, run.error_kind) == ("completed", ""), run.error
    assert run.state_at()["outcome"] == f"sent to {EDITED['to']}"
    assert run.state_at()["drafted_by"] == MODEL
    (mail,) = parts.mails if mails is None else mails
    assert mail["To"] == EDITED["to"]
    assert mail.get_content().replace("\r\n", "\n").strip() == EDITED["body"].strip()
    assert mail["Message-ID"] == message_id(MAIL_KEY.format(run_id=run.pk))
    (sent,) = LedgerEntry.objects.filter(run=run, kind="effect", write=True)
    assert (sent.idempotency_key, sent.status) == (MAIL_KEY.format(run_id=run.pk), "done")
    approval = Approval.objects.get(run=run, entry=sent.decided_by)
    assert approval.outcome == "approved_with_edits"
    assert sent.request_digest == sent.decided_by.approved_digest
    assert first_bad_row(run) is None


def every_kill_is_told(life: Life) -> None:
    """All of them came before the end, and whoever was killed while it held the run is named in the run's trail."""
    assert len(life.done) == KILLS
    reasons = list(Checkpoint.objects.filter(run=life.run, kind="lost").values_list("reason", flat=True))
    assert len(reasons) == len(life.parts.cut_off) >= (2 if THOROUGH else 1)
    for name in life.parts.cut_off:
        assert any(name in reason for reason in reasons), f"{name} is in none of {reasons}"
