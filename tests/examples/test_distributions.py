"""What is read from the metadata of distributions that are really installed, and of odd ones made for the test."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from examples.distributions import Distribution, look_up
from examples.graphs import Brief
from runs import Permanent

DEFAULTS = Brief.model_fields["vendors"].default


def installed(folder: Path, name: str, metadata: str) -> None:
    """Make a distribution that importlib.metadata finds in `folder`."""
    made = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    made.mkdir()
    (made / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}", "utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.mark.parametrize("vendor", DEFAULTS)
def test_each_default_vendor_is_installed_and_says_what_it_is(vendor):
    found = look_up.fn(vendor)

    assert found.version == importlib.metadata.version(vendor)
    assert found.summary and found.readme
    assert found.licence in ("MIT", "BSD")
    assert "django" in found.requires
    assert found.home_page.startswith("http")
    assert found.python.startswith(">=3.")


def test_a_name_is_found_however_it_is_written():
    assert look_up.fn("Django_Q2") == look_up.fn("django-q2")


def test_every_installed_distribution_can_be_read():
    names = {found.name for found in importlib.metadata.distributions()}

    read = [look_up.fn(name) for name in names]

    assert len(read) == len(names)
    assert all(Distribution.model_validate_json(one.model_dump_json()) == one for one in read)


@pytest.mark.parametrize(
    "vendor", ["no-such-thing-anywhere", "", " ", "../../etc/passwd", "a\x00b", "é", "x" * 5000]
)
def test_an_unknown_vendor_is_named_with_the_remedy(vendor):
    with pytest.raises(Permanent) as unknown:
        look_up.fn(vendor)
    assert f"No installed Python distribution is named {vendor!r}." in str(unknown.value)
    assert "python -m pip list" in str(unknown.value)


def test_a_slip_of_the_pen_gets_a_suggestion():
    with pytest.raises(Permanent, match="Did you mean django-htmx"):
        look_up.fn("djngo-htmx")


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: MIT OR Apache-2.0\nLicense: ignored\n", "MIT OR Apache-2.0"),
        ("License: BSD\nClassifier: License :: OSI Approved :: Apache Software License\n", "BSD"),
        ("License: UNKNOWN\nClassifier: License :: OSI Approved :: BSD License\n", "BSD License"),
        (
            "Classifier: License :: OSI Approved :: MIT License\n"
            "Classifier: License :: OSI Approved :: Python Software Foundation License\n",
            "MIT License, Python Software Foundation License",
        ),
        (
            "License: The Long License\n        Permission is granted\n        to everyone\n",
            "The Long License",
        ),
        ("", "not stated"),
    ],
)
def test_the_licence_is_read_from_the_best_place(folder, metadata, licence):
    installed(folder, "licence-sample", metadata)
    assert look_up.fn("licence-sample").licence == licence


def test_only_what_is_needed_here_counts_as_a_dependency(folder):
    installed(
        folder,
        "needs-sample",
        "Requires-Dist: Zeta_Lib[fast]>=2; python_version >= '3.8'\n"
        "Requires-Dist: alpha (>=1.0)\n"
        "Requires-Dist: only-on-amiga; sys_platform == 'amiga'\n"
        "Requires-Dist: pytest; extra == 'tests'\n"
        "Requires-Dist: ???\n",
    )
    assert look_up.fn("needs-sample").requires == ["alpha", "zeta-lib"]


@pytest.mark.parametrize(
    ("metadata", "home_page"),
    [
        (
            "Project-URL: Changelog, https://a.example\nProject-URL: Source, https://b.example\n",
            "https://b.example",
        ),
        ("Home-page: https://c.example\nProject-URL: Changelog, https://a.example\n", "https://c.example"),
        ("Project-URL: Changelog, https://a.example\n", "https://a.example"),
        ("Home-page: UNKNOWN\n", "not stated"),
    ],
)
def test_the_home_page_is_the_link_that_leads_home(folder, metadata, home_page):
    installed(folder, "home-sample", metadata)
    assert look_up.fn("home-sample").home_page == home_page


def test_a_long_readme_is_kept_to_its_first_paragraphs(folder):
    paragraphs = "\n\n".join(f"Paragraph {number} " + "goes on and on " * 20 + "." for number in range(50))
    installed(folder, "long-sample", f"Summary: Long\n\n{paragraphs}\n")

    readme = look_up.fn("long-sample").readme

    assert readme[0].startswith("Paragraph 0 goes on")
    assert 1 < len(readme) < 10
    assert sum(map(len, readme)) <= 1_800
