"""Named points at which the test kit may kill this process: before and after each durable act, around each call."""

from __future__ import annotations

from collections.abc import Callable

on_boundary: Callable[[str], None] | None = None  # set by runs.testing in a process that is to die


def boundary(name: str) -> None:
    if on_boundary is not None:
        on_boundary(name)
