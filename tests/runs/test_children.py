"""Children: runs that a node starts, and whose ends it gets as values."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import BaseModel

from runs import Ask, Child, Graph, Retry, Timer, Transient, Wait, registry, start, tool
from runs.core.children import DEEPEST
from runs.core.outcomes import Waits
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, LedgerEntry, Remark, Run
from tests.at_once import at_once
from tests.runs.driving import answer, claim, drive, kinds, pass_lease, pass_time, registered
from tests.runs.families import GRAPHS, children_of, drive_all, leaf, slow, waiter, work
from tests.runs.states import Log, log_of

pytestmark = pytest.mark.django_db(transaction=True)


parent = Graph("child-parent", state=Log)


@parent.node
def both(run, state):
    one = run.start(leaf, {"name": "a"})
    two = run.start("child-leaf", {"name": "bad"})
    good, bad = run.join(one, two)
    state.log += [good.result["done"], bad.status, bad.error_kind, bad.error.splitlines()[0]]


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(*GRAPHS, parent):
        yield


# -- start and join -------------------------------------------------------------------------------------------


def test_ends_of_children_are_values_for_their_parent(ada):
    """MISSION A16: a result, and a failure, in the order in which they are joined."""
    run = start(parent, {}, by=ada, labels={"customer": "7"}, priority=1)
    assert isinstance(drive(run), Waits)
    one, two = children_of(run)
    assert (one.graph, one.version, one.root, one.depth, one.status) == (
        "child-leaf",
        1,
        run.pk,
        1,
        "created",
    )
    assert (one.created_by, one.labels, one.priority) == (ada, run.labels, 1)
    assert one.checkpoints.get().actor == f"run {run.short_id}"
    assert Run.objects.visible_to(ada).filter(pk=one.pk).exists()
    drive_all(run)
    assert run.error == ""
    assert (run.status, log_of(run)) == ("completed", ["A", "failed", "permanent", "Permanent: it is bad"])
    assert kinds(run) == ["start", "claim", "wait", "wake", "complete"]
    assert run.answers == 2
    for one in (run, *children_of(run)):
        assert first_bad_row(one) is None
    entries = list(run.entries.order_by("id").values_list("kind", "name", "status", "answered_by"))
    assert entries == [("child", "child-leaf", "done", "family")] * 2


def test_a_child_that_ends_before_its_parent_parks_wakes_it():
    """S2."""
    run = start(waiter, {})
    held = claim(run)
    park = held.lease.park

    def after_the_child_ended(keys, wake_at):
        [child] = children_of(run)
        child.signal("go", "early")
        drive(child)
        assert child.status == "completed"
        park(keys, wake_at)

    held.lease.park = after_the_child_ended
    assert isinstance(held.run(), Waits)
    run.refresh_from_db()
    assert run.wake_at is not None
    drive(run)
    assert (run.status, log_of(run)) == ("completed", ["completed", "early"])


def test_a_child_that_has_ended_when_it_is_joined_does_not_park_its_parent():
    graph = Graph("child-joined-late", state=Log)

    @graph.node
    def go(run, state):
        child = run.start(leaf, {"name": "a"})
        run.once("meanwhile", lambda: drive(Run.objects.get(pk=child.id)) and None)
        state.log.append(run.join(child)[0].status)

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert (run.status, kinds(run)) == ("completed", ["start", "claim", "complete"])
    assert first_bad_row(run) is None


def test_children_that_end_at_the_same_moment_wake_their_parent_once():
    for _ in range(5):
        run = start(parent, {})
        drive(run)
        ends = at_once(*[lambda child=child: drive(child) for child in children_of(run)])
        assert not [end for end in ends if isinstance(end, Exception)]
        run.refresh_from_db()
        assert (run.status, run.answers) == ("waiting", 2)
        drive(run)
        assert run.status == "completed"


def test_a_child_waits_between_its_nodes_and_only_the_rest_runs_after_the_answer():
    """S8."""
    called = []
    three = Graph("child-three", state=Log)

    @three.node(then="second")
    def first(run, state):
        called.append("first")

    @three.node(then="third")
    def second(run, state):
        state.log.append(run.interrupt("Well?").verdict)
        called.append("second")

    @three.node
    def third(run, state):
        called.append("third")

    above = Graph("child-above-three", state=Log)

    @above.node
    def go(run, state):
        called.append("above")
        state.log += run.join(run.start(three))[0].result["log"]

    with registered(three, above):
        run = start(above, {})
        drive_all(run)
        assert called == ["above", "first"]
        answer(children_of(run)[0])
        drive_all(run)
    assert (run.status, log_of(run)) == ("completed", ["approve"])
    assert called == ["above", "first", "second", "third", "above"]


def test_after_a_crash_the_same_child_is_found():
    """R10: the parent's worker dies between the start and its checkpoint."""
    run = start(waiter, {})
    held = claim(run)
    held.lease.park = lambda keys, wake_at: None  # it never comes to that
    held.run()
    [child] = children_of(run)
    pass_lease()
    drive(run, "w2")
    drive(run, "w2")
    assert children_of(run) == [child]
    child.signal("go", 1)
    drive(child)
    drive(run, "w2")
    assert (run.status, log_of(run)) == ("completed", ["completed", "1"])


def test_the_same_input_started_twice_is_two_children():
    graph = Graph("child-twice", state=Log)

    @graph.node
    def go(run, state):
        ends = run.join(run.start(leaf, {"name": "a"}), run.start(leaf, {"name": "a"}))
        state.log += [end.id for end in ends]

    with registered(graph):
        run = start(graph, {})
        drive_all(run)
    assert log_of(run) == [str(child.pk) for child in children_of(run)]
    assert len(set(log_of(run))) == 2


def test_a_child_is_started_in_one_step_and_joined_in_another():
    class Holding(BaseModel):
        child: Child | None = None
        log: list[str] = []

    graph = Graph("child-kept", state=Holding)

    @graph.node(then="later")
    def begin(run, state):
        state.child = run.start(slow)

    @graph.node
    def later(run, state):
        [end], [again] = run.join(state.child), run.join(state.child)
        assert end == again
        state.log += end.result["log"]

    with registered(graph):
        for early in (True, False):
            run = start(graph, {})
            held = claim(run)
            held.most_steps = 1
            held.run()
            [child] = children_of(run)
            assert run.entries.get(step=1).status == "cancelled", "nobody waits for it in that step"
            for act in (
                lambda child=child: (child.signal("go", "x"), drive(child)),
                lambda run=run: drive(run),
            )[:: 1 if early else -1]:
                act()
            drive(run)
            assert (run.status, log_of(run)) == ("completed", ["x"])
            assert first_bad_row(run) is None


def test_only_what_a_run_has_started_itself_can_be_joined():
    graph = Graph("child-stranger", state=Log)
    stranger = start(leaf, {"name": "a"})

    @graph.node
    def go(run, state):
        run.join(Child(str(stranger.pk), "child-leaf"))

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert run.status == "failed" and "is no child of this run" in run.error


# -- keys -----------------------------------------------------------------------------------------------------


def test_under_an_explicit_key_the_recorded_input_wins():
    words = iter("ab")
    graph = Graph("child-key", state=Log)

    @graph.node
    def go(run, state):
        [end] = run.join(run.start(leaf, {"name": next(words)}, key="part:{run_id}"))
        state.log.append(end.result["done"])

    with registered(graph):
        run = start(graph, {})
        drive_all(run)
    assert run.error == ""
    assert (run.status, log_of(run), len(children_of(run))) == ("completed", ["A"], 1)
    assert Remark.objects.get(run=run).kind == "other_request"
    assert run.entries.get().idempotency_key == f"part:{run.pk}"


def test_an_explicit_key_holds_in_the_whole_run_and_over_all_runs():
    graph = Graph("child-key-again", state=Log)

    @graph.node(then="again")
    def go(run, state):
        state.log.append(run.join(run.start(leaf, {"name": "a"}, key="the part"))[0].id)

    @graph.node
    def again(run, state):
        state.log.append(run.join(run.start(leaf, {"name": "a"}, key="the part"))[0].id)

    with registered(graph):
        run = start(graph, {})
        drive_all(run)
        assert len(set(log_of(run))) == 1 and len(children_of(run)) == 1
        other = start(graph, {})
        drive(other)
    assert other.status == "failed" and f"belongs to run {run.pk}" in other.error
    assert not other.children.exists()


def test_a_child_is_never_substituted_silently():
    names = iter("ab")
    graph = Graph("child-diverged", state=Log)

    @graph.node
    def go(run, state):
        run.join(run.start(leaf, {"name": next(names)}))

    with registered(graph):
        run = start(graph, {})
        drive(run)
        drive(children_of(run)[0])
        drive(run)
    assert (run.status, run.error_kind, len(children_of(run))) == ("failed", "diverged", 1)
    assert "explicit key" in run.error


def test_a_child_that_the_next_execution_forgets_is_found_at_the_end_of_the_step():
    tries = []
    graph = Graph("child-forgotten", state=Log)

    @graph.node(retry=Retry(attempts=2, first=10, jitter=0))
    def go(run, state):
        tries.append(1)
        if len(tries) == 1:
            run.start(slow)
            raise Transient("not now")

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_time(11)
        drive(run)
    assert (run.status, run.error_kind) == ("failed", "diverged")


# -- together with other waits --------------------------------------------------------------------------------


@tool
def look(word: str) -> str:
    return word


def test_a_gather_takes_children_beside_every_other_kind_of_question():
    """S4 with children."""
    graph = Graph("child-gather", state=Log)

    @graph.node
    def go(run, state):
        child = run.start(slow)
        said, end, signal, word, _ = run.gather(
            Ask("Well?", name="well"), child, Wait("part"), look.bind(word="x"), Timer(timedelta(hours=1))
        )
        state.log += [said.verdict, *end.result["log"], signal, word]

    with registered(graph):
        run = start(graph, {})
        drive(run)
        [child] = children_of(run)
        drive(child)
        child.signal("go", "went")
        drive(child)
        assert claim(run) is None
        answer(run, "well")
        run.signal("part", "came")
        pass_time(3601)
        drive(run)
    assert (run.status, log_of(run)) == ("completed", ["approve", "went", "came", "x"])
    assert first_bad_row(run) is None


def test_an_async_node_awaits_its_children():
    graph = Graph("child-async", state=Log)

    @graph.node
    async def go(run, state):
        child = await run.start(leaf, {"name": "a"})
        ends = await run.map(leaf, [{"name": "b"}, {"name": "c"}])
        state.log += [end.result["done"] for end in [*ends, *await run.join(child)]]

    with registered(graph):
        run = start(graph, {})
        drive_all(run)
    assert (run.status, log_of(run)) == ("completed", ["B", "C", "A"])


def test_a_child_reads_a_blob_of_its_parent_and_the_other_way_round():
    graph, reader = Graph("child-blob"), Graph("child-blob-reader")

    @reader.node
    def read(run, state):
        state["back"] = run.blob(run.read(state["blob"]) + b"!", "text/plain")

    @graph.node
    def go(run, state):
        [end] = run.join(run.start(reader, {"blob": run.blob("hello")}))
        state["said"] = run.read(end.result["back"]).decode()

    with registered(graph, reader):
        run = start(graph, {})
        drive_all(run)
    assert (run.status, run.state_at()["said"]) == ("completed", "hello!")


# -- what is refused ------------------------------------------------------------------------------------------


def failed_in(node, **graphs) -> Run:
    graph = Graph("child-refused", state=Log)
    graph.node(node)
    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert run.status == "failed" and not run.children.exists()
    return run


def test_an_input_that_does_not_fit_fails_the_parent_and_starts_nothing():
    run = failed_in(
        lambda run, state: run.start(leaf, {"nam": "a"}),
    )
    assert "graph 'child-leaf', the input" in run.error and not run.entries.exists()


def test_an_unknown_graph_and_one_that_is_not_served_are_refused():
    assert "There is no graph 'nowhere'" in failed_in(lambda run, state: run.start("nowhere")).error
    loose = Graph("child-loose")
    loose.node(work)
    assert "'child-loose' version 1 is not served" in failed_in(lambda run, state: run.start(loose)).error
    assert registry.find("child-loose", 1) is None


def test_a_graph_that_starts_itself_comes_to_an_end():
    """The depth of a family is bounded."""
    graph = Graph("child-of-itself", state=Log)

    @graph.node
    def go(run, state):
        [end] = run.join(run.start("child-of-itself", {}))
        state.log.append(end.status)

    with registered(graph):
        run = start(graph, {})
        drive_all(run)
        assert run.status == "completed"
        assert Run.objects.filter(root=run.pk).count() == DEEPEST + 1
        deepest = Run.objects.get(root=run.pk, depth=DEEPEST)
    assert deepest.status == "failed" and "16 are the most: does a graph start itself?" in deepest.error


def test_one_step_starts_a_bounded_number_of_children(monkeypatch):
    monkeypatch.setattr("runs.core.children.MOST_STARTED", 3)
    graph = Graph("child-too-many", state=Log)

    @graph.node
    def go(run, state):
        for _ in range(4):
            run.start(leaf, {"name": "a"})

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert run.status == "failed" and "use run.map" in run.error
    assert len(children_of(run)) == 3


def test_a_worker_that_lost_its_run_starts_no_child():
    """P2."""
    run = start(waiter, {})
    held = claim(run)
    run.cancel(by="ada", reason="enough")
    held.run()
    assert not run.children.exists() and not LedgerEntry.objects.filter(run=run).exists()
    assert Checkpoint.objects.filter(run=run).count() == 3
