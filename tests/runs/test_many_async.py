"""Hundreds of runs that wait for a slow answer in one worker process, and no thread for each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import httpx
import pytest

from runs import Graph, Retry, start, tool
from runs.engine.row_threads import CallThreads
from runs.engine.shift import Shift
from runs.models import LedgerEntry, Run
from tests.amounts import ON_POSTGRES, THOROUGH
from tests.runs.driving import registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = (200 if ON_POSTGRES else 500) if THOROUGH else 120
THREADS = 40  # rows, chores, heartbeat, the loop and those of this test; far from one for each run


class SlowModel:
    """A real HTTP server that answers nobody until `crowd` have asked, or never; in a thread with a loop of its own."""

    def __init__(self, crowd: int | None) -> None:
        self.crowd, self.waiting, self.most, self.gone = crowd, 0, 0, 0
        self.loop = asyncio.new_event_loop()
        self.begun = threading.Event()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()
        assert self.begun.wait(30)

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.enough = asyncio.Event()
        server = self.loop.run_until_complete(
            asyncio.start_server(self._answer, "127.0.0.1", 0, backlog=RUNS)
        )
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        self.begun.set()
        self.loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self.loop.run_until_complete(asyncio.sleep(0))  # the sockets' own last words
        self.loop.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self.crowd:
            self.enough.set()
        left = asyncio.ensure_future(reader.read())
        told = asyncio.ensure_future(self.enough.wait())
        await asyncio.wait({left, told}, return_when=asyncio.FIRST_COMPLETED)
        if told.done():
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        else:
            self.gone += 1
        for task in (left, told):
            task.cancel()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(30)


@pytest.fixture
def slow_model() -> Iterator[type[SlowModel]]:
    made: list[SlowModel] = []

    def make(crowd: int | None) -> SlowModel:
        made.append(SlowModel(crowd))
        return made[-1]

    yield make
    for model in made:
        model.stop()


def asking(url: str, limit: float) -> Graph:
    @tool(limit=timedelta(seconds=limit), retry=Retry(attempts=1))
    async def ask_model(*, timeout: float) -> str:
        async with httpx.AsyncClient(timeout=None, verify=False, trust_env=False) as client:
            return (await client.get(url)).text

    graph = Graph("asking", state=Log, operators="ops")

    @graph.node
    async def ask(run, state):
        state.log.append(await run.call(ask_model))

    return graph


def test_hundreds_of_runs_wait_for_a_slow_model_in_one_process(slow_model):
    """The model answers nobody before all have asked: with fewer at once the test would never end."""
    model, most_threads = slow_model(RUNS), 0

    def count() -> None:
        nonlocal most_threads
        while not over.wait(0.05):
            most_threads = max(most_threads, threading.active_count())

    over = threading.Event()
    counting = threading.Thread(target=count)
    with registered(asking(model.url, limit=500)):
        for _ in range(RUNS):
            start("asking", {})
        counting.start()
        Shift(seconds=500, linger=0).work()
        over.set()
        counting.join()
    assert (model.most, Run.objects.filter(status="completed").count()) == (RUNS, RUNS)
    assert LedgerEntry.objects.filter(kind="effect", status="done", attempts=1).count() == RUNS
    assert most_threads < THREADS


def test_a_cancelled_run_hangs_up_and_the_others_go_on(slow_model, settings):
    settings.DURABLEWEB = settings.DURABLEWEB | {"lease_seconds": 6, "heartbeat_seconds": 0.2}
    model = slow_model(None)
    with registered(asking(model.url, limit=300)):
        runs = [start("asking", {}) for _ in range(5)]
        working = CallThreads().submit(Shift(seconds=300, linger=0).work)
        until(lambda: model.waiting == 5)
        runs[0].cancel("olga", "enough")
        until(lambda: model.gone == 1)
        model.loop.call_soon_threadsafe(model.enough.set)
        working.result(300)
    assert sorted(Run.objects.values_list("status", flat=True)) == ["cancelled", *["completed"] * 4]


def test_a_model_that_never_answers_is_hung_up_on_at_the_tools_limit(slow_model):
    model = slow_model(None)
    with registered(asking(model.url, limit=1)):
        run = start("asking", {})
        Shift(seconds=60, linger=0).work()
    run.refresh_from_db()
    until(lambda: model.gone >= 1)
    assert (run.status, run.error_kind) == ("failed", "exhausted")
    assert "no answer within 1 s" in run.error


def until(true, seconds: float = 60) -> None:
    for _ in range(int(seconds / 0.02)):
        if true():
            return
        threading.Event().wait(0.02)
    raise AssertionError("it did not come to pass")
