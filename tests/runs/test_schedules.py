"""Schedules: each slot starts at most one run, whoever looks, at the time that it was meant for (R9)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from runs import Graph, chores, start
from runs.engine import clock, schedules
from runs.engine.shift import Shift
from runs.errors import Conflict, Invalid
from runs.models import Checkpoint, Run, Schedule
from runs.work.bell import Bell
from tests.at_once import at_once
from tests.runs.driving import registered

pytestmark = pytest.mark.django_db(transaction=True)


class Report(BaseModel):
    day: datetime | None = None
    made: bool = False


reports = Graph("reports", state=Report, viewers="pm")


@reports.node
def write(run, state):
    state.made = True


@reports.every("30 2 * * *", tz="Europe/Berlin", catch_up="all", most=3)
def nightly(slot):
    return {"day": slot}


@pytest.fixture(autouse=True)
def known(monkeypatch):
    """Only this chore; and the clock is put back."""
    monkeypatch.setattr(chores, "_chores", {})
    schedules.register()
    with registered(reports):
        yield
    clock.AHEAD = timedelta()


def be_at(moment: str) -> None:
    """Set the engine's clock."""
    clock.AHEAD += datetime.fromisoformat(moment).replace(tzinfo=UTC) - clock.now()


def made(cron: str = "0 * * * *", **options: Any) -> Schedule:
    return Schedule.objects.make("reports", options.pop("name", "hourly"), cron, **options)


def days() -> list[str]:
    """When each run was due, in the time of its schedule."""
    runs = Run.objects.order_by("id")
    return [reports.restore(run.state_at()).day.isoformat()[:16] for run in runs]


def declared() -> Schedule:
    schedules.sync()
    return Schedule.objects.get(name="nightly")


# -- slots and runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        ("2027-03-27T12:00", "2027-03-29T12:00", ["2027-03-28T03:00", "2027-03-29T02:30"]),
        ("2027-10-30T12:00", "2027-11-01T12:00", ["2027-10-31T02:30", "2027-11-01T02:30"]),
    ],
)
def test_over_a_change_of_clocks_each_day_has_exactly_one_run(before, after, due):
    """R9: looked for every ten minutes, by one worker after the other."""
    be_at(before)
    declared()
    while clock.now() < datetime.fromisoformat(after).replace(tzinfo=UTC):
        chores.do_due()
        clock.AHEAD += timedelta(minutes=10)
    assert days() == due


def test_three_schedulers_at_once_start_one_run():
    """R9: they all saw the row before any of them moved it."""
    be_at("2027-01-05T08:10")
    pk = made(slot_field="day").pk
    be_at("2027-01-05T09:10")
    rows = [Schedule.objects.get(pk=pk) for _ in range(3)]
    started = at_once(*(row.fire for row in rows))
    assert sorted(map(len, started)) == [0, 0, 1]
    assert at_once(*[chores.do_due] * 3) == [0, 0, 0]
    (run,) = Run.objects.all()
    assert run.key == "schedule:hourly:2027-01-05T09:00Z"
    assert Schedule.objects.get(pk=pk).latest_slot == datetime(2027, 1, 5, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("rule", "starts"),
    [
        ({"catch_up": "latest"}, ["2027-01-05T12:00"]),
        ({"catch_up": "all"}, [f"2027-01-05T{hour}:00" for hour in ("09", "10", "11", "12")]),
        ({"catch_up": "all", "most": 2}, ["2027-01-05T11:00", "2027-01-05T12:00"]),
        ({"catch_up": "none"}, []),
    ],
)
def test_after_four_hours_down_it_starts_what_the_rule_says_with_the_intended_times(rule, starts):
    """R9; and the next slot is as any other."""
    be_at("2027-01-05T08:10")
    row = made(slot_field="day", **rule)
    be_at("2027-01-05T12:10")
    chores.do_due()
    assert days() == starts
    assert chores.do_due() == 0
    be_at("2027-01-05T13:00:01")
    chores.do_due()
    assert days() == [*starts, "2027-01-05T13:00"]
    row.refresh_from_db()
    assert row.due_at == datetime(2027, 1, 5, 14, tzinfo=UTC)


def test_its_run_says_where_it_comes_from_and_is_driven_by_the_same_shift(ada):
    be_at("2027-01-05T08:59:50")
    made(by=ada, input={"made": False})
    be_at("2027-01-05T09:00:01")
    Shift(seconds=60, linger=0.5).work()
    (run,) = Run.objects.all()
    assert run.status == "completed"
    assert run.created_by == ada
    assert '"schedule":"hourly"' in run.labels and "2027-01-05T09:00:00+00:00" in run.labels
    assert Checkpoint.objects.get(run=run, kind="start").actor == "schedule hourly"


def test_a_run_that_has_the_key_already_is_the_slots_run():
    """Also one with another input: nothing is started beside it, and the next slot comes."""
    be_at("2027-01-05T08:10")
    row = made()
    there = start("reports", {"made": True}, key=row.key_of(datetime(2027, 1, 5, 9, tzinfo=UTC)))
    be_at("2027-01-05T09:10")
    chores.do_due()
    assert list(Run.objects.all()) == [there]
    row.refresh_from_db()
    assert (row.due_at, row.fault) == (datetime(2027, 1, 5, 10, tzinfo=UTC), "")


def test_the_bell_rings_for_a_slot_and_first_makes_rows_of_what_is_declared():
    be_at("2027-01-05T12:00")
    rung: list[str] = []
    bell = Bell()
    bell._ring = lambda: rung.append("rung")
    bell.look()
    assert Schedule.objects.get().name == "nightly"
    assert rung == []
    be_at("2027-01-06T01:30:01")
    bell.look()
    assert rung == ["rung"]


def test_a_slot_whose_run_cannot_be_made_says_why_and_stays_owed():
    broken = Graph("broken", state=Report)
    broken.node(write)
    works = []

    @broken.every("0 * * * *")
    def hourly(slot):
        if not works:
            raise LookupError("the calendar is away")
        return {}

    be_at("2027-01-05T08:10")
    with registered(broken):
        schedules.sync()
        be_at("2027-01-05T09:01")
        chores.do_due()
        row = Schedule.objects.get(name="hourly")
        assert row.fault == "2027-01-05 09:00 UTC: LookupError: the calendar is away"
        assert not Run.objects.exists()
        works.append(True)
        assert chores.do_due() == 0
        clock.AHEAD += timedelta(minutes=6)
        chores.do_due()
    row.refresh_from_db()
    assert row.fault == ""
    assert Run.objects.get().key == "schedule:hourly:2027-01-05T09:00Z"


@pytest.mark.parametrize(
    ("comes_back", "starts"),
    [
        ("2027-01-05T09:06", ["2027-01-05T09:00"]),
        ("2027-01-05T09:50", ["2027-01-05T09:00"]),
        ("2027-01-05T10:04", ["2027-01-05T10:00"]),  # and the one before is no more owed, as under "latest"
        ("2027-01-05T10:20", []),
    ],
)
def test_a_slot_that_was_tried_in_time_stays_owed_also_where_late_ones_start_nothing(comes_back, starts):
    """Until the next one comes: the moment of the next try is later than what counts as late."""
    broken = Graph("broken", state=Report)
    broken.node(write)
    works = []

    @broken.every("0 * * * *", catch_up="none")
    def hourly(slot):
        if not works:
            raise LookupError("the calendar is away")
        return {"day": slot}

    be_at("2027-01-05T08:10")
    with registered(broken):
        schedules.sync()
        be_at("2027-01-05T09:00:30")
        chores.do_due()
        assert "09:00 UTC: LookupError" in Schedule.objects.get(name="hourly").fault
        works.append(True)
        be_at(comes_back)
        chores.do_due()
        row = Schedule.objects.get(name="hourly")
    assert days() == starts and row.fault == ""


def test_a_clock_that_is_set_back_starts_nothing_again():
    be_at("2027-01-05T08:10")
    made()
    be_at("2027-01-05T10:01")
    chores.do_due()
    be_at("2027-01-05T08:50")
    Schedule.objects.update(due_at=clock.now())
    chores.do_due()
    be_at("2027-01-05T10:30")
    chores.do_due()
    assert Run.objects.count() == 1


# -- paused -------------------------------------------------------------------------------------------------


def test_what_passes_while_it_is_paused_starts_nothing_also_later():
    be_at("2027-01-05T08:10")
    row = made(catch_up="all", slot_field="day")
    row.pause("olga")
    assert (row.paused_by, row.next_slot) == ("olga", None)
    be_at("2027-01-05T10:10")
    assert chores.do_due() == 0
    with pytest.raises(Conflict, match="paused by olga"):
        row.pause("bob")
    row.resume("bob")
    be_at("2027-01-05T11:10")
    chores.do_due()
    assert days() == ["2027-01-05T11:00"]
    with pytest.raises(Conflict, match="not paused"):
        row.resume("bob")


def test_a_worker_that_has_begun_to_look_starts_nothing_once_it_is_paused():
    be_at("2027-01-05T08:10")
    row = made(catch_up="all")
    be_at("2027-01-05T11:10")
    seen = Schedule.objects.get(pk=row.pk)
    row.pause("olga")
    assert seen.fire() == []
    assert not Run.objects.exists()
    row.refresh_from_db()
    assert row.due_at is None


# -- what people write --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"cron": "never"}, "cron"),
        ({"zone": "Mars"}, "zone"),
        ({"name": " "}, "name"),
        ({"graph": "unknown"}, "graph"),
        ({"input": {"made": "perhaps"}}, "input"),
        ({"input": "{"}, "input"),
        ({"input": [1]}, "input"),
        ({"input": [1], "slot_field": "day"}, "input"),
        ({"slot_field": "made"}, "input"),
        ({"most": 0}, "most"),
        ({"catch_up": "some"}, "catch_up"),
        ({"input": {"day": "a\x00b"}}, "input"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(wrong, field):
    given = {"graph": "reports", "name": "hourly", "cron": "0 * * * *", **wrong}
    with pytest.raises(Invalid) as refused:
        Schedule.objects.make(given.pop("graph"), given.pop("name"), given.pop("cron"), **given)
    assert set(refused.value.fields) == {field}
    assert not Schedule.objects.exists()


def test_two_schedules_of_one_graph_have_two_names():
    made()
    with pytest.raises(Invalid, match="already exists"):
        made()


def test_a_changed_schedule_begins_with_its_next_slot():
    be_at("2027-01-05T08:10")
    row = made(slot_field="day", catch_up="all")
    be_at("2027-01-05T09:10")
    seen = Schedule.objects.get(pk=row.pk)
    row.cron = "15 * * * *"
    row.put()
    assert seen.fire() == []
    chores.do_due()
    be_at("2027-01-05T09:16")
    chores.do_due()
    assert days() == ["2027-01-05T09:15"]


def test_a_change_on_top_of_somebody_elses_pause_is_refused():
    row = made()
    seen = Schedule.objects.get(pk=row.pk)
    row.pause("olga")
    seen.cron = "15 * * * *"
    with pytest.raises(Conflict, match="paused by olga"):
        seen.put()
    row.refresh_from_db()
    assert (row.cron, row.due_at) == ("0 * * * *", None)


# -- what authors declare -----------------------------------------------------------------------------------


def test_many_that_start_at_once_make_one_row_of_a_declaration():
    ends = at_once(*[schedules.sync] * 4)
    assert ends == [None] * 4
    (row,) = Schedule.objects.all()
    assert (row.declared, row.version, row.cron, row.zone) == (True, 1, "30 2 * * *", "Europe/Berlin")
    assert row.due_at is not None


def test_a_start_keeps_what_is_owed_and_what_people_did():
    be_at("2027-01-05T12:00")
    declared()
    be_at("2027-01-06T12:00")
    declared()
    chores.do_due()
    assert days() == ["2027-01-06T02:30"]
    Schedule.objects.get().pause("olga")
    assert declared().paused_by == "olga"


def twin(version: int, cron: str | None) -> Graph:
    graph = Graph("twin", version, state=Report)
    graph.node(write)
    if cron:
        graph.every(cron, name="daily")(lambda slot: {})
    return graph


def test_the_newest_version_says_and_an_older_process_changes_nothing():
    be_at("2027-01-05T12:00")
    old, new = twin(1, "0 9 * * *"), twin(2, "0 10 * * *")
    with registered(old):
        schedules.sync()
        with registered(new):
            schedules.sync()
            schedules.sync()
        schedules.sync()
    row = Schedule.objects.get(name="daily")
    assert (row.cron, row.version) == ("0 10 * * *", 2)
    assert row.due_at == datetime(2027, 1, 6, 10, tzinfo=UTC)


def test_what_is_declared_no_more_starts_nothing_until_it_is_back():
    be_at("2027-01-05T12:00")
    with registered(twin(1, "0 9 * * *")):
        schedules.sync()
    with registered(twin(2, None)):
        schedules.sync()
        row = Schedule.objects.get(name="daily")
        assert (row.due_at, row.next_slot) == (None, None)
        assert row.withdrawn_at is not None
        be_at("2027-01-06T12:00")
        chores.do_due()
    with registered(twin(2, "0 9 * * *")):
        schedules.sync()
        be_at("2027-01-07T12:00")
        chores.do_due()
    assert [run.key for run in Run.objects.filter(graph="twin")] == ["schedule:daily:2027-01-07T09:00Z"]


def test_what_a_newer_version_declares_no_more_does_not_come_back_with_an_older_process():
    """R7: old workers start and tick on beside the new ones."""
    be_at("2027-01-05T12:00")
    with registered(twin(1, "0 9 * * *")):
        schedules.sync()
    with registered(twin(2, None)):
        schedules.sync()
    with registered(twin(1, "0 9 * * *")):
        schedules.sync()
        row = Schedule.objects.get(name="daily")
        be_at("2027-01-06T12:00")
        chores.do_due()
    assert row.withdrawn_at is not None and row.due_at is None
    assert not Run.objects.filter(graph="twin").exists()


def test_a_paused_one_that_was_withdrawn_meanwhile_is_not_resumed_by_who_has_not_seen_that():
    with registered(twin(1, "0 9 * * *")):
        schedules.sync()
    row = Schedule.objects.get(name="daily")
    row.pause("olga")
    with registered(twin(2, None)):
        schedules.sync()
    with pytest.raises(Conflict, match="Look at it again"):
        row.resume("olga")
    row.resume("olga")
    assert (row.paused_at, row.due_at, row.next_slot) == (None, None, None)


def test_a_process_without_the_graph_leaves_it_to_others():
    be_at("2027-01-05T12:00")
    with registered(twin(1, "0 13 * * *")):
        schedules.sync()
    be_at("2027-01-05T14:00")
    assert not chores.are_due(clock.now())
    assert chores.do_due() == 0
    assert Schedule.objects.get(name="daily").is_overdue(clock.now())


def test_a_name_that_was_taken_by_hand_stays_with_who_took_it():
    made(name="nightly")
    assert not declared().declared
