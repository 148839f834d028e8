"""Static files as production serves them: under names with a hash."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from tests.conftest import ROOT

NAMED = re.compile(r"{% static ['\"]([^'\"]+)['\"] %}")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    """Name to hashed name, after collectstatic; it fails where a file names one that is not there."""
    from django.test import override_settings

    root = tmp_path_factory.mktemp("static-root")
    storage = {"BACKEND": "durableweb.static_names.HashedNames"}
    with override_settings(STATIC_ROOT=root, STORAGES={"staticfiles": storage}):
        call_command("collectstatic", interactive=False, verbosity=0)
    names = json.loads((root / "staticfiles.json").read_text())["paths"]
    return {name: root / hashed for name, hashed in names.items()}


def test_every_file_that_a_template_names_is_collected(manifest):
    named = {
        name
        for template in (ROOT / "templates").rglob("*.html")
        for name in NAMED.findall(template.read_text())
    }
    assert named
    assert named - set(manifest) == set()


def test_every_style_sheet_of_ours_has_a_hashed_name(manifest):
    ours = {path.relative_to(ROOT / "static").as_posix() for path in (ROOT / "static").rglob("*.css")}
    assert ours <= set(manifest)
    assert all(manifest[name].name != Path(name).name for name in ours)


def test_our_modules_import_each_other_under_hashed_names(manifest):
    """After a deploy no browser puts a kept old module beside a new one."""
    modules = [manifest[name] for name in manifest if name.startswith("js/") and name.endswith(".js")]
    imported = [
        module.parent / name
        for module in modules
        for name in re.findall(r'^import .* from "(.+)";$', module.read_text(), re.MULTILINE)
    ]
    assert len(imported) > 5
    assert {path.resolve() for path in imported} <= {path.resolve() for path in manifest.values()}
