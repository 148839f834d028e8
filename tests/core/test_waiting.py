"""Signals and timers over a ledger in memory: what a node gets, and in what order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from runs.core.ask import Ask
from runs.core.errors import Expired, TimedOut
from runs.core.graph import Graph
from runs.core.rehearsal import rehearse
from runs.core.tool import tool
from runs.core.waiting import Timer, Wait

HOUR = timedelta(hours=1)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def graph_of(node):
    graph = Graph("rehearsed")
    graph.node(node)
    return graph


def test_signals_of_a_name_are_read_in_order_and_others_stay():
    """S1"""

    def node(run, state):
        state["got"] = [run.wait_for("part"), run.wait_for("part"), run.wait_for("other")]

    mailbox = [("part", 1), ("unasked", 9), ("other", 3), ("part", 2)]
    ended = rehearse(graph_of(node), {}, mailbox=mailbox)
    assert (ended.status, ended.state) == ("completed", {"got": [1, 2, 3]})
    assert ended.ledger.mailbox == [("unasked", 9)]


def test_a_signal_that_nobody_sends_is_waited_for():
    ended = rehearse(graph_of(lambda run, state: run.wait_for("paid")), {})
    assert (ended.status, ended.waits_for) == ("waiting", ("paid#1",))


def test_a_payload_keeps_its_types():
    def node(run, state):
        state["got"] = run.wait_for("paid")

    payload = {"at": BEGIN, "for": timedelta(days=1), "tags": {"a"}}
    assert rehearse(graph_of(node), {}, {"paid#1": {"payload": payload}}).state == {"got": payload}


def test_a_node_that_waits_runs_again_and_asks_for_nothing_twice():
    """S7 with waits."""
    bodies, calls = [], []

    @tool
    def look(word: str) -> str:
        calls.append(word)
        return word

    def node(run, state):
        bodies.append(1)
        state["got"] = [
            run.call(look, word="a"),
            run.wait_for("go"),
            run.sleep(HOUR),
            run.call(look, word="b"),
        ]

    ended = rehearse(graph_of(node), {}, {"go#1": {"payload": "went"}})
    assert ended.state == {"got": ["a", "went", None, "b"]}
    assert (len(bodies), calls, ended.ledger.clock) == (3, ["a", "b"], BEGIN + HOUR)


def test_time_passes_only_as_far_as_the_next_deadline():
    def node(run, state):
        try:
            run.gather(Wait("paid", timeout=HOUR), Timer(HOUR / 2))
        except TimedOut as late:
            state["late"] = (late.name, isinstance(late, Expired), run.now())

    assert rehearse(graph_of(node), {}).state == {"late": ("paid", True, BEGIN + HOUR)}


def test_a_question_beside_a_timer_still_waits_when_the_timer_is_over():
    ended = rehearse(graph_of(lambda run, state: run.gather(Timer(HOUR), Ask("Well?", name="well"))), {})
    assert (ended.status, ended.waits_for, ended.ledger.clock) == ("waiting", ("well",), BEGIN + HOUR)


def test_a_swallowed_wait_is_no_way_around_it():
    def node(run, state):
        try:
            run.wait_for("paid")
        except BaseException:
            state["cheated"] = True

    ended = rehearse(graph_of(node), {})
    assert (ended.status, ended.waits_for, ended.path) == ("waiting", ("paid#1",), [])


def test_a_sleep_until_a_moment_that_has_passed_is_no_wait():
    ended = rehearse(graph_of(lambda run, state: run.sleep_until(BEGIN - HOUR)), {})
    assert (ended.status, ended.ledger.clock) == ("completed", BEGIN)


@pytest.mark.parametrize("given", [5, "1h", None, datetime(2026, 1, 1)])  # noqa: DTZ001 - that is the mistake
def test_what_is_no_time_is_refused(given):
    ended = rehearse(graph_of(lambda run, state: run.gather(Timer(given))), {})
    assert (ended.status, ended.error_kind) == ("failed", "permanent")


def test_an_async_node_waits_too():
    async def node(run, state):
        await run.sleep(HOUR)
        state["got"] = await run.gather(Wait("go"), Timer(HOUR))

    assert rehearse(graph_of(node), {}, {"go#1": {"payload": 1}}).state == {"got": [1, None]}
