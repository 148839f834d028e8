"""What a run stores, and what a step costs (P7, DESIGN section 5: State, Budget)."""

from __future__ import annotations

import base64
import os
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.core.files.storage import storages
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel

from runs import END, BlobRef, Graph, Retry, start, storable, tool
from runs.core.codec import flatten
from runs.engine.state import StoredState
from runs.engine.verify import first_bad_row
from runs.models import Blob, BlobUse, Checkpoint
from tests.runs.driving import claim, drive, kinds, registered

pytestmark = pytest.mark.django_db(transaction=True)


@storable
class Colour(Enum):
    RED = "r"


@storable
class Word(StrEnum):
    YES = "yes"


@storable
class Number(IntEnum):
    ONE = 1


VALUES = {
    "nul": "a\x00b",
    "surrogate": "\ud800",
    "big": 2**200,
    "decimal": Decimal("1.10"),
    "fold": datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "utc": datetime(2026, 1, 1, tzinfo=UTC),
    "offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "naive": datetime(2026, 1, 1, 12),  # noqa: DTZ001
    "date": date(2026, 1, 1),
    "timedelta": timedelta(days=-1, microseconds=1),
    "uuid": UUID(int=7),
    "set": {1, 2},
    "frozenset": frozenset({"a"}),
    "bytes": b"\x00\xff",
    "tuple": (1, ("b",)),
    "enum": Colour.RED,
    "strenum": Word.YES,
    "intenum": Number.ONE,
    "intkeys": {1: "a", "$": 2},
    "seven": 7,
    "seven point nought": 7.0,
    "true": True,
}


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right) or left != right:
        return False
    if isinstance(left, datetime):
        return (left.fold, left.tzinfo, left.utcoffset()) == (right.fold, right.tzinfo, right.utcoffset())
    if isinstance(left, (list, tuple)):
        return all(map(same, left, right))
    if isinstance(left, dict):
        return all(same(left[key], right[key]) for key in left) and {*map(type, left)} == {*map(type, right)}
    return True


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back_equal_in_value_and_type(name):
    """D1: state, a tool's result and a recorded value, through rows, in a later claim."""
    value, seen = VALUES[name], []

    @tool
    def fetch() -> Any:
        return value

    graph = Graph("carrier")

    @graph.node(then="look")
    def put(run, state):
        state["value"] = value
        state["result"] = run.call(fetch)
        state["once"] = run.once("it", lambda: value)

    @graph.node
    def look(run, state):
        seen.append(state)

    with registered(graph):
        run = start("carrier", {"given": value})
        first = claim(run)
        first.most_steps = 1
        first.run()
        drive(run, "w2")
    assert run.status == "completed", run.error
    for place in ("given", "value", "result", "once"):
        assert same(seen[0][place], value), place


class Messages(BaseModel):
    left: int
    messages: list[str] = []


growing = Graph("growing", state=Messages)


@growing.node(then=("append", END))
def append(run, state):
    state.messages.append(base64.b64encode(os.urandom(768)).decode())
    return END if len(state.messages) == state.left else "append"


def test_a_thousand_steps_of_one_kilobyte_store_under_two_and_a_half_megabytes():
    """D6, P7; and the head loads in at most three queries.

    Summed are all columns of all checkpoints, the only rows that these steps write; on PostgreSQL also the size of that
    table with its indexes, of which the run's rows are nearly all.
    """
    with registered(growing):
        run = start("growing", {"left": 1000})
        drive(run)
    assert run.status == "completed", run.error
    stored = sum(
        len(one.body) + len(one.entries) + 64 + 64 + 16 + len(one.actor) + len(one.node) + 60
        for one in Checkpoint.objects.filter(run=run).iterator()
    )
    assert stored < 2_500_000
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM (FULL) runs_checkpoint")
            cursor.execute("SELECT pg_total_relation_size('runs_checkpoint')")
            assert cursor.fetchone()[0] < 2_500_000
    with CaptureQueriesContext(
        connection,
    ) as queries:
        tree = StoredState.load(run.pk, run.seq).tree
    assert len(tree["messages"]) == 1000
    assert len(queries) <= 3


trivial = Graph("trivial", state=Messages)


@trivial.node(then=("again", END))
def again(run, state):
    state.left -= 1
    return END if state.left == 0 else "again"


def test_a_pure_step_is_one_statement_on_postgresql_and_two_in_a_transaction_on_sqlite():
    """The budget: 1 commit, 1 round trip; on SQLite 2 statements besides BEGIN and COMMIT."""
    with registered(trivial):
        run = start("trivial", {"left": 11})
        held = claim(run)
        held.most_steps = 10
        held._next(held._execute)
        with CaptureQueriesContext(connection) as queries:
            for _ in range(8):
                held._next(held._execute)
        held.lease.hand_back("enough")
    per_step = len(queries) / 8
    assert per_step == (1 if connection.vendor == "postgresql" else 4), [q["sql"][:60] for q in queries[:5]]


@pytest.mark.parametrize(("kind", "extra"), [("read", 1), ("write", 2)])
def test_a_recorded_read_costs_one_commit_more_and_a_write_two(kind, extra):
    @tool(kind=kind, honours_key=True)
    def touch(n: int, idempotency_key: str) -> int:
        return n

    graph = Graph("touching", state=Messages)

    @graph.node(then=("go", END))
    def go(run, state):
        run.call(touch, n=state.left)
        state.left -= 1
        return END if state.left == 0 else "go"

    with registered(graph):
        run = start("touching", {"left": 5})
        held = claim(run)
        held._next(held._execute)
        with CaptureQueriesContext(connection) as queries:
            held._next(held._execute)
        held.run()
    commits = [q["sql"] for q in queries if "COMMIT" in q["sql"]]
    count = len(queries) if connection.vendor == "postgresql" else len(commits)
    assert count == 1 + extra, [q["sql"][:80] for q in queries]


@pytest.mark.postgres_only
def test_every_step_of_a_run_is_a_hot_update():
    """No index holds a column that a step changes (n_tup_hot_upd). While the server analyses a table, old rows keep
    their place, so a few updates may have to go to another page; a column in an index would move all."""
    with registered(trivial):
        run = start("trivial", {"left": 200})
        held = claim(run)
        before = _updates()
        held.run()
    after = _updates()
    updated, hot = after[0] - before[0], after[1] - before[1]
    assert updated >= 199
    assert hot >= 0.9 * updated, "only the end, which clears wake_at, touches an index"


def _updates() -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'runs_run'")
        return cursor.fetchone()


class Letter(BaseModel):
    text: str = ""
    attached: BlobRef | None = None
    log: list[str] = []


def test_a_long_text_goes_to_a_blob_by_itself_and_comes_back():
    """MISSION A12: the checkpoint stays small; equal content is stored once."""
    long = "ü" * 40_000
    graph = Graph("long", state=Letter)

    @graph.node(then="read")
    def write(run, state):
        state.text = long
        state.attached = run.blob(b"\x00attached", "application/octet-stream")
        state.log.append(run.once("copy", lambda: long))

    @graph.node
    def read(run, state):
        assert run.read(state.attached) == b"\x00attached"
        state.log.append("read")

    with registered(graph):
        run = start("long", {})
        first = claim(run)
        first.most_steps = 1
        first.run()
        drive(run, "w2")
    assert run.status == "completed", run.error
    assert run.state_at()["text"] == long
    assert all(len(one.body) < 2_000 for one in Checkpoint.objects.filter(run=run))
    assert Blob.objects.filter(size=80_000).count() == 1
    assert BlobUse.objects.filter(run=run).count() == Blob.objects.count()


def test_a_state_over_the_hard_limit_fails_the_run_naming_run_size_and_limit(settings):
    """D7: of the step that is too large nothing is written; the state is that of the step before."""
    settings.DURABLEWEB = {**settings.DURABLEWEB, "value_limit_bytes": 100_000}
    graph = Graph("too much")

    @graph.node(then="fill")
    def begin(run, state):
        state["begun"] = True

    @graph.node
    def fill(run, state):
        state["long"] = "y" * 50_000
        state["many"] = ["x" * 100] * 2_000

    with registered(graph):
        run = start("too much", {})
        drive(run)
    assert (run.status, run.error_kind, run.step) == ("failed", "bad_state", 1)
    size = re.search(r"is ([\d,]+) bytes, the limit is 100,000", run.error)
    assert size and int(size[1].replace(",", "")) > 200_000
    assert str(run.pk) in run.error and "node 'fill'" in run.error
    assert run.state_at() == {"begun": True}
    assert kinds(run) == ["start", "claim", "step", "fail"]
    assert first_bad_row(run) is None


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_result_over_the_hard_limit_fails_its_run_naming_key_size_and_limit(kind, settings):
    """D7, of a single value: nothing of it is stored. A write was made, and a person says what it came to.

    The error stands at its run.
    """
    settings.DURABLEWEB = {**settings.DURABLEWEB, "value_limit_bytes": 100_000}
    made = []

    @tool(kind=kind)
    def fetch() -> str:
        made.append(1)
        return "x" * 200_000

    graph = Graph(f"too long {kind}")

    @graph.node(retry=Retry(attempts=3, first=0))
    def load(run, state):
        state["text"] = run.call(fetch, key="the text")

    with registered(graph):
        run = start(f"too long {kind}", {})
        drive(run)
    entry = run.entries.get()
    status = "in_doubt" if entry.write else "failed"
    assert (run.status, run.step, made, entry.status, entry.result) == ("failed", 0, [1], status, None)
    for named in ("the text", "200,002 bytes", "100,000"):
        assert named in run.error, run.error
    assert not Blob.objects.exists() and first_bad_row(run) is None


def test_a_blob_that_is_gone_from_storage_fails_the_run_naming_run_key_and_size():
    """D7: nothing half written, nothing of what was there before is lost to who looks for the cause; and with a given
    state the run goes on.
    """
    graph = Graph("missing blob", state=Letter)

    @graph.node(then="read")
    def write(run, state):
        state.text = "x" * 50_000

    @graph.node
    def read(run, state): ...

    with registered(graph):
        run = start("missing blob", {})
        first = claim(run)
        first.most_steps = 1
        first.run()
        before = kinds(run)
        storages["default"].delete(Blob.objects.get(size=50_000).storage_name)
        assert claim(run, "w2") is None
    run.refresh_from_db()
    assert (run.status, run.error_kind) == ("failed", "bad_state")
    assert str(run.pk) in run.error and "$.text" in run.error and "50,000" in run.error
    assert (run.step, run.node, kinds(run)) == (1, "read", [*before, "claim", "fail"])
    assert not run.entries.exists() and first_bad_row(run) is None
    with registered(graph):
        run.retry("olga", "written anew", state={"text": "short"})
        drive(run, "w3")
    assert (run.status, run.state_at()["text"], first_bad_row(run)) == ("completed", "short", None)


def test_the_fast_tree_and_the_stored_tree_are_the_same_when_nothing_is_long():
    state = StoredState("00000000-0000-0000-0000-000000000000")
    state.begin(flatten({"a": [1, 2]}))
    assert state.stored is state.tree
