"""Values of every type, and texts around the threshold of blobs, through nodes, tools and people."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import transaction

from approvals.models import Approval
from runs import (
    Ask,
    EffectFailed,
    Graph,
    Retry,
    start,
    tool,
)
from runs.conf import conf
from runs.core import codec
from runs.errors import Conflict, Invalid
from runs.models import Blob, BlobUse, Run
from tests.at_once import at_once
from tests.runs.driving import answer, drive, registered
from tests.runs.posting import sent
from tests.runs.states import Inner, Level, Log, Outer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


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
def test_a_tool_whose_result_cannot_be_stored_fails_its_run_and_is_not_called_again(kind):
    """D4: also for a write, which has happened: no repair does it again, and a person says what it returned."""

    @tool(kind=kind)
    def odd() -> object:
        sent.append("odd")
        return threading.Lock()

    graph = Graph(f"odd {kind}", state=Log)

    @graph.node(retry=Retry(attempts=3, first=0))
    def only(run, state):
        try:
            state.log.append(run.call(odd))
        except EffectFailed:
            assert kind == "read", "nothing goes around what has happened"
            raise

    with registered(graph):
        run = start(f"odd {kind}", {})
        drive(run)
        assert (run.status, run.error_kind) == ("failed", "permanent")
        assert "cannot be stored" in run.error and "odd" in run.error
        assert sent == ["odd"]
        if kind == "write":
            with pytest.raises(Conflict, match=r"whether odd:\w+#1 happened is in doubt; settle it first"):
                run.retry("olga", "once more")
            with transaction.atomic():
                locked, now = Run.objects.lock(run.pk)
                run.entries.get().settle(locked, "olga", "happened", "locked", "It says so.", now)
            run.retry("olga", "it has happened")
            drive(run)
            assert (sent, run.status, run.state_at()) == (["odd"], "completed", {"log": ["locked"]})


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
        at_once(*(lambda run=run: drive(run) for run in runs))
        for run in runs:
            run.refresh_from_db()
            assert run.status == "completed", run.error
            assert run.state_at()["read"] == "the same " * 10
    assert Blob.objects.count() == 1
    assert BlobUse.objects.count() == 4
