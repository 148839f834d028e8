"""A node that leaves a write open, by cancelling it or by swallowing its error, each time anew: how it ended is found
out all the same, and nobody looks at the run again and again meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

import pytest

from runs import Ask, EffectFailed, Found, Graph, Permanent, Retry, Transient, start, tool
from runs.core.effects import GIVEN_UP
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
    assert run.state_at()["log"] == [str(len(sent))], "none was called once the step was left"
    for entry in run.entries.all():
        assert entry.status == ("done" if entry.idempotency_key in sent else "failed")


def test_a_write_that_surely_was_not_done_is_not_made_once_its_node_has_gone_another_way():
    """The node pays in another way when the first is busy for too long; then both must not be paid."""
    graph, paid = Graph("other way", state=Log, operators="ops"), []

    @tool(kind="write", limit=timedelta(seconds=5), retry=Retry(attempts=50, first=0.05, factor=1))
    async def pay_one() -> None:
        if not paid:
            raise Transient("busy, and surely not done")
        paid.append("one")

    @tool(kind="write", limit=timedelta(seconds=5))
    async def pay_other() -> None:
        paid.append("other")

    @graph.node(retry=Retry(attempts=1))
    async def hurry(run, state):
        try:
            await asyncio.wait_for(run.call(pay_one, key="one:{run_id}"), 0.4)
        except TimeoutError:
            await run.call(pay_other, key="other:{run_id}")

    with registered(graph):
        drive(run := start("other way", {}))
    assert (run.status, run.error, paid) == ("completed", "", ["other"])
    assert list(run.entries.order_by("id").values_list("key", "status", "error")) == [
        ("one:{run_id}", "failed", GIVEN_UP), ("other:{run_id}", "done", ""),
    ]  # fmt: skip
    assert first_bad_row(run) is None


@pytest.mark.parametrize("happened", [True, False])
def test_what_became_of_a_write_is_known_before_its_node_goes_another_way(happened):
    """Its error is no outcome: a node that swallows it does nothing more until it is known; then one is done."""
    graph, paid = Graph("unsure", state=Log, operators="ops"), []

    def reconcile(idempotency_key, arguments):
        return Found("one") if "one" in paid else None

    @tool(kind="write", limit=timedelta(seconds=5), reconcile=reconcile)
    def pay_one() -> str:
        paid.append("tried")
        if paid == ["tried"] or not happened:
            paid.extend(["one"] if happened else [])
            raise RuntimeError("what now?")

    @tool(kind="write", limit=timedelta(seconds=5))
    def pay_other() -> str:
        paid.append("other")
        return "other"

    @graph.node(retry=Retry(attempts=1))
    def pay_either(run, state):
        try:
            state.log.append(run.call(pay_one, key="one:{run_id}"))
        except (RuntimeError, EffectFailed):
            state.log.append(run.call(pay_other, key="other:{run_id}"))

    with registered(graph):
        drive(run := start("unsure", {}))
        assert (run.status, "other" in paid) == ("waiting", False)
        for _ in range(pay_one.retry.attempts):
            pass_call(5)
            drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["one" if happened else "other"])
    assert [what for what in paid if what != "tried"] == run.state_at()["log"]
    assert first_bad_row(run) is None


def test_a_node_is_told_of_a_write_that_it_gave_up_and_that_happened_before_it_goes_another_way():
    graph, paid = Graph("told", state=Log, operators="ops"), []

    @tool(kind="write", honours_key=True, limit=timedelta(seconds=5))
    async def pay_one(idempotency_key: str) -> str:
        sent.append("tried")
        await asyncio.sleep(60 if len(sent) == 1 else 0)
        paid.append("one")
        return "one"

    @tool(kind="write", limit=timedelta(seconds=5))
    async def pay_other() -> str:
        paid.append("other")
        return "other"

    @graph.node(retry=Retry(attempts=1))
    async def pay_either(run, state):
        try:
            said = await asyncio.wait_for(run.call(pay_one, key="one:{run_id}"), 0.3)
        except TimeoutError:
            said = await run.call(pay_other, key="other:{run_id}")
        state.log.append(said)

    with registered(graph):
        drive(run := start("told", {}))
        assert kinds(run)[-1] == "hand_back"
        drive(run)
    assert (run.status, run.state_at()["log"], paid) == ("completed", ["one"], ["one"])
    assert first_bad_row(run) is None


def test_a_write_that_was_only_about_to_be_called_when_it_was_cancelled_was_not_sent():
    """Nobody is asked what became of it, and not again and again, whatever they say."""
    graph = Graph("cut short", state=Log, operators="ops")

    @graph.node(retry=Retry(attempts=1))
    async def both(run, state):
        call = asyncio.create_task(run.call(pay))
        await asyncio.sleep(0)  # its intent is being committed
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        state.log.append("went on")

    with registered(graph):
        drive(run := start("cut short", {}))
    assert (run.status, run.error, run.state_at()["log"], sent) == ("completed", "", ["went on"], [])
    entry = run.entries.get()
    assert (entry.status, entry.attempts, entry.error) == (
        "failed", 0, GIVEN_UP
    )  # fmt: skip
    assert first_bad_row(run) is None
