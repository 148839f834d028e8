"""`run.map`: many children under one entry, a bounded number of them at a time."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from runs import Graph, chores, start
from runs.core.children import MOST_ITEMS
from runs.core.rehearsal import rehearse
from runs.engine import children, clock, telling
from runs.engine.verify import first_bad_row
from runs.models import FanOut, Run, UntoldEnd
from runs.testing import go_on
from tests.at_once import at_once
from tests.runs.driving import claim, drive, kinds, pass_lease, registered
from tests.runs.families import GRAPHS, children_of, drive_all, leaf, mapper
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(*GRAPHS):
        yield


def mapped(names: str, at_once: int = 50) -> Run:
    """A run that waits for a child for each letter; `!` is a child that fails."""
    run = start(mapper, {"names": ["bad" if name == "!" else name for name in names], "at_once": at_once})
    drive(run)
    return run


def awake(run: Run) -> list[int]:
    return list(run.children.filter(wake_at__isnull=False).order_by("item").values_list("item", flat=True))


def test_each_item_is_a_child_and_the_ends_come_in_order():
    """MISSION A16, A19: one entry, whatever the number; a failure is a value."""
    run = mapped("abc!e")
    assert [child.item for child in children_of(run)] == [0, 1, 2, 3, 4]
    drive_all(run)
    assert (run.status, run.state_at()["ends"]) == ("completed", ["A", "B", "C", "failed permanent", "E"])
    assert kinds(run) == ["start", "claim", "wait", "wake", "complete"]
    entry = run.entries.get()
    assert (entry.kind, entry.child, run.answers) == ("child", None, 1)
    assert entry.result_value() == {"completed": 4, "failed": 1, "cancelled": 0}
    assert {child.told for child in children_of(run)} == {"completed", "failed"}
    assert first_bad_row(run) is None
    assert not [bad for child in children_of(run) if (bad := first_bad_row(child))]


def test_no_more_of_them_live_than_are_wanted_at_a_time():
    run = mapped("abcdef", at_once=2)
    assert awake(run) == [0, 1]
    one, two, *_ = children_of(run)
    drive(two)
    assert awake(run) == [0, 2]
    drive(one)
    assert awake(run) == [2, 3]
    drive_all(run)
    assert run.state_at()["ends"] == list("ABCDEF")


def test_one_that_is_cancelled_before_its_turn_is_passed_over():
    run = mapped("abcd", at_once=1)
    children_of(run)[1].cancel(by="ada", reason="not that one")
    assert awake(run) == [0], "its place was not its own yet"
    drive(children_of(run)[0])
    assert awake(run) == [2]
    drive_all(run)
    assert run.state_at()["ends"] == ["A", "cancelled ", "C", "D"]


def test_one_that_is_cancelled_while_it_lives_makes_room_for_the_next():
    run = mapped("abc", at_once=1)
    children_of(run)[0].cancel(by="ada", reason="not that one")
    assert awake(run) == [1]
    drive_all(run)
    assert run.state_at()["ends"] == ["cancelled ", "B", "C"]


def test_the_last_ends_at_the_same_moment_answer_once():
    for _ in range(5):
        run = mapped("abcd")
        ends = at_once(*[lambda child=child: drive(child) for child in children_of(run)])
        assert not [end for end in ends if isinstance(end, Exception)]
        run.refresh_from_db()
        assert (run.answers, FanOut.objects.get(entry__run=run).counts["completed"]) == (1, 4)
        drive(run)
        assert run.state_at()["ends"] == list("ABCD")


def test_ends_do_not_wait_for_who_has_the_parent_and_are_told_together_by_a_chore(monkeypatch):
    """MISSION A19: an end takes no lock of its parent; if it is killed before it tells, it is told soon."""
    run = mapped("abcd", at_once=2)
    one, two, three, four = children_of(run)
    three.cancel(by="ada", reason="not that one")
    with monkeypatch.context() as killed:  # right after the commit of the end
        killed.setattr(telling, "tell", lambda parent_id: None)
        if connection.vendor == "postgresql":
            with transaction.atomic():
                Run.objects.lock(run.pk)
                ends = at_once(lambda: drive(one), lambda: drive(two))
        else:  # one writer at a time, whatever is locked
            ends = [drive(one), drive(two)]
    assert not [end for end in ends if isinstance(end, Exception)]
    assert [child.told for child in children_of(run)] == ["", "", "cancelled", ""] and awake(run) == []
    monkeypatch.setattr(clock, "AHEAD", telling.LEFT_BEHIND)
    assert chores.are_due(clock.now())
    chores.do_due()
    assert (awake(run), UntoldEnd.objects.count()) == ([3], 0), "the third has had its turn"
    drive_all(run)
    assert run.state_at()["ends"] == ["A", "B", "cancelled ", "D"]


def test_one_cancelled_before_its_turn_whose_end_is_not_told_yet_frees_no_place_twice(monkeypatch):
    run = mapped("abcdef", at_once=1)
    one, two, *_ = children_of(run)
    with monkeypatch.context() as untold:
        untold.setattr(telling, "tell", lambda parent_id: None)
        two.cancel(by="ada", reason="not that one")
    fan_out = FanOut.objects.get(entry__run=run)
    Run.objects.filter(pk=one.pk).update(told="completed")
    one.refresh_from_db()
    fan_out.count(one)  # its turn is over; the one whose turn would come has ended, and is not counted
    fan_out.release(clock.now())
    fan_out.save()
    assert (fan_out.released, fan_out.passed) == (3, 1) and awake(run) == [0, 2]
    telling.tell_all(run.pk)
    assert awake(run) == [0, 2], "one place, and it is taken"


def test_of_no_items_there_is_nothing_to_wait_for():
    run = mapped("")
    assert (run.status, run.state_at()["ends"], run.entries.count()) == ("completed", [], 0)


def test_children_are_made_in_bounded_commits_that_go_on_where_the_last_one_stopped(monkeypatch):
    """R10 for many: the worker dies between two of them."""
    monkeypatch.setattr(children, "A_COMMIT", 2)
    monkeypatch.setattr("runs.engine.portion.MOMENT_SECONDS", 1_000.0)
    began = children._begin
    calls = []

    def dies_at_the_third(*args, **more):
        calls.append(len(args[2]))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return began(*args, **more)

    monkeypatch.setattr(children, "_begin", dies_at_the_third)
    run = start(mapper, {"names": list("abcdefg"), "at_once": 3})
    with pytest.raises(KeyboardInterrupt):
        claim(run).run()
    assert (awake(run), run.children.count()) == ([0, 1, 2], 4)
    for child in children_of(run)[:2]:
        drive(child)
    assert awake(run) == [2, 3]
    pass_lease()
    drive(run, "w2")
    drive(run, "w2")
    assert (run.status, run.children.count(), awake(run)) == ("waiting", 7, [2, 3, 4])
    drive_all(run)
    assert run.state_at()["ends"] == list("ABCDEFG")


def test_an_item_never_has_two_children():
    """The database itself says no."""
    run = mapped("ab")
    one, two = children_of(run)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=two.pk).update(item=one.item)


def test_only_a_child_of_many_may_wait_for_its_turn():
    run = start(leaf, {"name": "a"})
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=run.pk).update(wake_at=None)


def test_the_cost_of_a_childs_end_and_of_the_parents_look_does_not_grow_with_their_number():
    """MISSION A19: the last of forty costs as many statements as the last of ten; the parent loads one entry."""
    costs = []
    for count in (10, 40):
        run = mapped("a" * count)
        *others, last = children_of(run)
        for child in others[:-1]:
            drive(child)
        with CaptureQueriesContext(
            connection,
        ) as one:
            drive(others[-1])
        with CaptureQueriesContext(connection) as end:
            drive(last)
        with CaptureQueriesContext(connection) as look:
            drive(run)
        assert run.status == "completed"
        costs.append((len(one), len(end), len(look)))
    assert costs[0] == costs[1]


def test_results_of_many_long_states_are_read_in_few_queries():
    run = mapped("abc")
    drive_all(run)
    children_of(run)[0].refresh_from_db()
    assert run.state_at()["ends"] == ["A", "B", "C"]
    with CaptureQueriesContext(connection) as read:
        from runs.engine.state import final_trees

        trees = final_trees([str(child.pk) for child in children_of(run)])
    assert len(read) == 2 and [tree["done"] for tree in trees.values()] == ["A", "B", "C"]


def failed(items, **options) -> Run:
    graph = Graph("child-map-refused", state=Log)

    @graph.node
    def go(run, state):
        run.map(leaf, items, **options)

    with registered(graph):
        run = start(graph, {})
        drive(run)
    assert (run.status, run.children.count()) == ("failed", 0)
    return run


def test_what_cannot_be_mapped_fails_the_parent_before_anything_is_started():
    assert "graph 'child-leaf', item 1: " in failed([{"name": "a"}, {"nam": "b"}]).error
    assert f"10,001 items, {MOST_ITEMS:,} are the most" in failed([{"name": "a"}] * (MOST_ITEMS + 1)).error
    assert "at_once=0" in failed([{"name": "a"}], at_once=0).error
    assert "on_parent_end='leave'" in failed([{"name": "a"}], on_parent_end="leave").error


def test_a_map_of_as_many_items_as_there_may_be_is_rehearsed():
    """Each with its own end, in order. On rows `python -m bench.fanout` does it, and says what a child costs."""
    done = rehearse(mapper, {"names": [str(number) for number in range(MOST_ITEMS)], "at_once": 7})
    assert (done.status, MOST_ITEMS) == ("completed", 10_000)
    assert done.state["ends"] == [str(number) for number in range(MOST_ITEMS)]


def test_under_an_explicit_key_the_items_may_not_change_while_children_are_missing():
    names = iter("ab")
    graph = Graph("child-map-key", state=Log)

    @graph.node
    def go(run, state):
        run.map(leaf, [{"name": next(names)}], key="parts:{run_id}")

    with registered(graph):
        run = start(graph, {})
        drive(run)
        pass_lease()
        Run.objects.filter(pk=run.pk).update(wake_at=run.created_at)
        run.entries.update(awaited=False)
        drive(run)
    assert run.status == "failed" and "the items are not those that the map began with" in run.error


def test_the_kit_drives_a_map_to_its_end():
    run = go_on(start(mapper, {"names": list("abc"), "at_once": 2}), mapper)
    assert (run.status, run.state_at()["ends"]) == ("completed", ["A", "B", "C"])
