"""A run on another version of its graph than it was started on: migrated first, or left where it stands."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from approvals.models import Approval
from runs import Graph, start
from runs.core import codec
from runs.core.outcomes import Outcome, PutsOff, Waits
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.ledger import RowLedger
from runs.engine.shift import Shift
from runs.engine.verify import first_bad_row
from runs.engine.versions import PATIENCE
from runs.errors import Conflict, Invalid
from runs.models import GraphVersion, Run, Worker
from runs.testing import go_on, moved_clock
from tests.runs import versioned
from tests.runs.driving import answer, kinds, pass_lease, pass_time, registered
from tests.runs.faulty_versions import shipping
from tests.runs.versioned import first, second, ship, third, unserved

pytestmark = pytest.mark.django_db(transaction=True)


def claim(run: Run, *graphs: Graph, patience: timedelta = timedelta()) -> Drive | None:
    taken = Claimer("w1", list(graphs), patience).claim(alone=True, only=run.pk)
    return None if taken is None else Drive(*taken)


def drive(run: Run, *graphs: Graph, patience: timedelta = timedelta()) -> Outcome | None:
    claimed = claim(run, *graphs, patience=patience)
    outcome = None if claimed is None else claimed.run()
    run.refresh_from_db()
    return outcome


def parked(**state: Any) -> Run:
    """A run of the first version that waits for two answers."""
    run = start(first, state)
    assert isinstance(drive(run, first), Waits)
    return run


def sound(run: Run) -> Run:
    run.refresh_from_db()
    assert first_bad_row(run) is None
    return run


@contextmanager
def a_worker_that_serves(*pairs: tuple[str, int]):
    now = clock.now()
    serves = codec.dumps([list(pair) for pair in pairs])
    row = {"host": "elsewhere", "boot_id": "b", "pid": 1, "started_at": now, "seen_at": now}
    worker = Worker.objects.create(name="old:b:1:1", serves=serves, **row)
    yield
    worker.delete()


# -- by the worker --------------------------------------------------------------------------------------------


def test_a_run_whose_version_is_gone_is_migrated_first_thing_after_its_claim():
    """R7: into another node and another model; what the old queue was does not matter."""
    run = start(first, {})
    Run.objects.filter(pk=run.pk).update(node="pack")
    drive(run, second)
    run = sound(run)
    assert (run.status, run.version, run.queue) == ("completed", 2, "default")
    assert kinds(run) == ["start", "claim", "migrate", "complete"]
    assert run.state_at() == {"log": ["1 at pack", "shipped B"], "parcels": 1}
    migrate = run.checkpoints.get(kind="migrate")
    assert (migrate.reason, migrate.actor, migrate.version, migrate.node) == (
        "version 1 -> 2",
        "w1",
        2,
        "box",
    )
    assert list(run.checkpoints.order_by("seq").values_list("version", flat=True)) == [1, 1, 2, 2]
    assert list(run.checkpoints.order_by("seq").values_list("fence", flat=True)) == [0, 1, 2, 2]


def test_a_chain_of_migrations_is_one_commit():
    run = start(first, {})
    drive(run, third)
    assert run.version == 3 and kinds(run)[:3] == ["start", "claim", "migrate"]
    assert run.state_at(2)["log"] == ["1 at ask", "2 at ask"]
    assert run.checkpoints.get(kind="migrate").reason == "version 1 -> 2 -> 3"
    sound(run)


def test_an_async_graph_migrates_too():
    flowing = Graph("versioned", version=2, state=versioned.Later)

    @flowing.node(name="ask")
    async def now(run, state):
        state.log.append(await run.call(ship, parcel="C"))

    flowing.migrate(1)(versioned.from_first)
    run = start(first, {})
    drive(run, flowing)
    assert (run.status, kinds(run)) == ("completed", ["start", "claim", "migrate", "complete"])
    assert sound(run).state_at()["log"] == ["1 at ask", "shipped C"]


def test_a_version_that_is_served_too_goes_on_unmigrated():
    """R8: both are served side by side, and never mixed."""
    old, new = start(first, {}), start(second, {"parcels": 0})
    for run in (old, new):
        drive(run, first, second, third)
        answer(run, "ok")
        answer(run, "wrap")
        drive(run, first, second, third)
        sound(run)
    assert (old.version, old.state_at()["log"]) == (1, ["approve 1", "approve 1", "shipped A"])
    assert (new.version, new.state_at()["log"]) == (2, ["approve 2", "approve 2", "shipped B"])


def test_nobody_migrates_a_run_that_a_living_worker_serves():
    """R8, a rolling deploy: the old worker is busy, and comes to it later."""
    run = start(first, {})
    pass_time(60)
    with a_worker_that_serves(("versioned", 1)):
        assert claim(run, second, patience=PATIENCE) is None
    assert claim(run, second, patience=PATIENCE) is not None


def test_an_idle_worker_that_has_no_row_gets_time_to_come():
    run = start(first, {})
    assert claim(run, second, patience=PATIENCE) is None
    pass_time(PATIENCE.total_seconds() + 0.1)
    assert claim(run, second, patience=PATIENCE) is not None


def test_a_run_of_a_version_that_nothing_leads_from_is_left_alone():
    """R7: held, whatever comes."""
    run = start(first, {})
    before = (run.seq, run.status, run.fence)
    pass_time(60)
    assert claim(run, unserved) is None
    run.refresh_from_db()
    assert (run.seq, run.status, run.fence) == before


def test_within_its_node_the_step_its_questions_and_its_answers_stay():
    run = parked()
    answer(run, "ok")
    answer(run, "wrap")
    drive(run, second)
    run = sound(run)
    assert kinds(run) == ["start", "claim", "wait", "wake", "migrate", "step", "complete"]
    assert run.state_at()["log"] == ["1 at ask", "approve 2", "approve 2", "shipped B"]
    assert run.entries.get(key="ok").request_value()["payload"] == {"n": 1}, "asked once"
    assert run.checkpoints.get(kind="migrate").step == 0


def test_a_waiting_run_is_migrated_only_once_what_it_waits_for_is_there():
    """R8: people may take months."""
    run = parked()
    answer(run, "ok")
    assert drive(run, second) is None
    assert (run.status, run.version) == ("waiting", 1)
    answer(run, "wrap")
    drive(run, second)
    assert (run.status, run.version) == ("completed", 2)


# -- when it cannot be done -----------------------------------------------------------------------------------


def test_a_migration_that_raises_never_fails_the_run_and_says_what_is_wrong():
    broken = Graph("versioned", version=2, state=versioned.Later)
    broken.node(versioned.box)
    broken.migrate(1)(lambda state, node: (state["gone"], node))
    run = start(first, {})
    delays = []
    for _ in range(8):
        assert isinstance(drive(run, broken), PutsOff)
        assert (run.status, run.version, run.node) == ("retrying", 1, "ask")
        delays.append((run.wake_at - run.checkpoints.order_by("seq").last().at).total_seconds())
        pass_time(3600 * 2)
    assert "cannot be migrated (version 1 -> 2): KeyError: 'gone'" in run.error
    assert 54 <= delays[0] <= 66 and 3240 <= delays[-1] <= 3960, "from a minute to an hour"
    drive(run, second)
    assert (sound(run).status, run.attempt, run.version) == ("waiting", 0, 2)


def test_a_migrated_state_that_may_not_be_stored_is_no_failure_of_the_run_either():
    wrong = Graph("versioned", version=2, state=versioned.Later)
    wrong.node(versioned.box)
    wrong.migrate(1)(lambda state, node: ({"parcels": "many"}, "box"))
    run = start(first, {})
    drive(run, wrong)
    assert run.status == "retrying" and "parcels" in run.error


def test_a_write_that_may_have_been_sent_is_settled_by_a_person_before_the_run_leaves_its_node():
    """Nobody here has its tool any more."""
    run = start(first, {})
    Run.objects.filter(pk=run.pk).update(node="pack")
    claimed = claim(run, first)
    rows = RowLedger(claimed.lease, claimed.rows)
    rows.open(shipping(claimed.lease), tried=ship.limit)
    pass_lease()
    drive(run, second)
    run.refresh_from_db()
    assert run.checkpoints.order_by("seq").last().kind == "wait", "an earlier call may be under way"
    pass_time(10)
    drive(run, second)
    assert (run.status, run.version, run.node) == ("waiting", 1, "pack")
    asked = run.entries.get(kind="interrupt")
    assert asked.request_value()["settles"]["tool"] == "ship"
    assert run.entries.get(kind="effect").status == "in_doubt"
    answer(run, asked.key, "respond", payload={"outcome": "happened", "result": "shipped A"})
    drive(run, second)
    run = sound(run)
    assert (run.status, run.version, run.step) == ("completed", 2, 2)
    assert run.entries.get(name="ship", step=1).status == "done"
    assert kinds(run)[-4:] == ["wait", "wake", "migrate", "complete"]


def test_a_migration_that_does_not_end_is_taken_from_its_thread(monkeypatch):
    """As a node over its limit, but it is never used up."""
    hangs, go = Graph("versioned", version=2, state=versioned.Later), threading.Event()
    hangs.node(versioned.box)

    @hangs.migrate(1)
    def never_end(state, node):
        go.wait(30)
        return state, node

    run = start(first, {})
    Run.objects.filter(pk=run.pk).update(attempt=7)
    pass_time(PATIENCE.total_seconds() + 1)
    monkeypatch.setattr("runs.core.migration.LIMIT", timedelta(seconds=0.2))
    try:
        with registered(hangs):
            Shift(seconds=20, linger=0, only=run.pk).work()
    finally:
        go.set()
    run = sound(run)
    assert (run.status, run.version, run.attempt) == ("retrying", 1, 8)
    assert "its migration was not done after 0.2 s" in run.error


# -- by an operator -------------------------------------------------------------------------------------------


@pytest.fixture
def both():
    with registered(first, second):
        yield


def test_leaving_its_node_closes_what_is_open_as_superseded_and_keeps_the_mailbox(both):
    run = parked(to="box")
    run.signal("unread", 1)
    run.migrate("olga", "the question is gone")
    assert (run.status, run.step, run.node) == ("running", 1, "box")
    drive(run, second)
    assert (sound(run).status, run.step) == ("completed", 2)
    assert list(run.entries.order_by("id").values_list("key", "status", "step")) == [
        ("ok", "cancelled", 1),
        ("wrap", "cancelled", 1),
        ("box:{run_id}", "done", 2),
    ]
    assert list(Approval.objects.filter(run=run).values_list("outcome", flat=True)) == ["superseded"] * 2
    assert run.signals.unread().count() == 1


def test_an_operator_migrates_a_waiting_run_before_its_code_goes(both):
    run = parked()
    answer(run, "ok")
    checkpoint = run.migrate("olga", "the old workers stop tonight")
    assert (checkpoint.kind, checkpoint.actor) == ("migrate", "olga")
    assert checkpoint.reason == "the old workers stop tonight (version 1 -> 2)"
    assert (run.status, run.version, run.node, run.leased_by) == ("running", 2, "ask", None)
    drive(run, second)
    assert run.status == "waiting", "the other question is still open"
    answer(run, "wrap")
    drive(run, second)
    assert sound(run).state_at()["log"][:3] == ["1 at ask", "approve 2", "approve 2"]


def test_an_operator_takes_a_running_run_from_its_worker(both):
    """P2: the old worker can change nothing any more, and what it had recorded stays in the trail."""
    run = start(first, {"to": "box"})
    Run.objects.filter(pk=run.pk).update(node="pack")
    claimed = claim(run, first)
    rows = RowLedger(claimed.lease, claimed.rows)
    entry = shipping(claimed.lease)
    rows.open(entry, tried=ship.limit)
    with pytest.raises(Conflict, match="would leave 'pack', and what became of ship.* must be settled first"):
        run.migrate("olga", "now")
    rows.record(entry, "shipped A")
    run.refresh_from_db()
    run.migrate("olga", "now")
    claimed.run()
    run = sound(run)
    assert (run.status, run.version, run.step) == ("running", 2, 1)
    assert run.entries.get().status == "done"
    drive(run, second)
    assert sound(run).status == "completed"


def test_what_stands_against_an_operators_migration_is_said(both):
    run = start(second, {"parcels": 0})
    with pytest.raises(Conflict, match="Nothing here migrates 'versioned' from version 2"):
        run.migrate("olga", "now")
    with pytest.raises(Invalid, match="Say why the run is migrated"):
        run.migrate("olga", " ")
    old = start(first, {"to": "nowhere"})
    with pytest.raises(Conflict, match=r"cannot be migrated \(version 1 -> 2\): Permanent: .*'nowhere'"):
        old.migrate("olga", "now")
    Run.objects.filter(pk=old.pk).update(status="running", ending="failed")
    with pytest.raises(Conflict, match="is undoing what it did; it cannot be migrated"):
        old.migrate("olga", "now")
    Run.objects.filter(pk=old.pk).update(status="created", ending="")
    old.cancel("olga", "not needed")
    with pytest.raises(Conflict, match="is cancelled; only a live run can be migrated"):
        old.migrate("olga", "now")
    assert sound(run).version == 2


def test_a_version_whose_shape_has_changed_is_no_target(both):
    run = start(first, {})
    row = {"graph": "versioned", "version": 2, "fingerprint": "of another shape", "shape": "{}"}
    GraphVersion.objects.create(**row, seen_at=clock.now())
    with pytest.raises(Conflict, match="Nothing here migrates.*bump the version"):
        run.migrate("olga", "now")


def test_the_kit_drives_an_old_run_with_new_code():
    with moved_clock():
        run = go_on(parked(to="box"), second, {"ok": {"verdict": "approve"}, "wrap": {"verdict": "approve"}})
    assert (run.status, run.version) == ("completed", 2)
