"""Static files as production serves them: under names with a hash."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.core.management import call_command

from durableweb import stylesheet
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


def test_the_stylesheet_of_a_page_holds_all_that_it_imports_in_the_same_layers(manifest):
    said = manifest["css/app.css"].read_text()
    imports = re.findall(r'^@import url\("(.+)"\) layer\((.+)\);$', written("css/app.css"), re.MULTILINE)
    assert len(imports) > 40 and "@import" not in said
    order, *blocks = said.partition("\n@layer tokens {")
    assert order.endswith("@layer tokens, base, layout, components, utilities;\n")
    assert (
        "".join(blocks).split()
        == " ".join(f"@layer {layer} {{ {written(f'css/{name}')} }}" for name, layer in imports).split()
    )


def test_what_an_imported_stylesheet_names_is_found_from_the_one_that_holds_it(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "all.css").write_text('@import url("parts/one.css") layer(parts);\n')
    (tmp_path / "parts/one.css").write_text(
        "a { background: url(../dot.svg), url('own.svg'), url(\"data:image/png;base64,AA\"), url(/abs.svg) }\n"
    )
    assert stylesheet.whole(tmp_path / "all.css") == (
        '@layer parts {\na { background: url("dot.svg"), url("parts/own.svg"), url("data:image/png;base64,AA"), '
        "url(/abs.svg) }\n}\n"
    )


def written(name: str) -> str:
    return (ROOT / "static" / name).read_text()


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
