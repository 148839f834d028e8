"""Starting and claiming at the same moment."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pytest

from runs import (
    Graph,
    start,
)
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.errors import Conflict
from runs.models import Run
from tests.amounts import THOROUGH
from tests.at_once import at_once
from tests.runs.driving import drive, kinds, registered
from tests.runs.states import Inner, Level, Log, Outer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("nothing_sent")]


def test_a_start_takes_an_instance_of_the_state_model():
    graph = Graph("from a model", state=Outer)

    @graph.node
    def only(run, state):
        state.inner.pair += (9,)

    given = Outer(inner=Inner(pair=(1,), level=Level.HIGH), price=Decimal("3.00"))
    with registered(graph):
        run = start(graph, given, key="k")
        assert start(graph, given, key="k").pk == run.pk
        drive(run)
        assert start(graph, given.model_copy(deep=True), key="k").pk == run.pk
        with pytest.raises(Conflict):
            start(graph, Outer(), key="k")
    assert run.status == "completed"
    assert given.inner.pair == (1,)


def test_eight_starts_under_one_key_at_the_same_moment_are_one_run():
    """R11"""
    graph = Graph("keyed", state=Log)

    @graph.node
    def only(run, state):
        state.log.append("once")

    with registered(graph):
        runs = at_once(*[lambda: start("keyed", {"log": ["same"]}, key="k")] * 8)
        assert {type(run) for run in runs} == {Run}, runs
        assert len({run.pk for run in runs}) == 1
        others = at_once(*(lambda n=n: start("keyed", {"log": [f"{n}"]}, key="other") for n in range(8)))
    assert sum(isinstance(run, Run) for run in others) == 1
    assert sum(isinstance(error, Conflict) for error in others) == 7
    assert Run.objects.count() == 2


def test_eight_claimers_drive_many_runs_each_once():
    """E1, E8: in threads, on the database at hand."""
    bodies: Counter[str] = Counter()
    many = 200 if THOROUGH else 60
    graph = Graph("many", state=Log)

    @graph.node
    def only(run, state):
        bodies[run.id] += 1
        state.log.append("x")

    def work(name: str) -> int:
        claimer, driven = Claimer(name), 0
        while (taken := claimer.claim(alone=False)) is not None:
            Drive(*taken).run()
            driven += 1
        return driven

    with registered(graph):
        runs = [start("many", {}) for _ in range(many)]
        counts = at_once(*(lambda n=n: work(f"w{n}") for n in range(8)))
        while work("last"):  # what a claimer skipped because another held the row
            pass
    assert all(isinstance(count, int) for count in counts), counts
    assert (len(bodies), set(bodies.values())) == (many, {1})
    assert set(Run.objects.values_list("status", flat=True)) == {"completed"}
    assert all(kinds(run) == ["start", "claim", "complete"] for run in runs)
