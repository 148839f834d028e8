"""What is in doubt is settled before a repair could do it again, in the run itself and in those below it (P3)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from runs import Ambiguous, Graph, start, tool
from runs.engine.family import cancel_children
from runs.errors import Conflict
from runs.models import LedgerEntry, Run
from tests.runs.driving import are_sound, claim, drive, pass_call, registered
from tests.runs.families import children_of, drive_all
from tests.runs.states import Log
from tests.runs.workshop import done, faults

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_workshop")]

asked: list[str] = []  # what was called


@pytest.fixture(autouse=True)
def nothing_asked():
    asked.clear()


@tool(kind="write", limit=timedelta(seconds=5))
def be_unsure() -> str:
    asked.append("unsure")
    raise Ambiguous("no answer came")


unsure = Graph("repair-unsure", state=Log, operators="ops")


@unsure.node
def ask_for_it(run, state):
    state.log.append(run.call(be_unsure))


asker = Graph("repair-asker", state=Log)


@asker.node
def wait_for_it(run, state):
    state.log += [end.status for end in run.join(run.start(unsure))]


@pytest.mark.parametrize("outcome, built", [("happened", 2), ("not_happened", 3), ("give_up", 3)])
def test_what_is_in_doubt_is_settled_before_a_repair(outcome, built):
    """A call under way when its run was cancelled; what a person says of it decides whether it is made again."""
    run = start("workshop", {})
    held = claim(run, "old")
    faults["chair"] = [lambda: Run.objects.get(pk=run.pk).cancel("ada", "stop")]
    held.run()
    run.refresh_from_db()
    for verb in (run.retry, run.skip, lambda by, why: run.move(by, why, to="make")):
        with pytest.raises(Conflict, match=r"make:\{run_id\} happened is in doubt; settle it first"):
            verb("olga", "go on")
    pass_call()
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        entry = LedgerEntry.objects.get(run=run, key="make:{run_id}")
        entry.settle(locked, "olga", outcome, "CHAIR", "looked there", now)
    run.refresh_from_db()
    run.retry("olga", "go on")
    drive(run, "new")
    assert (run.status, len(done)) == ("completed", built)
    assert run.state_at()["log"][:2] == ["WOOD", "CHAIR"]
    are_sound(run)


@pytest.mark.parametrize("how", ["retry", "move", "fork"])
def test_what_a_child_has_left_in_doubt_is_settled_before_it_could_be_done_again(how):
    """P3: it would be, by the child that goes on, or by one that a fork starts."""
    with registered(asker, unsure):
        run = start(asker, {})
        drive(run)
        [child] = children_of(run)
        drive(child)
        run.cancel("ada", "stop")
        run.refresh_from_db()
        again = {
            "retry": lambda: run.retry("olga", "go on"),
            "move": lambda: run.move("olga", "go on", to=run.node),
            "fork": lambda: run.fork("olga", "go on"),
        }[how]
        with pytest.raises(Conflict, match=rf"whether .*\({child.short_id}\) happened"):
            again()
        assert asked == ["unsure"]
        pass_call(5)
        entry = child.entries.get(kind="effect")
        with transaction.atomic():
            locked, now = Run.objects.lock(child.pk)
            entry.settle(locked, "olga", "happened", "it was", "", now)
        if how != "retry":
            return
        again()
        drive_all(run)
        assert (run.status, run.state_at()["log"], asked) == ("completed", ["completed"], ["unsure"])
        are_sound(run, *children_of(run))


def test_what_a_childs_child_has_left_in_doubt_is_settled_before_as_well():
    top = Graph("repair-top", state=Log)

    @top.node
    def wait_for_all(run, state):
        state.log += [end.status for end in run.join(run.start(asker))]

    with registered(top, asker, unsure):
        drive_all(run := start(top, {}))
        run.cancel("ada", "stop")
        for child in children_of(run):
            cancel_children(child.pk)
        doubted = Run.objects.get(graph=unsure.name)
        assert doubted.status == "cancelled" and doubted.entries.get(kind="effect").status == "in_doubt"
        run.refresh_from_db()
        with pytest.raises(Conflict, match=rf"\({doubted.short_id}\) happened"):
            run.retry("olga", "go on")
