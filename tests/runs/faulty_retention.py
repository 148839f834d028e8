"""Keeping a run's family and letting it go again; beside faulty_verbs.py. Erasing is in faulty_blobs.py."""

from __future__ import annotations

from runs import start
from tests.runs.faulty_rows import plain
from tests.runs.faulty_verbs import Made, of


@of("retention")
def keep() -> Made:
    run = start(plain, {})
    return str(run.pk), lambda: run.keep("a court asked", "iris")


@of("retention")
def release_keep() -> Made:
    run = start(plain, {})
    run.keep("a court asked", "iris")
    return str(run.pk), lambda: run.release_keep("it is over", "iris")
