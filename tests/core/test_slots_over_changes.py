"""The slots of a schedule near a change of clocks, of half an hour, of two, of a whole day, and at midnight (R9).

What they should be is counted here minute by minute, without the library that `Recurrence` reads expressions with.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runs.core.recurring import Recurrence
from tests.amounts import examples

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
AROUND = timedelta(hours=20)
LONGEST_REPEATED = timedelta(hours=3)
ZONES = [
    "Australia/Lord_Howe",  # half an hour
    "Antarctica/Troll",  # two hours
    "America/St_Johns",  # half hours from UTC; until 2011 a minute after midnight
    "Africa/Casablanca",  # four changes a year, around Ramadan
    "Asia/Kathmandu",  # never
    "America/Sao_Paulo",  # at midnight, until 2019
    "Africa/Cairo",  # at midnight
    "Pacific/Apia",  # a day left out
    "Europe/Berlin",
]
MINUTES = {"*": range(60), "*/5": range(0, 60, 5), "*/25": range(0, 60, 25), "0": [0], "15,45": [15, 45]}
HOURS = {
    "*": range(24),
    "*/2": range(0, 24, 2),
    "0": [0],
    "1": [1],
    "2": [2],
    "0-3": range(4),
    "2,23": [2, 23],
}
DAYS = {"*": range(32), "*/2": range(1, 32, 2), "30,4": [30, 4]}


NEAR = st.timedeltas(-150 * MINUTE, 150 * MINUTE)


@cache
def changes(zone: str) -> list[datetime]:
    """The moments from 2010 to 2030 at which the clocks of `zone` are changed, to the minute."""
    there, found = ZoneInfo(zone), []
    moment = datetime(2010, 1, 1, tzinfo=UTC)
    while moment.year < 2030:
        offset = moment.astimezone(there).utcoffset()
        if (moment + 12 * HOUR).astimezone(there).utcoffset() != offset:
            late = moment + MINUTE
            while late.astimezone(there).utcoffset() == offset:
                late += MINUTE
            found.append(late)
        moment += 12 * HOUR
    return found or [datetime(2026, 3, 29, 1, tzinfo=UTC)]


def counted(minute: str, hour: str, day: str, zone: str, begin: datetime, until: datetime) -> list[datetime]:
    """Slots later than `begin` and not later than `until`."""
    there, found = ZoneInfo(zone), set()
    interval = minute.startswith("*") or hour.startswith("*")

    def named(wall: datetime) -> bool:
        return wall.minute in MINUTES[minute] and wall.hour in HOURS[hour] and wall.day in DAYS[day]

    moment = (begin - LONGEST_REPEATED).replace(second=0, microsecond=0)
    shown = moment.astimezone(there).replace(tzinfo=None)  # up to here the clocks have shown it
    while moment <= until:
        wall = moment.astimezone(there).replace(tzinfo=None)
        if interval:
            if named(wall):
                found.add(moment)
        else:
            while shown < wall:  # one minute; and all that the clocks leave out
                shown += MINUTE
                if named(shown):
                    found.add(moment)
        moment += MINUTE
    return sorted(slot for slot in found if begin < slot)


@given(
    minute=st.sampled_from(sorted(MINUTES)),
    hour=st.sampled_from(sorted(HOURS)),
    day=st.sampled_from(sorted(DAYS)),
    zone=st.sampled_from(ZONES),
    which=st.integers(0, 99),
    far=st.timedeltas(-AROUND, timedelta(0)) | NEAR,
    looks=st.lists(NEAR, max_size=8),
    most=st.integers(1, 5),
)
@example("*", "2", "*", "Australia/Lord_Howe", 32, -10 * HOUR, [], 1)
@example("*/5", "1", "*", "Australia/Lord_Howe", 32, -10 * HOUR, [-2 * MINUTE, 20 * MINUTE], 1)
@settings(max_examples=examples(150), deadline=None)
def test_from_wherever_one_looks_none_is_doubled_moved_or_left_out(
    minute, hour, day, zone, which, far, looks, most
):
    change = changes(zone)[which % len(changes(zone))]
    begin = change + far
    until = begin + AROUND
    recurrence = Recurrence(f"{minute} {hour} {day} * *", zone)
    slots = counted(minute, hour, day, zone, begin, until)
    assert recurrence.between(begin, until, 5_000) == slots
    assert recurrence.between(begin, until, most) == slots[-most:]
    after = recurrence.after(until)
    for look in looks:
        moment = max(begin, change + look)
        later = [slot for slot in slots if slot > moment]
        assert recurrence.after(moment) == (later[0] if later else after)


@pytest.mark.parametrize(
    ("cron", "night", "times"),
    [  # at 2:00 the clocks go to 1:30 in April, and to 2:30 in October
        ("*/20 1 * * *", "2026-04-04", ["01:00 +1100", "01:20 +1100", "01:40 +1100", "01:40 +1030"]),
        ("*/20 2 * * *", "2026-04-04", ["02:00 +1030", "02:20 +1030", "02:40 +1030"]),
        ("*/20 2 * * *", "2026-10-03", ["02:40 +1100"]),
        ("45 1 * * *", "2026-04-04", ["01:45 +1100"]),
        ("15 2 * * *", "2026-10-03", ["02:30 +1100"]),
    ],
)
def test_a_change_of_half_an_hour(cron, night, times):
    begin = datetime.fromisoformat(f"{night}T10:00+00:00")
    recurrence = Recurrence(cron, "Australia/Lord_Howe")
    found = recurrence.between(begin, begin + timedelta(hours=14), 99)
    assert [f"{recurrence.local(slot):%H:%M %z}" for slot in found] == times
