"""What the calls of a run are saying, as its page shows it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from runs.models import LiveText, Run

MOST_SHOWN = 2  # at a time, the newest
# What moves or hides other text: controls but tab and line end, and what turns the direction of what follows.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@dataclass(frozen=True)
class Shown:
    """`key` is the call's place on the page: the same while the text grows, so that the page can morph it."""

    key: int
    name: str
    text: str
    letters: int
    cut: bool


def live_texts(run: Run) -> list[Shown]:
    if run.ended or run.leased_by is None:
        return []
    rows = LiveText.objects.filter(run=run).under_way().order_by("-pk")[:MOST_SHOWN]
    return [Shown(row.pk, row.name, UNSEEN.sub("", row.text), row.letters, row.cut) for row in rows][::-1]
