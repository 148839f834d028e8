"""The test kit of graph authors: a driven run waits for nothing, and every boundary survives a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

import pytest

from runs import END, Ambiguous, Ask, Expired, Found, Graph, Rejected, Retry, Transient, start, tool
from runs.engine import boundaries, clock
from runs.models import Checkpoint, LedgerEntry, Run
from runs.testing import (
    ChildFailed,
    CrashFound,
    Unanswered,
    crash_everywhere,
    drive,
    go_on,
    in_child,
    moved_clock,
)
from runs.testing.faults import each_statement, in_transaction
from tests.amounts import KILLS
from tests.runs.driving import kills_of
from tests.runs.posting import sent
from tests.runs.states import Log

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("nothing_sent")]

committed = pytest.mark.django_db(transaction=True)


@tool
def read(text: str) -> str:
    return text.upper()


@tool(kind="write")
def post(text: str) -> str:
    sent.append(text)
    return f"posted {text}"


@tool(kind="write", honours_key=True)
def pay(amount: int, idempotency_key: str) -> str:
    return f"paid {amount}"


@tool(kind="write", reconcile=lambda key, arguments: Found("unused"))
def mail(to: str) -> str:
    raise AssertionError("a stand-in is called instead")


@tool(kind="write", retry=Retry(attempts=3, first=4, jitter=0))
def busy_twice(text: str) -> str:
    sent.append(text)
    if len(sent) < 3:
        raise Transient("busy")
    return text


errand = Graph("errand", state=Log, operators="ops")


@errand.node(then=("look", "send"))
def look(run, state):
    state.log.append(run.call(read, text=f"page {len(state.log)}"))
    return "look" if len(state.log) < 2 else "send"


@errand.node(then=("look", "finish"))
def send(run, state):
    try:
        posted = run.call(
            post, key="post:{run_id}", text="draft", approve=Ask("Post it?", due=timedelta(hours=8))
        )
    except Rejected as no:
        state.log = [no.reason]
        return "look"
    state.log.append(posted)
    return "finish"


@errand.node(then=END)
def finish(run, state):
    state.log.append(run.call(pay, amount=7))
    state.log.append(run.interrupt("How was it?", verdicts=("respond",), payload="", name="feedback").payload)
    state.log.append(run.once("chosen", lambda: "once"))


ANSWERS = {
    "post:{run_id}?": {"verdict": "edit", "payload": {"text": "final"}, "by": "ada"},
    "feedback": {"verdict": "respond", "payload": "well"},
}


def test_a_run_is_driven_to_its_end_with_scripted_answers_and_no_waiting(settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 600}
    began = time.monotonic()
    run = drive(errand, {}, ANSWERS)
    assert (run.status, run.step) == ("completed", 4)
    assert run.state_at()["log"] == ["PAGE 0", "PAGE 1", "posted final", "paid 7", "well", "once"]
    assert sent == ["final"]
    assert time.monotonic() - began < 600, "the undo window was waited for"


def test_the_clock_is_the_real_one_again_afterwards():
    drive(errand, {}, ANSWERS)
    assert (clock.AHEAD, clock.skip) == (timedelta(), None)


def test_each_claim_is_by_a_worker_of_its_own():
    run = drive(errand, {}, ANSWERS)
    claims = Checkpoint.objects.filter(run=run, kind__in=("claim", "wake"))
    assert len(set(claims.values_list("actor", flat=True))) == len(claims) == 3


def test_an_answer_may_be_a_function_of_the_request():
    asked = []

    def reject_first(request):
        asked.append(request)
        if len(asked) == 1:
            return {"verdict": "reject", "reason": "too long", "by": "bob"}
        return {"verdict": "approve"}

    run = drive(errand, {}, {**ANSWERS, "post:{run_id}?": reject_first})
    assert run.status == "completed"
    assert run.state_at()["log"][:2] == ["too long", "PAGE 1"]


def test_a_question_without_an_answer_runs_into_its_deadline():
    run = drive(errand, {}, {"feedback": {"verdict": "respond"}})
    assert (run.status, run.error_kind) == ("failed", "expired")
    assert sent == []


def test_a_question_that_nothing_will_ever_answer_is_named():
    with pytest.raises(Unanswered, match="'feedback'"):
        drive(errand, {}, {"post:{run_id}?": {"verdict": "approve"}})


def test_pauses_between_tries_take_no_time_and_keep_the_lease():
    graph = Graph("patient", state=Log)

    @graph.node
    def call(run, state):
        state.log.append(run.call(busy_twice, text="x"))

    with moved_clock():
        began = clock.now()
        run = drive(graph, {})
        assert clock.now() - began >= timedelta(seconds=12)
    assert run.status == "completed"
    assert len(sent) == 3
    assert not run.checkpoints.filter(kind__in=("lost", "hand_back")).exists(), "a heartbeat keeps the lease"


@committed
def test_async_graphs_are_driven_as_well():
    graph = Graph("async-errand", state=Log)

    @graph.node
    async def both(run, state):
        await asyncio.sleep(0)
        texts = await run.gather(read.bind(text="a"), read.bind(text="b"))
        state.log += [*texts, await run.call(post, text="c")]

    assert drive(graph, {}).state_at()["log"] == ["A", "B", "posted c"]


@committed
def test_every_boundary_survives_a_kill():
    """S7, A20: the same end and each effect once, wherever the process dies."""
    report = crash_everywhere(errand, {}, ANSWERS, kills=KILLS)
    assert report.status == "completed"
    assert report.effects == {"post": 1, "pay": 1}
    assert report.kills == kills_of(report) and len(report.boundaries) > 30
    for act in ("start", "claim", "commit step", "commit wait", "open effect", "call", "called", "answer"):
        assert act in report.boundaries
    assert report.in_doubt > 0 or KILLS, "a kill during the call leaves it in doubt"
    assert report.repeated > 0 or KILLS, "a provider that honours the key is called again with it"


@pytest.mark.once  # about the kit
@committed
def test_the_recovering_process_may_be_killed_too():
    """E7."""
    graph = Graph("short", state=Log, operators="ops")

    @graph.node
    def once(run, state):
        state.log.append(run.call(post, text="a", approve=Ask("Post it?", name="go")))

    (key,) = [entry.key for entry in drive_to_wait(graph)]
    report = crash_everywhere(graph, {}, {key: {"verdict": "approve"}}, deaths=2, kills=KILLS)
    assert report.effects == {"post": 1}


@pytest.mark.once  # about the kit
@committed
def test_a_stand_in_is_called_and_reconciled_in_place_of_the_tool():
    graph = Graph("mailing", state=Log)

    @graph.node
    def send_mail(run, state):
        state.log.append(run.call(mail, to="helen"))

    report = crash_everywhere(graph, {}, effects={"mail": lambda to: f"sent to {to}"}, kills=KILLS)
    assert (report.effects, report.in_doubt) == ({"mail": 1}, 0)


@pytest.mark.once  # about the kit
@committed
def test_parallel_writes_survive_kills_as_well():
    graph = Graph("parallel", state=Log)

    @graph.node
    def several(run, state):
        answers = run.gather(post.bind(text="a"), Ask("Go on?", name="go"), post.bind(text="b"))
        state.log += [answers[0], answers[1].verdict, answers[2]]

    report = crash_everywhere(graph, {}, {"go": {"verdict": "approve"}}, kills=KILLS)
    assert report.effects == {"post": 2}


@pytest.mark.once  # about the kit
@committed
def test_a_run_that_fails_must_fail_the_same_way():
    graph = Graph("failing", state=Log)

    @graph.node
    def fail(run, state):
        run.call(post, text="before")
        run.interrupt("Go on?", due=timedelta(hours=1))

    report = crash_everywhere(graph, {}, kills=KILLS)
    assert (report.status, report.effects) == ("failed", {"post": 1})


@pytest.mark.once  # about the kit
@committed
def test_an_effect_outside_the_ledger_is_found():
    graph = Graph("careless", state=Log)
    lines = Path(os.environ["DURABLEWEB_HOME"], "careless")

    @graph.node(then="rest")
    def work(run, state):
        with open(lines, "a") as file:
            file.write("x")
        state.log.append(str(len(lines.read_text())))

    @graph.node
    def rest(run, state):
        pass

    with pytest.raises(CrashFound, match="state is"):
        crash_everywhere(graph, {})


@committed
def test_every_write_stands_between_boundaries():
    """What is committed without a boundary before it is never crash-tested."""
    graph = Graph("everything", state=Log, operators="ops")

    @graph.node(then="ask")
    def call(run, state):
        run.call(post, text="a")
        run.blob(b"content " * 9)
        run.note("noted")
        raise_once(Ambiguous("again"))

    @graph.node
    def ask(run, state):
        with pytest.raises(Expired):
            run.interrupt("Now?", due=timedelta(minutes=1), name="late")
        state.log.append(run.call(read, text="x" * 50_000))

    def raise_once(error):
        if not raised:
            raised.append(error)
            raise error

    raised, pending, uncovered, named = [], [], [], []

    def see(number, when, sql):
        if when == "before":
            return
        if sql.split()[0] in ("INSERT", "UPDATE", "DELETE", "WITH"):
            pending.append(sql)
        if pending and not in_transaction(sql):
            if not named:
                uncovered.append(list(pending))
            pending.clear()
            named.clear()

    boundaries.on_boundary = named.append
    try:
        with each_statement(see):
            assert drive(graph, {}).status == "completed"
    finally:
        boundaries.on_boundary = None
    assert uncovered == []


def drive_to_wait(graph):
    """The questions of a run that nobody answers."""
    with pytest.raises(Unanswered):
        drive(graph, {})
    return LedgerEntry.objects.filter(run__graph=graph.name, status="open")


@committed
def test_a_child_that_raises_tells_its_traceback():
    def work(tell):
        raise KeyError("lost shoe")

    with pytest.raises(ChildFailed, match="lost shoe"):
        in_child(work)


@committed
def test_a_killed_child_is_told_apart_from_one_that_ended():
    assert in_child(lambda tell: {"rows": Run.objects.count()}).returned == {"rows": 0}
    killed = in_child(lambda tell: (tell("goodbye"), os.kill(os.getpid(), signal.SIGKILL)))
    assert (killed.killed, killed.told) == (True, ["goodbye"])


def test_a_run_that_stands_anywhere_can_be_driven_on():
    run = start(errand, {})
    assert go_on(run, errand, ANSWERS).status == "completed"
    assert LedgerEntry.objects.filter(run=run, status="open").count() == 0
