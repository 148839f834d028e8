from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.test import Client

from approvals.bulk import MOST, Pick, Selection, decide_all, picks_of
from approvals.differing import compared
from approvals.models import Approval, Decision
from runs.engine import clock
from runs.errors import Invalid
from runs.models import LedgerEntry
from tests.amounts import THOROUGH
from tests.approvals.browser_post import posted_by
from tests.approvals.cases import MAIL, answer_of, ask, told, waiting_run
from tests.approvals.pages import CALL, post

pytestmark = pytest.mark.django_db


def picked(*approvals: Approval) -> list[Pick]:
    return [Pick(approval.pk, approval.revision) for approval in approvals]


def query(*approvals: Approval) -> str:
    return "&".join(f"pick={pick}" for pick in picked(*approvals))


def overdue(approval: Approval) -> None:
    past = clock.now() - timedelta(hours=2)
    LedgerEntry.objects.filter(pk=approval.entry_id).update(due_at=past)
    Approval.objects.filter(pk=approval.pk).update(due_at=past)


def press(client: Client, html: str, verdict: str = "approve", **typed: str):
    entries = posted_by(html, form_id="bulk", **typed)
    entries["verdict"] = verdict
    return post(client, "/inbox/bulk/", entries)


def outcomes(page: str) -> tuple[str, list[str]]:
    """The headline, and each item that was left out with its reason."""
    headline = re.search(r"<h1[^>]*>(.*?)</h1>", page)[1]
    left = re.search(r'class="bulk-refused">(.*?)</ul>', page, re.DOTALL)
    return headline, re.findall(r"<span>(.*?)</span>", left[1]) if left else []


def test_of_as_many_as_may_be_three_changed_meanwhile_and_the_others_are_decided(ada, bob, signed_in):
    """A12"""
    many = MOST if THOROUGH else 30
    approvals = [ask({**MAIL, "copies": number}, question=f"Send {number}?") for number in range(many)]
    page = signed_in.get(f"/inbox/bulk/?{query(*approvals)}").content.decode()
    approvals[7].decide(by=bob, verdict="reject", reason="Not this one.")
    approvals[8].assign(by=bob, to=bob)
    overdue(approvals[9])
    done = press(signed_in, page, number=str(many))
    headline, left = outcomes(done.content.decode())
    assert headline == f"{many - 3} approved, 3 not"
    assert "bob rejected this" in left[0] and "assigned this to bob" in left[1] and "deadline" in left[2]
    assert Decision.objects.filter(by=ada, via="bulk", verdict="approve").count() == many - 3
    for number in (0, many // 2, many - 1):
        assert answer_of(approvals[number])["payload"] == {**MAIL, "copies": number}
    for number, kind in ((7, "refused by ada"), (8, "refused by ada"), (9, "late by ada")):
        assert told(approvals[number])[-1] == kind


def test_the_frozen_list_is_what_was_selected(signed_in, bob):
    """What comes to the inbox afterwards, or changes after it was selected, is not decided along with it."""
    first, second = ask(question="First?"), ask(question="Second?")
    selected = query(first, second)
    second.assign(by=bob, to=bob)
    other = ask(question="Third?")
    page = signed_in.get(f"/inbox/bulk/?{selected}").content.decode()
    assert "has changed since you looked at it" in page and "1 of 2" in page
    press(signed_in, page)
    assert [answer_of(each) is not None for each in (first, second, other)] == [True, False, False]


def test_the_dry_run_says_what_would_happen_to_each(ada, bob, person):
    fine, asks_more = ask(), ask(quorum=2)
    words = ask(None, verdicts=["respond"])
    own, others = (
        ask(run=waiting_run(created_by=ada)),
        ask(reviewers=("ops",), run=waiting_run(created_by=ada)),
    )
    late, signed, voted, decided = ask(due=timedelta(hours=1)), ask(sign=True), ask(quorum=2), ask()
    overdue(late)
    voted.decide(by=ada, verdict="approve")
    decided.decide(by=bob, verdict="reject", reason="no")
    wrong = ask(objection="No vendor of ours.")
    stage = {"quorum": 1, "when": None, "needed": True}
    staged = [{"name": name, "reviewers": [name], **stage} for name in ("pm", "heads")]
    ordered = ask(reviewers=(), stages=staged)
    last = ask(reviewers=(), stages=[staged[0], {**staged[1], "needed": False}])
    approvals = [fine, asks_more, words, own, others, late, signed, voted, decided, wrong, ordered, last]
    fresh = [Approval.objects.get(pk=each.pk) for each in approvals]
    items = Selection(picked(*fresh), ada).items
    said = [(item.forecasts["approve"].is_refused, item.forecasts["approve"].words) for item in items]
    expected = [
        (False, "Approved; starts in"),
        (False, "Your vote counts, 1 of 2"),
        (True, "wants an answer"),
        (True, "four eyes"),
        (True, "four eyes"),
        (True, "deadline"),
        (True, "signed"),
        (True, "You have voted"),
        (True, "bob rejected this"),
        (True, "may not be approved as it is: No vendor"),
        (False, "Your vote counts; it waits for others"),
        (False, "Approved; starts in"),
    ]
    assert [item.forecasts["approve"].is_vote for item in items] == [
        "vote counts" in text for _refused, text in said
    ]
    for (refused, text), (must, part) in zip(said, expected, strict=True):
        assert refused is must and part in text, text
    before = [told(each) for each in approvals]
    results = decide_all(
        picked(*fresh), by=ada, verdict="approve", reason="", operation_id="op", signed_in="password"
    )
    assert [not result.is_done for result in results] == [must for must, _part in expected]
    assert [result.is_vote for result in results] == [item.forecasts["approve"].is_vote for item in items]
    assert [len(told(each)) > len(trail) for each, trail in zip(approvals, before, strict=True)][:2] == [
        True
    ] * 2


def test_what_one_may_not_see_is_neither_shown_nor_decided(signed_in, ada):
    """O5"""
    hidden, mine = ask(question="Hidden?", reviewers=("ops",)), ask(question="Mine?")
    page = signed_in.get(f"/inbox/bulk/?{query(hidden, mine)}").content.decode()
    assert "Hidden?" not in page and "1 is not there any more" in page
    done = press(signed_in, page).content.decode()
    assert outcomes(done)[0] == "1 approved, 1 not"
    assert "Hidden?" not in done
    assert told(hidden) == ["opened"]
    only = signed_in.get(f"/inbox/bulk/?{query(hidden)}").content.decode()
    assert "Nothing of it is there any more" in only


def test_rejecting_needs_one_reason_which_reaches_every_run(signed_in):
    """A13"""
    first, second = ask(reasons=["Too long", "Wrong"]), ask(reasons=["Wrong"])
    page = signed_in.get(f"/inbox/bulk/?{query(first, second)}").content.decode()
    assert 'value="Wrong"' in page and 'value="Too long"' not in page
    refused = press(signed_in, page, "reject")
    assert refused.status_code == 422
    assert "Choose or write a reason." in refused.content.decode()
    assert told(first) == ["opened"]
    press(signed_in, refused.content.decode(), "reject", preset="Wrong", reason="See the\r\nletter ")
    assert {answer_of(each)["reason"] for each in (first, second)} == {"Wrong\nSee the\nletter "}


def test_above_ten_their_number_is_typed(signed_in):
    approvals = [ask() for _ in range(11)]
    page = signed_in.get(f"/inbox/bulk/?{query(*approvals)}").content.decode()
    for typed in ("", "10", "eleven"):
        refused = press(signed_in, page, number=typed)
        assert refused.status_code == 422
        assert "Type 11" in refused.content.decode()
    assert not Decision.objects.exists()
    assert outcomes(press(signed_in, page, number=" 11 ").content.decode())[0] == "11 approved"
    few = signed_in.get(f"/inbox/bulk/?{query(ask())}").content.decode()
    assert 'name="number"' not in few


def test_the_same_form_sent_twice_decides_once_and_tells_the_same(signed_in):
    approvals = [ask(), ask(quorum=2)]
    page = signed_in.get(f"/inbox/bulk/?{query(*approvals)}").content.decode()
    first, second = press(signed_in, page).content.decode(), press(signed_in, page).content.decode()
    assert outcomes(first) == outcomes(second) == ("1 approved, 1 with your vote", [])
    assert Decision.objects.count() == 2


def test_all_of_it_can_be_undone_at_once(signed_in, ada):
    """S13: what a run has taken meanwhile is told, the others are open again."""
    decided, vote, taken = ask(), ask(quorum=2), ask()
    page = signed_in.get(f"/inbox/bulk/?{query(decided, vote, taken)}").content.decode()
    done = press(signed_in, page).content.decode()
    LedgerEntry.objects.filter(pk=taken.entry_id).update(taken_at=clock.now())
    entries = re.findall(r'name="pick" value="([^"]+)"', done)
    undone = signed_in.post("/inbox/bulk/undo/", {"pick": entries}).content.decode()
    headline, left = outcomes(undone)
    assert headline == "2 taken back, 1 not"
    assert len(left) == 1
    assert told(decided)[-1] == "undone by ada" and told(vote)[-1] == "taken_back by ada"
    assert answer_of(taken)["outcome"] == "approved"


def test_looking_at_the_list_decides_nothing(signed_in):
    """A2"""
    approval = ask()
    for _ in range(5):
        signed_in.get(f"/inbox/bulk/?{query(approval)}&verdict=approve")
        signed_in.head(f"/inbox/bulk/?{query(approval)}&verdict=approve")
        assert signed_in.get(f"/inbox/bulk/undo/?{query(approval)}").status_code == 302
    assert told(approval) == ["opened"]


@pytest.mark.parametrize("odd", ["x", "1.1", "0" * 32, "%00", "zz" * 16 + ".1", "0" * 32 + ".x"])
def test_a_selection_typed_wrong_is_refused_and_no_error(signed_in, odd):
    assert signed_in.get(f"/inbox/bulk/?pick={odd}").status_code == 422
    assert signed_in.post("/inbox/bulk/", {"pick": odd, "verdict": "approve"}).status_code == 422
    assert signed_in.post("/inbox/bulk/undo/", {"pick": odd}).status_code == 422


def test_more_than_a_hundred_are_refused(signed_in):
    many = [f"{number:032x}.1" for number in range(101)]
    with pytest.raises(Invalid, match="100 are the most"):
        picks_of(many)
    assert "100 are the most" in signed_in.get("/inbox/bulk/", {"pick": many}).content.decode()
    assert signed_in.get("/inbox/bulk/?scope=teams").url == "/?scope=teams"


def test_what_is_the_same_is_told_once_and_what_differs_side_by_side(ada):
    approvals = [
        ask({"to": name, "amount": amount, "currency": "EUR", "text": "word " * 90}, call=CALL)
        for name, amount in (("Ada", 7), ("Bob", 8), ("Eve", 9))
    ]
    left_out = ask({"something": "else"}, sign=True)
    found = compared(Selection(picked(*approvals, left_out), ada).items)
    assert {"Currency", "Text", "Graph", "Tool"} <= {cell.label for cell in found.same}
    assert found.columns == found.differing == ["To", "Amount"]
    assert [[cell.text for cell in row.cells] for row in found.rows] == [
        ["Ada", "7"],
        ["Bob", "8"],
        ["Eve", "9"],
        ["–", "–"],
    ]


def test_what_differs_without_a_column_of_its_own_is_named(ada):
    payloads = [{f"field{number}": value for number in range(9)} for value in (1, 2)]
    found = compared(Selection(picked(*(ask(each) for each in payloads)), ada).items)
    assert len(found.columns) == 4 and len(found.differing) == 9


def test_all_of_a_payload_can_be_read_before_it_is_decided(signed_in, ada):
    """A5: nothing is approved that could not be seen, and what was seen is kept with the decision."""
    body = "word " * 400 + "the very end"
    first, second = ask({**MAIL, "body": body}, call=CALL), ask(call=CALL)
    page = signed_in.get(f"/inbox/bulk/?{query(first, second)}").content.decode()
    assert "the very end" in page and "One e-mail goes out." in page
    press(signed_in, page)
    assert "the very end" in Decision.objects.get(approval=first).seen


@pytest.mark.parametrize("many", [2, 30])
def test_the_list_asks_the_database_a_fixed_number_of_questions(
    signed_in, bob, eve, django_assert_max_num_queries, many
):
    approvals = [ask(run=waiting_run(created_by=eve), quorum=2) for _ in range(many)]
    approvals[0].decide(by=bob, verdict="reject", reason="no")
    address = f"/inbox/bulk/?{query(*approvals)}"
    with django_assert_max_num_queries(22):
        assert signed_in.get(address).status_code == 200


def test_what_an_author_wrote_cannot_act_on_the_list(signed_in):
    evil = "<script>alert(1)</script>"
    approvals = [
        ask({"to": f"{evil}{number}", evil: evil}, question=evil, why=evil, reasons=[evil])
        for number in (1, 2)
    ]
    assert "<script>alert" not in signed_in.get(f"/inbox/bulk/?{query(*approvals)}").content.decode()


def test_an_address_is_not_broken_in_two(ada):
    texts = ["helen.obi@example.com", "helen@a.example, jose@b.example", "a" * 40 + "@example.com", "7"]
    found = compared(Selection(picked(*(ask({"to": text}) for text in texts)), ada).items)
    assert [row.cells[0].is_short for row in found.rows] == [True, False, False, True]
