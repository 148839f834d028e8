"""Makes the rows of the whole gallery."""

from __future__ import annotations

from typing import Any

from tests.gallery.lists import admin_pages, list_pages
from tests.gallery.lives import run_pages
from tests.gallery.people import own_pages, people, problem_pages, sessions
from tests.gallery.questions import approval_pages


def fill() -> dict[str, Any]:
    """{"pages": {name: Shown}, "sessions": {person: cookie}}"""
    known = people()
    pages = {
        **approval_pages(known),
        **run_pages(known["pm"]),
        **list_pages(known["pm"]),
        **own_pages(known),
        **admin_pages(),
        **problem_pages(),
    }
    return {"pages": pages, "sessions": sessions({shown.person for shown in pages.values()})}
