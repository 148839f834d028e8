"""The lifecycle of a run, and nothing else: which status may follow which (docs/lifecycle.md)."""

from __future__ import annotations

CREATED = "created"
RUNNING = "running"
WAITING = "waiting"
RETRYING = "retrying"
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"

STATUSES = (CREATED, RUNNING, WAITING, RETRYING, COMPLETED, FAILED, CANCELLED)
LIVE = (CREATED, RUNNING, WAITING, RETRYING)
ENDED = (COMPLETED, FAILED, CANCELLED)

TRANSITIONS: dict[str, frozenset[str]] = {
    CREATED: frozenset({RUNNING, FAILED, CANCELLED}),
    RUNNING: frozenset({RUNNING, WAITING, RETRYING, COMPLETED, FAILED, CANCELLED}),
    WAITING: frozenset({RUNNING, CANCELLED}),
    RETRYING: frozenset({RUNNING, FAILED, CANCELLED}),
    FAILED: frozenset({RUNNING, CANCELLED}),
    CANCELLED: frozenset({RUNNING}),
    COMPLETED: frozenset(),
}

ERROR_KINDS = (
    "permanent",
    "exhausted",
    "poison",
    "loop_limit",
    "diverged",
    "bad_state",
    "rejected",
    "expired",
)


def may_follow(before: str, after: str) -> bool:
    return after in TRANSITIONS[before]
