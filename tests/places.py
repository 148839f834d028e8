"""Where the tests of a mark are, so that bin/test need not import all the others to find them."""

from __future__ import annotations

PLACES = {
    "acceptance": ("tests/acceptance", "tests/durableweb/test_up.py"),
    "browser": ("tests/browser", "tests/acceptance"),
    "smoke": (
        "tests/durableweb/test_checks.py",
        "tests/durableweb/test_policy.py",
        "tests/runs/test_steps.py",
    ),
}
