"""Pages about who decides and until when: what they show, and what their forms do without scripts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.http import QueryDict

from approvals.models import Approval
from runs.engine import clock
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import answer_of, ask, told, waiting_run
from tests.approvals.pages import as_person, page_of, post, press, url
from tests.approvals.test_stages import stage

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("uncounted")]

HOUR = timedelta(hours=1)


@pytest.fixture
def ada_in(ada):
    return as_person(ada)


def fill(client, approval, form_id, what, **typed):
    """Fill in one of the page's forms, as it stands there, and send it."""
    entries = posted_by(page_of(client, approval), form_id=form_id, **typed)
    return post(client, url(approval, what), entries)


def sent(client, approval, what, **typed):
    """What a form of the page sends, where it has no id of its own."""
    entries = QueryDict(mutable=True)
    entries.update({"revision": str(approval.revision), **typed})
    return post(client, url(approval, what), entries)


def test_each_stage_is_shown_with_its_votes_and_whose_turn_it_is(ada, ada_in, bob, person):
    fay = person("fay", "finance")
    approval = ask(
        reviewers=(), stages=[stage("pm", quorum=2), stage("finance"), stage("board", needed=False)]
    )
    approval.decide(by=ada, verdict="approve", reason="fine by me")
    page = page_of(ada_in, approval)
    for words in ("1 of 2, decides now", "0 of 1, asked after that", "not needed for this", "fine by me"):
        assert words in page
    assert "You have voted; 1 of 2" in page
    approval.decide(by=bob, verdict="approve")
    assert "You have said yes in another stage" in page_of(ada_in, approval)
    assert "0 of 1, decides now" in page_of(as_person(fay), approval)
    assert 'data-key="a"' in page_of(as_person(fay), approval)
    approval.decide(by=fay, verdict="reject", reason="no money")
    page = page_of(ada_in, approval)
    assert "no money" in page and "not needed for this" in page


def test_it_can_be_assigned_to_another_reviewer(ada_in, ada, bob):
    """A8, A16: one row of the trail; who had it open is told by whom it was given to whom, and loses no text."""
    approval = ask()
    page = page_of(ada_in, approval)
    assert sent(as_person(bob), approval, "assignment", to="ada").status_code == 302
    assert told(approval) == ["opened", "assigned by bob"]
    answer = press(ada_in, approval, html=page, **{"$.subject": "my own words"})
    assert answer.status_code == 409
    html = answer.content.decode()
    assert "bob assigned this to ada" in html and "my own words" in html
    assert answer_of(approval) is None


def test_who_looked_at_something_else_hands_nothing_over(ada_in, ada, bob, eve):
    """A8: each form says which revision it was made from."""
    approval = ask()
    seen = str(approval.revision)
    approval.claim(bob)
    for what, typed in (
        ("assignment", {"to": "ada"}),
        ("part-given", {"to": "eve"}),
        ("part-given", {"recall": "1"}),
    ):
        refused = sent(ada_in, approval, what, **typed, revision=seen)
        assert refused.status_code == 409 and "bob claimed this" in refused.content.decode()
    assert told(approval) == ["opened", "claimed by bob"]


def test_after_it_is_reassigned_the_earlier_holder_is_told_by_name(ada_in, ada, bob, person):
    """A8: Ada opens, it is reassigned to Bob, Ada submits."""
    cleo = person("cleo", "pm")
    approval = ask()
    approval.claim(ada)
    page = page_of(ada_in, approval)
    assert sent(as_person(cleo), Approval.objects.get(), "assignment", to="bob").status_code == 302
    answer = press(ada_in, approval, html=page, **{"$.subject": "Ada’s text"})
    assert answer.status_code == 409
    assert "cleo assigned this to bob" in answer.content.decode()
    assert "Ada’s text" in answer.content.decode()


def test_ones_part_is_given_and_taken_back(ada_in, ada, eve):
    approval = ask()
    assert as_person(eve).get(url(approval)).status_code == 404
    assert sent(ada_in, approval, "part-given", to="eve").status_code == 302
    page = page_of(as_person(eve), approval)
    assert "You decide for ada" in page and 'data-key="a"' in page
    page = page_of(ada_in, approval)
    assert "You gave your part in this to eve" in page and "Take it back from eve" in page
    approval.refresh_from_db()
    assert sent(ada_in, approval, "part-given", recall="1").status_code == 302
    assert as_person(eve).get(url(approval)).status_code == 404


def test_what_was_said_for_another_is_shown_so(ada_in, ada, eve):
    approval = ask()
    approval.delegate(ada, to=eve)
    assert press(as_person(eve), approval).status_code == 302
    page = page_of(ada_in, approval)
    assert "eve for ada approved this" in page


@pytest.mark.parametrize("name", ["", "nobody", "bob", "a\0b", "x" * 200])
def test_a_name_that_does_not_fit_is_said_at_the_field_and_kept(ada_in, bob, name):
    """UX: errors keep what was typed."""
    approval = ask()
    answer = sent(ada_in, approval, "part-given", to=name)
    html = answer.content.decode()
    assert answer.status_code == 422
    assert 'id="delegate-error"' in html
    if name == "bob":
        assert 'value="bob"' in html and "may decide this already" in html
    assert told(approval) == ["opened"]


def test_the_deadline_is_moved_by_a_form_that_says_to_when(ada_in):
    approval = ask(due=2 * HOUR)
    due = approval.due_at
    assert (
        fill(ada_in, approval, "deadline", "deadline", minutes="240", reason="on a train").status_code == 302
    )
    approval.refresh_from_db()
    assert approval.due_at == due + 4 * HOUR
    page = page_of(ada_in, approval)
    assert "You moved the deadline to" in page and "on a train" in page


def test_a_deadline_that_cannot_move_says_why_and_keeps_the_reason(ada_in):
    approval = ask(due=2 * HOUR)
    for minutes in ("", "soon", "0", "900000"):
        answer = sent(ada_in, approval, "deadline", minutes=minutes, reason="on a train")
        assert answer.status_code == 422
        assert "on a train" in answer.content.decode()
    assert sent(ada_in, ask(), "deadline", minutes="60").status_code == 409


def test_who_may_not_decide_is_offered_nothing_and_refused(ada, bob):
    """A4: on these paths as on all others."""
    client = as_person(ada)
    approval = ask(run=waiting_run(created_by=ada), due=2 * HOUR)
    page = page_of(client, approval)
    for offer in ("hand-over", "deadline-title", url(approval, "claim")):
        assert offer not in page
    for what, typed in (
        ("assignment", {"to": "bob"}),
        ("part-given", {"to": "bob"}),
        ("deadline", {"minutes": "60"}),
    ):
        answer = sent(client, approval, what, **typed)
        assert answer.status_code == 403
        assert "four eyes" in answer.content.decode()
    assert told(approval) == ["opened"]


def test_a_stranger_gets_no_answer_from_any_of_them(eve):
    """O5"""
    client = as_person(eve)
    approval = ask(due=2 * HOUR)
    for what in ("assignment", "part-given", "deadline"):
        assert sent(client, approval, what, to="eve", minutes="60").status_code == 404


def test_a_signed_decision_asks_for_the_password_and_prints_the_signature(ada_in, ada):
    approval = ask(sign=True)
    page = page_of(ada_in, approval)
    assert "I approve that it is done exactly so" in page and 'autocomplete="current-password"' in page
    answer = press(ada_in, approval, **{"$.subject": "edited", "password": "wrong"})
    html = answer.content.decode()
    assert answer.status_code == 422
    assert "This is not your password" in html and "edited" in html
    assert 'value="wrong"' not in html
    assert press(ada_in, approval, password="ada").status_code == 302
    assert "ada signed at" in page_of(ada_in, approval)
    assert answer_of(approval)["payload"]["subject"] == "edited"


def test_a_signed_rejection_asks_for_it_as_well(ada_in):
    approval = ask(sign=True)
    assert fill(ada_in, approval, "reject", "decision", reason="no", verdict="reject").status_code == 422
    answer = fill(ada_in, approval, "reject", "decision", reason="no", verdict="reject", password="ada")
    assert answer.status_code == 302
    assert answer_of(approval)["outcome"] == "rejected"


def test_the_trail_tells_of_reminders_and_escalation(ada_in, eve):
    from runs import chores

    approval = ask(due=8 * HOUR, escalate={"to": ["eve"], "after": 3600})
    clock.AHEAD = 7.5 * HOUR
    try:
        chores.do_due()
        page = page_of(ada_in, approval)
    finally:
        clock.AHEAD = timedelta()
    assert "Still open: the last hour has begun" in page
    assert "It was still open, so eve may decide as well" in page


def test_the_page_costs_as_many_queries_with_ten_votes_as_with_one(
    ada_in, ada, person, django_assert_max_num_queries
):
    approval = ask(reviewers=(), stages=[stage("pm", quorum=12), stage("finance")])
    for number in range(10):
        approval.decide(by=person(f"voter{number}", "pm"), verdict="approve")
    approval.delegate(ada, to=person("deputy"))
    with django_assert_max_num_queries(26):
        page_of(ada_in, approval)
