"""Neighbours of the known cases: the same kinds of fault, in other shapes (docs/promises.md)."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum

import httpx
import pytest
from django.db import connection, transaction
from pydantic import BaseModel

from approvals.models import Approval
from runs import (
    END,
    Ambiguous,
    Ask,
    EffectFailed,
    Expired,
    Found,
    Graph,
    GraphError,
    Permanent,
    Rejected,
    Retry,
    Transient,
    start,
    tool,
)
from runs.conf import conf
from runs.core import codec
from runs.core.mapping import classify
from runs.core.outcomes import Lost, PutsOff, Waits
from runs.engine import clock, sql
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.errors import Conflict, Invalid, TooEarly
from runs.models import Blob, BlobUse, LedgerEntry, Run
from tests.runs.driving import answer, claim, drive, kinds, pass_lease, pass_time, registered, undo

pytestmark = pytest.mark.django_db(transaction=True)

sent: list[object] = []


@pytest.fixture(autouse=True)
def nothing_sent():
    sent.clear()


class Log(BaseModel):
    log: list[str] = []


@tool(kind="write", honours_key=True)
def send(text: str, idempotency_key: str) -> str:
    sent.append(text)
    return f"sent {text}"


@tool(kind="write", honours_key=True)
def post(text: str, idempotency_key: str) -> str:
    sent.append(f"by post: {text}")
    return f"posted {text}"


@tool(kind="write")
def send_blindly(text: str) -> str:
    sent.append(text)
    if text == "lost":
        raise ConnectionResetError("no answer")
    return f"sent {text}"


def at_once(acts: list[Callable[[], object]]) -> list[object]:
    """All of them at the same moment, each in a thread with its own connection; results or errors, in order."""
    together = threading.Barrier(len(acts))
    ends: list[object] = [None] * len(acts)

    def do(place: int, act: Callable[[], object]) -> None:
        try:
            together.wait(20)
            ends[place] = act()
        except Exception as error:
            ends[place] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=do, args=pair) for pair in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a thread is stuck"
    return ends


# -- retries


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


# -- several at once


def test_a_gather_of_nothing_is_an_empty_list():
    graph = Graph("no vendors", state=Log)

    @graph.node
    def all_of_none(run, state):
        state.log += run.gather()
        state.log.append("went on")

    with registered(graph):
        run = start("no vendors", {})
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["went on"])


def test_a_call_that_fails_for_good_beside_a_question_is_raised_once_the_question_is_answered():
    @tool
    def refused() -> str:
        sent.append("refused")
        raise Permanent("no such page")

    graph = Graph("half refused", state=Log)

    @graph.node
    def both(run, state):
        try:
            run.gather(refused.bind(), Ask("Well?", name="well"), send.bind(text="beside"))
        except EffectFailed as error:
            state.log.append(str(error))

    with registered(graph):
        run = start("half refused", {})
        assert drive(run) == Waits(("well",))
        assert sorted(sent) == ["beside", "refused"]
        answer(run, "well")
        drive(run)
    assert run.status == "completed"
    assert "no such page" in run.state_at()["log"][0]
    assert sorted(sent) == ["beside", "refused"], "each once"


@pytest.mark.parametrize("is_async", [False, True])
def test_of_three_writes_at_once_the_one_without_an_answer_is_settled_and_the_others_stay_done(is_async):
    graph = Graph("three letters", state=Log, operators="ops")
    items = [send_blindly.bind(text=text) for text in ("first", "lost", "third")]
    if is_async:

        @graph.node
        async def letters(run, state):
            state.log += await run.gather(*items)

    else:

        @graph.node
        def letters(run, state):
            state.log += run.gather(*items)

    with registered(graph):
        run = start("three letters", {})
        assert isinstance(drive(run), Waits)
        by_status = Counter(run.entries.values_list("status", flat=True))
        assert by_status == {"done": 2, "open": 1}, "not in doubt before the call can be over"
        pass_time(63)
        drive(run)
        question = run.entries.get(kind="interrupt")
        assert question.settles.status == "in_doubt"
        assert codec.loads(question.settles.request) == {"text": "lost"}
        answer(run, verdict="respond", payload={"outcome": "happened", "result": "sent after all"})
        drive(run)
    assert run.state_at()["log"] == ["sent first", "sent after all", "sent third"]
    assert sorted(sent) == ["first", "lost", "third"], "nothing was sent twice"


def test_two_writes_in_doubt_at_once_are_asked_as_two_questions():
    graph = Graph("two lost", state=Log, operators="ops")

    @tool(kind="write")
    def other(text: str) -> str:
        sent.append(text)
        raise ConnectionResetError("no answer")

    @graph.node
    def letters(run, state):
        state.log += run.gather(other.bind(text="a"), other.bind(text="b"))

    with registered(graph):
        run = start("two lost", {})
        drive(run)
        pass_time(63)
        drive(run)
        questions = list(run.entries.filter(kind="interrupt"))
        assert len(questions) == 2
        for question in questions:
            text = codec.loads(question.settles.request)["text"]
            answer(run, question.key, "respond", payload={"outcome": "happened", "result": f"done {text}"})
        drive(run)
    assert run.state_at()["log"] == ["done a", "done b"]
    assert sorted(sent) == ["a", "b"]


# -- what a node may do with a wait


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

    @tool(kind="write", honours_key=True)
    async def send_async(text: str, idempotency_key: str) -> str:
        sent.append(text)
        return text.upper()

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


# -- keys


def test_an_explicit_key_belongs_to_one_tool():
    graph = Graph("one key", state=Log)

    @graph.node(then=("again",))
    def first(run, state):
        run.call(send, text="x", key="mine:{run_id}")

    @graph.node
    def again(run, state):
        run.call(post, text="x", key="mine:{run_id}")

    with registered(graph):
        run = start("one key", {})
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert "mine:{run_id}" in run.error and "send" in run.error
    assert sent == ["x"]


def test_what_people_approved_for_one_tool_is_not_done_by_another():
    """P8: the same key and arguments after a deploy that took another tool."""
    tools = [send]
    graph = Graph("changed tool", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(tools[0], text="x", key="mine:{run_id}", approve=Ask("Send it?"))

    with registered(graph):
        run = start("changed tool", {})
        drive(run)
        answer(run)
        tools[0] = post
        drive(run)
    assert sent == []
    assert run.status == "failed"
    assert "send" in run.error and "post" in run.error


def test_a_proposal_worded_anew_is_noted_and_the_recorded_one_is_what_runs():
    wordings = ["first words", "other words"]
    graph = Graph("wordy", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(send, text=wordings[0], key="mine:{run_id}", approve=Ask("Send it?"))

    with registered(graph):
        run = start("wordy", {})
        drive(run)
        answer(run)
        wordings.pop(0)
        drive(run)
    assert (run.status, sent) == ("completed", ["first words"])
    assert run.remarks.filter(kind="other_request").count() == 1


def test_a_named_question_worded_anew_is_noted_and_the_recorded_one_is_what_people_answered():
    wordings = ["first words", "other words"]
    graph = Graph("wordy question", state=Log)

    @graph.node
    def only(run, state):
        state.log.append(run.interrupt("Well?", payload=wordings[0], name="well").payload)

    with registered(graph):
        run = start("wordy question", {})
        drive(run)
        answer(run)
        wordings.pop(0)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["first words"])
    assert run.remarks.filter(kind="other_request").count() == 1


def test_two_graphs_may_each_have_a_tool_of_one_name(ada, settings):
    """What a person edits is checked by the tool of the run's own graph."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 0}

    def with_tool(name: str, kind: type) -> Graph:
        graph = Graph(name, state=None)

        def pay(amount, idempotency_key):
            sent.append(amount)

        pay.__annotations__ = {"amount": kind, "idempotency_key": str}
        made = tool(kind="write", honours_key=True)(pay)

        @graph.node
        def only(run, state):
            run.call(made, amount=1, approve=Ask("Pay?", reviewers="pm", schema={"type": "object"}))

        return graph

    whole, exact = with_tool("whole sums", int), with_tool("exact sums", Decimal)
    with registered(whole, exact):
        runs = [start(graph, {}) for graph in (whole, exact)]
        for run in runs:
            drive(run)
        first, second = (Approval.objects.get(run=run) for run in runs)
        with pytest.raises(Invalid):
            first.decide(by=ada, verdict="edit", payload={"amount": "2.50"})
        second.decide(by=ada, verdict="edit", payload={"amount": "2.50"})
        first.decide(by=ada, verdict="edit", payload={"amount": 2})
        for run in runs:
            drive(run)
            assert run.status == "completed", run.error
    assert sent == [2, Decimal("2.50")]


def test_two_runs_that_ask_for_one_key_at_the_same_moment_send_once():
    graph = Graph("shared key", state=Log)

    @graph.node
    def deliver(run, state):
        run.call(send, text=run.id, key="one for all")

    with registered(graph):
        runs = [start("shared key", {}) for _ in range(6)]
        at_once([lambda run=run: drive(run, f"w{run.short_id}") for run in runs])
        for run in runs:
            run.refresh_from_db()
            if run.status == "running":
                pass_lease()
                drive(run)
    done = [run for run in runs if run.status == "completed"]
    assert (len(sent), len(done)) == (1, 1)
    for run in set(runs) - set(done):
        assert (run.status, run.error_kind) == ("failed", "permanent")
        assert str(done[0].pk) in run.error


# -- undo, cancel, settle


def test_an_undo_and_a_claim_at_the_border_of_the_window_never_both_win():
    """S13, many rounds."""
    graph = Graph("border", state=Log)

    @graph.node
    def deliver(run, state):
        state.log.append(run.call(send, text="x", approve=Ask("Send it?")))

    with registered(graph):
        seen: Counter[str] = Counter()
        for turn in range(60):
            sent.clear()
            run = start("border", {})
            drive(run)
            entry = answer(run, undo=5)
            pass_time(5.01)
            acts = [
                lambda run=run, entry=entry: undo(run, entry),
                lambda run=run: drive(Run.objects.get(pk=run.pk)),
            ]
            undone = at_once(acts if turn % 2 else acts[::-1])[0 if turn % 2 else 1]
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
        assert sum(seen.values()) == 60


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
        with pytest.raises(Conflict, match="cancelled"):
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
        pass_time(63)
        drive(run)
        doubted = run.entries.get(kind="effect")
        assert doubted.status == "in_doubt"
        run.cancel("user olga", "enough")
        assert run.entries.get(kind="interrupt").status == "cancelled"
        doubted.refresh_from_db()
        assert doubted.status == "in_doubt"
        ends = at_once([lambda: settle(run, doubted, "happened"), lambda: settle(run, doubted, "give_up")])
        assert sum(isinstance(end, Conflict) for end in ends) == 1
        with pytest.raises(Conflict):
            settle(run, doubted, "happened")
    run.refresh_from_db()
    assert (run.status, run.wake_at, sent) == ("cancelled", None, ["lost"])


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
        pass_time(63)
        assert settle(run, doubted, "not_happened").status == "cancelled", "an ended run calls nothing"
        assert claim(run) is None
    assert sent == ["lost"]


# -- deadlines of gated calls


@pytest.mark.parametrize(
    ("on_expiry", "log", "outcome"),
    [
        ("expired", ["expired"], "expired"),
        ("rejected", ["rejected by the deadline"], "rejected"),
        ("auto_approve", ["sent x"], "auto_approved"),
    ],
)
def test_a_gated_call_whose_deadline_passes_ends_as_its_author_declared(on_expiry, log, outcome):
    graph = Graph("overdue", state=Log)

    @graph.node
    def deliver(run, state):
        try:
            ask = Ask("Send it?", due=timedelta(minutes=5), on_expiry=on_expiry)
            state.log.append(run.call(send, text="x", approve=ask))
        except Rejected as no:
            state.log.append(f"rejected by {no.by}")
        except Expired:
            state.log.append("expired")

    with registered(graph):
        run = start("overdue", {})
        drive(run)
        pass_time(299)
        assert claim(run) is None
        pass_time(2)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", log)
    assert sent == (["x"] if outcome == "auto_approved" else [])
    assert Approval.objects.get(run=run).outcome == outcome
    assert run.entries.filter(kind="effect").count() == len(sent)


@pytest.mark.parametrize("due", [3600, "tomorrow", datetime(2030, 1, 1)])  # noqa: DTZ001
def test_a_deadline_that_is_none_is_refused_where_it_is_written(due):
    with pytest.raises(GraphError, match="due"):
        Ask("Send it?", due=due)


def test_two_must_agree_and_an_edit_in_between_asks_the_first_again(ada, bob, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 0}
    graph = Graph("two agree", state=Log)

    @graph.node
    def deliver(run, state):
        state.log.append(run.call(send, text="x", approve=Ask("Send it?", reviewers="pm", quorum=2)))

    with registered(graph):
        run = start("two agree", {})
        drive(run)
        approval = Approval.objects.get(run=run)
        approval.decide(by=ada, verdict="approve")
        assert claim(run) is None
        approval.decide(by=bob, verdict="edit", payload={"text": "y"})
        assert claim(run) is None, "one vote for the edit, none any more for the proposal"
        approval.decide(by=ada, verdict="approve")
        drive(run)
    assert (run.status, sent) == ("completed", ["y"])


# -- values


class Level(Enum):
    LOW = "low"
    HIGH = "high"


class Inner(BaseModel):
    pair: tuple[int, ...] = ()
    level: Level = Level.LOW


class Outer(BaseModel):
    inner: Inner = Inner()
    many: dict[str, list[Inner]] = {}
    when: datetime | None = None
    price: Decimal = Decimal("1.10")
    names: set[str] = set()


def test_a_nested_state_changed_in_place_is_what_the_next_node_gets():
    seen: list[Outer] = []
    graph = Graph("nested", state=Outer)

    @graph.node(then=("change", "keep"))
    def change(run, state):
        state.inner.pair += (len(state.inner.pair),)
        state.inner.level = Level.HIGH
        state.many.setdefault("a", []).append(Inner(pair=(1, 2)))
        state.many["a"][0].level = Level.HIGH
        state.when = datetime(2026, 10, 25, 2, 30, tzinfo=UTC, fold=1)
        state.price += Decimal("0.20")
        state.names.add(f"n{len(state.names)}")
        return "change" if len(state.inner.pair) < 5 else "keep"

    @graph.node
    def keep(run, state):
        seen.append(state)

    with registered(graph):
        run = start("nested", {})
        drive(run)
    (state,) = seen
    assert state.inner == Inner(pair=(0, 1, 2, 3, 4), level=Level.HIGH)
    assert state.many == {"a": [Inner(pair=(1, 2), level=Level.HIGH), *[Inner(pair=(1, 2))] * 4]}
    assert (state.price, str(state.price)) == (Decimal("2.10"), "2.10")
    assert state.names == {"n0", "n1", "n2", "n3", "n4"}
    assert (state.when, state.when.fold) == (datetime(2026, 10, 25, 2, 30, tzinfo=UTC), 1)


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_tool_whose_result_cannot_be_stored_fails_its_entry_and_is_not_called_again(kind):
    """D4: also for a write, which has happened."""

    @tool(kind=kind)
    def odd() -> object:
        sent.append("odd")
        return threading.Lock()

    graph = Graph(f"odd {kind}", state=Log)

    @graph.node(retry=Retry(attempts=3, first=0))
    def only(run, state):
        run.call(odd)

    with registered(graph):
        run = start(f"odd {kind}", {})
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert "cannot be stored" in run.error and "odd" in run.error
    assert (sent, run.entries.get().status) == (["odd"], "failed")


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**200, -(10**400)])
def test_a_whole_number_of_any_size_goes_through_a_tool_and_a_gate(number):
    @tool(kind="write", honours_key=True)
    def pay(amount: int, idempotency_key: str) -> int:
        sent.append(amount)
        return amount

    graph = Graph("large sums", state=None)

    @graph.node
    def only(run, state):
        state["plain"] = run.call(pay, amount=number)
        state["gated"] = run.call(pay, amount=number, key="gated:{run_id}", approve=Ask("Pay?"))

    with registered(graph):
        run = start("large sums", {})
        drive(run)
        answer(run)
        drive(run)
    assert run.status == "completed", run.error
    assert codec.restore(run.state_at()) == {"plain": number, "gated": number}
    assert sent == [number, number]


def test_a_decimal_and_a_moment_edited_by_a_person_reach_the_tool_with_their_types(ada, settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "undo_seconds": 0}

    @tool(kind="write", honours_key=True)
    def pay(amount: Decimal, at: datetime, ref: uuid.UUID, idempotency_key: str) -> Decimal:
        sent.append((amount, at, ref))
        return amount

    graph = Graph("paying", state=None)
    at, ref = datetime(2026, 1, 2, 3, 4, tzinfo=UTC), uuid.UUID(int=7)

    @graph.node
    def only(run, state):
        asked = Ask("Pay?", reviewers="pm")
        state["paid"] = run.call(pay, amount=Decimal("1.10"), at=at, ref=ref, approve=asked)

    with registered(graph):
        run = start("paying", {})
        drive(run)
        approval = Approval.objects.get(run=run)
        payload = run.entries.get(kind="interrupt").request_value()["payload"]
        with pytest.raises(Invalid):
            approval.decide(by=ada, verdict="edit", payload={**payload, "amount": "a lot"})
        edited = {**payload, "amount": "1.20", "at": "2026-02-03T04:05:00+01:00"}
        approval.decide(by=ada, verdict="edit", payload=edited)
        drive(run)
    assert run.status == "completed", run.error
    ((amount, moment, same),) = sent
    assert (amount, str(amount), type(amount)) == (Decimal("1.20"), "1.20", Decimal)
    assert (moment, same) == (datetime(2026, 2, 3, 3, 5, tzinfo=UTC), ref)


# -- blobs


@pytest.mark.parametrize("beyond", [-200, 0, 1, 200])
def test_a_text_around_the_threshold_of_blobs_comes_back_whole(beyond):
    size = conf.blob_bytes + beyond
    seen: list[str] = []

    @tool
    def fetch() -> str:
        return "r" * size

    graph = Graph("sized", state=None)

    @graph.node(then=("look",))
    def make(run, state):
        state["text"] = "ä" + "x" * size
        state["result"] = run.call(fetch)
        state["said"] = run.interrupt("Well?", payload="p" * size).payload

    @graph.node
    def look(run, state):
        seen.extend([state["text"], state["result"], state["said"]])

    with registered(graph):
        run = start("sized", {})
        drive(run)
        answer(run)
        drive(run)
    assert run.status == "completed", run.error
    assert seen == ["ä" + "x" * size, "r" * size, "p" * size]


def test_one_content_of_two_runs_is_one_blob_that_each_of_them_uses():
    graph = Graph("sharing", state=None)

    @graph.node(then=("look",))
    def make(run, state):
        state["blob"] = run.blob("the same " * 10, "text/plain")

    @graph.node
    def look(run, state):
        state["read"] = run.read(state["blob"]).decode()

    with registered(graph):
        runs = [start("sharing", {}) for _ in range(4)]
        at_once([lambda run=run: drive(run) for run in runs])
        for run in runs:
            run.refresh_from_db()
            assert run.status == "completed", run.error
            assert run.state_at()["read"] == "the same " * 10
    assert Blob.objects.count() == 1
    assert BlobUse.objects.count() == 4


# -- starting and claiming at the same moment


def test_a_start_takes_an_instance_of_the_state_model():
    graph = Graph("from a model", state=Outer)

    @graph.node
    def only(run, state):
        state.inner.pair += (9,)

    given = Outer(inner=Inner(pair=(1,), level=Level.HIGH), price=Decimal("3.00"))
    with registered(graph):
        run = start(graph, given, key="k")
        assert start(graph, given, key="k").pk == run.pk
        drive(run)
        assert start(graph, given.model_copy(deep=True), key="k").pk == run.pk
        with pytest.raises(Conflict):
            start(graph, Outer(), key="k")
    assert run.status == "completed"
    assert given.inner.pair == (1,)


def test_eight_starts_under_one_key_at_the_same_moment_are_one_run():
    """R11"""
    graph = Graph("keyed", state=Log)

    @graph.node
    def only(run, state):
        state.log.append("once")

    with registered(graph):
        runs = at_once([lambda: start("keyed", {"log": ["same"]}, key="k")] * 8)
        assert {type(run) for run in runs} == {Run}, runs
        assert len({run.pk for run in runs}) == 1
        others = at_once([lambda n=n: start("keyed", {"log": [f"{n}"]}, key="other") for n in range(8)])
    assert sum(isinstance(run, Run) for run in others) == 1
    assert sum(isinstance(error, Conflict) for error in others) == 7
    assert Run.objects.count() == 2


def test_eight_claimers_drive_two_hundred_runs_each_once():
    """E1, E8: in threads, on the database at hand."""
    bodies: Counter[str] = Counter()
    graph = Graph("many", state=Log)

    @graph.node
    def only(run, state):
        bodies[run.id] += 1
        state.log.append("x")

    def work(name: str) -> int:
        claimer, driven = Claimer(name), 0
        while (taken := claimer.claim(alone=False)) is not None:
            Drive(*taken).run()
            driven += 1
        return driven

    with registered(graph):
        runs = [start("many", {}) for _ in range(200)]
        counts = at_once([lambda n=n: work(f"w{n}") for n in range(8)])
        while work("last"):  # what a claimer skipped because another held the row
            pass
    assert all(isinstance(count, int) for count in counts), counts
    assert (len(bodies), set(bodies.values())) == (200, {1})
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert all(kinds(run) == ["start", "claim", "complete"] for run in runs)


# -- leases and clocks


def test_a_heartbeat_extends_only_what_its_worker_still_holds():
    """A thread that stalls through its lease: its late heartbeat moves nothing, and its step is not committed."""
    bodies = []
    graph = Graph("stalling", state=Log)

    @graph.node
    def only(run, state):
        bodies.append(1)
        if len(bodies) == 1:
            pass_lease()
            assert drive(Run.objects.get(pk=run.id), "w2") is not None
        state.log.append(f"body {len(bodies)}")

    with registered(graph):
        run = start("stalling", {})
        held = claim(run, "w1")
        assert isinstance(held.run(), Lost)
        run.refresh_from_db()
        until = clock.now() + conf.lease
        for worker, fence in (("w1", held.lease.fence), ("w1", run.fence), ("w2", run.fence)):
            assert sql.heartbeat(worker, [(run.pk, fence)], until) == set()
    assert (run.status, run.state_at()["log"], run.wake_at) == ("completed", ["body 2"], None)


@pytest.mark.parametrize("hours", [5, -5])
def test_a_host_clock_that_jumps_loses_no_run_and_doubles_no_effect(hours):
    graph = Graph("jumping", state=Log)

    @graph.node(then=("second",))
    def first(run, state):
        run.call(send, text="x", key="x:{run_id}")
        pass_time(hours * 3600)

    @graph.node
    def second(run, state):
        state.log.append("second")

    with registered(graph):
        run = start("jumping", {})
        drive(run)
        run.refresh_from_db()
        if run.status != "completed":
            pass_time(abs(hours) * 3600 + 10)
            for _ in range(3):
                pass_lease()
                drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["second"])
    assert sent == ["x"]


def test_a_provider_that_is_asked_afterwards_may_not_know_yet_and_nothing_is_sent_before_it_can():
    """Ambiguous, then "not found" while the first call may be under way: asked only after limit and lease."""
    asked = []

    def look_up(idempotency_key, arguments):
        asked.append(clock.now())
        return Found("found") if len(sent) > 1 else None

    @tool(kind="write", reconcile=look_up, limit=timedelta(seconds=10), retry=Retry(attempts=2, first=0))
    def deliver(text: str, idempotency_key: str) -> str:
        sent.append(idempotency_key)
        raise Ambiguous("no answer")

    graph = Graph("looked up", state=Log)

    @graph.node
    def only(run, state):
        state.log.append(run.call(deliver, text="x"))

    with registered(graph):
        run = start("looked up", {})
        began = clock.now()
        drive(run)
        assert asked == []
        pass_time(12.5)
        drive(run)
        pass_time(12.5)
        drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["found"])
    assert (asked[0] - began).total_seconds() >= 12
    assert len(sent) == 2 and len(set(sent)) == 1, "the same key"
