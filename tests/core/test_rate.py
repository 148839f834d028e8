"""A tool's rate: never more calls in any period, nobody waits longer than that needs, and the row stays small."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs import END, Graph, GraphError, Rate, Retry, Transient, tool
from runs.core.rate import PARTS, Window
from runs.core.rehearsal import rehearse
from runs.core.retry import LONGEST_SECONDS
from tests.amounts import examples

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("often", "calls", "seconds"),
    [("10/m", 10, 60), ("5/s", 5, 1), ("100/15m", 100, 900), ("1/7d", 1, 604_800)],
)
def test_a_rate_is_read_as_it_is_written(often, calls, seconds):
    rate = Rate(often)
    assert (rate.calls, rate.period) == (calls, seconds * 1_000_000)


@pytest.mark.parametrize(
    "often", ["", "10", "0/m", "10/w", "10/0m", "-1/m", "10 / m", "1.5/s", "٣/m", "10/m\n", None]
)
def test_what_is_no_rate_is_refused_when_the_tool_is_declared(often):
    with pytest.raises(GraphError, match=r"10/m"):
        Rate(often)
    if isinstance(often, str):
        with pytest.raises(GraphError, match=r"tool look in .*test_rate\.py: rate"):

            @tool(rate=often)
            def look() -> str: ...


def test_a_rate_by_something_that_the_tool_does_not_take_is_refused():
    with pytest.raises(GraphError, match="by 'customer', which is none of its arguments"):

        @tool(rate=Rate("1/s", by="customer"))
        def look(account: str) -> str: ...


def test_values_are_told_apart_by_their_digest_alone():
    by_name, by_function = Rate("1/s", by="who"), Rate("1/s", by=lambda arguments: arguments["who"].lower())
    assert by_name.key_of({"who": "Ada"}) != by_name.key_of({"who": "ada"})
    assert (
        by_function.key_of({"who": "Ada"})
        == by_function.key_of({"who": "ada"})
        == by_name.key_of({"who": "ada"})
    )
    assert Rate("1/s").key_of({"who": "Ada"}) == "1/s"
    assert Rate("2/s", by="who").key_of({"who": "Ada"}) != by_name.key_of({"who": "Ada"}), "another rate"


@settings(deadline=None, max_examples=examples(60))
@given(
    calls=st.one_of(st.integers(1, 12), st.integers(PARTS + 1, PARTS + 40)),
    longest=st.floats(0.01, 20),
    seed=st.integers(0, 2**32),
)
def test_in_any_period_there_are_never_more_calls_and_what_is_kept_stays_small(calls, longest, seed):
    """Some come when they were told to, others whenever they like."""
    dice = random.Random(seed)
    gaps = [(dice.uniform(0, longest), dice.random() < 0.5) for _ in range(200)]
    rate, window, now = Rate(f"{calls}/m"), Window(), BEGIN
    made: list[datetime] = []
    wait = 0.0
    for gap, does_as_told in gaps:
        now += timedelta(seconds=wait if does_as_told else gap)
        window, wait = Window.read(window.text).ask(rate, now, in_line=does_as_told)
        if not wait:
            made.append(now)
        assert len(window.uses) <= PARTS + 2 and sum(many for *_, many in window.uses) <= calls
    minute = timedelta(minutes=1)
    assert all(later - first >= minute for first, later in zip(made, made[calls:], strict=False))


@settings(deadline=None, max_examples=examples(30))
@given(calls=st.integers(1, 150))
def test_one_after_the_other_they_are_let_through_at_the_rate_and_not_slower(calls):
    """A burst first, and then whenever the oldest is a period ago; above 60 calls at most a sixtieth of it later."""
    rate, window, now = Rate(f"{calls}/m"), Window(), BEGIN
    for _ in range(3 * calls):
        window, wait = window.ask(rate, now, in_line=True)
        now += timedelta(seconds=wait)
        if wait:
            window, wait = window.ask(rate, now, in_line=True)
        assert not wait
    assert now - BEGIN <= timedelta(minutes=2) + timedelta(seconds=2 * 60 / PARTS)


def test_who_comes_while_others_wait_is_placed_behind_them():
    rate, window = Rate("2/m"), Window()
    for _ in range(2):
        window, wait = window.ask(rate, BEGIN)
        assert wait == 0
    told = []
    for _ in range(3):
        window, wait = window.ask(rate, BEGIN)
        told.append(wait)
    assert told == [60, 90, 120]
    later = BEGIN + timedelta(seconds=60)
    _, newcomer = window.ask(rate, later)
    assert newcomer == 90, "there is room, but it is for who waited"
    _, waited = window.ask(rate, later, in_line=True)
    assert waited == 0


def test_a_clock_that_is_put_back_holds_nobody_longer_than_a_period():
    rate = Rate("1/m")
    window, _ = Window().ask(rate, BEGIN + timedelta(days=300))
    window, wait = window.ask(rate, BEGIN)
    assert wait == 60
    _, wait = window.ask(rate, BEGIN + timedelta(seconds=60), in_line=True)
    assert wait == 0


def test_nobody_is_told_to_wait_beyond_thirty_days():
    window, rate = Window(), Rate("1/300d")
    window, _ = window.ask(rate, BEGIN)
    for _ in range(3):
        window, wait = window.ask(rate, BEGIN)
        assert wait == LONGEST_SECONDS


# -- in a rehearsal, whose clock goes on by itself -----------------------------------------------------------------


def test_in_memory_calls_over_the_rate_are_made_when_their_time_has_come():
    made = []

    @tool(rate=Rate("2/m", by="who"), retry=Retry(attempts=2, first=0))
    def look(who: str) -> str:
        made.append(who)
        if len(made) == 1:
            raise Transient("busy")
        return "seen"

    graph = Graph("looking", state=None)
    times = []

    @graph.node(then=END)
    def go(run, state):
        for who in ("ada", "ada", "bob"):
            run.call(look, who=who)
            times.append(run.now())

    assert rehearse(graph, {}).status == "completed"
    assert made == ["ada", "ada", "ada", "bob"], "each try counts"
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    assert [(at - begin).total_seconds() for at in times] == [0, 60, 60]


# -- waits of retries -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", [Retry(5, first=1e300, cap=1e308), Retry(70, 1, factor=1e300, cap=float("inf"))]
)
def test_no_policy_waits_longer_than_thirty_days_nor_breaks_on_the_way(policy):
    for attempt in (1, 2, 3, 4):
        assert 0 <= policy.decide(attempt, Transient("no"), 0.99).delay <= LONGEST_SECONDS
    assert policy.decide(4, Transient("no"), 0.5).delay == LONGEST_SECONDS


@pytest.mark.parametrize("wrong", [{"first": float("nan")}, {"cap": float("nan")}, {"factor": float("nan")}])
def test_a_policy_that_says_no_number_is_refused(wrong):
    with pytest.raises(ValueError, match="seconds >= 0"):
        Retry(**wrong)
