"""Undo, cancel and settle, at the border between done and undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from runs import (
    Ask,
    Graph,
    start,
)
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, TooEarly
from runs.models import LedgerEntry, Run
from tests.amounts import THOROUGH
from tests.at_once import at_once
from tests.runs.driving import answer, claim, drive, pass_call, pass_time, registered, undo
from tests.runs.posting import send, send_blindly, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_an_undo_and_a_claim_at_the_border_of_the_window_never_both_win():
    """S13, many rounds. In the first two one comes after the other, so that each end is surely seen once."""
    graph = Graph("border", state=Log)

    @graph.node
    def deliver(run, state):
        state.log.append(run.call(send, text="x", approve=Ask("Send it?")))

    with registered(graph):
        seen: Counter[str] = Counter()
        for turn in range(rounds := 60 if THOROUGH else 16):
            sent.clear()
            run = start("border", {})
            drive(run)
            entry = answer(run, undo=5)
            pass_time(5.01)
            acts = [
                lambda run=run, entry=entry: undo(run, entry),
                lambda run=run: drive(Run.objects.get(pk=run.pk)),
            ]
            do = at_once if turn > 1 else one_after_the_other
            undone = do(*(acts if turn % 2 else acts[::-1]))[0 if turn % 2 else 1]
            run.refresh_from_db()
            entry.refresh_from_db()
            if isinstance(undone, Conflict):
                if run.status == "waiting":  # the claim that won the row was for the undo's transaction
                    drive(run)
                assert (run.status, sent) == ("completed", ["x"])
                seen["sent"] += 1
            else:
                assert undone == "open"
                assert (run.status, entry.status, sent) == ("waiting", "open", [])
                seen["undone"] += 1
                answer(run)
                drive(run)
                assert (run.status, sent) == ("completed", ["x"]), "and the run goes on"
        assert sum(seen.values()) == rounds
        assert seen["sent"] and seen["undone"], "the claim came first, and so did the undo"


def one_after_the_other(*acts: Callable[[], Any]) -> list[Any]:
    return [end for act in acts for end in at_once(act)]


def test_cancelling_while_an_answer_is_not_taken_yet_sends_nothing_and_the_answer_cannot_be_undone():
    graph = Graph("late cancel", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(send, text="x", approve=Ask("Send it?"))

    with registered(graph):
        run = start("late cancel", {})
        drive(run)
        entry = answer(run, undo=8)
        run.cancel("user olga", "changed our minds")
        with pytest.raises(Conflict, match="Too late to undo: run .* has ended"):
            undo(run, entry)
        pass_time(60)
        assert claim(run) is None
    entry.refresh_from_db()
    assert (run.status, sent, entry.status, entry.taken_at) == ("cancelled", [], "done", None)
    assert run.entries.filter(kind="effect").count() == 0


losing = Graph("losing", state=Log, operators="ops")


@losing.node
def lose(run, state):
    state.log.append(run.call(send_blindly, text="lost"))


def settle(run: Run, entry: LedgerEntry, outcome: str) -> LedgerEntry:
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        held = LedgerEntry.objects.get(pk=entry.pk)
        held.settle(locked, "olga", outcome, "it did", "looked", now)
        return held


def test_cancelling_a_run_in_doubt_keeps_the_doubt_closes_its_question_and_it_is_settled_once():
    with registered(losing):
        run = start("losing", {})
        drive(run)
        pass_call()
        drive(run)
        doubted = run.entries.get(kind="effect")
        assert doubted.status == "in_doubt"
        run.cancel("user olga", "enough")
        assert run.entries.get(kind="interrupt").status == "cancelled"
        doubted.refresh_from_db()
        assert doubted.status == "in_doubt"
        ends = at_once(lambda: settle(run, doubted, "happened"), lambda: settle(run, doubted, "give_up"))
        assert sum(isinstance(end, Conflict) for end in ends) == 1
        with pytest.raises(Conflict):
            settle(run, doubted, "happened")
    run.refresh_from_db()
    assert (run.status, run.wake_at, sent) == ("cancelled", None, ["lost"])


@pytest.mark.parametrize("outcome", ["happened", "not_happened", "give_up"])
def test_what_is_settled_after_the_end_is_in_the_trail_which_holds(outcome, client, olga):
    """An ended run has no later checkpoint that would cover it, so it leaves one of its own."""
    with registered(losing):
        run = start("losing", {})
        drive(run)
        run.cancel("user olga", "enough")
        pass_call()
        head = run.head
        settled = settle(run, run.entries.get(kind="effect"), outcome)
        run.refresh_from_db()
        last = run.checkpoints.order_by("seq").last()
        client.force_login(olga)
        page = client.get(f"/runs/{run.pk}/").content.decode()
    assert (last.kind, last.status, last.actor, last.reason) == ("settle", "cancelled", "olga", "looked")
    assert settled.status != "in_doubt" and run.head == last.digest != head
    assert first_bad_row(run) is None
    assert "What was in doubt was settled by olga: looked" in page
    LedgerEntry.objects.filter(pk=settled.pk).update(answered_by="somebody")
    assert "was changed after checkpoint" in first_bad_row(run)


def test_cancelling_while_the_call_may_be_under_way_makes_it_in_doubt_and_settling_is_too_early():
    with registered(losing):
        run = start("losing", {})
        drive(run)
        run.cancel("user olga", "enough")
        doubted = run.entries.get(kind="effect")
        assert doubted.status == "in_doubt"
        with pytest.raises(TooEarly, match="until"):
            settle(run, doubted, "not_happened")
        doubted.refresh_from_db()
        assert doubted.status == "in_doubt"
        pass_call()
        assert settle(run, doubted, "not_happened").status == "cancelled", "an ended run calls nothing"
        assert claim(run) is None
    assert sent == ["lost"]
