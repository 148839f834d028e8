"""The verbs of schedules, each with the rows it needs: test_schedule_faults.py kills and fails them everywhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from typing import Any

from runs import Graph
from runs.engine import clock, schedules
from runs.models import Checkpoint, Run, Schedule
from tests.runs.states import Log

Made = tuple[Any, Callable[[], Any]]
VERBS: dict[str, Callable[[], Made]] = {}
LOOKED_AT: dict[str, datetime] = {}  # schedule -> when its verb begins
_numbers = count(1)

daily = Graph("fault-daily", version=2, state=Log)


@daily.node
def begin(run: Any, state: Log) -> None:
    state.log.append("began")


def input_of(slot: Any) -> dict[str, Any]:
    return {"log": [f"{slot:%H:%M}"]}


def verb(make: Callable[[], Made]) -> Callable[[], Made]:
    VERBS[make.__name__] = make
    return make


def row(hours: float = 0, **options: Any) -> Schedule:
    """An hourly one, so many hours after it was made, and far from the next slot."""
    be_at_ten_past()
    made = Schedule.objects.make(daily.name, f"s{next(_numbers)}", "0 * * * *", **options)
    clock.AHEAD += timedelta(hours=hours)
    LOOKED_AT[made.name] = clock.now()
    return made


def be_at_ten_past() -> None:
    now = clock.now()
    clock.AHEAD += now.replace(minute=10, second=0) + timedelta(hours=1) - now


def declare(**changes: Any) -> str:
    """The graph declares one that the rows know otherwise, or not at all; its name."""
    name = f"d{next(_numbers)}"
    daily.schedules.clear()
    daily.every("0 * * * *", name=name)(input_of)
    if changes:
        schedules.sync()
        Schedule.objects.filter(name=name).update(**changes)
    return name


def shape(name: str) -> Any:
    """All that a verb may change, without ids and times; runs by the number of their slot."""
    found = Schedule.objects.filter(name=name).first()
    if found is None:
        return None
    moments = ("due_at", "latest_slot", "paused_at", "withdrawn_at")
    runs = Run.objects.filter(graph=daily.name, key__startswith=f"schedule:{name}:")
    begun = Checkpoint.objects.filter(run__in=runs, kind="start", actor=f"schedule {name}")
    assert begun.count() == runs.count()
    assert not runs.filter(key__gt=found.key_of(found.done_until)).exists(), (
        "a run of a slot that is not dealt with"
    )
    shown = {column: getattr(found, column) is not None for column in moments}
    return found.cron, found.version, bool(found.fault), shown, runs.count()


@verb
def make_one() -> Made:
    name = f"s{next(_numbers)}"
    return name, lambda: Schedule.objects.make(daily.name, name, "0 * * * *")


@verb
def start_the_run_of_a_slot() -> Made:
    made = row(hours=1)
    return made.name, made.fire


@verb
def start_the_runs_of_three_slots() -> Made:
    made = row(hours=3, catch_up="all")
    return made.name, made.fire


@verb
def owe_nothing() -> Made:
    made = row(hours=0.1)
    return made.name, made.fire


@verb
def find_that_no_run_can_be_made() -> Made:
    made = row(hours=1)
    Schedule.objects.filter(pk=made.pk).update(input='{"log": 7}')
    return made.name, Schedule.objects.get(pk=made.pk).fire


@verb
def pause() -> Made:
    made = row()
    return made.name, lambda: made.pause("olga")


@verb
def resume() -> Made:
    made = row()
    made.pause("olga")
    return made.name, lambda: made.resume("olga")


@verb
def change() -> Made:
    made = row()
    made.cron = "5 * * * *"
    return made.name, made.put


@verb
def make_a_row_of_what_is_declared() -> Made:
    return declare(), schedules.sync


@verb
def change_what_is_declared_otherwise() -> Made:
    return declare(cron="9 * * * *", version=1), schedules.sync


@verb
def withdraw_what_is_declared_no_more() -> Made:
    name = declare(version=2)
    daily.schedules.clear()
    return name, schedules.sync
