"""Who may import whom: durableweb -> approvals -> runs -> runs.core. import-linter checks the rest."""

from __future__ import annotations

import grimp
import pytest


@pytest.fixture(scope="module")
def imports():
    return grimp.build_graph("durableweb", "approvals", "runs", "examples", cache_dir=None)


def imported_by(imports, package):
    """module -> what it imports from outside its own package."""
    inside = {package, *imports.find_descendants(package)}
    return {
        module: outside
        for module in sorted(inside)
        if (outside := imports.find_modules_directly_imported_by(module) - inside)
    }


def test_the_core_imports_nothing_else_of_ours(imports):
    assert imported_by(imports, "runs.core") == {}


def test_examples_import_only_the_public_names_of_runs(imports):
    public = {"runs", "runs.agent", "runs.model_endpoint"}  # what docs/reference.md lists
    assert {name for names in imported_by(imports, "examples").values() for name in names} <= public


def test_runs_knows_nobody_above_it(imports):
    assert imported_by(imports, "runs") == {}


def test_approvals_know_only_runs(imports):
    outside = {name for names in imported_by(imports, "approvals").values() for name in names}
    assert {name.partition(".")[0] for name in outside} <= {"runs"}
