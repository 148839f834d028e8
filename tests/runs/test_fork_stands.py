"""What a fork takes over so that nothing is done a second time: answers on which something stands, and children."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from runs import Ask, Child, EffectFailed, Graph, Permanent, Rejected, Retry, TimedOut, start, tool
from runs.engine.carrying import GATHER_THREADS
from runs.engine.forking import would_send, would_start
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import Run
from tests.runs.driving import answer, drive, pass_time, registered, undo
from tests.runs.families import children_of, drive_all, slow
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

ONCE = Retry(attempts=1)
done: list[str] = []
declined: set[str] = set()  # by which ways nothing can be paid, until they are taken out


@tool(kind="write", retry=ONCE)
def pay(by: str) -> str:
    if by in declined:
        raise Permanent(f"{by} is declined")
    done.append(by)
    return by


@tool(kind="write", retry=ONCE)
def wire(amount: int) -> str:
    done.append("wire")
    return "wire"


def another_way(run) -> str:
    return run.call(wire, amount=5)


def in_cash(run) -> str:
    return run.wait_for("paid in cash")


def paying(name: str, other_way: Callable, **ask: object) -> Graph:
    """By card, which people are asked for if `ask` says so, else the other way; and then a receipt."""
    graph = Graph(name, state=Log)

    @graph.node(retry=ONCE)
    def only(run, state):
        try:
            state.log.append(run.call(pay, by="card", **ask))
        except (EffectFailed, Rejected) as no:
            state.log.append(f"{type(no).__name__}, {other_way(run)}")
        state.log.append(run.call(pay, by="receipt", key="receipt:{run_id}"))

    return graph


ASK = Ask("By card?", reviewers="pm")
CAUGHT = {
    "a failure, then a write": (paying("stands-1", another_way), "", "EffectFailed, wire"),
    "a failure, then a signal": (paying("stands-2", in_cash), "", "EffectFailed, cash"),
    "an approved failure, then a write": (
        paying("stands-3", another_way, approve=ASK),
        "approve",
        "EffectFailed, wire",
    ),
    "a rejection, then a write": (paying("stands-4", another_way, approve=ASK), "reject", "Rejected, wire"),
    "a rejection, then a signal": (paying("stands-5", in_cash, approve=ASK), "reject", "Rejected, cash"),
}

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


later_key = Graph("stands-later-key", state=Log)


@later_key.node(then="pay_it")
def say_hello(run, state): ...


@later_key.node
def pay_it(run, state):
    run.call(pay, by="stamps", key="stamps:{run_id}")


waiting = Graph("stands-waiting", state=Log)


@waiting.node(retry=ONCE)
def wait_twice(run, state):
    try:
        state.log.append(run.wait_for("paid", timeout=timedelta(minutes=1)))
    except TimedOut:
        state.log.append(run.call(wire, amount=2))
        raise
    state.log.append(run.call(wire, amount=3))
    run.call(pay, by="receipt")


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    done.clear()
    declined.clear()
    with registered(parcel, keyed, mapped, waiting, later_key, *(graph for graph, *_ in CAUGHT.values())):
        yield


def are_sound(*runs: Run) -> None:
    for run in runs:
        run.refresh_from_db()
        assert first_bad_row(run) is None


@pytest.mark.parametrize("how", ["retry", "fork", "fork of a fork"])
@pytest.mark.parametrize("caught", CAUGHT)
def test_who_has_gone_another_way_is_not_led_back(caught, how):
    """What was done on an answer stands, so the answer does: nothing is paid twice, and nobody is asked again."""
    graph, verdict, said = CAUGHT[caught]
    declined.update({"receipt"} if verdict == "reject" else {"card", "receipt"})
    drive(run := start(graph, {}))
    if verdict:
        answer(run, verdict=verdict)
        drive(run)
    if "cash" in said:
        run.signal("paid in cash", "cash")
        drive(run)
    assert run.status == "failed"
    declined.clear()
    if how == "retry":
        run.retry("olga", "the printer is mended")
    if how == "fork of a fork":
        declined.add("receipt")
        run = run.fork("olga", "once more")
        drive(run)
        assert run.status == "failed"
        declined.clear()
    other = run if how == "retry" else run.fork("olga", "the printer is mended")
    drive(other)
    assert (other.status, other.state_at()["log"]) == ("completed", [said, "receipt"])
    assert done == ["receipt"] if "cash" in said else ["wire", "receipt"]
    are_sound(run, other)


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


def test_waits_that_a_repair_had_asked_anew_are_taken_over_under_the_keys_that_are_asked_for():
    declined.add("receipt")
    drive(run := start(waiting, {}))
    pass_time(61)
    drive(run)
    assert (run.status, run.error_kind) == ("failed", "expired")
    run.move("olga", "wait once more", to="wait_twice", state={"log": []})
    drive(run)
    pass_time(61)
    drive(run)
    run.retry("olga", "and once more")
    drive(run)
    assert run.status == "failed", "it had gone on after that, so it has timed out for good"
    run.move("olga", "wait a third time", to="wait_twice", state={"log": []})
    drive(run)
    run.cancel("ada", "stop")
    run.retry("olga", "wait on")
    drive(run)
    run.signal("paid", "yes")
    drive(run)
    keys = set(run.entries.filter(kind="signal", step=run.step + 1).values_list("key", "status"))
    assert (run.status, keys) == ("failed", {("paid#1", "cancelled"), ("paid#1~2", "done")})
    declined.clear()
    fork = run.fork("olga", "the printer is mended")
    before = list(done)
    drive(fork)
    assert (fork.status, fork.state_at()["log"], done) == ("completed", ["yes", "wire"], [*before, "receipt"])
    are_sound(run, fork)


def test_a_wait_that_timed_out_and_was_asked_anew_does_not_stand_in_the_way_of_a_fork():
    hurried = Graph("stands-hurried", state=Log)

    @hurried.node(retry=ONCE)
    def only(run, state):
        state.log.append(run.wait_for("paid", timeout=timedelta(minutes=1)))
        run.call(wire, amount=4)
        run.call(pay, by="receipt")

    with registered(hurried):
        declined.add("receipt")
        drive(run := start(hurried, {}))
        pass_time(61)
        drive(run)
        run.retry("olga", "wait again")
        drive(run)
        run.signal("paid", "late")
        drive(run)
        assert run.status == "failed"
        declined.clear()
        fork = run.fork("olga", "again")
        drive(fork)
        assert (fork.status, fork.state_at(), done) == ("completed", {"log": ["late"]}, ["wire", "receipt"])
        are_sound(run, fork)


def test_a_question_whose_name_ends_like_one_that_is_asked_anew_keeps_its_name():
    graph = Graph("stands-named", state=Log)

    @graph.node(retry=ONCE)
    def only(run, state):
        state.log.append(run.interrupt("Which?", name="stage~2").verdict)
        run.call(wire, amount=4)
        run.call(pay, by="receipt")

    with registered(graph):
        declined.add("receipt")
        drive(run := start(graph, {}))
        answer(run)
        drive(run)
        declined.clear()
        fork = run.fork("olga", "again")
        drive(fork)
        assert (fork.status, done) == ("completed", ["wire", "receipt"]), "nobody was asked again"
        are_sound(run, fork)


def test_nothing_stands_on_a_decision_that_nobody_has_taken():
    """A write was begun after it, by the same gather; but it can still be undone."""
    graph, decided, its_run = Graph("stands-undone", state=Log), threading.Event(), []

    @tool(kind="write", retry=ONCE)
    def file_away(number: int) -> int:
        if number == 0:
            its_run.append(answer(its_run[0], undo=600))
            decided.set()
        assert decided.wait(60)
        return number

    @graph.node(retry=ONCE)
    def only(run, state):
        many = [file_away.bind(number=number) for number in range(GATHER_THREADS + 1)]
        state.log.append(run.gather(Ask("Pay?", name="pay"), *many)[0].verdict)
        run.call(wire, amount=4)

    with registered(graph):
        its_run.append(run := start(graph, {}))
        drive(run)
        assert run.entries.filter(kind="effect", opened_at__gte=its_run[1].answered_at).exists()
        fork = run.fork("olga", "again")
        undo(run, its_run[1])
        drive(fork)
        assert (fork.status, done) == ("waiting", []), "people are asked anew"
        are_sound(run, fork)


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


def test_who_gives_up_after_asking_somebody_is_told_that_the_failure_stays_and_what_to_do():
    """A retry leads to the same end: the run is moved, and says so itself."""
    giving_up = Graph("stands-giving-up", state=Log)

    @giving_up.node(retry=ONCE)
    def only(run, state):
        try:
            run.call(pay, by="card")
        except EffectFailed:
            run.interrupt("Is that right?", reviewers=("pm",))
            raise

    with registered(giving_up):
        declined.add("card")
        drive(run := start(giving_up, {}))
        answer(run)
        drive(run)
        assert run.status == "failed" and "Move the run" not in run.error
        declined.clear()
        run.retry("olga", "the card is good now")
        drive(run)
        key = run.entries.get(kind="effect").key
        stays = (
            f"({key} stays failed, since something was done after that: move the run to have it asked anew.)"
        )
        assert (run.status, run.error.splitlines()[1], done) == ("failed", stays, [])
        run.move("olga", "as it says", to="only")
        drive(run)
        assert (run.status, done) == ("completed", ["card"])


def test_what_its_origin_did_under_an_authors_key_in_a_later_step_a_fork_does_by_itself():
    """It goes another way perhaps; only what was done up to where they part is done for both."""
    drive_all(run := start(later_key, {}))
    fork = run.fork("olga", "from the beginning", seq=0)
    drive_all(fork)
    assert (run.status, fork.status, done) == ("completed", "completed", ["stamps", "stamps"])
    again = run.fork("olga", "from its second step", seq=run.checkpoints.filter(kind="step").first().seq)
    assert would_send(again) == []
    drive_all(again)
    assert done == ["stamps", "stamps"], "the step that it enters had done it"
    are_sound(run, fork, again)


@pytest.mark.parametrize("how", ["as it is", "retry", "fork", "fork of a fork", "fork later"])
def test_a_failure_under_an_authors_key_that_was_caught_stands_in_later_steps(how):
    """The next node asks under the same key what became of it, and nothing is charged beside the other way."""
    twice = Graph("stands-twice", state=Log)

    @twice.node(then="second", retry=ONCE)
    def first(run, state):
        try:
            run.call(pay, by="card", key="pay:{run_id}")
        except EffectFailed:
            run.call(wire, amount=5)
        run.call(pay, by="receipt")

    @twice.node(retry=ONCE)
    def second(run, state):
        try:
            state.log.append(run.call(pay, by="card", key="pay:{run_id}"))
        except EffectFailed:
            state.log.append("wired")
        run.call(pay, by="stamps")

    with registered(twice):
        declined.update(
            {"card"}
            if how == "as it is"
            else {"card", "stamps"}
            if how == "fork later"
            else {"card", "receipt"}
        )
        drive(run := start(twice, {}))
        declined.difference_update({"receipt", "stamps"} if how != "fork of a fork" else set())
        declined.discard("card")
        match how:
            case "retry":
                run.retry("olga", "the printer is mended")
            case "fork" | "fork later":
                run = run.fork("olga", "the printer is mended")
            case "fork of a fork":
                drive(between := run.fork("olga", "once more"))
                declined.clear()
                run = between.fork("olga", "and once more")
        drive(run)
        assert (run.status, run.state_at()["log"], done) == (
            "completed",
            ["wired"],
            ["wire", "receipt", "stamps"],
        )
        are_sound(run)
