from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.db.models import F
from django.http import QueryDict
from django.test import Client
from django.urls import reverse
from hypothesis import HealthCheck, given, settings

from approvals.forms.values import same
from approvals.listing import Filter, Listing
from approvals.models import Approval, Decision
from runs.engine import clock
from runs.models import LedgerEntry
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import MAIL, answer_of, ask, told, waiting_run
from tests.approvals.test_forms import any_json

pytestmark = pytest.mark.django_db

CALL = {
    "tool": "send_email",
    "kind": "write",
    "key": "email:{run_id}:brief",
    "description": "One e-mail goes out.",
}


@pytest.fixture
def signed_in(client: Client, ada) -> Client:
    client.force_login(ada)
    return client


def as_person(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def url(approval: Approval, what: str = "approval", **more) -> str:
    return reverse(f"approvals:{what}", kwargs={"pk": approval.pk, **more})


def page_of(client: Client, approval: Approval) -> str:
    answer = client.get(url(approval))
    assert answer.status_code == 200
    return answer.content.decode()


def post(client: Client, address: str, entries: QueryDict):
    """As browsers send a form: several values of one name are several pairs."""
    return client.post(address, entries.urlencode(), content_type="application/x-www-form-urlencoded")


def press(client: Client, approval: Approval, verdict: str = "approve", html: str = "", **typed):
    """Open the page, type, press the button, as a browser without scripts does."""
    entries = posted_by(html or page_of(client, approval), **typed)
    entries["verdict"] = verdict
    return post(client, url(approval, "decision"), entries)


def overdue(approval: Approval) -> None:
    past = clock.now() - timedelta(hours=2)
    LedgerEntry.objects.filter(pk=approval.entry_id).update(due_at=past)
    Approval.objects.filter(pk=approval.pk).update(due_at=past)


# -- deciding -----------------------------------------------------------------------------------------------


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


# -- refused, with nothing lost -----------------------------------------------------------------------------


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
        for _time in range(5):
            signed_in.get(url(approval, path), {"verdict": "approve"})
            signed_in.head(url(approval, path))
    assert told(approval) == ["opened"]


def test_a_form_from_another_site_is_refused(ada):
    approval = ask()
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post(url(approval, "decision"), {"verdict": "approve"}).status_code == 403
    assert told(approval) == ["opened"]


# -- what the page shows ------------------------------------------------------------------------------------


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
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(payload=any_json)
def test_any_payload_can_be_seen_and_is_approved_as_it_was(signed_in, payload):
    """A9: what the page's own form posts, untouched, means the payload."""
    approval = ask(payload)
    html = page_of(signed_in, approval)
    preview = post(signed_in, url(approval, "draft"), posted_by(html))
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


# -- the inbox ----------------------------------------------------------------------------------------------


def test_the_inbox_is_grouped_by_deadline(signed_in):
    late = ask(question="Late?", due=timedelta(hours=1))
    overdue(late)
    ask(question="Later?", due=timedelta(days=3))
    ask(question="Whenever?")
    page = signed_in.get("/").content.decode()
    order = [page.index(word) for word in ("Overdue", "Late?", "Later", "Later?", "No deadline", "Whenever?")]
    assert order == sorted(order)


def test_badge_header_and_list_give_one_number(signed_in, ada, bob):
    """A10"""
    for number in range(7):
        ask(run=waiting_run(created_by=ada if number % 3 == 0 else bob), quorum=1 + number % 2)
    listing = Listing(ada, Filter())
    badge = signed_in.get("/inbox/count/").content.decode()
    assert len(listing.rows) == listing.count.number == listing.mine.number
    assert listing.mine.number == Approval.objects.mine(ada).count()
    assert f'value="{listing.count}"' in badge


def test_the_address_carries_the_filter(signed_in):
    ask(question="Send it?", risk="high", run=waiting_run(graph="mailing"))
    ask(question="Refund it?", risk="low", run=waiting_run(graph="refunds"))
    for query, there, gone in (
        ("?risk=high", "Send it?", "Refund it?"),
        ("?graph=refunds", "Refund it?", "Send it?"),
        ("?q=refund", "Refund it?", "Send it?"),
    ):
        page = signed_in.get(f"/{query}").content.decode()
        assert there in page and gone not in page


def test_a_filter_that_fits_nothing_says_how_to_leave_it(signed_in):
    ask()
    page = signed_in.get("/?q=zeppelin").content.decode()
    assert "Nothing fits the filter" in page


@pytest.mark.parametrize(
    "query", ["?scope=nonsense", "?risk=7", "?until=x", "?decided=x", "?q=%00", "?graph=%00"]
)
def test_an_address_typed_wrong_is_no_error(signed_in, query):
    assert signed_in.get(f"/{query}", follow=True).status_code == 200


def test_what_is_new_waits_behind_its_number(signed_in, ada):
    ask(question="First?")
    until = Listing(ada, Filter()).until_text
    ask(question="Second?")
    said = {"until": until}
    assert "1 new" in signed_in.get("/inbox/new/", said).content.decode()
    rows = signed_in.get("/inbox/list/", said).content.decode()
    assert "First?" in rows and "Second?" not in rows


def test_what_others_decide_meanwhile_stays_where_it_was(signed_in, ada, bob):
    first, _second = ask(question="First?"), ask(question="Second?")
    until = Listing(ada, Filter()).until_text
    first.decide(by=bob, verdict="reject", reason="No.")
    rows = signed_in.get("/inbox/list/", {"until": until}).content.decode()
    assert rows.index("First?") < rows.index("Second?")
    assert 'data-outcome="rejected"' in rows


def test_the_scopes_show_what_their_name_says(signed_in, ada, bob, person):
    person("zoe", "legal")
    ask(question="For pm?")
    mine = ask(question="For Ada?", reviewers=("ada",))
    stuck = ask(question="For nobody?", reviewers=("ghosts", "ada"), quorum=2)
    done = ask(question="Done?")
    done.decide(by=bob, verdict="approve")
    shown = {
        scope: {row.title for row in Listing(ada, Filter(scope=scope)).rows}
        for scope in ("mine", "teams", "all", "attention", "decided")
    }
    assert shown == {
        "mine": {"For pm?", mine.title, stuck.title},
        "teams": {"For pm?"},
        "all": {"For pm?", mine.title, stuck.title},
        "attention": {stuck.title},
        "decided": {"Done?"},
    }


# -- budgets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [2, 12])
def test_the_inbox_asks_the_database_a_fixed_number_of_questions(
    signed_in, ada, bob, django_assert_max_num_queries, many
):
    for _number in range(many):
        ask(run=waiting_run(created_by=bob))
    with django_assert_max_num_queries(26):
        signed_in.get("/")


@pytest.mark.parametrize("many", [2, 12])
def test_an_approval_asks_the_database_a_fixed_number_of_questions(
    signed_in, ada, bob, person, django_assert_max_num_queries, many
):
    approval = ask(run=waiting_run(created_by=bob), quorum=5)
    for number in range(many):
        person(f"pm{number}", "pm")
        approval.comment(ada, f"Comment {number}")
        ask()
    with django_assert_max_num_queries(34):  # PostgreSQL is asked for its clock as well
        signed_in.get(url(approval))
    with django_assert_max_num_queries(14):
        signed_in.get(url(approval, "part", part="state"))


def test_a_row_that_is_not_read_again_is_not_counted_twice(signed_in, ada):
    """The badge of a page is the number in its header: one reading."""
    ask()
    Approval.objects.update(revision=F("revision"))
    page = signed_in.get("/").content.decode()
    assert page.count('<data class="count" id="inbox-count" value="1"') == 1


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
