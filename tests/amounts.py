"""How much of what could be tried a run of the tests tries.

Every test runs each time. Where one kills at each of a hundred places, or tries a hundred requests that are alike, a
developer's run takes some of them, drawn anew each time; and each test that is about both databases runs on one that is
drawn. With CI=true all tests run on both, and whatever a kill can leave behind is tried: every statement of what each
run does, of the other verbs those beside a COMMIT and a few more, and every second boundary of each graph on SQLite
(docs/adr/0042); on PostgreSQL six kills of each graph. CASES_IN_FULL=1, on a quiet machine, takes all statements and
boundaries, and gives the longest cases their full length.
"""

from __future__ import annotations

import os
import random
import secrets
from collections.abc import Sequence
from math import ceil
from typing import TypeVar

Case = TypeVar("Case")

IN_CI = os.environ.get("CI") == "true"
IN_FULL = os.environ.get("CASES_IN_FULL") == "1"
THOROUGH = IN_CI or IN_FULL
ON_POSTGRES = bool(os.environ.get("DATABASE_URL"))

SEED = os.environ.get("TEST_SEED") or str(secrets.randbelow(1_000_000))
EVERY_SECOND = range(1 + random.Random(f"{SEED} every second").randrange(2), 5_000, 2)

# The kills of `crash_everywhere`: with CI=true on SQLite every second boundary, beginning with the first or the second
# as is drawn. They come in pairs, after one act and before the next, and between those two nothing is written down. On
# PostgreSQL, where they are the same and its own are its statements (tests/runs/test_faults.py), a few, spread.
KILLS = None if IN_FULL else (6 if ON_POSTGRES else EVERY_SECOND) if THOROUGH else 3


DRAWN = (
    os.environ.get("TEST_DRAWN") == "1"
)  # bin/test runs the tests on the other database too, with this seed


def is_drawn_elsewhere(test: str) -> bool:
    """Whether that test, which either database will do for, fell to the other one."""
    return DRAWN and (random.Random(f"{SEED} {test}").random() < 0.5) == ON_POSTGRES


def drawn_of_list(test: str, cases: Sequence[Case]) -> list[Case]:
    """The cases of a test marked `long_list` that this run takes: in a developer's bin/test a quarter of them."""
    if not DRAWN:
        return list(cases)
    return random.Random(f"{SEED} {test}").sample(cases, ceil(len(cases) / 4))


def dice(name: str) -> random.Random:
    """What is drawn for that name. TEST_SEED=<what was printed> draws the same again."""
    print(f"TEST_SEED={SEED}")
    return random.Random(f"{SEED} {name}")


def some_of(name: str, cases: Sequence[Case], share: float = 1 / 5) -> list[Case]:
    """All of them, or in a developer's run that share, drawn under this name, at least one; in their order."""
    if THOROUGH:
        return list(cases)
    drawn = dice(name).sample(range(len(cases)), min(len(cases), max(1, ceil(len(cases) * share))))
    return [cases[place] for place in sorted(drawn)]


def examples(many: int) -> int:
    """How many Hypothesis is to try of so many; in a developer's run, which is one of many, fewer."""
    return many if THOROUGH else max(8, many // 8)
