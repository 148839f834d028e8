"""The kit looks at all of a family, as it kills in all of it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from runs import Ambiguous, Graph, Retry, start, tool
from runs.testing.crash import _end
from tests.runs.driving import drive, pass_call, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)


@tool(kind="write", limit=timedelta(seconds=5), retry=Retry(attempts=1))
def lose() -> None:
    raise Ambiguous("the line went dead")


below = Graph("kit-below", state=Log, operators="ops")


@below.node(retry=Retry(attempts=1))
def send_it(run, state):
    run.call(lose)


above = Graph("kit-above", state=Log, operators="ops")


@above.node
def start_it(run, state):
    run.join(run.start(below))


def test_what_is_in_doubt_or_does_not_hold_below_a_run_counts_as_its_own(monkeypatch):
    with registered(above, below):
        run = start("kit-above", {})
        drive(run)
        [child] = run.children.all()
        drive(child)
        pass_call(5)
        drive(child)
    assert child.entries.filter(status="in_doubt").exists()
    end = _end(run)
    assert (end["in_doubt"], end["trail"]) == (1, None)
    monkeypatch.setattr("runs.testing.crash.first_bad_row", lambda one: "#1" if one == child else None)
    assert _end(run)["trail"] == f"#1 (run {child.short_id})"
