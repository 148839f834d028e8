"""A node that leaves a write open, by cancelling it or by swallowing its error, each time anew: how it ended is found
out all the same, and nobody looks at the run again and again meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from runs import Ask, EffectFailed, Graph, Permanent, Retry, start, tool
from runs.engine.verify import first_bad_row
from tests.runs.driving import answer, drive, kinds, pass_call, registered
from tests.runs.posting import send_blindly, sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


@tool(kind="write", limit=timedelta(seconds=5))
async def pay() -> str:
    sent.append("pay")
    await asyncio.sleep(60)


@tool(kind="write", limit=timedelta(seconds=5), retry=Retry(attempts=1))
async def refused() -> None:
    while "pay" not in sent:
        await asyncio.sleep(0)
    raise Permanent("no such account")


def test_a_write_that_a_group_cancels_each_time_for_another_ones_failure_is_asked_about_once():
    graph = Graph("grouped", state=Log, operators="ops")

    @graph.node(retry=Retry(attempts=1))
    async def both(run, state):
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(run.call(refused, key="refused"))
                group.create_task(run.call(pay, key="pay:{run_id}"))
        except* EffectFailed:
            state.log.append("went on")

    with registered(graph):
        run = start("grouped", {})
        the_open_one_is_asked_about(run, "pay:{run_id}")
    assert (run.status, run.state_at()["log"]) == ("completed", ["went on"])


@pytest.mark.parametrize("turns", range(1, 6))
def test_a_write_that_is_cancelled_while_somebody_begins_to_ask_about_it_is_asked_about_once(turns):
    """P5: some moments later the cancel falls before, into or after what is written meanwhile."""
    graph = Graph("hasty", state=Log, operators="ops")

    @graph.node(retry=Retry(attempts=1))
    async def hurry(run, state):
        call, first = asyncio.create_task(run.call(pay, key="pay:{run_id}")), "pay" not in sent
        while first and "pay" not in sent:
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0.003)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        state.log.append("went on")

    with registered(graph):
        run = start("hasty", {})
        the_open_one_is_asked_about(run, "pay:{run_id}")
    assert (run.status, run.state_at()["log"]) == ("completed", ["went on"])


def the_open_one_is_asked_about(run, key: str) -> None:
    drive(run)
    assert (run.status, run.entries.get(key=key).status) == ("waiting", "open")
    pass_call(5)
    drive(run)
    assert (run.status, run.wake_at, run.entries.get(key=key).status) == ("waiting", None, "in_doubt")
    assert run.entries.get(key=f"{key}!").awaited
    answer(run, f"{key}!", "respond", payload={"outcome": "happened", "result": "paid"})
    drive(run)
    assert sent == ["pay"] and run.entries.get(key=key).status == "done"
    assert kinds(run).count("wait") <= 3
    assert first_bad_row(run) is None


def test_a_write_that_its_provider_tells_from_another_is_done_though_the_node_cancels_it_each_time():
    graph, paid = Graph("honoured", state=Log, operators="ops"), []

    @tool(kind="write", honours_key=True, limit=timedelta(seconds=5))
    async def pay_once(idempotency_key: str) -> str:
        sent.append("tried")
        await asyncio.sleep(60 if len(sent) == 1 else 0)
        paid.append(idempotency_key)
        return "paid"

    @graph.node(retry=Retry(attempts=1))
    async def hurry(run, state):
        call = asyncio.create_task(run.call(pay_once))
        while not sent:
            await asyncio.sleep(0)
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call

    with registered(graph):
        drive(run := start("honoured", {}))
    assert (run.status, run.entries.get().status, len(paid), len(sent)) == ("completed", "done", 1, 2)


def test_a_call_whose_time_is_over_waits_for_a_question_beside_it_and_is_not_looked_at_meanwhile():
    graph = Graph("call and question", state=Log, operators="ops")

    @graph.node(retry=Retry(attempts=1))
    def both(run, state):
        with suppress(EffectFailed):
            run.gather(send_blindly.bind(text="lost"), Ask("Well?", name="well"))
        state.log.append("went on")

    with registered(graph):
        drive(run := start("call and question", {}))
        assert run.status == "waiting" and run.wake_at is not None, "until the call can be over"
        pass_call()
        drive(run)
        assert (run.status, run.wake_at) == ("waiting", None)
        before = run.seq
        drive(run)
        assert run.seq == before
        answer(run, "well")
        drive(run)
        assert run.entries.get(kind="effect").status == "in_doubt"
    assert first_bad_row(run) is None


@pytest.mark.parametrize("turns", (1, 2))
def test_what_a_gather_is_committing_when_it_is_cancelled_belongs_to_its_step(turns):
    """Neither an intent nor a result is written once the step is left; how each ended is found out before that."""
    graph = Graph("gathered", state=Log, operators="ops")

    @tool(kind="write", honours_key=True, limit=timedelta(seconds=5))
    async def send_once(number: int, idempotency_key: str) -> int:
        sent.append(idempotency_key)
        await asyncio.sleep(0.01)
        return number

    @graph.node(retry=Retry(attempts=1), then="after")
    async def hurry(run, state):
        with suppress(TimeoutError):
            calls = [send_once.bind(number=number) for number in range(12)]
            await asyncio.wait_for(run.gather(*calls), 0.008 * turns)

    @graph.node
    async def after(run, state):
        state.log.append(str(len(sent)))

    with registered(graph):
        drive(run := start("gathered", {}))
    assert (run.status, run.error, first_bad_row(run)) == ("completed", "", None)
    assert {entry.status for entry in run.entries.all()} <= {"done"}
    assert run.state_at()["log"] == [str(len(sent))], "none was called once the step was left"
