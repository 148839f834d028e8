"""Retries that others time: a provider's wait, an answer, a cancel."""

from __future__ import annotations

import httpx
import pytest

from runs import (
    Graph,
    Retry,
    Transient,
    start,
    tool,
)
from runs.core.mapping import classify
from runs.core.outcomes import PutsOff
from runs.engine import clock
from tests.runs.driving import claim, drive, pass_time, registered
from tests.runs.posting import sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


@pytest.mark.parametrize(
    ("asked", "at_least"), [(40, 40), (90_000, 90_000), (1e15, 2_592_000), (float("inf"), 2_592_000)]
)
def test_a_provider_that_asks_for_a_long_wait_parks_the_run_and_does_not_use_up_the_nodes_tries(
    asked, at_least
):
    """Also one that asks for longer than any calendar holds: a header from outside must not spoil the run."""

    @tool(retry=Retry(attempts=3, first=0, jitter=0))
    def fetch() -> str:
        sent.append("fetch")
        if len(sent) < 2:
            raise Transient("busy", retry_after=asked)
        return "page"

    graph = Graph("patient", state=Log)

    @graph.node(retry=Retry(attempts=1))
    def get(run, state):
        state.log.append(run.call(fetch))

    with registered(graph):
        run = start("patient", {})
        assert isinstance(drive(run), PutsOff)
        assert (run.status, run.leased_by) == ("retrying", None)
        assert (run.wake_at - clock.now()).total_seconds() > at_least - 5
        pass_time(at_least - 10)
        assert claim(run) is None, "never early"
        clock.AHEAD += run.wake_at - clock.now()
        pass_time(0.1)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["page"])
    assert run.entries.get().attempts == 2


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 60.0),
        ("Wed, 21 Oct 2026 07:26:00 GMT", 0.0),
        ("1.5", None),
        ("\u00b2", None),
        ("soon", None),
    ],
)
def test_retry_after_is_read_in_both_of_its_forms_and_anything_else_is_no_answer(header, seconds):
    headers = [(b"retry-after", header.encode("latin-1")), (b"date", b"Wed, 21 Oct 2026 07:27:00 GMT")]
    response = httpx.Response(429, headers=headers, request=httpx.Request("GET", "http://example.com"))
    with pytest.raises(httpx.HTTPStatusError) as raised:
        response.raise_for_status()
    error = classify(raised.value)
    assert (type(error), error.retry_after) == (Transient, seconds)


def test_an_answer_and_a_cancel_do_not_shorten_a_retry_nor_leave_it_due():
    graph = Graph("cancelled retry", state=Log)

    @graph.node(retry=Retry(attempts=3, first=60, jitter=0))
    def try_it(run, state):
        raise Transient("busy")

    with registered(graph):
        run = start("cancelled retry", {})
        drive(run)
        run.cancel("user olga", "not needed")
        pass_time(100)
        assert claim(run) is None
    assert (run.status, run.wake_at) == ("cancelled", None)
