"""Where the tests of a mark are, and the parts in which the others run beside each other.

So bin/test need not import all to find a few. And a process that forks and kills a thousand times is to be small: what
a fork costs is paid by the memory of who forks.
"""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

TESTS = Path(__file__).resolve().parent
PLACES = {
    "acceptance": ("tests/acceptance", "tests/durableweb/test_up.py"),
    "browser": ("tests/browser", "tests/acceptance"),
    "smoke": (
        "tests/durableweb/test_checks.py",
        "tests/durableweb/test_policy.py",
        "tests/runs/test_steps.py",
    ),
}
# The first part of which a pattern fits has the file; the last takes what is left. Those that take longest come first.
PARTS = {
    "Kills": (
        "tests/*/test_*faults.py",
        "tests/*/test_*_crash.py",
        "tests/runs/test_any_order.py",
        "tests/runs/test_crashtest.py",
        "tests/runs/test_kit.py",
        "tests/runs/test_mutations.py",
    ),
    "Engine": ("tests/core/*", "tests/protocol/*", "tests/runs/*"),
    "Approvals": ("tests/approvals/*",),
    "Pages, commands, documents": ("*",),
}
OF_THEIR_OWN = ("tests/acceptance/*", "tests/browser/*")  # lanes of real processes and of Chromium


def parts() -> dict[str, list[str]]:
    """The files of each part; each file of tests but those of OF_THEIR_OWN is in one of them."""
    found: dict[str, list[str]] = {part: [] for part in PARTS}
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS.parent).as_posix()
        if not _fits(name, OF_THEIR_OWN):
            found[next(part for part, patterns in PARTS.items() if _fits(name, patterns))].append(name)
    return found


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)
