"""A run that fails, or is cancelled, undoes what it did: in reverse, each once, and people settle what is unclear."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from runs import Ambiguous, Ask, Graph, Permanent, Retry, Transient, start, tool
from runs.core.outcomes import Lost
from runs.engine.claim import MOST_DEATHS
from runs.engine.compensating import LIMIT
from runs.engine.family import cancel_children
from runs.engine.reclaim import take_from_stuck
from runs.engine.shift import Shift
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import LedgerEntry, Remark, Run
from runs.testing import go_on
from tests.at_once import at_once
from tests.runs.driving import answer, claim, drive, kinds, pass_call, pass_lease, pass_time, registered, undo
from tests.runs.travel import ONE_TRY, Trip, book, happened, moods, refuse, tell

pytestmark = pytest.mark.django_db(transaction=True)

trip = Graph("trip", state=Trip, operators="ops", on_failure="compensate")


@trip.node(then="confirm")
def arrange(run, state):
    for thing in state.things:
        state.log.append(run.call(book, what=thing))


@trip.node(retry=Retry(attempts=2, first=60))
def confirm(run, state):
    run.call(tell, to="ada")
    match state.then:
        case "fail":
            refuse()
        case "ask":
            run.interrupt("Go?", due=timedelta(hours=1))
        case "call":
            run.call(tell, to="bob")
        case "gate":
            run.call(tell, to="bob", approve=Ask("Tell bob?"))
        case "retry":
            raise Transient("closed")


kept = Graph("kept-trip", state=Trip, operators="ops")


@kept.node
def arrange_only(run, state):
    run.call(book, what="flight")
    refuse()


ALL_DONE = ["booked flight", "booked hotel", "told ada"]
ALL_UNDONE = ["told ada otherwise", "cancelled HOTEL", "cancelled FLIGHT"]


@pytest.fixture(autouse=True)
def nothing_happened():
    happened.clear()
    moods.clear()
    with registered(trip, kept):
        yield


def started(then: str = "fail", graph: Graph = trip) -> Run:
    """Driven as far as it goes by itself."""
    run = start(graph, {"then": then})
    drive(run)
    return run


def is_sound(run: Run) -> None:
    run.refresh_from_db()
    assert first_bad_row(run) is None, first_bad_row(run)


def statuses(run: Run) -> dict[str, str]:
    writes = run.entries.filter(write=True).order_by("id")
    return {f"{entry.name} {entry.step}": entry.status for entry in writes}


# -- a run that fails


def test_a_run_that_fails_undoes_its_writes_the_latest_first_and_keeps_its_error():
    run = started()
    assert (run.status, run.ending, run.leased_by) == ("running", "failed", None)
    assert (run.error_kind, happened) == ("permanent", ALL_DONE), "what it fails with is there at once"
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    assert (run.status, run.ending, run.error_kind) == ("failed", "", "permanent")
    assert "sold out" in run.error and run.finished_at and run.wake_at is None
    assert run.state_at()["log"] == ["FLIGHT", "HOTEL"], "its state is left as it was"
    assert kinds(run)[-3:] == ["compensate", "claim", "fail"]
    assert "sold out" in run.checkpoints.get(kind="fail").reason
    is_sound(run)


def test_each_compensation_is_an_entry_that_names_what_it_undoes():
    run = started()
    drive(run)
    for entry in run.entries.filter(compensates__isnull=False):
        undone = entry.compensates
        assert (entry.status, undone.status) == ("done", "compensated")
        assert entry.name == undone.compensation
        assert entry.key == f"compensate:{undone.step}:{undone.key}"
        assert entry.idempotency_key == f"{run.pk}:{entry.key}"
        request = entry.request_value()
        assert request["arguments"] == undone.request_value()
        assert request["result"] == undone.result_value()
    assert run.entries.filter(compensates__isnull=False).count() == 3


def test_by_default_what_was_done_is_kept():
    run = started(graph=kept)
    assert (run.status, run.error_kind, happened) == ("failed", "permanent", ["booked flight"])


def test_a_run_with_nothing_to_undo_fails_at_once():
    bare = Graph("bare", state=Trip, on_failure="compensate")

    @bare.node
    def only(run, state):
        run.call(tell.compensate, arguments={"to": "x"})
        refuse()

    with registered(bare):
        run = started(graph=bare)
    assert (run.status, kinds(run)[-1]) == ("failed", "fail")


@pytest.mark.parametrize(("verdict", "kind"), [("reject", "rejected"), ("", "expired")])
def test_a_rejection_and_a_deadline_that_the_node_does_not_catch_undo_as_well(verdict, kind):
    asking = Graph("asking-trip", state=Trip, on_failure="compensate")

    @asking.node
    def ask(run, state):
        run.call(book, what="flight")
        run.call(tell, to="bob", approve=Ask("Tell bob?", due=timedelta(hours=1)))

    with registered(asking):
        run = started(graph=asking)
        answer(run, verdict=verdict) if verdict else pass_time(3601)
        drive(run)
        drive(run)
    assert (run.status, run.error_kind) == ("failed", kind)
    assert happened == ["booked flight", "cancelled FLIGHT"]
    is_sound(run)


def test_tries_that_are_used_up_and_the_step_limit_undo():
    endless = Graph("endless", state=Trip, on_failure="compensate", max_steps=2)

    @endless.node(then="again")
    def again(run, state):
        run.call(book, what="flight")

    with registered(endless):
        limited = started(graph=endless)
        drive(limited)
    assert (limited.status, limited.error_kind) == ("failed", "loop_limit")
    assert happened == ["booked flight"] * 2 + ["cancelled FLIGHT"] * 2
    run = started("retry")
    assert (run.status, run.ending) == ("retrying", "")
    pass_time(70)
    drive(run)
    assert (run.status, run.ending, run.error_kind) == ("running", "failed", "exhausted")
    drive(run)
    assert run.status == "failed"


@pytest.mark.parametrize("kind", ["poison", "diverged", "bad_state"])
def test_a_run_of_which_it_is_not_known_what_it_did_keeps_it(kind):
    run = start("trip", {"then": "ask"})
    claimed = claim(run)
    claimed.run()
    answer(run, verdict="reject")
    held = claim(run)
    held.lease.fail(kind, "no")
    run.refresh_from_db()
    assert (run.status, run.ending, run.error_kind) == ("failed", "", kind)
    assert happened == ALL_DONE


def test_no_node_is_called_and_no_answer_is_taken_while_it_is_undone():
    run = start("trip", {"then": "ask"})
    drive(run)
    run.cancel("olga", "enough", compensate=True)
    entry = run.entries.get(kind="interrupt")
    assert (entry.status, run.status) == ("cancelled", "running")
    with pytest.raises(Conflict):
        answer_closed(run, entry)
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    assert (run.status, run.step) == ("cancelled", 1)


def answer_closed(run: Run, entry: LedgerEntry) -> None:
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        entry.answer(locked, {"payload": None}, "ada", now, now)


def test_an_answer_that_was_not_taken_yet_can_be_taken_back_no_more():
    run = started("gate")
    entry = answer(run, undo=8)
    run.cancel("olga", "enough", compensate=True)
    with pytest.raises(Conflict, match="Too late"):
        undo(run, entry)
    pass_time(9)
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE
    is_sound(run)


# -- a run that is cancelled


@pytest.mark.parametrize("then", ["ask", "retry"])
def test_a_waiting_and_a_retrying_run_are_cancelled_with_and_without_compensation(then):
    for compensate in (True, False):
        happened.clear()
        run = started(then)
        assert run.status in ("waiting", "retrying")
        run.cancel("user olga", "ordered twice", compensate=compensate)
        drive(run)
        assert happened == ALL_DONE + (ALL_UNDONE if compensate else [])
        assert (run.status, run.ending, run.wake_at) == ("cancelled", "", None)
        last = run.checkpoints.order_by("-seq").first()
        assert (last.kind, last.actor, last.reason) == ("cancel", "user olga", "ordered twice")
        is_sound(run)


def test_a_created_run_has_nothing_to_undo():
    run = start("trip", {})
    run.cancel("olga", "enough", compensate=True)
    assert (run.status, kinds(run)) == ("cancelled", ["start", "cancel"])


def test_a_cancel_in_the_middle_of_a_node_takes_the_run_and_nothing_of_the_old_worker_lands():
    """R1: the call under way is found out before anything is undone; the state is as the last step left it."""
    run = start("trip", {"then": "call"})
    held = claim(run, "old")

    moods["bob"] = [lambda: Run.objects.get(pk=run.pk).cancel("olga", "enough", compensate=True)]
    assert isinstance(held.run(), Lost)
    run.refresh_from_db()
    late = run.entries.get(name="tell", step=2, status="open")
    assert Remark.objects.get(entry=late).kind == "late_result"
    drive(run, "new")
    assert (run.status, happened) == ("waiting", [*ALL_DONE, "told bob"]), "it may still be under way"
    pass_call()
    drive(run, "new")
    asked = run.entries.get(kind="interrupt", status="open")
    answer(run, asked.key, "respond", payload={"outcome": "happened", "result": None})
    drive(run, "new")
    assert happened[4:] == ["told bob otherwise", *ALL_UNDONE]
    assert (run.status, run.step, run.state_at()["log"]) == ("cancelled", 1, ["FLIGHT", "HOTEL"])
    is_sound(run)


def test_a_write_that_did_not_happen_is_not_sent_and_not_undone():
    moods["bob"] = [Ambiguous("no answer")]
    run = started("call")
    run.cancel("olga", "enough", compensate=True)
    pass_call()
    drive(run)
    answer(run, verdict="respond", payload={"outcome": "not_happened"})
    drive(run)
    assert happened == [*ALL_DONE, "told bob", *ALL_UNDONE]
    assert list(run.entries.filter(name="tell").order_by("id").values_list("status", flat=True)) == [
        "compensated",
        "cancelled",
    ]
    is_sound(run)


def test_a_question_about_a_write_stays_open_over_a_cancel():
    moods["bob"] = [Ambiguous("no answer")]
    run = started("call")
    pass_call()
    drive(run)
    asked = run.entries.get(kind="interrupt")
    run.cancel("olga", "enough", compensate=True)
    asked.refresh_from_db()
    assert asked.status == "open"
    drive(run)
    assert run.status == "waiting"
    answer(run, asked.key, "respond", payload={"outcome": "happened", "result": None})
    drive(run)
    assert (run.status, run.entries.filter(kind="interrupt").count()) == ("cancelled", 1)
    is_sound(run)


def test_cancelling_again_is_refused_and_cancelling_without_compensation_ends_it_at_once():
    moods["cancel hotel"] = [Transient("busy", retry_after=60)]
    run = started()
    drive(run)
    assert (run.status, run.ending) == ("retrying", "failed")
    with pytest.raises(Conflict, match="already"):
        run.cancel("olga", "enough", compensate=True)
    run.cancel("olga", "leave the rest")
    assert (run.status, run.ending, run.wake_at) == ("cancelled", "", None)
    assert happened == [*ALL_DONE, "told ada otherwise"]
    assert statuses(run)["book 1"] == "done"
    assert run.checkpoints.get(kind="cancel").reason == "leave the rest"
    is_sound(run)


def test_the_command_cancels_with_compensation(capsys):
    run = started("ask")
    call_command("cancel", str(run.pk), "--reason", "enough", "--compensate")
    assert "undoing what it did" in capsys.readouterr().out
    drive(run)
    assert happened == ALL_DONE + ALL_UNDONE


# -- what goes wrong while it is undone


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
    is_sound(run)


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
    is_sound(run)


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
    is_sound(run)


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
    is_sound(run)


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
    is_sound(run)


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
    is_sound(run)


# -- what it rules out


def test_once_it_has_begun_no_repair_takes_the_run():
    run = started("ask")
    run.cancel("olga", "enough", compensate=True)
    with pytest.raises(Conflict, match="undoing what it did"):
        run.migrate("olga", "now")


def test_a_compensation_is_refused_by_the_database_if_there_is_one_already():
    run = started()
    drive(run)
    again = run.entries.filter(compensates__isnull=False).first()
    again.pk, again.key, again.idempotency_key = None, "another", None
    with pytest.raises(IntegrityError), transaction.atomic():
        again.save(force_insert=True)


def test_an_entry_made_to_look_undone_is_found():
    run = started(graph=kept)
    run.entries.filter(name="book").update(status="compensated")
    run.refresh_from_db()
    assert "is compensated, and no compensation of it is done" in first_bad_row(run)


def test_ending_is_a_word_of_live_runs_alone():
    run = started(graph=kept)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(ending="failed")


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


def test_of_two_cancels_at_the_same_moment_one_begins_and_the_other_is_refused():
    for _ in range(5):
        happened.clear()
        run = started("ask")
        ends = at_once(
            lambda run=run: Run.objects.get(pk=run.pk).cancel("olga", "one", compensate=True),
            lambda run=run: Run.objects.get(pk=run.pk).cancel("bob", "two", compensate=True),
        )
        assert sum(isinstance(end, Conflict) for end in ends) == 1
        drive(run)
        assert (run.status, happened) == ("cancelled", ALL_DONE + ALL_UNDONE)
        is_sound(run)


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


def test_a_large_result_is_given_back_whole():
    given = []

    @tool(kind="write", compensate=lambda result: given.append(result))
    def print_out(pages: int) -> str:
        return "page " * pages

    large = Graph("large-trip", state=Trip, on_failure="compensate")

    @large.node
    def make(run, state):
        run.call(print_out, pages=20_000)
        refuse()

    with registered(large):
        run = go_on(start(large, {}), large)
    assert (run.status, len(given[0])) == ("failed", 100_000)
    run.refresh_from_db()
    is_sound(run)


@pytest.mark.parametrize("compensate", [True, False])
def test_children_that_end_with_their_parent_undo_what_they_did_if_it_does(compensate):
    """Whether or not the parent has ended by then."""
    parcels = Graph("trip-of-many", state=Trip, operators="ops")

    @parcels.node
    def send_ahead(run, state):
        run.call(book, what="van")
        run.join(run.start(trip, {"then": "ask", "things": ["flight"]}), run.start(trip, {"things": []}))

    with registered(parcels):
        run = started(graph=parcels)
        asking, idle = run.children.order_by("id")
        drive(asking)
        run.cancel("olga", "enough", compensate=compensate)
        drive(run)
        assert run.status == "cancelled"
        cancel_children(run.pk)
        for child in (asking, idle):
            child.refresh_from_db()
            assert child.ending == ("cancelled" if compensate and child == asking else "")
            drive(child)
            assert child.status == "cancelled"
            is_sound(child)
    undone = ["cancelled VAN", "told ada otherwise", "cancelled FLIGHT"]
    assert happened == ["booked van", "booked flight", "told ada", *(undone if compensate else [])]
    run.refresh_from_db()
    assert (run.cascade_at, asking.told) == (None, "cancelled")
