"""What the author of a node may write: waits in `try`, a state returned or kept, sync and async tools."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import suppress
from datetime import timedelta

import pytest

from runs import (
    END,
    Graph,
    Permanent,
    Retry,
    start,
    tool,
)
from runs.core.outcomes import Waits
from runs.engine import boundaries
from runs.engine.verify import first_bad_row
from tests.runs.driving import answer, drive, registered
from tests.runs.posting import send, send_async, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_a_wait_inside_try_and_finally_lets_nothing_happen_in_finally():
    graph = Graph("tidy", state=Log)

    @graph.node
    def tidy(run, state):
        try:
            state.log.append(run.interrupt("Well?").verdict)
        finally:
            run.call(send, text="good bye")

    with registered(graph):
        run = start("tidy", {})
        assert isinstance(drive(run), Waits)
        assert (run.status, sent) == ("waiting", [])
        answer(run)
        drive(run)
    assert (run.status, run.state_at()["log"], sent) == ("completed", ["approve"], ["good bye"])


def test_a_node_that_leaves_by_return_in_finally_still_waits():
    graph = Graph("hasty", state=Log)

    @graph.node
    def hasty(run, state):
        try:
            state.log.append(run.interrupt("Well?").verdict)
        finally:
            return END  # noqa: B012

    with registered(graph):
        run = start("hasty", {})
        assert isinstance(drive(run), Waits)
        assert run.status == "waiting"
        answer(run)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["approve"])


@pytest.mark.parametrize("is_async", [False, True])
def test_a_node_may_return_the_next_node_with_a_new_state(is_async):
    graph = Graph("returning", state=Log)
    if is_async:

        @graph.node(then=("last", END))
        async def first(run, state):
            return "last", Log(log=[*state.log, "first"])

    else:

        @graph.node(then=("last", END))
        def first(run, state):
            return "last", Log(log=[*state.log, "first"])

    @graph.node
    def last(run, state):
        state.log.append("last")
        return state

    with registered(graph):
        run = start("returning", {})
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["first", "last"])


def test_what_is_changed_after_a_node_has_returned_is_in_no_checkpoint():
    """Also the input of the start, a recorded value and a tool's result: each execution gets its own."""
    kept: list[dict] = []
    graph = Graph("leaky")

    @tool
    def fetch() -> dict:
        return {"list": [1]}

    @graph.node(then=("second",))
    def first(run, state):
        fetched, once = run.call(fetch), run.once("mine", lambda: {"list": [2]})
        kept.extend([state, fetched, once])
        state["fetched"], state["once"] = fetched, once
        state["list"].append("first")

    @graph.node(then=("third",))
    def second(run, state):
        for held in kept:
            held["list"].append("too late")
        kept.append(state)

    @graph.node
    def third(run, state):
        kept[-1]["list"].append("too late")
        state["seen"] = list(state["list"])

    given = {"list": ["input"]}
    with registered(graph):
        run = start("leaky", given)
        given["list"].append("too late")
        drive(run)
    assert run.state_at() == {
        "list": ["input", "first"],
        "fetched": {"list": [1]},
        "once": {"list": [2]},
        "seen": ["input", "first"],
    }


def test_a_sync_node_calls_an_async_tool_and_an_async_node_a_sync_one_in_one_graph():
    graph = Graph("mixed", state=Log)

    @graph.node(then=("async_one",))
    def sync_one(run, state):
        state.log.append(run.call(send_async, text="a"))
        state.log += run.gather(send_async.bind(text="b"), send.bind(text="c"))

    @graph.node
    async def async_one(run, state):
        state.log.append(await run.call(send, text="d"))
        state.log += await run.gather(send_async.bind(text="e"), send.bind(text="f"))
        state.log.append((await run.interrupt("Well?")).verdict)

    with registered(graph):
        run = start("mixed", {})
        drive(run)
        assert run.status == "waiting"
        answer(run)
        drive(run)
    assert run.state_at()["log"] == ["A", "B", "sent c", "sent d", "E", "sent f", "approve"]
    assert sorted(sent) == list("abcdef")


def test_a_sync_graph_calls_async_tools_too():
    @tool
    async def look() -> str:
        return "seen"

    graph = Graph("plain with async tool", state=Log)

    @graph.node
    def only(run, state):
        state.log += [run.call(look), *run.gather(look.bind(), look.bind())]

    with registered(graph):
        run = start("plain with async tool", {})
        drive(run)
    assert run.state_at()["log"] == ["seen"] * 3


def test_an_async_node_takes_the_first_answer_and_cancels_the_others_without_waiting_for_them():
    graph, called = Graph("first of two", state=Log), []

    @tool
    async def look(after: float) -> str:
        called.append(after)
        await asyncio.sleep(after)
        return f"after {after}"

    @graph.node(then="second", retry=Retry(attempts=1))
    async def first(run, state):
        tasks = [asyncio.create_task(run.call(look, after=after)) for after in (0, 3600)]
        while len(called) < 2:
            await asyncio.sleep(0.01)
        ready, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        state.log.append(ready.pop().result())

    @graph.node
    async def second(run, state):
        state.log.append(await run.call(look, after=0))

    with registered(graph):
        run = start("first of two", {})
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["after 0.0"] * 2), run.error
    assert first_bad_row(run) is None


@pytest.mark.parametrize("begun", [True, False], ids=["under way", "not yet begun"])
def test_what_an_async_node_leaves_behind_makes_no_step_and_asks_nothing_in_the_next_one(begun):
    """P1: a task that it did not wait for would write into a step that is committed, and the trail would not hold."""
    graph, tasks, called, go_on = Graph("forgetful", state=Log), [], asyncio.Event(), asyncio.Event()

    @tool(kind="write")
    async def slow() -> str:
        called.set()
        await asyncio.sleep(3600)
        return "slow"

    async def later(run):
        if not begun:
            await go_on.wait()
        return await run.call(slow)

    @graph.node(then="second", retry=Retry(attempts=1))
    async def first(run, state):
        tasks.append(asyncio.create_task(later(run)))
        if begun:
            await called.wait()

    @graph.node
    async def second(run, state):
        go_on.set()
        try:
            await tasks[0]
        except Permanent as error:
            state.log.append(str(error))

    with registered(graph):
        drive(run := start("forgetful", {}))
    if begun:
        assert (run.status, run.error_kind, run.step) == ("failed", "permanent", 0)
        assert "returned while 1 of the questions" in run.error
        assert run.entries.get().status == "in_doubt"
    else:
        said = "node 'first' is over: it did not wait for what it had begun"
        assert (run.status, run.state_at(), called.is_set()) == ("completed", {"log": [said]}, False)
        assert not run.entries.exists()
    assert first_bad_row(run) is None


def test_a_call_that_is_cancelled_while_its_intent_is_being_written_was_not_sent_and_is_not_left_open(
    monkeypatch,
):
    """P3: nobody would ask what became of a write that stands open in a step which is committed."""
    graph, written = Graph("impatient", state=Log, operators="ops"), threading.Event()

    @tool(kind="write", limit=timedelta(seconds=5))
    async def slow() -> str:
        raise AssertionError("it was cancelled before")

    @graph.node(then="second", retry=Retry(attempts=1))
    async def first(run, state):
        call = asyncio.create_task(run.call(slow))
        await asyncio.to_thread(written.wait, 60)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call

    @graph.node
    async def second(run, state): ...

    def slowly(boundary: str) -> None:
        if boundary == "open effect":
            written.set()
            time.sleep(0.2)  # so that the cancel comes first; if not, the test proves less, and passes

    monkeypatch.setattr(boundaries, "on_boundary", slowly)
    with registered(graph):
        drive(run := start("impatient", {}))
    assert (run.status, run.error, run.entries.get().status) == ("completed", "", "failed")
    assert first_bad_row(run) is None
