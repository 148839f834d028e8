"""What goes wrong while a run is undone: people settle what is unclear, and nothing is undone twice."""

from __future__ import annotations

import pytest

from runs import Ambiguous, Graph, Permanent, Transient, start, tool
from runs.engine.claim import MOST_DEATHS
from runs.engine.compensating import LIMIT
from runs.engine.reclaim import take_from_stuck
from runs.engine.shift import Shift
from tests.runs.driving import answer, are_sound, claim, drive, pass_call, pass_lease, pass_time, registered
from tests.runs.travel import ONE_TRY, Trip, book, happened, moods, refuse, tell
from tests.runs.trips import ALL_DONE, ALL_UNDONE, started, statuses, trip

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("trips_known")]


# -- what goes wrong --------------------------------------------------------------------------------------------


def test_a_compensation_is_retried_by_its_own_policy_under_the_same_key():
    moods["cancel hotel"] = [Transient("busy"), Ambiguous("no answer")]
    run = started()
    for _ in range(2):
        drive(run)
        assert (run.status, run.ending) == ("retrying", "failed")
        assert "sold out" in run.error, "the error that it ends with stays"
        pass_time(200)
    drive(run)
    assert (run.status, happened) == ("failed", ALL_DONE + ALL_UNDONE)
    assert run.entries.get(key__contains="compensate:1:", request__contains="hotel").attempts == 3
    are_sound(run)


@pytest.mark.parametrize(
    ("outcome", "left", "more"),
    [("happened", "compensated", 0), ("not_happened", "compensated", 1), ("give_up", "done", 0)],
)
def test_one_that_fails_for_good_waits_for_a_person_and_the_others_follow(outcome, left, more):
    moods["write again"] = [Permanent("nobody reads it")]
    run = started()
    drive(run)
    assert (run.status, run.ending) == ("waiting", "failed")
    assert statuses(run)["write_again 2"] == "in_doubt"
    assert happened == ALL_DONE, "those before it wait"
    answer(run, verdict="respond", payload={"outcome": outcome, "result": None}, reason="called her")
    drive(run)
    undone = ALL_UNDONE[1:]
    assert happened == ALL_DONE + ["told ada otherwise"] * more + undone
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert statuses(run)["tell 2"] == left
    are_sound(run)


def test_one_whose_worker_died_in_the_call_is_not_called_again_without_a_word():
    run = started()
    moods["write again"] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        drive(run)
    pass_lease()
    drive(run)
    pass_call()
    drive(run)
    assert (run.status, happened) == ("waiting", ALL_DONE)
    answer(run, verdict="respond", payload={"outcome": "happened", "result": None})
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE[1:]
    are_sound(run)


def test_a_run_that_kills_whoever_undoes_it_is_poison_and_keeps_what_it_was_to_end_with():
    """P5."""
    run = started()
    for _ in range(20):
        if claim(run) is None:
            run.refresh_from_db()
            if run.ended:
                break
        pass_lease()
        pass_time(30)
    run.refresh_from_db()
    assert (run.status, run.error_kind, run.ending) == ("failed", "poison", "")
    assert "Undoing what it did killed" in run.error and "sold out" in run.error
    assert run.deaths > MOST_DEATHS
    are_sound(run)


def test_a_compensation_that_hangs_is_taken_from_its_thread_and_tried_again_later():
    run = started()
    held = claim(run)
    take_from_stuck(held.lease, "over its limit")
    run.refresh_from_db()
    assert (run.status, run.ending, run.attempt) == ("retrying", "failed", 1)
    assert "sold out" in run.error
    pass_time(60)
    drive(run)
    assert (run.status, happened) == ("failed", ALL_DONE + ALL_UNDONE)


def test_the_last_try_of_a_stuck_node_undoes_what_the_run_did():
    run = started("ask")
    answer(run, verdict="reject")
    held = claim(run)
    held.lease.attempt = 1
    take_from_stuck(held.lease, "over its limit")
    run.refresh_from_db()
    assert (run.status, run.ending, run.error_kind) == ("running", "failed", "exhausted")
    drive(run)
    assert (run.status, happened) == ("failed", ALL_DONE + ALL_UNDONE)
    are_sound(run)


def test_a_state_that_cannot_be_read_does_not_stop_what_does_not_need_it():
    run = started("ask")
    run.cancel("olga", "enough", compensate=True)
    strict = Graph("trip", state=Strict, on_failure="compensate", operators="ops")
    strict.nodes = trip.nodes
    with registered_in_place(strict):
        drive(run)
    assert (run.status, happened) == ("cancelled", ALL_DONE + ALL_UNDONE)


class Strict(Trip):
    other: int


class registered_in_place:  # noqa: N801 - a context, used like a function
    """Another graph under the name and version of trip."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __enter__(self) -> None:
        from runs import registry

        registry.remove(trip)
        registry.add(self.graph)

    def __exit__(self, *_: object) -> None:
        from runs import registry

        registry.remove(self.graph)
        registry.add(trip)


def test_without_its_code_a_person_undoes_it():
    run = started("ask")
    run.cancel("olga", "enough", compensate=True)
    bare = Graph("trip", state=Trip, operators="ops")
    bare.node(lambda run, state: None, name="arrange", then="confirm")
    bare.node(lambda run, state: None, name="confirm")
    from runs import registry

    with registered_in_place(bare), pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "tools_of", lambda graph: [])
        for _ in range(3):
            drive(run)
            answer(run, verdict="respond", payload={"outcome": "happened", "result": None})
        drive(run)
    assert (run.status, happened) == ("cancelled", ALL_DONE)
    assert set(statuses(run).values()) == {"compensated", "done"}
    are_sound(run)


# -- who undoes it ----------------------------------------------------------------------------------------------


def test_an_async_graph_undoes_with_async_compensations():
    async def take_back(result: str) -> None:
        happened.append(f"took back {result}")

    @tool(kind="write", compensate=take_back, retry=ONE_TRY)
    async def order(what: str) -> str:
        happened.append(f"ordered {what}")
        return what

    patient = Graph("async-trip", state=Trip, on_failure="compensate")

    @patient.node
    async def buy(run, state):
        await run.call(order, what="book")
        await run.call(book, what="flight")
        refuse()

    with registered(patient):
        run = started(graph=patient)
        drive(run)
    assert (run.status, happened) == (
        "failed",
        ["ordered book", "booked flight", "cancelled FLIGHT", "took back book"],
    )


def test_what_is_under_way_is_bounded_like_a_node_by_the_limit_of_its_own_tool():
    run = started()
    held = claim(run)
    seen = []
    moods["write again"] = [lambda: seen.append((held.inside_node, held.bounds.limit, held.bounds.is_async))]
    held.run()
    assert seen == [(True, LIMIT + tell.limit, False)]
    assert not held.inside_node


def test_a_shift_undoes_a_run_from_its_failure_to_its_end():
    run = start("trip", {})
    Shift(seconds=30, only=run.pk, linger=0.2).work()
    run.refresh_from_db()
    assert (run.status, happened) == ("failed", ALL_DONE + ALL_UNDONE)
