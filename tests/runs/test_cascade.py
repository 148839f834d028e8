"""What the end of a run means to the runs below it: cancelled with it, or detached."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import Graph, Permanent, chores, start
from runs.engine import clock, family
from runs.engine.claim import MOST_DEATHS
from runs.engine.verify import first_bad_row
from runs.models import LedgerEntry, Run
from tests.at_once import at_once
from tests.runs.driving import claim, drive, pass_lease, registered
from tests.runs.failing import post_for_now
from tests.runs.families import GRAPHS, children_of, drive_all, leaf, mapper, slow, waiter
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(*GRAPHS):
        yield


def parked(graph: Graph = waiter, given: dict | None = None) -> Run:
    run = start(graph, given or {})
    drive(run)
    return run


def holds_nothing(run: Run) -> None:
    """Ended, with its trail in order and nothing open."""
    run.refresh_from_db()
    assert run.ended and run.cascade_at is None
    assert not LedgerEntry.objects.filter(run=run, status="open").exists()
    assert first_bad_row(run) is None


def test_a_cancel_goes_down_to_the_last_descendant():
    """R2."""
    top = Graph("child-top", state=Log)

    @top.node
    def go(run, state):
        run.join(run.start(waiter))

    with registered(top):
        run = parked(top)
        drive_all(run)
        [middle] = children_of(run)
        [below] = children_of(middle)
        drive(below)
        assert below.status == "waiting"
        run.cancel(by="ada", reason="enough")
    middle.refresh_from_db()
    assert (middle.status, middle.checkpoints.get(kind="cancel").reason) == (
        "cancelled",
        f"Its parent, run {run.short_id}, is cancelled.",
    )
    assert Run.objects.get(pk=below.pk).status == "waiting", "that is due work"
    assert chores.are_due(clock.now())
    chores.do_due()
    for one in (run, middle, below):
        holds_nothing(one)
    assert below.ended and not chores.are_due(clock.now())


@pytest.mark.parametrize("stop", ["claimed", "retrying", "created"])
def test_a_cancel_reaches_children_wherever_they_stand(stop):
    run = parked()
    [child] = children_of(run)
    held = claim(child) if stop != "created" else None
    if stop == "retrying":
        held.lease.put_off(10, "busy", counts=True)
    run.cancel(by="ada", reason="enough")
    if stop == "claimed":
        held.run()  # it lost its lease, and changes nothing
    holds_nothing(child)
    assert child.status == "cancelled"


def test_a_parent_that_fails_takes_its_children_with_it():
    graph = Graph("child-failing", state=Log)

    @graph.node
    def go(run, state):
        run.start(slow)
        raise Permanent("no")

    with registered(graph):
        run = parked(graph)
    assert (run.status, children_of(run)[0].status) == ("failed", "created")
    assert chores.do_due() == 1
    holds_nothing(run)
    holds_nothing(children_of(run)[0])


def test_a_parent_that_kills_its_workers_takes_its_children_with_it():
    """R2: a parent killed for good frees what its children hold."""
    run = parked()
    [child] = children_of(run)
    drive(child)
    child.signal("go", 1)
    drive(child)
    held = claim(run)
    Run.objects.filter(pk=run.pk).update(deaths=MOST_DEATHS, alone=True)
    second = start(slow, {})
    Run.objects.filter(pk=second.pk).update(parent=run, root=run.pk)
    pass_lease()
    assert claim(run, "w2") is None
    run.refresh_from_db()
    assert (held.lease.fence < run.fence, run.error_kind) == (True, "poison")
    chores.do_due()
    holds_nothing(run)
    holds_nothing(second)


def test_a_child_that_kills_its_workers_is_a_value_for_its_parent():
    run = parked()
    [child] = children_of(run)
    claim(child)
    Run.objects.filter(pk=child.pk).update(deaths=MOST_DEATHS, alone=True)
    pass_lease()
    assert claim(child, "w2") is None
    drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["failed"])
    assert run.entries.get().result_value()["error_kind"] == "poison"


def test_a_child_whose_state_cannot_be_read_is_a_value_for_its_parent(monkeypatch):
    from runs.core.errors import CodecError

    run = parked()
    [child] = children_of(run)

    def spoilt(self, tree):
        raise CodecError("$", "spoilt")

    monkeypatch.setattr(type(slow), "restore", spoilt)
    assert claim(child) is None
    monkeypatch.undo()
    drive(run)
    assert run.entries.get().result_value()["error_kind"] == "bad_state"
    assert run.status == "completed"


def test_a_run_that_completes_takes_what_it_never_joined_with_it():
    graph = Graph("child-unjoined", state=Log)

    @graph.node
    def go(run, state):
        run.start(slow)

    with registered(graph):
        run = parked(graph)
    assert run.status == "completed"
    chores.do_due()
    holds_nothing(children_of(run)[0])
    assert run.entries.get().status == "cancelled"


@pytest.mark.parametrize("where", ["graph", "start"])
def test_a_detached_child_goes_on_when_its_parent_ends(where):
    """R2."""
    apart = Graph("child-apart", state=Log, on_parent_end="detach" if where == "graph" else "cancel")
    graph = Graph("child-leaving", state=Log)

    @apart.node
    def wait(run, state):
        state.log.append(run.wait_for("go"))

    @graph.node
    def go(run, state):
        run.start(apart, on_parent_end="detach" if where == "start" else None)

    with registered(apart, graph):
        run = parked(graph)
        assert (run.status, run.cascade_at) == ("completed", None)
        [child] = children_of(run)
        assert child.detached and child.root == run.pk
        child.signal("go", "x")
        drive(child)
    assert (child.status, child.told) == ("completed", "completed")
    holds_nothing(run)


def test_a_detached_map_goes_on_to_its_last_item():
    graph = Graph("child-detached-map", state=Log)

    @graph.node
    def go(run, state):
        run.map(leaf, [{"name": name} for name in "abc"], at_once=1, on_parent_end="detach")

    with registered(graph):
        run = parked(graph)
        run.cancel(by="ada", reason="enough")
        drive_all(run)
    assert {child.status for child in children_of(run)} == {"completed"}
    assert run.entries.get().status == "cancelled"


def test_the_children_of_a_cancelled_map_get_no_turn_any_more():
    run = parked(mapper, {"names": list("abcd"), "at_once": 1})
    held = claim(children_of(run)[0])
    family_cancel = family.cancel_children
    try:
        family.cancel_children = lambda *_, **__: None  # the process dies right after the commit
        run.cancel(by="ada", reason="enough")
    finally:
        family.cancel_children = family_cancel
    held.run()
    assert [child.status for child in children_of(run)] == ["completed", "created", "created", "created"]
    assert not run.children.filter(wake_at__isnull=False).exists()
    chores.do_due()
    for child in children_of(run):
        holds_nothing(child)


def test_many_children_are_cancelled_in_bounded_transactions(monkeypatch):
    monkeypatch.setattr(family, "AT_A_TIME", 2)
    monkeypatch.setattr("runs.engine.cancelling.MOST_AT_ONCE", 3)
    run = parked(mapper, {"names": list("abcdefg"), "at_once": 2})
    run.cancel(by="ada", reason="enough")
    left = run.children.exclude(status="cancelled").count()
    assert 0 < left < 7 and run.cascade_at is not None, "the rest is for whoever does chores"
    chores.do_due()
    holds_nothing(run)
    for child in children_of(run):
        holds_nothing(child)


def test_a_child_that_ends_while_its_parent_is_cancelled_neither_deadlocks_nor_is_lost():
    """Lock order: the parent before its child, whoever ends it."""
    for _ in range(8):
        run = parked()
        [child] = children_of(run)
        child.signal("go", 1)
        held = claim(child)
        ends = at_once(held.run, lambda run=run: run.cancel(by="ada", reason="enough"))
        assert not [end for end in ends if isinstance(end, Exception)]
        chores.do_due()
        holds_nothing(run)
        holds_nothing(child)
        assert run.entries.get().status in ("cancelled", "done")


def test_one_child_of_many_can_be_cancelled_and_its_parent_is_told():
    run = parked()
    children_of(run)[0].cancel(by="ada", reason="not needed")
    drive(run)
    assert (run.status, run.state_at()["log"]) == ("completed", ["cancelled"])


def test_a_run_that_undoes_what_it_did_cancels_its_children():
    """R2, MISSION A14: as soon as it begins to, not when it has ended."""
    graph = Graph("child-undone", state=Log)

    @graph.node
    def go(run, state):
        run.call(post_for_now, text="a")
        run.join(run.start(slow))

    with registered(graph):
        run = parked(graph)
        run.cancel(by="olga", reason="enough", compensate=True)
        assert (run.status, run.ending) == ("running", "cancelled")
        assert chores.do_due() == 1
        [child] = children_of(run)
        holds_nothing(child)
        assert child.checkpoints.get(kind="cancel").reason == f"Its parent, run {run.short_id}, is cancelled."
        drive(run)
    holds_nothing(run)
    assert run.status == "cancelled"


@pytest.mark.parametrize("chore", ["cascades", "ends of children"])
def test_what_a_killed_process_was_about_to_end_or_tell_waits_for_seconds_only(chore, monkeypatch):
    """A repair is refused until it is done, and a parent waits for it."""
    monkeypatch.setattr(family, "AT_A_TIME", 1)
    monkeypatch.setattr("runs.engine.cancelling.MOST_AT_ONCE", 1)
    monkeypatch.setattr("runs.engine.telling.tell", lambda parent_id: None)  # the process is gone before that
    run = parked(mapper, {"names": list("abcd"), "at_once": 2})
    if chore == "cascades":
        run.cancel(by="ada", reason="enough")
    else:
        children_of(run)[0].cancel(by="ada", reason="not needed")
    clock.AHEAD = timedelta(seconds=3)
    [of_killed] = [one for one in chores.known() if one.name == chore]
    assert of_killed.take(clock.now()) is not None
    assert of_killed.take(clock.now()) is None
    clock.AHEAD += timedelta(seconds=16)
    assert of_killed.take(clock.now()) is not None
