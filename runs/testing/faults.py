"""Faults at every SQL statement of a verb: the process is killed there, or the database says no (cases E14, E15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any  # subjects and statements' parameters are the caller's

from django.db import OperationalError, connection

from runs.testing.clock import moved_clock
from runs.testing.process import die, in_child, spared_disk
from runs.testing.rows import all_rows
from runs.testing.warm import warm_up

MOST_STATEMENTS = 500
BEFORE, AFTER = "before", "after"

Act = Callable[[], Any]
# makes the rows that the verb works on: their name (anything JSON can carry), and the verb itself
Prepare = Callable[[], tuple[Any, Act]]
Check = Callable[[Any, str], None]
Chosen = Callable[[int], bool]


def every_one(number: int) -> bool:
    return True


def kill_at_statements(prepare: Prepare, check: Check, chosen: Chosen = every_one) -> int:
    """Kill a process before the verb's first statement, before its second one, and so on; returns how many it has.

    Each time a child process begins the verb; COMMIT counts as a statement. Then, in this process, `check(subject,
    where)` looks at what was left; last at what the whole verb leaves. `prepare` makes the rows: those that a killed
    process has left exactly as they were, in all tables, need no second look and serve the next one. Statements whose
    number is not `chosen` are passed over.
    """
    warm_up()
    number = 1
    with spared_disk():
        while number < MOST_STATEMENTS:
            with moved_clock():  # the rows may be some time old
                subject, verb = prepare()
                before = all_rows() if number > 1 else None  # also the first kill's is looked at once
                while True:
                    while not chosen(number):
                        number += 1
                    child = in_child(lambda _tell, number=number, verb=verb: _die_in(verb, number))
                    if not child.killed or before is None or all_rows() != before:
                        break
                    number += 1
            check(subject, f"killed before statement {number}" if child.killed else "not killed")
            if not child.killed:
                return child.returned
            number += 1
    raise AssertionError(f"a verb of more than {MOST_STATEMENTS} statements")


def fail_at_statements(
    prepare: Prepare, check: Check, message: str = "database is locked", chosen: Chosen = every_one
) -> int:
    """The same with an OperationalError in place of death: before each statement, and after each that commits.

    An error after a COMMIT is the lost answer: the rows are there, and the caller cannot know it. `where` ends with
    what the verb itself raised, for one that people call may pass the error on. Returns how many faults there were.
    """
    places = [(number, when) for number, when in _places(prepare) if chosen(number)]
    for number, when in places:
        subject, verb = prepare()
        fault = _Fault(number, when, message)
        with each_statement(fault):
            raised = _raised(verb)
        assert fault.struck, f"statement {number} was not reached: the verb does not do the same each time"
        check(subject, f"{when} statement {number} ({fault.struck}) the database failed{raised}")
    return len(places)


def _places(prepare: Prepare) -> list[tuple[int, str]]:
    places: list[tuple[int, str]] = []

    def see(number: int, when: str, sql: str) -> None:
        if when == BEFORE or not in_transaction(sql):
            places.append((number, when))

    _, verb = prepare()
    with each_statement(see):
        verb()
    return places


@contextmanager
def each_statement(see: Callable[[int, str, str], None]) -> Iterator[list[str]]:
    """`see(number, "before" or "after", sql)` around each statement of this thread's connection, COMMIT included."""
    seen: list[str] = []

    def around(sql: str, run: Callable[[], Any]) -> Any:
        seen.append(sql)
        number = len(seen)
        see(number, BEFORE, sql)
        result = run()
        see(number, AFTER, sql)
        return result

    def execute(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: dict[str, Any]
    ) -> Any:
        return around(sql, lambda: execute(sql, params, many, context))

    commit = connection._commit  # Django sends COMMIT past the wrappers
    connection._commit = lambda: around("COMMIT", commit)
    try:
        with connection.execute_wrapper(execute):
            yield seen
    finally:
        del connection._commit


def in_transaction(sql: str) -> bool:
    """Whether what was written up to the end of this statement is still to be committed."""
    if connection.vendor == "sqlite":
        return connection.connection.in_transaction
    return connection.in_atomic_block and sql != "COMMIT"


class _Fault:
    """Raises once, at one place."""

    def __init__(self, number: int, when: str, message: str) -> None:
        self.number, self.when, self.message = number, when, message
        self.struck = ""

    def __call__(self, number: int, when: str, sql: str) -> None:
        if not self.struck and (number, when) == (self.number, self.when):
            self.struck = sql.split("\n")[0][:40]
            raise OperationalError(self.message)


def _die_in(verb: Act, number: int) -> int:
    connection.ensure_connection()  # what a fresh one is told is no statement of the verb
    with each_statement(lambda count, when, sql: _die_at(number, count, when)) as seen:
        verb()
    return len(seen)


def _die_at(number: int, count: int, when: str) -> None:
    if when == BEFORE and count == number:
        die()


def _raised(verb: Act) -> str:
    try:
        verb()
    except OperationalError as error:
        return f", which the verb passed on ({error})"
    return ""
