"""Research without a network: what an installed Python distribution says about itself."""

from __future__ import annotations

import difflib
import importlib.metadata
import re
from datetime import timedelta
from email.message import Message
from typing import Annotated

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from pydantic import BaseModel, Field

from examples.plain_text import paragraphs, printable
from runs import Permanent, tool

README_CHARACTERS = 1_800
READ_CHARACTERS = 20_000  # of the README, to find those in
NAME = re.compile(r"^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$")
HOME_LABELS = (
    "homepage",
    "home",
    "source",
    "source code",
    "repository",
    "code",
    "github",
    "documentation",
    "docs",
)
NOT_STATED = "not stated"


class Distribution(BaseModel):
    """What one installed distribution says in its own metadata."""

    name: str
    version: str
    summary: str
    licence: str
    requires: list[str]  # names it needs in this environment, without its extras
    python: str  # the versions of Python it runs on, as it writes them
    home_page: str
    readme: list[str]  # the first paragraphs of its README, without markup


@tool(kind="read", limit=timedelta(seconds=10))
def look_up(vendor: Annotated[str, Field(min_length=1, max_length=200)]) -> Distribution:
    """Read the metadata and README of the installed Python distribution named `vendor`.

    Raises Permanent if no such distribution is installed.
    """
    metadata = _metadata(vendor)
    name = metadata.get("Name") or vendor
    return Distribution(
        name=name,
        version=metadata.get("Version") or NOT_STATED,
        summary=printable(metadata.get("Summary") or NOT_STATED),
        licence=_licence(metadata),
        requires=_requires(vendor),
        python=metadata.get("Requires-Python") or NOT_STATED,
        home_page=_home_page(metadata),
        readme=_readme(metadata),
    )


def _metadata(vendor: str) -> Message:
    if NAME.match(vendor):
        try:
            return importlib.metadata.metadata(vendor)
        except importlib.metadata.PackageNotFoundError:
            pass
    raise Permanent(
        f"No installed Python distribution is named {vendor!r}.{_similar(vendor)} "
        "Vendors are names of installed distributions; see them with: .venv/bin/python -m pip list"
    )


def _similar(vendor: str) -> str:
    installed = {canonicalize_name(found.name) for found in importlib.metadata.distributions() if found.name}
    close = difflib.get_close_matches(canonicalize_name(vendor), sorted(installed), n=3)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _licence(metadata: Message) -> str:
    """The SPDX expression if there is one, else the short licence field, else the trove classifiers."""
    if expression := metadata.get("License-Expression"):
        return expression
    written = (metadata.get("License") or "").strip()
    if written and written.upper() != "UNKNOWN" and "\n" not in written and len(written) <= 80:
        return written
    classifiers = metadata.get_all("Classifier") or []
    named = [line.split(" :: ")[-1] for line in classifiers if line.startswith("License :: ")]
    return ", ".join(dict.fromkeys(named)) or (
        printable(written.splitlines()[0])[:80] if written else NOT_STATED
    )


def _requires(vendor: str) -> list[str]:
    names: dict[str, None] = {}
    for line in importlib.metadata.requires(vendor) or []:
        try:
            requirement = Requirement(line)
        except InvalidRequirement:  # old metadata holds lines that today's grammar refuses
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            names[canonicalize_name(requirement.name)] = None
    return sorted(names)


def _home_page(metadata: Message) -> str:
    links = [line.partition(",") for line in metadata.get_all("Project-URL") or []]
    by_label = {label.strip().lower(): url.strip() for label, _, url in links}
    for label in HOME_LABELS:
        if label in by_label:
            return by_label[label]
    home = metadata.get("Home-page") or ""
    return home if home and home.upper() != "UNKNOWN" else next(iter(by_label.values()), NOT_STATED)


def _readme(metadata: Message) -> list[str]:
    body = metadata.get_payload()
    described = metadata.get("Description") or (body if isinstance(body, str) else "")
    kept: list[str] = []
    room = README_CHARACTERS
    for paragraph in paragraphs(printable(described[:READ_CHARACTERS])):
        if len(paragraph) > room:
            break
        kept.append(paragraph)
        room -= len(paragraph)
    return kept
