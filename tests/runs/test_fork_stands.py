"""Answers on which something stands: a fork and a retry take them over, so that nothing is done a second time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from runs import Ask, EffectFailed, Graph, Rejected, TimedOut, start, tool
from runs.engine.carrying import GATHER_THREADS
from tests.runs.driving import answer, are_sound, drive, pass_time, registered, undo
from tests.runs.states import Log
from tests.runs.till import ONCE, declined, done, pay, wire

pytestmark = pytest.mark.django_db(transaction=True)


def another_way(run) -> str:
    return run.call(wire, amount=5)


def in_cash(run) -> str:
    return run.wait_for("paid in cash")


def paying(name: str, other_way: Callable, **ask: object) -> Graph:
    """By card, which people are asked for if `ask` says so, else the other way; and then a receipt."""
    graph = Graph(name, state=Log)

    @graph.node(retry=ONCE)
    def only(run, state):
        try:
            state.log.append(run.call(pay, by="card", **ask))
        except (EffectFailed, Rejected) as no:
            state.log.append(f"{type(no).__name__}, {other_way(run)}")
        state.log.append(run.call(pay, by="receipt", key="receipt:{run_id}"))

    return graph


ASK = Ask("By card?", reviewers="pm")


CAUGHT = {
    "a failure, then a write": (paying("stands-1", another_way), "", "EffectFailed, wire"),
    "a failure, then a signal": (paying("stands-2", in_cash), "", "EffectFailed, cash"),
    "an approved failure, then a write": (
        paying("stands-3", another_way, approve=ASK),
        "approve",
        "EffectFailed, wire",
    ),
    "a rejection, then a write": (paying("stands-4", another_way, approve=ASK), "reject", "Rejected, wire"),
    "a rejection, then a signal": (paying("stands-5", in_cash, approve=ASK), "reject", "Rejected, cash"),
}


waiting = Graph("stands-waiting", state=Log)


@waiting.node(retry=ONCE)
def wait_twice(run, state):
    try:
        state.log.append(run.wait_for("paid", timeout=timedelta(minutes=1)))
    except TimedOut:
        state.log.append(run.call(wire, amount=2))
        raise
    state.log.append(run.call(wire, amount=3))
    run.call(pay, by="receipt")


@pytest.fixture(autouse=True)
def known(empty_till) -> Iterator[None]:
    with registered(waiting, *(graph for graph, *_ in CAUGHT.values())):
        yield


@pytest.mark.parametrize("how", ["retry", "fork", "fork of a fork"])
@pytest.mark.parametrize("caught", CAUGHT)
def test_who_has_gone_another_way_is_not_led_back(caught, how):
    """What was done on an answer stands, so the answer does: nothing is paid twice, and nobody is asked again."""
    graph, verdict, said = CAUGHT[caught]
    declined.update({"receipt"} if verdict == "reject" else {"card", "receipt"})
    drive(run := start(graph, {}))
    if verdict:
        answer(run, verdict=verdict)
        drive(run)
    if "cash" in said:
        run.signal("paid in cash", "cash")
        drive(run)
    assert run.status == "failed"
    declined.clear()
    if how == "retry":
        run.retry("olga", "the printer is mended")
    if how == "fork of a fork":
        declined.add("receipt")
        run = run.fork("olga", "once more")
        drive(run)
        assert run.status == "failed"
        declined.clear()
    other = run if how == "retry" else run.fork("olga", "the printer is mended")
    drive(other)
    assert (other.status, other.state_at()["log"]) == ("completed", [said, "receipt"])
    assert done == ["receipt"] if "cash" in said else ["wire", "receipt"]
    are_sound(run, other)


def test_waits_that_a_repair_had_asked_anew_are_taken_over_under_the_keys_that_are_asked_for():
    declined.add("receipt")
    drive(run := start(waiting, {}))
    pass_time(61)
    drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")
    run.move("olga", "wait once more", to="wait_twice", state={"log": []})
    drive(run)
    pass_time(61)
    drive(run)
    run.retry("olga", "and once more")
    drive(run)
    assert run.status == "failed", "it had gone on after that, so it has timed out for good"
    run.move("olga", "wait a third time", to="wait_twice", state={"log": []})
    drive(run)
    run.cancel("ada", "stop")
    run.retry("olga", "wait on")
    drive(run)
    run.signal("paid", "yes")
    drive(run)
    keys = set(run.entries.filter(kind="signal", step=run.step + 1).values_list("key", "status"))
    assert (run.status, keys) == ("failed", {("paid#1", "cancelled"), ("paid#1~2", "done")})
    declined.clear()
    fork = run.fork("olga", "the printer is mended")
    before = list(done)
    drive(fork)
    assert (fork.status, fork.state_at()["log"], done) == ("completed", ["yes", "wire"], [*before, "receipt"])
    are_sound(run, fork)


def test_a_wait_that_timed_out_and_was_asked_anew_does_not_stand_in_the_way_of_a_fork():
    hurried = Graph("stands-hurried", state=Log)

    @hurried.node(retry=ONCE)
    def only(run, state):
        state.log.append(run.wait_for("paid", timeout=timedelta(minutes=1)))
        run.call(wire, amount=4)
        run.call(pay, by="receipt")

    with registered(hurried):
        declined.add("receipt")
        drive(run := start(hurried, {}))
        pass_time(61)
        drive(run)
        run.retry("olga", "wait again")
        drive(run)
        run.signal("paid", "late")
        drive(run)
        assert run.status == "failed"
        declined.clear()
        fork = run.fork("olga", "again")
        drive(fork)
        assert (fork.status, fork.state_at(), done) == ("completed", {"log": ["late"]}, ["wire", "receipt"])
        are_sound(run, fork)


def test_a_question_whose_name_ends_like_one_that_is_asked_anew_keeps_its_name():
    graph = Graph("stands-named", state=Log)

    @graph.node(retry=ONCE)
    def only(run, state):
        state.log.append(run.interrupt("Which?", name="stage~2").verdict)
        run.call(wire, amount=4)
        run.call(pay, by="receipt")

    with registered(graph):
        declined.add("receipt")
        drive(run := start(graph, {}))
        answer(run)
        drive(run)
        declined.clear()
        fork = run.fork("olga", "again")
        drive(fork)
        assert (fork.status, done) == ("completed", ["wire", "receipt"]), "nobody was asked again"
        are_sound(run, fork)


def test_nothing_stands_on_a_decision_that_nobody_has_taken():
    """A write was begun after it, by the same gather; but it can still be undone."""
    graph, decided, its_run = Graph("stands-undone", state=Log), threading.Event(), []

    @tool(kind="write", retry=ONCE)
    def file_away(number: int) -> int:
        if number == 0:
            its_run.append(answer(its_run[0], undo=600))
            decided.set()
        assert decided.wait(60)
        return number

    @graph.node(retry=ONCE)
    def only(run, state):
        many = [file_away.bind(number=number) for number in range(GATHER_THREADS + 1)]
        state.log.append(run.gather(Ask("Pay?", name="pay"), *many)[0].verdict)
        run.call(wire, amount=4)

    with registered(graph):
        its_run.append(run := start(graph, {}))
        drive(run)
        assert run.entries.filter(kind="effect", opened_at__gte=its_run[1].answered_at).exists()
        fork = run.fork("olga", "again")
        undo(run, its_run[1])
        drive(fork)
        assert (fork.status, done) == ("waiting", []), "people are asked anew"
        are_sound(run, fork)


def test_who_gives_up_after_asking_somebody_is_told_that_the_failure_stays_and_what_to_do():
    """A retry leads to the same end: the run is moved, and says so itself."""
    giving_up = Graph("stands-giving-up", state=Log)

    @giving_up.node(retry=ONCE)
    def only(run, state):
        try:
            run.call(pay, by="card")
        except EffectFailed:
            run.interrupt("Is that right?", reviewers=("pm",))
            raise

    with registered(giving_up):
        declined.add("card")
        drive(run := start(giving_up, {}))
        answer(run)
        drive(run)
        assert run.status == "failed" and "Move the run" not in run.error
        declined.clear()
        run.retry("olga", "the card is good now")
        drive(run)
        key = run.entries.get(kind="effect").key
        stays = (
            f"({key} stays failed, since something was done after that: move the run to have it asked anew.)"
        )
        assert (run.status, run.error.splitlines()[1], done) == ("failed", stays, [])
        run.move("olga", "as it says", to="only")
        drive(run)
        assert (run.status, done) == ("completed", ["card"])
