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
        "tests/runs/test_archive.py",
        "tests/runs/test_gated_calls.py",
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
# The first that is there; without a window to draw, Chromium takes a third of the processor's time.
WITHOUT_WINDOWS = "chromium-headless-shell"
BROWSERS = (WITHOUT_WINDOWS, "chromium", "chromium-browser", "google-chrome")
OF_THEIR_OWN = ("tests/acceptance/*", "tests/browser/*")  # lanes of real processes and of Chromium
# What knows no database, or only looks at pages and files that are the same on both.
ONCE_ONLY = ("tests/core/", "tests/protocol/", "tests/examples/", "tests/durableweb/", "tests/test_docs.py")
ONCE_ONLY_NAMES = (
    "test_forms",
    "test_difference",
    "test_markdown",
    "test_look",
    "test_drawing",
    "test_headers",
    "test_schedule_admin",
    "test_limit_pages",
    "test_broken_posts",  # what a page makes of a post; the verbs behind it are tested on both
    "test_page_decisions",
    "test_routes",
)


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


def on_postgres(together: bool) -> dict[str, list[str]]:
    """The parts without the files that run once; of a developer's run those with few left `together` in one."""
    left = {part: [name for name in files if not is_of_once_only(name)] for part, files in parts().items()}
    if not together:
        return left
    long, few = list(left)[:2], list(left)[2:]
    return {part: left[part] for part in long} | {
        "; ".join(few): [name for part in few for name in left[part]]
    }


def is_of_once_only(name: str) -> bool:
    return name.startswith(ONCE_ONLY) or Path(name).stem in ONCE_ONLY_NAMES
