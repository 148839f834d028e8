"""What a reviewer has typed survives: leaving the page, a refusal, an undo; without scripts, too."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.test import Client

from approvals.models import Approval, KeptDraft
from runs import chores, secrets
from runs.engine import clock
from runs.errors import Invalid
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import MAIL, ask, told
from tests.approvals.pages import page_of, post, press, url
from tests.runs.driving import pass_time

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("uncounted")]


def keep(client: Client, approval, **typed: str):
    return client.post(url(approval, "kept"), typed)


def edited(approval, **changes) -> dict[str, str]:
    return {"json": json.dumps({**MAIL, **changes}, ensure_ascii=False), "table": approval.payload_digest}


def test_what_was_typed_is_in_the_form_on_the_next_visit(signed_in, bob):
    approval = ask(reasons=["Wrong"])
    assert keep(signed_in, approval, **edited(approval, subject="Second try")).status_code == 204
    assert keep(signed_in, approval, reason="Too lo").status_code == 204
    assert keep(signed_in, approval, comment="Ask Jos").status_code == 204
    page = page_of(signed_in, approval)
    assert 'value="Second try"' in page and "Too lo</textarea>" in page and "Ask Jos</textarea>" in page
    assert "Approve with edits" in page
    assert told(approval) == ["opened"]
    press(signed_in, approval)
    assert told(approval)[-1] == "edit by ada"


def test_what_is_no_number_yet_is_none_after_a_second_visit_either(signed_in):
    """Without a schema, too: the field stays a number's, shows what was typed, and nothing of it is sent as a text."""
    approval = ask(payload={**MAIL, "prices": [{"net": 1.5}]})
    typed = {**MAIL, "copies": "ma\u00dfny", "prices": [{"net": "1,"}]}
    kept = {"json": json.dumps(typed), "table": approval.payload_digest}
    assert keep(signed_in, approval, **kept).status_code == 204
    page = page_of(signed_in, approval)
    assert 'value="ma\u00dfny"' in page and 'value="1,"' in page and page.count("Write a number.") >= 2
    assert press(signed_in, approval, html=page).status_code == 422
    assert told(approval) == ["opened"]
    right = {"$.copies": "9", "$.prices[0].net": "2.5"}
    assert press(signed_in, approval, html=page, **right).status_code == 302
    decided = approval.decisions.get()
    assert (decided.verdict, decided.value) == ("edit", {**MAIL, "copies": 9, "prices": [{"net": 2.5}]})


def test_of_which_text_a_draft_was_is_cut_to_what_a_digest_is(signed_in):
    """Also where an escape is longer than what it stands for."""
    for table in ("t" * 5_000, "\0" * 64):
        assert keep(signed_in, ask(), json="{}", table=table).status_code == 204
    assert [len(kept.table) for kept in KeptDraft.objects.all()] == [64, 64]


def test_a_draft_is_its_authors_alone(signed_in, bob):
    approval = ask()
    keep(signed_in, approval, **edited(approval, subject="Only Ada’s"))
    other = Client()
    other.force_login(bob)
    assert "Only Ada’s" not in page_of(other, approval)


def test_a_draft_of_an_earlier_text_is_offered_and_not_put_in(signed_in, bob):
    approval = ask(quorum=2)
    keep(signed_in, approval, **edited(approval, subject="Ada’s words"))
    approval.decide(by=bob, verdict="edit", payload={**MAIL, "subject": "Bob’s words"})
    page = page_of(signed_in, approval)
    assert 'value="Bob’s words"' in page and 'value="Ada’s words"' not in page
    assert "You have a draft for an earlier text" in page and "Ada’s words" in page
    signed_in.post(url(approval, "kept"), {"discard": "json"})
    assert "Ada’s words" not in page_of(signed_in, approval)


def test_without_scripts_a_check_keeps_what_was_typed(signed_in):
    approval = ask()
    entries = posted_by(page_of(signed_in, approval), **{"$.subject": "Second try"})
    post(signed_in, url(approval, "draft"), entries)
    page = page_of(signed_in, approval)
    assert 'value="Second try"' in page and "Discard the draft" in page
    answer = signed_in.post(url(approval, "kept"), {"discard": "json"})
    assert answer.url == url(approval)
    assert 'value="Second try"' not in page_of(signed_in, approval)
    assert not KeptDraft.objects.exists()


def test_a_refused_decision_is_a_draft(signed_in):
    """A9"""
    approval = ask()
    refused = press(signed_in, approval, **{"$.subject": "Second try", "$.copies": "many"})
    assert refused.status_code == 422
    page = page_of(signed_in, approval)
    assert "Second try" in page


def test_who_comes_second_finds_the_text_again_later(signed_in, bob):
    """B5, S9"""
    approval = ask()
    html = page_of(signed_in, approval)
    approval.decide(by=bob, verdict="reject", reason="Not yet.")
    assert press(signed_in, approval, html=html, **{"$.body": "What Ada typed."}).status_code == 409
    page = page_of(signed_in, approval)
    assert "Your text, not sent" in page and "What Ada typed." in page


def test_a_text_that_nobody_edited_is_no_draft_when_another_one_came_between(signed_in, bob):
    """B5: Ada only pressed approve; the earlier text does not come back as if it were hers."""
    approval = ask(quorum=2)
    html = page_of(signed_in, approval)
    approval.decide(by=bob, verdict="edit", payload={**MAIL, "subject": "Bob’s words"})
    refused = press(signed_in, approval, html=html)
    assert refused.status_code == 409
    assert 'value="Bob’s words"' in refused.content.decode()
    assert not KeptDraft.objects.exclude(json="").exists()


@pytest.mark.parametrize("quorum", [1, 2])
def test_an_undone_edit_is_in_the_form_again(signed_in, quorum):
    approval = ask(quorum=quorum)
    press(signed_in, approval, **{"$.subject": "Second try", "$.copies": "8"})
    page = signed_in.post(url(approval, "undo"), follow=True).content.decode()
    assert 'value="Second try"' in page and 'value="8"' in page
    press(signed_in, approval, html=page)
    approval.refresh_from_db()
    assert approval.amendment.value == {**MAIL, "subject": "Second try", "copies": 8}


def test_an_undone_edit_that_is_as_long_as_a_form_can_send_is_in_the_form_again(signed_in):
    approval, text = ask(), "word " * 200_000
    assert press(signed_in, approval, **{"$.subject": text}).status_code == 302
    page = signed_in.post(url(approval, "undo"), follow=True).content.decode()
    assert text.strip() in page and approval.amendment is None


def test_an_undo_says_what_it_could_not_put_back(signed_in, monkeypatch):
    """What was decided holds what has become a secret since."""
    approval = ask()
    press(signed_in, approval, **{"$.subject": "The word is hunter2-hunter2"})
    monkeypatch.setenv("DURABLEWEB_SECRET_BANK", "hunter2-hunter2")
    secrets.forget()
    answer = signed_in.post(url(approval, "undo"), follow=True)
    page = answer.content.decode()
    assert answer.status_code == 200 and "It is undone" in page and "could not be put back" in page
    approval.refresh_from_db()
    assert approval.is_open and not KeptDraft.objects.exclude(json="").exists()


def test_an_undone_rejection_gives_its_reason_back(signed_in):
    approval = ask()
    entries = posted_by(page_of(signed_in, approval), form_id="reject")
    entries["reason"], entries["verdict"] = "The price\r\nis old.", "reject"
    post(signed_in, url(approval, "decision"), entries)
    page = signed_in.post(url(approval, "undo"), follow=True).content.decode()
    assert posted_by(page, form_id="reject")["reason"] == "The price\r\nis old."


def test_an_undone_answer_in_words_is_typed_again(signed_in):
    approval = ask(None, verdicts=["respond"])
    press(signed_in, approval, "respond", **{"$": "The second one."})
    page = signed_in.post(url(approval, "undo"), follow=True).content.decode()
    assert posted_by(page)["$"] == "The second one."


def test_a_comment_that_was_sent_is_no_draft_any_more(signed_in):
    approval = ask()
    keep(signed_in, approval, comment="José reads mail")
    signed_in.post(url(approval, "comments"), {"text": "José reads mail at seven."})
    assert not KeptDraft.objects.exists()


def test_a_known_secret_is_never_kept(signed_in, monkeypatch):
    """O4: also where JSON spells its letters out."""
    monkeypatch.setenv("DURABLEWEB_SECRET_BANK", 'c4nary-"secret')
    secrets.forget()
    approval = ask()
    spelt = json.dumps({**MAIL, "body": 'c4nary-"secret'}).replace("n", "\\u006e", 40)
    for typed in (
        edited(approval, body='c4nary-"secret'),
        {"json": spelt},
        {"json": '{"not json: "c4nary-\\"secret'},
        {"reason": 'it is c4nary-"secret'},
    ):
        assert keep(signed_in, approval, **typed).status_code == 422
    press(signed_in, approval, **{"$.body": 'c4nary-"secret'})
    assert not KeptDraft.objects.exists()
    monkeypatch.undo()
    secrets.forget()


def test_what_is_too_long_for_any_decision_is_not_kept(signed_in, ada):
    approval = ask()
    with pytest.raises(Invalid):
        KeptDraft.keep(approval, ada, json="x" * 2_500_001)
    assert keep(signed_in, approval, reason="x" * 20_001).status_code == 422


def test_what_one_may_not_see_one_cannot_write_to(eve):
    """O5"""
    approval = ask()
    client = Client()
    client.force_login(eve)
    assert keep(client, approval, reason="hello").status_code == 404
    assert not KeptDraft.objects.exists()


def test_what_was_typed_about_a_decided_question_is_kept_for_a_week_and_no_longer(ada, bob):
    approval = ask()
    KeptDraft.keep(approval, ada, reason="Not this one.")
    approval.decide(by=bob, verdict="approve")
    Approval.objects.get(pk=approval.pk).undo(by=bob)
    assert KeptDraft.of(approval, ada).forget_at is None, "open again, so it stays"
    approval = Approval.objects.get(pk=approval.pk)
    approval.decide(by=bob, verdict="approve")
    try:
        pass_time(6 * 24 * 3600)
        chores.do_due()
        assert KeptDraft.of(approval, ada) is not None
        pass_time(8 * 24 * 3600)
        chores.do_due()
        assert KeptDraft.of(approval, ada) is None
    finally:
        clock.AHEAD = timedelta()
