"""Rates of tools: never above them with eight callers, and a call that is held back costs no attempt and no slot."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs import Graph, Rate, Retry, Transient, start, tool
from runs.core.outcomes import LinesUp, Lost, Stop
from runs.core.rate import Window
from runs.engine import clock
from runs.engine.ledger import RowLedger
from runs.models import Run, ToolRate
from runs.work.bell import Bell
from tests.at_once import at_once
from tests.runs.driving import claim, drive, kinds, pass_lease, pass_time, registered
from tests.runs.posting import sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


@tool(kind="write", honours_key=True, rate="3/m", retry=Retry(attempts=1))
def text(to: str, idempotency_key: str) -> str:
    sent.append(to)
    return f"sent to {to}"


@tool(rate=Rate("3/m", by="to", name="lookups"), retry=Retry(attempts=2, first=0))
def look(to: str) -> str:
    sent.append(to)
    if sent.count("busy") == 1:
        raise Transient("busy")
    return to


texting, looking = (Graph(name, state=Log, viewers="pm", operators="pm") for name in ("texting", "looking"))


@texting.node
def send(run, state):
    state.log = [run.call(text, to=to) for to in state.log]


@looking.node
def see(run, state):
    state.log = [run.call(look, to=to) for to in state.log]


@pytest.fixture(autouse=True)
def known():
    with registered(texting, looking):
        yield


def held_back(run: Run, wait: float) -> None:
    assert isinstance(drive(run), LinesUp)
    assert (run.status, run.attempt, run.leased_by, run.error) == ("retrying", 0, None, "")
    assert wait - 5 < (run.wake_at - clock.now()).total_seconds() <= wait + 1


def test_a_call_over_the_rate_waits_without_a_worker_and_without_an_attempt(client, ada):
    """It comes when its time has come, not earlier; its one attempt is still there."""
    run = start(texting, {"log": ["a", "b", "c", "d"]}, by=ada)
    held_back(run, 60)
    assert sent == ["a", "b", "c"] and run.entries.count() == 3, "what is held back is not intended"
    last = run.checkpoints.latest("seq")
    assert (last.kind, last.reason) == ("pace", "text, 3/m")
    client.force_login(ada)
    page = client.get(reverse("runs:run", args=[run.pk])).content.decode()
    assert "Waiting in line (text, 3/m)" in page and "Waited in line" in page
    pass_time(50)
    assert claim(run) is None, "never early"
    clock.AHEAD += run.wake_at - clock.now() + timedelta(milliseconds=1)
    drive(run)
    assert (run.status, sent) == ("completed", ["a", "b", "c", "d"])
    assert set(run.entries.values_list("attempts", flat=True)) == {1}
    assert client.get(reverse("runs:run", args=[run.pk])).status_code == 200


def test_each_value_that_a_rate_is_by_has_it_for_itself_and_each_try_counts():
    run = start(looking, {"log": ["busy", "x", "x", "x", "busy", "x"]})
    held_back(run, 60)
    assert sent == ["busy", "busy", "x", "x", "x", "busy"]
    assert ToolRate.objects.filter(name="lookups").count() == 2
    assert not ToolRate.objects.filter(per_key__contains="busy").exists()


def test_those_who_wait_come_one_after_the_other_and_nobody_goes_before_them():
    assert isinstance(drive(start(texting, {"log": ["a", "b", "c", "d"]})), LinesUp)
    second, third = (start(texting, {"log": [name]}) for name in ("second", "third"))
    held_back(second, 80)
    held_back(third, 100)
    pass_time(81)
    newcomer = start(texting, {"log": ["newcomer"]})
    held_back(newcomer, 120 - 81)
    drive(second)
    assert second.status == "completed" and sent[-1] == "second"


def test_a_short_wait_is_waited_in_place(monkeypatch):
    """As long as others would be, it would be put off; a second or less is not worth another claim."""
    monkeypatch.setattr(clock, "skip", pass_time)
    fast = Graph("fast", state=Log)

    @tool(rate="1/s")
    def ping(number: int) -> datetime:
        return clock.now()

    @fast.node
    def go(run, state):
        state.log = [str(run.call(ping, number=number)) for number in range(3)]

    with registered(fast):
        run, begun = start(fast, {}), clock.now()
        drive(run)
    assert kinds(run) == ["start", "claim", "complete"]
    assert datetime.fromisoformat(run.state_at()["log"][-1]) - begun >= timedelta(seconds=2)


def test_waiting_clears_no_suspicion_a_run_that_kills_its_workers_ends_as_poison():
    """R3: else one death would follow the other for ever, a turn between each two."""
    run = start(texting, {"log": ["a"]})
    for number in range(3):
        for _ in range(3):  # it may first have to be recovered, and to wait as a suspect
            ToolRate.objects.update_or_create(name="text", per_key="3/m", defaults={"window": used_up()})
            if isinstance(drive(run), LinesUp):
                break
            pass_time(31)
        assert (run.status, run.silent, run.deaths) == ("retrying", number, max(number - 1, 0))
        clock.AHEAD += run.wake_at - clock.now() + timedelta(seconds=1)
        assert claim(run) is not None, "and dies"
        pass_lease()


def used_up() -> str:
    window = Window()
    for _ in range(3):
        window, _ = window.ask(text.rate, clock.now())
    return window.text


# -- many at once ------------------------------------------------------------------------------------------------------


def told_to_a_worker(run: Run, worker: str, times: int) -> list[float]:
    """What a worker that holds a run is told, at once and not in line."""
    drive = claim(run, worker)
    ledger = RowLedger(drive.lease, drive.rows)
    return [ledger.let_through("shared", "", Rate("20/h"), in_line=False) for _ in range(times)]


def test_eight_callers_at_once_are_never_let_through_above_the_rate():
    """Each in a thread with a connection of its own."""
    waiting = [start(texting, {"log": [str(number)]}) for number in range(8)]
    told = at_once(*(lambda run=run: told_to_a_worker(run, f"w-{run.pk}", 5) for run in waiting))
    assert all(isinstance(one, list) for one in told), told
    waits = [wait for one in told for wait in one]
    assert waits.count(0.0) == 20
    assert len(set(waits)) == 21, "each of the others has a moment of its own"
    window = Window.read(ToolRate.objects.get(name="shared").window)
    assert sum(many for *_, many in window.uses) == 20


def test_a_worker_that_lost_its_run_is_not_counted():
    """P2"""
    held = claim(start(texting, {"log": ["a"]}))
    Run.objects.filter(pk=held.lease.run_id).update(fence=held.lease.fence + 1)
    with pytest.raises(Stop) as stopped:
        RowLedger(held.lease, held.rows).let_through("lost", "", Rate("1/s"), in_line=False)
    assert isinstance(stopped.value.outcome, Lost)
    assert not ToolRate.objects.exists()


def test_what_counts_no_more_is_forgotten_and_what_counts_is_kept():
    drive(start(texting, {"log": ["a"]}))
    Bell().look()
    assert ToolRate.objects.exists()
    pass_time(61)
    Bell().look()
    assert not ToolRate.objects.exists()


def test_a_tool_without_a_rate_pays_nothing_and_one_with_a_rate_two_short_statements_under_its_lock():
    def statements(graph: Graph, log: list[str]) -> list[str]:
        run = start(graph, {"log": log})
        claimed = claim(run)
        with CaptureQueriesContext(connection) as queries:
            claimed.run()
        return [one["sql"] for one in queries]

    free = Graph("free", state=Log)

    @tool
    def peek(to: str) -> str:
        return to

    @free.node
    def go(run, state):
        state.log = [run.call(peek, to=to) for to in state.log]

    statements(looking, ["first"])  # makes the row
    with registered(free):
        without = statements(free, ["a"])
    assert not [sql for sql in without if "toolrate" in sql or "livetext" in sql]
    with_rate = statements(looking, ["first"])
    assert len([sql for sql in with_rate if "runs_toolrate" in sql]) == 2


# -- lines, and who stands in them


@tool(kind="write", honours_key=True, rate="1/m")
def letter(to: str, idempotency_key: str) -> str:
    return text.fn(to, idempotency_key)


def of_the_same_name(rate: str) -> Graph:
    @tool(kind="write", honours_key=True, rate=rate)
    def notify(to: str, idempotency_key: str) -> str:
        sent.append(f"{rate} to {to}")
        return to

    graph = Graph(f"notifies {rate[0]}".replace(" ", "-"), state=Log)

    @graph.node
    def send(run, state):
        for to in state.log:
            run.call(notify, to=to)

    return graph


posting = Graph("posting-and-texting", state=Log)


@posting.node
def send_all(run, state):
    for to in state.log:
        run.call(letter if to.startswith("letter") else text, to=to)


def test_another_rate_of_the_same_name_takes_nothing_out_of_the_count():
    daily, often = of_the_same_name("2/d"), of_the_same_name("9/s")
    with registered(daily, often):
        for number in range(4):
            for graph in (daily, often):
                drive(start(graph, {"log": [str(number)]}))
                pass_time(5)
    assert [what[:3] for what in sent].count("2/d") == 2


def test_who_waited_in_one_line_is_not_first_in_another():
    with registered(posting):
        drive(start(posting, {"log": ["letter 1"]}))
        waited = start(posting, {"log": ["letter 2", "late 1", "late 2", "late 3"]})
        drive(waited)
        pass_time(30)
        drive(start(posting, {"log": ["x", "y", "z"]}))
        early, behind = (start(posting, {"log": [to]}) for to in ("early", "behind"))
        drive(early)
        drive(behind)
        clock.AHEAD += early.wake_at - clock.now() + timedelta(milliseconds=1)
        drive(waited)
        drive(early)
    assert "letter 2" in sent and "early" in sent and "late 1" not in sent


def test_a_line_whose_runs_were_cancelled_holds_nobody_back():
    with registered(posting):
        drive(start(posting, {"log": ["letter 1"]}))
        for number in range(30):
            waiting = start(posting, {"log": [f"letter of {number}"]})
            drive(waiting)
            waiting.cancel("user ada", "not wanted")
        pass_time(150)
        drive(start(posting, {"log": ["letter 2"]}))
    assert sent == ["letter 1", "letter 2"]
