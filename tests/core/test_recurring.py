"""Slots of a cron expression in a time zone, over changes of clocks (R9)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import Graph, GraphError
from runs.core.recurring import LATE, Recurrence, faults, owed
from tests.amounts import examples

BERLIN = Recurrence("30 2 * * *", "Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def slots(recurrence: Recurrence, after: str, until: str, most: int = 1_000) -> list[str]:
    found = recurrence.between(at(after), at(until), most)
    return [f"{recurrence.local(slot):%m-%d %H:%M %Z}" for slot in found]


def test_half_past_two_comes_once_a_day_over_both_clock_changes():
    """R9: what the clocks skip comes as soon as they go on; what they repeat comes the first time."""
    assert slots(BERLIN, "2026-03-28T12:00", "2026-03-30T12:00") == ["03-29 03:00 CEST", "03-30 02:30 CEST"]
    assert slots(BERLIN, "2026-10-24T12:00", "2026-10-26T12:00") == ["10-25 02:30 CEST", "10-26 02:30 CET"]


@pytest.mark.parametrize("minute", range(0, 60, 15))
def test_in_the_hour_that_is_repeated_the_next_slot_is_a_later_one(minute):
    """Read as wall time alone, 02:30 would lie ahead of 02:15, which has come a second time."""
    second_time = at("2026-10-25T01:00") + timedelta(minutes=minute)
    assert BERLIN.after(second_time) == at("2026-10-26T01:30")
    assert BERLIN.between(at("2026-10-24T12:00"), second_time, 9) == [at("2026-10-25T00:30")]


def test_an_interval_goes_on_in_real_time_and_a_skipped_hour_of_two_slots_owes_one():
    hourly = Recurrence("0 * * * *", "Europe/Berlin")
    assert len(hourly.between(at("2026-03-28T23:00"), at("2026-03-29T22:00"), 99)) == 23
    assert len(hourly.between(at("2026-10-24T22:00"), at("2026-10-25T23:00"), 99)) == 25
    twice = Recurrence("0,30 2 * * *", "Europe/Berlin")
    assert slots(twice, "2026-03-28T12:00", "2026-03-29T12:00") == ["03-29 03:00 CEST"]


@given(
    cron=st.sampled_from(
        [
            "30 2 * * *",
            "*/20 * * * *",
            "0,30 1,2,3 * * *",
            "15 */2 * * 1-5",
            "5 0 1 * *",
            "59 23 L * *",
            "0 0 * * 0#2",
        ]
    ),
    zone=st.sampled_from(
        ["UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Africa/Cairo"]
    ),
    begin=st.datetimes(datetime(2015, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
    hours=st.integers(0, 24 * 90),
    most=st.integers(1, 5),
)
@settings(max_examples=examples(150), deadline=None)
def test_however_slots_are_looked_up_they_are_the_same(cron, zone, begin, hours, most):
    """One after the other, or the latest few of a long time: so whoever looks makes the same keys."""
    recurrence, until = Recurrence(cron, zone), begin + timedelta(hours=hours)
    walked, slot = [], recurrence.after(begin)
    while slot is not None and slot <= until:
        walked.append(slot)
        slot = recurrence.after(slot)
    assert walked == sorted(set(walked))
    assert recurrence.between(begin, until, most) == walked[-most:]


def test_what_passed_slots_owe_is_the_authors_choice():
    """R9: after four hours down."""
    hourly = Recurrence("0 * * * *", "UTC")
    down, up = at("2026-01-05T08:10"), at("2026-01-05T12:10")
    assert owed(hourly, down, up, "latest", 10) == [at("2026-01-05T12:00")]
    assert [slot.hour for slot in owed(hourly, down, up, "all", 10)] == [9, 10, 11, 12]
    assert [slot.hour for slot in owed(hourly, down, up, "all", 3)] == [10, 11, 12]
    assert owed(hourly, down, up, "none", 10) == []
    assert owed(hourly, down, at("2026-01-05T12:00") + LATE, "none", 10) == [at("2026-01-05T12:00")]
    assert owed(hourly, down, down + timedelta(minutes=1), "all", 10) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cron": "* * * *"}, "cron"),
        ({"cron": "* * * * * *"}, "cron"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "0 0 30 2 *"}, "cron"),
        ({"cron": "* * * * 1L/2"}, "cron"),
        ({"cron": "² * * * *"}, "cron"),
        ({"cron": "0 0 * * " + "1," * 60 + "1"}, "cron"),
        ({"zone": "Europe"}, "zone"),
        ({"zone": "../../etc/passwd"}, "zone"),
        ({"zone": "a\x00b"}, "zone"),
        ({"zone": "\ud800"}, "zone"),
        ({"zone": ""}, "zone"),
        ({"name": " "}, "name"),
        ({"name": "a:b"}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"catch_up": "some"}, "catch_up"),
        ({"most": 0}, "most"),
    ],
)
def test_what_does_not_fit_is_named_by_its_field(changes, field):
    fits = {"cron": "30 2 * * 1-5", "zone": "Europe/Berlin", "name": "nightly", "catch_up": "all", "most": 5}
    assert list(faults(**fits)) == []
    assert [name for name, _ in faults(**(fits | changes))] == [field]


def test_what_an_author_declares_wrongly_names_file_and_function():
    graph = Graph("declaring")

    def nightly(slot):
        return {}

    assert graph.every("30  2 * * *", tz="Europe/Berlin")(nightly) is nightly
    assert graph.schedules["nightly"].recurrence == BERLIN
    for again, said in (
        (lambda: graph.every("0 9 * * *")(nightly), "has a schedule 'nightly' already"),
        (lambda: graph.every("never", name="b")(nightly), "cron: 'never' is no cron expression"),
        (lambda: graph.every("0 9 * * *", tz="Mars", name="b")(nightly), "tz: 'Mars' is no time zone"),
        (lambda: graph.every("0 9 * * *", name="b")(lambda: {"n": 1}), r"exactly \(slot\)"),
    ):
        with pytest.raises(GraphError, match=said) as refused:
            again()
        assert "test_recurring.py" in str(refused.value)
    with pytest.raises(GraphError, match=r"'declaring': <class 'dict'>: .* exactly \(slot\)"):
        graph.every("0 9 * * *", name="b")(dict)
