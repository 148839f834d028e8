"""Children of the run that a fork comes from: what they did is not done again, and told where it would be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runs import Child, Graph, Permanent, start
from runs.engine.forking import would_send, would_start
from runs.errors import Conflict
from tests.runs.driving import are_sound, registered
from tests.runs.families import children_of, drive_all, slow
from tests.runs.states import Log
from tests.runs.till import ONCE, declined, done, pay, wire

pytestmark = pytest.mark.django_db(transaction=True)


parcel = Graph("stands-parcel", state=Log)


@parcel.node(retry=ONCE)
def ship(run, state):
    if "lost" in declined:
        declined.remove("lost")
        raise Permanent("it is lost")
    state.log.append(run.call(wire, amount=1))


keyed = Graph("stands-keyed", state=Log)


@keyed.node(then="again")
def first(run, state):
    state.log += [end.status for end in run.join(run.start(parcel, key="parcel:{run_id}"))]


@keyed.node
def again(run, state):
    state.log += [end.status for end in run.join(run.start(parcel, key="parcel:{run_id}"))]
    state.log.append(run.call(pay, by="receipt"))


mapped = Graph("stands-mapped", state=Log)


@mapped.node(then="later", retry=ONCE)
def all_of_them(run, state):
    run.call(pay, by="stamps", key="stamps:{run_id}")
    [alone] = run.join(run.start(parcel))
    ends = run.map(parcel, [{}, {}], key="parcels:{run_id}")
    state.log += [end.status for end in (alone, *ends)]
    run.call(pay, by="receipt")


@mapped.node
def later(run, state):
    run.call(pay, by="stamps", key="stamps:{run_id}")
    if "the same map" in declined:
        run.map(parcel, [{}, {}], key="parcels:{run_id}")


@pytest.fixture(autouse=True)
def known(empty_till) -> Iterator[None]:
    with registered(parcel, keyed, mapped):
        yield


def test_a_child_under_an_authors_key_is_a_child_of_the_fork_as_well():
    declined.add("receipt")
    drive_all(run := start(keyed, {}))
    assert (run.status, done) == ("failed", ["wire"])
    declined.clear()
    after_the_first = run.checkpoints.filter(kind="step").first().seq
    fork = run.fork("olga", "from its second step", seq=after_the_first)
    drive_all(fork)
    assert (fork.status, fork.state_at()["log"]) == ("completed", ["completed", "completed", "receipt"])
    assert done == ["wire", "receipt"] and not children_of(fork)
    are_sound(run, fork)


def test_many_under_an_authors_key_are_made_neither_by_a_later_step_nor_by_a_fork_of_it():
    declined.add("the same map")
    drive_all(run := start(mapped, {}))
    assert (run.status, run.node) == ("failed", "later")
    assert "key 'parcels:{run_id}' was used in step 1 for stands-parcel" in run.error
    fork = run.fork("olga", "once more")
    drive_all(fork)
    assert "key 'parcels:{run_id}' was used in step 1 for stands-parcel" in fork.error
    assert done.count("wire") == 3 and not children_of(fork)


@pytest.mark.parametrize("archived", [False, True], ids=["at hand", "archived"])
def test_a_fork_reads_children_and_keys_of_its_origins_wherever_they_stand(archived):
    """A18: a fork of a fork, with a child that was repaired, an author's key and a map, and all before it archived."""
    declined.update({"receipt", "lost"})
    drive_all(run := start(mapped, {}))
    assert run.status == "failed"
    [lost] = run.children.filter(status="failed")
    lost.retry("olga", "it is found")
    drive_all(run)
    second = run.fork("olga", "once more")
    drive_all(second)
    assert second.status == "failed"
    start(keyed, {})  # the newest rows stay
    if archived:
        for one in (run, second):
            one.close("olga", "it goes on elsewhere")
            one.archive("over", "olga")
    declined.clear()
    third = second.fork("olga", "and once more")
    drive_all(third)
    assert (third.status, third.state_at()["log"]) == ("completed", ["failed", "completed", "completed"])
    assert sorted(done) == ["receipt", "stamps", "wire", "wire", "wire"]
    are_sound(run, second, third)


def test_a_fork_of_what_was_erased_says_so_and_does_nothing_again():
    declined.add("receipt")
    drive_all(run := start(mapped, {}))
    fork = run.fork("olga", "once more")
    before = list(done)
    run.close("olga", "over")
    run.erase("asked for", "iris")
    drive_all(fork)
    assert (fork.status, done) == ("failed", before)
    assert "was erased, and cannot be read any more" in fork.error


def test_what_was_skipped_at_the_end_is_not_done_by_a_fork():
    declined.add("receipt")
    drive_all(run := start(mapped, {}))
    run.move("olga", "to the last one", to="later")
    run.cancel("ada", "stop")
    run.skip("olga", "it was done by hand")
    assert run.status == "completed"
    repair = run.checkpoints.filter(kind="repair").last()
    with pytest.raises(Conflict, match=f"Checkpoint {repair.seq} of run {run.short_id} is its end"):
        run.fork("olga", "once more", seq=repair.seq)


def test_what_children_would_do_again_is_told_before():
    """Of the step that the fork enters only those that have not ended; of later steps all."""
    declined.add("receipt")
    drive_all(run := start(mapped, {}))
    assert [entry.name for entry in would_send(run)] == []
    assert would_send(run, 0) == [], "it enters the same step"
    declined.clear()
    drive_all(other := start(keyed, {}))
    assert [entry.name for entry in would_send(other, 0)] == ["pay"]
    half = Graph("stands-half", state=Log)

    @half.node
    def only(run, state):
        run.join(run.start(slow_parcel))

    slow_parcel = Graph("stands-slow-parcel", state=Log)

    @slow_parcel.node
    def wrap(run, state):
        run.call(wire, amount=9)
        run.wait_for("go")

    with registered(half, slow_parcel):
        drive_all(run := start(half, {}))
        run.cancel("ada", "stop")
        [child] = children_of(run)
        assert [(entry.run_id, entry.name) for entry in would_send(run)] == [(child.pk, "wire")]
        assert [entry.child_id for entry in would_start(run)] == [child.pk] and would_start(other, 0) == []


def test_a_fork_does_not_wait_for_a_child_that_its_origin_waits_for():
    begins = Graph("stands-begins", state=Log)

    @begins.node(then="goes_on")
    def begin(run, state):
        state.log.append(run.start(slow).id)

    @begins.node
    def goes_on(run, state):
        run.join(Child(state.log[0], slow.name))

    with registered(begins, slow):
        drive_all(run := start(begins, {}))
        fork = run.fork("olga", "beside it")
        drive_all(fork)
        assert (fork.status, fork.error_kind) == ("failed", "permanent") and "has not ended" in fork.error
        [child] = children_of(run)
        child.signal("go", "now")
        drive_all(run)
        assert run.status == "completed"
        fork.retry("olga", "now it has")
        drive_all(fork)
        assert (fork.status, children_of(fork)) == ("completed", [])
        are_sound(run, fork, child)
