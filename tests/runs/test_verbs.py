"""E15: the tests that kill and fail at each statement forget no verb: whatever opens a transaction is in them."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from runs.testing import moved_clock
from tests.runs import faulty_archive, faulty_blobs, faulty_schedules, test_faults
from tests.runs.driving import registered
from tests.runs.faulty_rows import forgotten
from tests.runs.faulty_rows import registered as known

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

RUNS = Path(__file__).resolve().parents[2] / "runs"
ELSEWHERE = {
    "chores.py Chore.take": "one UPDATE; tests/runs/test_chores.py",
    "engine/shift.py Shift._beat_once": "an UPDATE of the worker's own row, and a look at it",
    "engine/saying.py Rounds.write": "texts beside the record; tests/runs/test_live_texts.py",
    "engine/sql.py heartbeat": "one UPDATE; tests/runs/test_time_limits.py",
    "engine/sql.py _watched_transaction": "what others open their transactions with",
}


def test_every_function_that_opens_a_transaction_is_killed_and_failed_at_each_statement():
    opening = {f"{path.relative_to(RUNS)} {name}" for path in files() for name in opens(path)}
    assert len(opening) > 30, opening
    missing = opening - done() - ELSEWHERE.keys()
    assert not missing, f"add a verb to tests/runs/faulty_*.py for {sorted(missing)}"
    assert ELSEWHERE.keys() <= opening, "what is not there any more is to be struck off"


def files() -> Iterator[Path]:
    yield RUNS / "chores.py"
    for room in ("engine", "models"):
        yield from sorted((RUNS / room).glob("*.py"))


def opens(path: Path) -> Iterator[str]:
    """The outermost functions, as Class.method or name, in which a transaction begins."""
    tree = ast.parse(path.read_text())
    for top in tree.body:
        members = top.body if isinstance(top, ast.ClassDef) else [top]
        for each in members:
            if isinstance(each, ast.FunctionDef) and any(map(begins, ast.walk(each))):
                yield f"{top.name}.{each.name}" if isinstance(top, ast.ClassDef) else each.name


def begins(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "atomic"
    return isinstance(node, ast.Name) and node.id == "brief_transaction"


def done() -> set[str]:
    """What the verbs of those tests come through when nothing disturbs them."""
    seen: set[str] = set()

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(RUNS)):
            name = frame.f_code.co_qualname.partition(".<locals>")[0]
            seen.add(f"{Path(frame.f_code.co_filename).relative_to(RUNS)} {name}")

    def watch(verbs: dict[str, Callable[[], Any]]) -> None:
        for make in verbs.values():
            with moved_clock():
                _, act = make()
                sys.setprofile(see)
                try:
                    act()
                finally:
                    sys.setprofile(None)

    known()
    try:
        watch(test_faults.VERBS)
    finally:
        forgotten()
    with registered(faulty_blobs.plain, faulty_schedules.daily, faulty_archive.small):
        watch(faulty_blobs.VERBS)
        watch(faulty_schedules.VERBS)
        watch(faulty_archive.VERBS)
    return seen
