"""At which of its statements a verb is killed, and how each of them fails once.

A kill inside a transaction leaves what one before its BEGIN does, whichever statement it comes before: of those that
lie between two COMMITs one is enough to see all that can be left, and test_faults.py proves that there is nothing more
to see. An error is another thing, for the process lives and tries again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from django.db import OperationalError

from runs.testing.faults import (
    AFTER,
    BEFORE,
    MOST_STATEMENTS,
    Act,
    Check,
    Chosen,
    Prepare,
    each_statement,
    every_one,
    in_transaction,
)
from runs.testing.rows import all_rows
from tests.amounts import IN_FULL, THOROUGH, dice

WRITES = ("COMMIT", "INSERT", "UPDATE", "DELETE", "WITH")
OF_THE_OTHERS = 1 if IN_FULL else 1 / 12 if THOROUGH else 1 / 20
MOST_IN_A_ROW = 5  # the engine gives up after twelve, and some of its acts are two transactions
SAVEPOINT = re.compile(r"(?<=SAVEPOINT) .*")


def commits_something(sql: str) -> bool:
    """Whether others see something else after this statement than before it."""
    return sql == "COMMIT" or sql.startswith(WRITES) and not in_transaction(sql)


def commits_of(prepare: Prepare, done_before: bool = False) -> list[int]:
    """The numbers of the statements of the undisturbed verb that commit something; not of the first time that it is
    done in a test, for then it may also write down which graphs and tools there are."""
    found: list[int] = []

    def see(number: int, when: str, sql: str) -> None:
        if when == AFTER and commits_something(sql):
            found.append(number)

    if not done_before:
        prepare()[1]()
    _, verb = prepare()
    with each_statement(see):
        verb()
    return found


def where_to_kill(name: str, commits: Iterable[int]) -> Chosen:
    """Before the first statement and each COMMIT, and after the last; and at a few others, drawn."""
    if IN_FULL:
        return every_one
    lot = dice(f"kill {name}")
    some = {number for number in range(1, MOST_STATEMENTS) if lot.random() < OF_THE_OTHERS}
    return (some | {1, *commits, max(commits, default=0) + 1}).__contains__


def fail_each_once(
    prepare: Prepare, check: Check, only: Callable[[str], bool] = bool, in_a_row: int = MOST_IN_A_ROW
) -> int:
    """Each statement fails when it is come to for the first time, and the answer to each COMMIT is lost once; returns
    how many faults there were.

    So also the statements of a second and a later try fail, up to so many `in_a_row` before a COMMIT. A verb that
    passes the error on is begun again, as whoever is told of it would, as long as the rows are as they were.
    `check(subject, where)` looks at the end. `only` says of which statements.
    """
    fault = _EachOnce(only, in_a_row)
    while len(fault.struck) < MOST_STATEMENTS:
        subject, verb = prepare()
        before, seen, tries = all_rows() if in_a_row > 1 else None, len(fault.struck), 0
        fault.prepared()
        while (raised := _raised(verb, fault)) and all_rows() == before:
            tries += 1
            assert tries <= len(fault.struck) - seen, f"it fails by itself{raised}"
        check(subject, f"after {len(fault.struck)} statements failed once each{raised}")
        if not raised and not fault.passed_over:
            return len(fault.struck)
    raise AssertionError(f"a verb of more than {MOST_STATEMENTS} statements")


class _EachOnce:
    """Raises at each place once: that statement, for the n-th time after so many COMMITs and the last error."""

    def __init__(self, only: Callable[[str], bool], in_a_row: int) -> None:
        self.only, self.in_a_row = only, in_a_row
        self.struck: set[tuple[int, str, str, int]] = set()
        self.prepared()

    def prepared(self) -> None:
        """On new rows."""
        self.commits, self.left, self.passed_over = 0, self.in_a_row, False
        self.begun()

    def begun(self) -> None:
        self._times: Counter[tuple[str, str]] = Counter()

    def __call__(self, number: int, when: str, sql: str) -> None:
        if when == BEFORE or not in_transaction(sql):
            self._strike(when, SAVEPOINT.sub("", sql))
        if when == AFTER and commits_something(sql):
            self.commits, self.left = self.commits + 1, self.in_a_row
            self.begun()

    def _strike(self, when: str, sql: str) -> None:
        if not self.only(sql):
            return
        self._times[when, sql] += 1
        place = self.commits, when, sql, self._times[when, sql]
        if place in self.struck:
            return
        if self.left == 0:
            self.passed_over = True
            return
        self.struck.add(place)
        self.left -= 1
        self.begun()
        if when == AFTER:
            self.commits += commits_something(sql)
        raise OperationalError("database is locked")


def _raised(verb: Act, fault: _EachOnce) -> str:
    fault.begun()
    try:
        with each_statement(fault):
            verb()
    except OperationalError as error:
        return f", which the verb passed on ({error})"
    return ""
