"""How much of what could be tried a run of the tests tries.

Every test runs each time, on each database that it is about. Where one could go on for hours, or kills at each of a
hundred places, a developer's run takes some of them, drawn anew each time; with CI=true all are taken, on SQLite, and
on PostgreSQL those that differ there. CASES_IN_FULL=1, on a quiet machine, also gives the longest cases their full
length.
"""

from __future__ import annotations

import os
import random
import secrets

IN_CI = os.environ.get("CI") == "true"
IN_FULL = os.environ.get("CASES_IN_FULL") == "1"
THOROUGH = IN_CI or IN_FULL
ON_POSTGRES = bool(os.environ.get("DATABASE_URL"))

# The most kills of `crash_everywhere`, spread over the boundaries with the first and the last among them; None: each.
# They are the same on PostgreSQL, whose own are its statements (tests/runs/test_faults.py).
KILLS = (10 if ON_POSTGRES else None) if THOROUGH else 4

SEED = os.environ.get("TEST_SEED") or str(secrets.randbelow(1_000_000))


def dice(name: str) -> random.Random:
    """What is drawn for that name. TEST_SEED=<what was printed> draws the same again."""
    print(f"TEST_SEED={SEED}")
    return random.Random(f"{SEED} {name}")
