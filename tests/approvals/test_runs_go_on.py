"""What people say, and what the run then does: both sides for real, over the engine's own claim and drive."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from approvals.chain import first_break
from approvals.models import Approval
from runs import END, Ask, Expired, Graph, Rejected, Retry, Transient, start, tool
from runs.core import codec
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.errors import Conflict, Invalid
from runs.models import LedgerEntry
from tests.approvals.cases import answer_of, ask, told
from tests.approvals.pages import as_person, page_of
from tests.at_once import at_once
from tests.runs.driving import drive, killed_at, pass_lease, pass_time, registered

pytestmark = pytest.mark.django_db(transaction=True)

MAIL = {"to": "helen@example.com", "copies": 7, "note": "as agreed"}
sent: list[tuple[str, int, str]] = []


@tool(kind="write", honours_key=True)
def post(to: str, copies: int, note: str = "as agreed", *, idempotency_key: str) -> str:
    """Post a letter."""
    sent.append((to, copies, note))
    return "posted"


posting = Graph("posting", viewers="pm", operators="ops")


@posting.node(then=(END,))
def letter(run, state):
    try:
        run.call(
            post,
            key="post:{run_id}",
            to="helen@example.com",
            copies=7,
            approve=Ask("Post the letter?", reviewers="pm", due=timedelta(hours=1)),
        )
    except Rejected as no:
        state["rejected"] = [no.reason, no.by]
    except Expired:
        state["expired"] = True
    return END


@pytest.fixture(autouse=True)
def served() -> Iterator[None]:
    sent.clear()
    with registered(posting):
        yield
    clock.AHEAD = timedelta()


@pytest.fixture
def asked():
    """A run that waits for people, and its approval."""
    run = start("posting", {})
    drive(run)
    assert run.status == "waiting"
    return run, Approval.objects.get(run=run)


def test_the_page_shows_the_arguments_that_the_effect_will_have(asked, ada):
    """A5: bound, validated, after defaults; their digest equals the effect's."""
    run, approval = asked
    assert approval.payload == MAIL
    approval.decide(by=ada, verdict="approve")
    pass_time(10)
    drive(run)
    assert run.status == "completed"
    assert sent == [("helen@example.com", 7, "as agreed")]
    effect = LedgerEntry.objects.get(run=run, kind="effect")
    assert effect.request_digest == approval.proposal_digest
    assert effect.decided_by == approval.entry


def test_what_was_approved_with_edits_is_byte_for_byte_what_runs(asked, ada):
    """P8, A13"""
    run, approval = asked
    edited = {**MAIL, "to": "jos\u00e9@example.com", "copies": 8}
    decision = approval.decide(by=ada, verdict="edit", payload=edited)
    pass_time(10)
    drive(run)
    assert sent == [("jos\u00e9@example.com", 8, "as agreed")]
    assert LedgerEntry.objects.get(run=run, kind="effect").request == decision.payload == codec.dumps(edited)


@pytest.mark.parametrize(
    "payload",
    [
        {**MAIL, "copies": "many"},
        {**MAIL, "bcc": "x"},
        {"to": "a", "copies": 1},
        {"to": "a", "note": "b"},
        [],
    ],
)
def test_an_edit_that_the_tool_cannot_take_is_refused(asked, ada, payload):
    """A9: also a key that has a default, for the person who left it out did not see what it would be."""
    run, approval = asked
    with pytest.raises(Invalid) as refused:
        approval.decide(by=ada, verdict="edit", payload=payload)
    assert refused.value.fields
    assert answer_of(approval) is None
    assert drive(run) is None
    assert sent == []


def test_a_rejection_reaches_the_node_and_nothing_is_sent(asked, ada):
    """A1, A13: with a kill before the node saw it, and one when it was about to commit."""
    run, approval = asked
    approval.decide(by=ada, verdict="reject", reason="  not \x00 now\r\n")
    pass_time(10)
    killed_at(run, "node")
    killed_at(run, "commit complete")
    for _time in range(5):
        drive(run)
        pass_lease()
    assert run.status == "completed"
    assert told(approval) == ["opened", "reject by ada"]
    assert run.state_at(run.seq)["rejected"] == ["  not \x00 now\r\n", "ada"]
    assert sent == []
    assert not LedgerEntry.objects.filter(run=run, kind="effect").exists()


def test_the_deadline_closes_the_approval_for_all(asked, ada):
    run, approval = asked
    pass_time(3601)
    drive(run)
    approval.refresh_from_db()
    assert approval.outcome == "expired"
    assert run.state_at(run.seq)["expired"] is True
    with pytest.raises(Conflict, match="Too late"):
        approval.decide(by=ada, verdict="approve")
    assert told(approval) == ["opened", "expired", "late by ada"]
    assert sent == []


def test_a_run_that_is_cancelled_closes_its_approval(asked, ada):
    run, approval = asked
    run.cancel(by="olga", reason="not needed")
    approval.refresh_from_db()
    assert approval.outcome == "cancelled"
    with pytest.raises(Conflict, match="cancelled"):
        approval.decide(by=ada, verdict="approve")


def test_undone_inside_the_window_nothing_was_sent_although_the_run_was_woken(asked, ada):
    """S13: another answer of the same run wakes it at 1 s; the undo at 5 s still holds."""
    run, approval = asked
    approval.decide(by=ada, verdict="approve")
    other = ask({"n": 1}, run=run)
    other.decide(by=ada, verdict="reject", reason="no")
    pass_time(1)
    assert drive(run) is None
    pass_time(4)
    approval.undo(ada)
    pass_time(20)
    assert drive(run) is None
    assert sent == []
    assert Approval.objects.get(pk=approval.pk).is_open


def test_at_the_border_of_the_window_either_the_undo_or_the_claim_wins(ada):
    """S13: never both."""
    for _ in range(8):
        run = start("posting", {})
        drive(run)
        approval = Approval.objects.get(run=run)
        approval.decide(by=ada, verdict="approve")
        pass_time(8.01)
        undone, taken = at_once(
            lambda: approval.undo(ada),  # noqa: B023
            lambda: Claimer("w2").claim(alone=True, only=run.pk),  # noqa: B023
        )
        entry = LedgerEntry.objects.get(pk=approval.entry_id)
        if isinstance(undone, Conflict):
            assert taken is not None
            assert entry.taken_at is not None
            assert "Too late to undo" in str(undone)
        else:
            assert undone is None, undone
            assert taken is None
            assert (entry.status, entry.taken_at) == ("open", None)
        assert first_break(Approval.objects.get(pk=approval.pk)) is None


def test_of_two_answers_at_the_same_moment_one_is_driven_and_its_effect_happens_once(ada, bob):
    """S9: both attempts are in the trail, and the run does what the one that won had said, once."""
    for _ in range(4):
        sent.clear()
        run = start("posting", {})
        drive(run)
        approval = Approval.objects.get(run=run)
        ends = at_once(
            *(
                lambda by=by, approval=approval: Approval.objects.get(pk=approval.pk).decide(
                    by=by, verdict="approve", revision=1
                )
                for by in (ada, bob)
            )
        )
        (won,) = [end for end in ends if not isinstance(end, Exception)]
        assert [type(end) for end in ends if isinstance(end, Exception)] == [Conflict]
        other = bob if won.by == ada else ada
        assert told(approval) == ["opened", f"approve by {won.by}", f"refused by {other}"]
        pass_time(60)
        drive(run)
        assert drive(run) is None
        assert (run.status, sent) == ("completed", [tuple(MAIL.values())])
        assert run.entries.get(kind="effect").decided_by_id == approval.entry_id


def test_no_retry_takes_a_decision_from_the_page_or_the_trail(ada):
    """A14: a node that was answered fails, is tried again, and fails for good; it is asked once.

    A fork asks anew, and a repaired run goes on with what was decided; the decision stays where it was made.
    """
    tries: list[int] = []
    shaky = Graph("shaky", viewers="pm")

    @shaky.node(then=END, retry=Retry(attempts=3, first=1))
    def print_it(run, state):
        run.interrupt("Print it?", payload={"copies": 7}, reviewers="pm")
        tries.append(run.step)
        if len(tries) < 4:
            raise Transient("the printer is out of paper")

    with registered(shaky):
        run = start("shaky", {})
        drive(run)
        approval = Approval.objects.get(run=run)
        approval.decide(by=ada, verdict="approve")
        decided = approval.decisions.get()
        pass_time(60)
        for status in ("retrying", "retrying", "failed"):
            drive(run)
            assert run.status == status
            assert Approval.objects.get(run=run) == approval
            assert approval.decisions.get().digest == decided.digest and first_break(approval) is None
            assert told(approval) == ["opened", "approve by ada"]
            assert "You approved this" in page_of(as_person(ada), approval)
            pass_time(60)
        assert len(tries) == 3
        fork = run.fork("olga", "ask for another copy")
        drive(fork)
        assert (fork.status, Approval.objects.get(run=fork).is_open) == ("waiting", True)
        run.retry("olga", "there is paper")
        drive(run)
        assert (run.status, len(tries)) == ("completed", 4)
        assert Approval.objects.get(run=run) == approval
        assert told(approval) == ["opened", "approve by ada"] and first_break(approval) is None
        assert "You approved this" in page_of(as_person(ada), approval)


def test_a_question_that_closed_with_its_run_is_asked_anew_by_a_repair_beside_the_old_one(ada):
    """A14: a new approval, and what people said to the old one stays on its page and in its trail."""
    asked = Graph("asked-again", viewers="pm")

    @asked.node(then=END)
    def send_it(run, state):
        answers = run.gather(
            Ask("First?", name="first", reviewers="pm"), Ask("Second?", name="second", reviewers="pm")
        )
        state["said"] = [answer.verdict for answer in answers]

    with registered(asked):
        run = start("asked-again", {})
        drive(run)
        first = Approval.objects.get(run=run, entry__key="first")
        second = Approval.objects.get(run=run, entry__key="second")
        first.decide(by=ada, verdict="approve")
        second.comment(by=ada, text="wait for the price")
        run.refresh_from_db()
        run.cancel("olga", "too early")
        run.retry("olga", "the price is known")
        drive(run)
        again = Approval.objects.get(run=run, entry__key="second~2")
        assert again.is_open and Approval.objects.filter(run=run).count() == 3
        second.refresh_from_db()
        assert (second.outcome, told(second)) == ("cancelled", ["opened", "commented by ada", "closed"])
        again.decide(by=ada, verdict="reject", reason="too dear")
        pass_time(60)
        drive(run)
        assert (run.status, run.state_at()["said"]) == ("completed", ["approve", "reject"])
        for approval in (first, second, again):
            assert first_break(approval) is None
        assert "You approved this" in page_of(as_person(ada), first)
        assert "wait for the price" in page_of(as_person(ada), second)
