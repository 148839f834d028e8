"""E14, E15: a kill, or an error of the database, at every SQL statement of every verb leaves all of it or nothing.

Where all is to be tried, on SQLite at every statement of all verbs, and on PostgreSQL at every statement of those
that nearly each run takes; of the others beside each COMMIT, and at an eighth of what is left, drawn anew each time.
Where some are enough, a third of the verbs, drawn, beside each COMMIT and at a few more.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import groupby
from math import ceil
from typing import Any

import pytest
from django.db import connection

from runs.engine import clock
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, LedgerEntry, Remark, Run, Signal
from runs.testing import fail_at_statements, go_on, in_child, kill_at_statements, moved_clock
from runs.testing.faults import MOST_STATEMENTS, Chosen, each_statement, every_one, in_transaction
from tests.amounts import IN_FULL, ON_POSTGRES, THOROUGH, dice
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
WRITES = ("COMMIT", "INSERT", "UPDATE", "DELETE", "WITH")
OF_THE_OTHERS = 1 if IN_FULL else (1 / 8 if ON_POSTGRES else 1) if THOROUGH else 1 / 20
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


def states(name: str) -> tuple[list[Any], Chosen]:
    """The shapes that the verb's commits lead through, from before to after, nearly always just these two; and at which
    of its statements it is to be disturbed."""
    subject, act = VERBS[name]()
    shapes, commits = [shape(subject)], []

    def look() -> None:
        if (now := shape(subject)) != shapes[-1]:
            shapes.append(now)

    def see(number: int, when: str, sql: str) -> None:
        if when == "after" and not in_transaction(sql):
            commits.extend([number] if sql.startswith(WRITES) else [])
            aside.submit(look).result()  # on a connection of its own: this one is not through with its COMMIT

    with ThreadPoolExecutor(1) as aside:
        with each_statement(see):
            act()
        aside.submit(lambda: connection.close()).result()
    look()
    return shapes, drawn(name, commits)


def verbs_of(family: str) -> list[str]:
    names = FAMILIES[family]
    return names if THOROUGH else dice(family).sample(names, ceil(len(names) / 3))


def drawn(name: str, commits: list[int]) -> Chosen:
    if OF_THE_OTHERS == 1 or THOROUGH and name in OF_EACH_RUN:
        return every_one
    lot = dice(name)
    by_lot = {number for number in range(1, MOST_STATEMENTS) if lot.random() < OF_THE_OTHERS}
    beside = {1, *commits, *(number + 1 for number in commits)}
    return (by_lot | beside).__contains__


@pytest.mark.parametrize("family", FAMILIES)
def test_a_kill_at_any_statement_leaves_all_of_a_verb_or_nothing(family):
    """E15."""
    for name in verbs_of(family):
        kill_in(name)


def kill_in(name: str) -> None:
    with moved_clock():
        shapes, chosen = states(name)
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
    shapes, chosen = states(name)

    def check(subject: str, where: str) -> None:
        left = shape(subject)
        passed_on = "passed on" in where
        assert left == shapes[-1] or passed_on and left in shapes, f"{name}, {where}"
        if (run := found(subject)) is not None:
            is_sound(run, f"{name}, {where}")

    assert fail_at_statements(VERBS[name], check, chosen=chosen) > 0, name
