"""E14, E15: a kill, or an error of the database, at any SQL statement of every verb leaves all of it or nothing.

Killed at every statement are the verbs that nearly each run takes; the others where a kill leaves something of its own,
and at a few more places (tests/runs/disturbing.py). Before and after each COMMIT the database fails, and at every
statement once; on PostgreSQL at those of some verbs, drawn. Where some are enough, a fifth of the verbs.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from itertools import groupby
from math import ceil
from typing import Any

import pytest
from django.db import connection

from runs.engine import clock
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, LedgerEntry, Remark, Run, Signal
from runs.testing import fail_at_statements, go_on, in_child, kill_at_statements, moved_clock
from runs.testing.faults import each_statement, every_one
from runs.testing.rows import all_rows
from tests.amounts import IN_FULL, ON_POSTGRES, THOROUGH, dice
from tests.runs.disturbing import commits_of, commits_something, fail_each_once, where_to_kill
from tests.runs.faulty_compensation import of as ___  # noqa: F401 - its verbs are among VERBS then
from tests.runs.faulty_families import of as ____  # noqa: F401 - its verbs are among VERBS then
from tests.runs.faulty_rates import of as _____  # noqa: F401 - its verbs are among VERBS then
from tests.runs.faulty_repair import of as _______  # noqa: F401 - its verbs are among VERBS then
from tests.runs.faulty_retention import of as ______  # noqa: F401 - its verbs are among VERBS then
from tests.runs.faulty_rows import GRAPHS, forgotten, registered, script
from tests.runs.faulty_verbs import VERBS
from tests.runs.faulty_versions import of as __  # noqa: F401 - and so are these
from tests.runs.faulty_waits import of as _  # noqa: F401 - and so are these

pytestmark = pytest.mark.django_db(transaction=True)

ENDS = {
    "claim_poison": {("failed", "poison")},
    "fail_what_cannot_be_read": {("failed", "bad_state")},
    "look_for_the_end_of_a_child": {("failed", "diverged")},
    "fail_with_an_open_write": {("failed", "permanent")},
    "fail_an_entry": {("failed", "permanent")},
    "cancel_a_waiting_run": {("cancelled", "")},
    "cancel_a_running_write": {("cancelled", "")},
    "take_the_last_try_from_a_stuck_thread": {("failed", "exhausted")},
    "claim_that_expires": {("failed", "expired")},
    "reopen_past_the_deadline": {("failed", "expired")},
    "claim_after_a_wait_timed_out": {("failed", "expired")},
    "cancel_a_run_with_open_waits_and_an_unread_signal": {("cancelled", "")},
    "wait_for_a_child_of_an_earlier_step": {("failed", "diverged")},
    "begin_a_fan_out_and_its_children": {("failed", "diverged")},
    "cancel_a_parent": {("cancelled", "")},
    "cancel_what_a_parent_left_behind": {("failed", "permanent")},
    "cancel_a_run_that_undoes": {("cancelled", ""), ("failed", "permanent")},
    "take_a_run_that_undoes_from_a_stuck_thread": {("failed", "exhausted"), ("failed", "permanent")},
    "retry_a_failed_call": {("failed", "permanent"), ("completed", "")},
    "retry_with_another_state": {("failed", "permanent"), ("completed", "")},
    "retry_what_was_cancelled": {("cancelled", ""), ("completed", "")},
    "skip_to_the_next_node": {("cancelled", ""), ("completed", "")},
    "skip_to_the_end": {("failed", "permanent"), ("completed", "")},
    "move_a_run": {("cancelled", ""), ("completed", "")},
    "close_a_failed_run": {("failed", "permanent")},
    "settle_what_an_ended_run_has_in_doubt": {("cancelled", "")},
    "cancel_a_failed_run": {("failed", "permanent"), ("cancelled", "permanent")},
    "cancel_a_failed_run_and_undo": {("failed", "diverged"), ("cancelled", "diverged")},
    "fork_a_run": {("failed", "permanent")},
}
FAMILIES = {family: list(names) for family, names in groupby(VERBS, key=lambda name: VERBS[name].family)}
COMPLETED = {("completed", "")}
OF_EACH_RUN = {
    "start_a_run",
    "claim_created",
    "claim_that_wakes",
    "commit_step",
    "complete",
    "park",
    "open_a_write",
    "record_a_result",
    "record_a_read",
    "ask_people",
    "answer_a_question",
    "decide",
}
ENDS |= {name: {("failed", "permanent")} for name in FAMILIES["compensation"] if name not in ENDS}


@pytest.fixture(autouse=True)
def graphs_are_known():
    registered()
    yield
    forgotten()
    clock.AHEAD = timedelta()


def found(subject: str) -> Run | None:
    """By id, or for a start by its key."""
    field = "key" if subject.startswith("fault:") else "pk"
    return Run.objects.filter(**{field: subject}).first()


def shape(subject: str) -> Any:
    """All that a verb may change, without ids and times."""
    run = found(subject)
    if run is None:
        return None
    names = (
        "status",
        "ending",
        "version",
        "node",
        "step",
        "seq",
        "attempt",
        "fence",
        "answers",
        "deaths",
        "silent",
        "alone",
        "error_kind",
        "told",
        "told_kind",
        "kept",
    )
    row = {name: getattr(run, name) for name in names}
    moments = {"leased": "leased_by", "wakes": "wake_at", "cascades": "cascade_at", "closed": "closed_at"}
    row |= {name: getattr(run, column) is not None for name, column in moments.items()}
    return (
        row,
        list(Checkpoint.objects.filter(run=run).order_by("seq").values_list("seq", "kind", "status", "step")),
        [entry_shape(entry) for entry in LedgerEntry.objects.filter(run=run).order_by("id")],
        Remark.objects.filter(run=run).count(),
        run.live_texts.count(),
        list(Signal.objects.filter(run=run).order_by("id").values_list("name", "consumed_by__key")),
        approvals_of(run),
        [
            shape(str(child))
            for child in run.children.order_by("created_at", "item").values_list("pk", flat=True)
        ],
        [
            shape(str(fork))
            for fork in Run.objects.filter(origin=run.pk).order_by("pk").values_list("pk", flat=True)
        ],
    )


def entry_shape(entry: LedgerEntry) -> dict[str, Any]:
    moments = ("tried_at", "due_at", "answered_at", "effective_at", "taken_at", "result")
    shown = {name: getattr(entry, name) is not None for name in moments}
    return shown | {
        name: getattr(entry, name) for name in ("key", "status", "attempts", "awaited", "error_kind", "aside")
    }


def approvals_of(run: Run) -> list[Any]:
    """Outcome, revision and length of the trail of each."""
    from approvals.models import Approval

    return list(Approval.objects.filter(run=run).order_by("pk").values_list("outcome", "revision", "length"))


def is_sound(run: Run, where: str) -> None:
    """What holds between any two transactions, also in the chains of its approvals; the rest the database sees to."""
    assert first_bad_row(run) is None, f"{where}: {first_bad_row(run)}"
    run.state_at()
    if run.status == "completed":
        assert not LedgerEntry.objects.filter(run=run, status__in=("open", "in_doubt")).exists(), where
    if run.ended:
        assert not LedgerEntry.objects.filter(run=run, status="open").exists(), where


@cache
def shapes_of(name: str) -> list[Any]:
    """What the verb's commits lead through, from before to after, nearly always just these two."""
    subject, act = VERBS[name]()
    shapes = [shape(subject)]

    def look() -> None:
        if (now := shape(subject)) != shapes[-1]:
            shapes.append(now)

    def see(number: int, when: str, sql: str) -> None:
        if when == "after" and commits_something(sql):
            aside.submit(look).result()  # on a connection of its own: this one is not through with its COMMIT

    with ThreadPoolExecutor(1) as aside:
        with each_statement(see):
            act()
        aside.submit(lambda: connection.close()).result()
    look()
    return shapes


def verbs_of(family: str) -> list[str]:
    names = FAMILIES[family]
    return names if THOROUGH else dice(family).sample(names, ceil(len(names) / 5))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kill_at_any_statement_leaves_all_of_a_verb_or_nothing(family):
    """E15."""
    for name in verbs_of(family):
        kill_in(name)


def kill_in(name: str) -> None:
    with moved_clock():
        shapes, commits = shapes_of(name), commits_of(VERBS[name], done_before=True)
    every = IN_FULL or THOROUGH and name in OF_EACH_RUN
    chosen = every_one if every else where_to_kill(name, commits)
    seen = []

    def check(subject: str, where: str) -> None:
        where = f"{name}, {where}"
        left = shape(subject)
        assert left in shapes, f"{where}: the state is mixed"
        seen.append(shapes.index(left))
        if (run := found(subject)) is None:
            return
        is_sound(run, where)
        if seen.index(seen[-1]) < len(seen) - 1:
            return  # from an equal state it was brought to its end already
        with moved_clock() as moved:
            moved.move(timedelta(hours=1))  # the child's clock may have been ahead
            ended = go_on(run, next(graph for graph in GRAPHS if graph.name == run.graph), script)
        is_sound(ended, where)
        ends = ENDS.get(name, COMPLETED) | (COMPLETED if left == shapes[0] else set())
        assert (ended.status, ended.error_kind) in ends, f"{where}: {ended.status} {ended.error}"

    statements = kill_at_statements(VERBS[name], check, chosen)
    assert 2 <= len(seen) <= statements + 1  # nothing was looked at once
    assert seen == sorted(seen), f"{name}: what is committed stays"
    assert set(seen) == set(range(len(shapes))), f"{name}: from nothing to all of it"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_database_that_fails_at_any_statement_is_asked_again(family):
    """E13, E14: it is never the run's failure, also when the answer to a COMMIT is lost."""

    def fail_everywhere(tell: Callable[[str], None]) -> None:
        for name in verbs_of(family):
            with moved_clock():
                fail_in(name)

    in_child(fail_everywhere)


def fail_in(name: str) -> None:
    shapes = shapes_of(name)

    def check(subject: str, where: str) -> None:
        left = shape(subject)
        passed_on = "passed on" in where
        assert left == shapes[-1] or passed_on and left in shapes, f"{name}, {where}"
        if (run := found(subject)) is not None:
            is_sound(run, f"{name}, {where}")

    if IN_FULL:
        assert fail_at_statements(VERBS[name], check) > 0, name
    assert fail_each_once(VERBS[name], check, only=commits_something, in_a_row=1) > 1, name
    if not ON_POSTGRES or IN_FULL or name in OF_EACH_RUN or dice(f"each once {name}").random() < 1 / 3:
        assert fail_each_once(VERBS[name], check) > 2, name


@pytest.mark.parametrize("family", FAMILIES)
def test_between_two_commits_others_see_nothing_that_a_kill_could_leave(family):
    """Why a kill beside each COMMIT is enough: what is not committed is seen by nobody, at whichever statement."""
    name = dice(f"see {family}").choice(FAMILIES[family])
    with moved_clock():
        _, act = VERBS[name]()
        seen = [all_rows()]

        def see(number: int, when: str, sql: str) -> None:
            rows = aside.submit(all_rows).result()
            assert rows == seen[-1] or when == "after" and commits_something(sql), (
                f"{name}, {when} statement {number}: {sql}"
            )
            seen.append(rows)

        with ThreadPoolExecutor(1) as aside:
            with each_statement(see):
                act()
            aside.submit(lambda: connection.close()).result()
        assert seen[-1] == all_rows() != seen[0], name
