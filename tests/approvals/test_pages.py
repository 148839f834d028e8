"""Deciding on the page of an approval, and being refused there with nothing lost."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.test import Client

from approvals.forms.values import same
from approvals.models import Decision
from runs.engine import clock
from runs.models import LedgerEntry
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import MAIL, answer_of, ask, told, waiting_run
from tests.approvals.pages import CALL, as_person, overdue, page_of, post, press, url

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("uncounted")]


# -- deciding ---------------------------------------------------------------------------------------------------


def test_approving_what_was_proposed_leaves_it_byte_for_byte(signed_in):
    """A5"""
    approval = ask(call=CALL)
    assert press(signed_in, approval).status_code == 302
    assert answer_of(approval) | {"by": ""} == {
        "outcome": "approved",
        "verdict": "approve",
        "payload": MAIL,
        "reason": "",
        "by": "",
    }


def test_an_edited_field_makes_it_an_approval_with_edits(signed_in):
    """A13"""
    approval = ask()
    press(signed_in, approval, **{"$.subject": "Brief, second try", "$.copies": "8"})
    answer = answer_of(approval)
    assert answer["outcome"] == "approved_with_edits"
    assert same(answer["payload"], {**MAIL, "subject": "Brief, second try", "copies": 8})


def test_an_edit_as_json_counts_when_its_view_is_chosen(signed_in):
    approval = ask()
    press(signed_in, approval, view="json", json=json.dumps({**MAIL, "copies": 1}))
    assert answer_of(approval)["payload"]["copies"] == 1


def test_the_reason_of_a_rejection_reaches_the_run_byte_for_byte(signed_in):
    """A13"""
    approval = ask()
    entries = posted_by(page_of(signed_in, approval), form_id="reject")
    reason = "  Corvid’s price\n\nis old — 38 €\t"
    entries["reason"], entries["verdict"] = reason.replace("\n", "\r\n"), "reject"
    post(signed_in, url(approval, "decision"), entries)
    assert answer_of(approval)["reason"] == reason
    page = signed_in.get(f"/?decided={approval.pk}").content.decode()
    assert "The run hears of it in" in page
    assert "Starts in" not in page


def test_the_notice_of_an_edit_says_what_was_approved(signed_in):
    approval = ask()
    press(signed_in, approval, view="json", json=json.dumps({**MAIL, "copies": 9}))
    page = signed_in.get(f"/?decided={approval.pk}").content.decode()
    notice = page[page.index('id="notice-') :]
    assert "copies: 9" in notice[: notice.index("</small>")].lower()


def test_a_preset_reason_and_own_words_go_together(signed_in):
    approval = ask(reasons=["Wrong recipients"])
    entries = posted_by(page_of(signed_in, approval), form_id="reject")
    entries["preset"], entries["reason"], entries["verdict"] = "Wrong recipients", "Not Helen.", "reject"
    post(signed_in, url(approval, "decision"), entries)
    assert answer_of(approval)["reason"] == "Wrong recipients\nNot Helen."


def test_a_rejection_without_a_reason_asks_for_one(signed_in):
    approval = ask()
    entries = posted_by(page_of(signed_in, approval), form_id="reject")
    entries["verdict"] = "reject"
    answer = post(signed_in, url(approval, "decision"), entries)
    assert answer.status_code == 422
    assert "Choose or write a reason." in answer.content.decode()
    assert told(approval) == ["opened"]


def test_a_question_that_wants_words_gets_them(signed_in):
    approval = ask(None, verdicts=["respond"])
    press(signed_in, approval, "respond", **{"$": "The second one."})
    answer = answer_of(approval)
    assert (answer["outcome"], answer["payload"]) == ("responded", "The second one.")


def test_an_answer_in_words_is_neither_yes_nor_no(signed_in):
    approval = ask(verdicts=["approve", "reject", "respond"])
    entries = posted_by(page_of(signed_in, approval), form_id="respond")
    entries["reason"], entries["verdict"] = "Ask Bob first.", "respond"
    post(signed_in, url(approval, "decision"), entries)
    answer = answer_of(approval)
    assert (answer["outcome"], answer["payload"], answer["reason"]) == ("responded",) + (
        "Ask Bob first.",
    ) * 2


def test_the_same_form_sent_twice_decides_once(signed_in):
    approval = ask()
    html = page_of(signed_in, approval)
    first, second = press(signed_in, approval, html=html), press(signed_in, approval, html=html)
    assert (first.status_code, second.status_code) == (302, 302)
    assert Decision.objects.count() == 1


def test_after_a_decision_the_next_item_opens_with_the_way_back(signed_in):
    first, second = ask(due=timedelta(hours=1)), ask(due=timedelta(hours=2))
    answer = press(signed_in, first)
    assert answer.url == f"{url(second)}?decided={first.pk}"
    page = signed_in.get(answer.url).content.decode()
    assert "Starts in" in page
    assert f'action="{url(first, "undo")}"' in page


@pytest.mark.parametrize("scope", ["", "scope=teams", "q=Send"])
def test_who_passes_some_by_goes_on_below_what_they_decide(signed_in, scope):
    """Not at the head of the list again, where is what they passed by; after the last one, there."""
    asked = [ask(question=f"Send {hour}?", due=timedelta(hours=hour)) for hour in range(1, 6)]

    def follows(decided):
        entries = posted_by(page_of(signed_in, decided), "decision") | {"verdict": "approve"}
        answer = signed_in.post(f"{url(decided, 'decision')}?{scope}", entries)
        return answer.url.partition("?")[0]

    assert follows(asked[2]) == url(asked[3])
    assert follows(asked[4]) == url(asked[0])
    assert follows(asked[0]) == url(asked[1])


def test_the_ring_of_the_way_back_runs_out_with_it(signed_in, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 4000}
    page = signed_in.get(press(signed_in, ask()).url).content.decode()
    seconds = int(re.search(r'stroke-dashoffset" from="0" to="100" dur="(\d+)s"', page)[1])
    assert 3000 < seconds <= 4000


def test_undo_reopens_it(signed_in):
    approval = ask()
    press(signed_in, approval)
    answer = signed_in.post(url(approval, "undo"))
    assert answer.url == url(approval)
    assert told(approval) == ["opened", "approve by ada", "undone by ada"]
    assert "Waiting for you" in page_of(signed_in, approval)


def test_undo_that_comes_too_late_says_what_has_begun(signed_in):
    approval = ask()
    press(signed_in, approval)
    LedgerEntry.objects.filter(pk=approval.entry_id).update(taken_at=clock.now())
    answer = signed_in.post(url(approval, "undo"))
    assert answer.status_code == 409
    assert url(approval, "undo") not in page_of(signed_in, approval)


def test_one_of_two_votes_can_be_taken_back(signed_in, bob):
    approval = ask(quorum=2)
    press(signed_in, approval)
    page = page_of(signed_in, approval)
    assert "You have voted; 1 of 2" in page
    signed_in.post(url(approval, "undo"))
    assert told(approval)[-1] == "taken_back by ada"


# -- refused, with nothing lost ---------------------------------------------------------------------------------


def test_who_comes_second_is_told_who_decided_and_keeps_the_text(signed_in, bob):
    """S9, B5"""
    approval = ask()
    html = page_of(signed_in, approval)
    approval.decide(by=bob, verdict="reject", reason="Not yet.")
    answer = press(signed_in, approval, html=html, **{"$.body": "What Ada typed."})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert "bob rejected this" in page
    assert "Not yet." in page
    assert "What Ada typed." in page
    assert told(approval) == ["opened", "reject by bob", "refused by ada"]


def test_a_reassigned_approval_names_the_new_one_and_keeps_the_text(signed_in, bob):
    """A8"""
    approval = ask()
    html = page_of(signed_in, approval)
    approval.assign(by=bob, to=bob)
    answer = press(signed_in, approval, html=html, **{"$.body": "What Ada typed."})
    assert answer.status_code == 409
    assert "assigned this to bob" in answer.content.decode()
    assert "What Ada typed." in answer.content.decode()


def test_an_edit_that_does_not_fit_is_refused_at_its_field_and_stays_typed(signed_in):
    """A9"""
    schema = {
        "type": "object",
        "properties": {"copies": {"type": "integer", "maximum": 9}},
        "required": ["copies"],
    }
    approval = ask({"copies": 7}, schema=schema)
    answer = press(signed_in, approval, **{"$.copies": "12"})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "This must be 9 or less." in page
    assert 'value="12"' in page
    assert told(approval) == ["opened"]


def test_unknown_and_missing_keys_are_named(signed_in):
    """A9"""
    approval = ask()
    wrong = {**MAIL, "bcc": "eve@example.com"}
    del wrong["to"]
    answer = press(signed_in, approval, view="json", json=json.dumps(wrong))
    page = answer.content.decode()
    assert answer.status_code == 422
    assert "$.bcc" in page and "$.to" in page or "is missing" in page
    assert told(approval) == ["opened"]


def test_that_others_decided_is_said_before_what_is_wrong_with_the_edit(signed_in, bob):
    approval = ask()
    html = page_of(signed_in, approval)
    approval.decide(by=bob, verdict="reject", reason="No.")
    answer = press(signed_in, approval, html=html, view="json", json='{"to": "x"}')
    assert answer.status_code == 409
    assert "bob rejected this" in answer.content.decode()


def test_what_is_not_json_is_refused_with_its_line(signed_in):
    approval = ask()
    answer = press(signed_in, approval, view="json", json='{"to":\n oops}')
    assert answer.status_code == 422
    assert "Line 2, column 2" in answer.content.decode()
    assert "oops}" in answer.content.decode()


def test_too_late_is_refused(signed_in):
    approval = ask(due=timedelta(hours=1))
    html = page_of(signed_in, approval)
    overdue(approval)
    answer = press(signed_in, approval, html=html)
    assert answer.status_code == 409
    assert "Too late" in answer.content.decode()


def test_who_started_the_run_may_look_but_not_decide(ada, bob):
    """A4"""
    approval = ask(run=waiting_run(created_by=ada))
    html = page_of(as_person(bob), approval)
    page = page_of(as_person(ada), approval)
    assert "You started this run" in page
    assert "What happens if it is approved" in page
    assert 'value="approve"' not in page
    answer = press(as_person(ada), approval, html=html)
    assert answer.status_code == 403
    assert told(approval) == ["opened", "refused by ada"]


def test_what_one_may_not_see_is_not_there(eve):
    """O5"""
    approval = ask()
    client = as_person(eve)
    for name in ("approval", "draft", "decision", "undo", "comments", "claim"):
        method = client.get if name == "approval" else client.post
        assert method(url(approval, name)).status_code == 404
    for part in ("state", "people", "acts", "notice"):
        assert client.get(url(approval, "part", part=part)).status_code == 404


def test_nothing_is_shown_or_decided_without_a_person(client):
    """A3"""
    approval = ask()
    for path in ("/", url(approval), url(approval, "part", part="state")):
        assert client.get(path).status_code == 302
    for name in ("decision", "undo", "comments", "claim", "draft"):
        assert client.post(url(approval, name), {"verdict": "approve"}).url.startswith("/login/")
    assert told(approval) == ["opened"]


def test_looking_decides_nothing(signed_in):
    """A2"""
    approval = ask()
    for path in ("approval", "decision", "undo", "claim", "comments", "draft"):
        signed_in.get(url(approval, path), {"verdict": "approve"})
        signed_in.head(url(approval, path))
    assert told(approval) == ["opened"]


def test_a_form_from_another_site_is_refused(ada):
    approval = ask()
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post(url(approval, "decision"), {"verdict": "approve"}).status_code == 403
    assert told(approval) == ["opened"]
