"""What the page of an approval shows: all of the effect, of the form and of what was said."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from approvals.forms.values import same
from approvals.history import MOST
from approvals.models import Decision
from runs.models import Checkpoint, LedgerEntry
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import MAIL, answer_of, ask, close, told, waiting_run
from tests.approvals.pages import CALL, page_of, post, press, url
from tests.approvals.test_forms import any_json

pytestmark = pytest.mark.django_db


def test_the_decision_keeps_what_was_on_screen(signed_in):
    """A5"""
    approval = ask(call=CALL)
    press(signed_in, approval)
    seen = json.loads(Decision.objects.get().seen)
    assert (seen["payload"], seen["question"]) == (MAIL, approval.title)


def test_the_effect_stands_on_top_with_recipient_and_all_of_the_text(signed_in):
    body = "First line.\n" + "word " * 400 + "the very end"
    approval = ask({**MAIL, "body": body}, call=CALL)
    page = page_of(signed_in, approval)
    assert "One e-mail goes out." in page
    assert page.index("helen@example.com") < page.index("Who may decide")
    assert page.count("the very end") >= 2  # in the outcome, where it can be opened, and in the form
    assert f"email:{approval.run_id}:brief" in page


def test_what_an_author_wrote_cannot_act_on_the_page(signed_in):
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    approval = ask({"to": evil, evil: evil}, question=evil, why=evil, reasons=[evil])
    page = page_of(signed_in, approval)
    assert "<script>alert" not in page
    assert "<img" not in page


@pytest.mark.once  # a payload is text to either database
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=any_json)
def test_any_payload_can_be_seen_and_is_approved_as_it_was(signed_in, payload):
    """A9: what the page's own form posts, untouched, means the payload."""
    approval = ask(payload)
    html = page_of(signed_in, approval)
    preview = signed_in.post(
        url(approval, "draft"),
        posted_by(html).urlencode(),
        content_type="application/x-www-form-urlencoded",
        headers={"X-Requested-With": "fetch"},
    )
    assert preview.context["page"].draft.errors == {}
    assert not preview.context["page"].draft.is_edited
    assert press(signed_in, approval, html=html).status_code == 302
    assert same(answer_of(approval)["payload"], payload)


def test_rows_of_a_list_come_and_go_without_scripts(signed_in):
    approval = ask({"to": ["a@example.com", "b@example.com"]})
    entries = posted_by(page_of(signed_in, approval))
    entries["remove"] = "$.to[0]"
    page = post(signed_in, url(approval, "draft"), entries).content.decode()
    entries = posted_by(page)
    entries["add"] = "$.to"
    page = post(signed_in, url(approval, "draft"), entries).content.decode()
    assert "This is required" not in page
    press(signed_in, approval, html=page, **{"$.to[n1]": "c@example.com"})
    assert answer_of(approval)["payload"] == {"to": ["b@example.com", "c@example.com"]}


def test_a_preview_for_scripts_is_the_form_alone(signed_in):
    approval = ask()
    entries = {"view": "json", "json": json.dumps({**MAIL, "copies": "many"})}
    answer = signed_in.post(url(approval, "draft"), entries, headers={"X-Requested-With": "fetch"})
    assert answer.content.decode().lstrip().startswith("<section")
    assert told(approval) == ["opened"]


def test_a_comment_stands_in_the_activity_and_decides_nothing(signed_in):
    approval = ask()
    signed_in.post(url(approval, "comments"), {"text": "José reads mail\r\nat seven."})
    assert "José reads mail<br>at seven." in page_of(signed_in, approval)
    assert told(approval) == ["opened", "commented by ada"]


def test_claim_and_release(signed_in):
    approval = ask()
    signed_in.post(url(approval, "claim"))
    assert "Claimed by you" in page_of(signed_in, approval)
    signed_in.post(url(approval, "claim"), {"release": "1"})
    assert told(approval) == ["opened", "claimed by ada", "released by ada"]


def test_a_decided_approval_shows_the_difference_and_no_buttons(signed_in, bob):
    approval = ask()
    approval.decide(by=bob, verdict="edit", payload={**MAIL, "copies": 9})
    page = page_of(signed_in, approval)
    assert "<del>7</del>" in page and "<ins>9</ins>" in page
    assert 'name="verdict"' not in page


def test_parts_are_what_the_page_includes(signed_in):
    approval = ask(due=timedelta(hours=1))
    page = page_of(signed_in, approval)
    for part, root in (("state", "approval-state"), ("people", "approval-people"), ("acts", "approval-acts")):
        answer = signed_in.get(url(approval, "part", part=part)).content.decode()
        assert answer.lstrip().startswith(("<div", "<footer"))
        assert f'id="{root}"' in answer and f'id="{root}"' in page
    assert signed_in.get(url(approval, "part", part="other")).status_code == 404


@pytest.mark.parametrize("many", [2, 12])
def test_an_approval_asks_the_database_a_fixed_number_of_questions(
    signed_in, ada, bob, person, django_assert_max_num_queries, many
):
    approval = ask(run=waiting_run(created_by=bob), quorum=5)
    for number in range(many):
        person(f"pm{number}", "pm")
        approval.comment(ada, f"Comment {number}")
        ask()
    with django_assert_max_num_queries(21):  # PostgreSQL is asked for its clock as well
        signed_in.get(url(approval))
    with django_assert_max_num_queries(10):
        signed_in.get(url(approval, "part", part="state"))


def test_of_a_long_run_the_last_steps_stand_there_and_the_way_to_the_others(signed_in):
    """One approval costs the same whether its run has ten steps or ten thousand."""
    run = waiting_run()
    last = {
        "version": 1,
        "attempt": 0,
        "fence": 1,
        "status": "running",
        "snapshot": False,
        "at": run.created_at,
    }
    rows = [
        Checkpoint(
            run=run,
            seq=seq,
            kind="step",
            step=seq,
            node="odd" if seq % 2 else "even",
            digest=f"{seq:064}",
            **last,
        )
        for seq in range(1, MOST + 3)
    ]
    approval = ask(run=run)
    Checkpoint.objects.bulk_create(rows[:MOST])
    page = page_of(signed_in, approval)
    assert f"{MOST - 5} earlier steps" in page and "before these" not in page
    Checkpoint.objects.bulk_create(rows[MOST:])
    page = page_of(signed_in, approval)
    assert f"{MOST - 5} earlier steps" in page and "What was before these is on the run" in page


def test_a_payload_too_large_for_a_form_can_be_read_and_approved_as_it_is(signed_in):
    """A9"""
    payload = {"text": "word " * 160_000}
    approval = ask(payload)
    page = page_of(signed_in, approval)
    assert "too large to be edited" in page
    assert press(signed_in, approval, html=page).status_code == 302
    assert LedgerEntry.objects.get(pk=approval.entry_id).result_value()["payload"] == payload


def test_a_part_read_again_does_not_move_the_revision_that_one_looked_at(signed_in, bob):
    approval = ask(None, verdicts=["approve", "reject"])
    approval.assign(by=bob, to=bob)
    seen = {"seen": approval.revision - 1}
    acts = signed_in.get(url(approval, "part", part="acts"), seen).content.decode()
    assert f'name="revision" value="{approval.revision - 1}"' in acts
    state = signed_in.get(url(approval, "part", part="state"), seen).content.decode()
    assert "assigned this to bob" in state


@pytest.mark.parametrize(("call", "said"), [(CALL, "nothing is done"), (None, "the run is told so")])
def test_what_happens_without_a_decision_is_said_of_a_question_otherwise_than_of_a_call(
    signed_in, call, said
):
    """What a node does when nobody answers, such as giving money back, its page cannot know."""
    page = page_of(signed_in, ask(call=call, due=timedelta(hours=1)))
    assert f"Without a decision it expires, and {said}" in page


def test_a_question_in_words_that_is_closed_shows_no_empty_card_and_the_words_as_they_were_typed(signed_in):
    approval = ask(None, verdicts=["respond", "reject"])
    page = page_of(signed_in, approval)
    assert "What you are asked" in page
    close(approval, "expired")
    late = press(signed_in, approval, "respond", page, **{"$": "Ask <Helen> first.\nThen me."})
    said = late.content.decode()
    assert late.status_code == 409 and "Your text, not sent" in said
    assert "readonly>\nAsk &lt;Helen&gt; first.\nThen me.</textarea>" in said
    assert "All of it, as JSON" not in said and "What was asked" not in said


def test_the_heading_of_a_proposal_says_what_its_button_does(signed_in):
    assert ">What you approve</h2>" in page_of(signed_in, ask())
    assert ">What is sent</h2>" in page_of(signed_in, ask(call=CALL))
    assert ">Your answer</h2>" in page_of(signed_in, ask(verdicts=["respond"]))
