"""How the approvals of a selection differ: what is the same in all of them is told once, the rest side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from approvals.facts import Fact
from runs.pages.words import person_name

if TYPE_CHECKING:
    from approvals.bulk import Item

COLUMNS = 4
SHORT = 14
ADDRESS = 32
_ADDRESS = re.compile(r"[^\s@,;]+@[^\s@,;]+")
SHOWN = 120  # characters of a value in the table; all of it is one press away


@dataclass(frozen=True, slots=True)
class Cell:
    label: str
    text: str

    @property
    def is_cut(self) -> bool:
        return len(self.text) > SHOWN

    @property
    def is_short(self) -> bool:
        """A number, a name, a code: broken in two it would be read wrong."""
        return len(self.text) <= SHORT or self.is_address

    @property
    def is_address(self) -> bool:
        """One e-mail address of usual length."""
        return len(self.text) <= ADDRESS and _ADDRESS.fullmatch(self.text) is not None


@dataclass(frozen=True, slots=True)
class Row:
    """`cells` stand under the columns of the table; `facts` are all that is asked of this one."""

    item: Item
    cells: list[Cell]
    facts: list[Fact]


@dataclass(frozen=True, slots=True)
class Compared:
    same: list[Cell]
    columns: list[str]
    differing: list[str]  # also what found no column
    rows: list[Row]


def compared(items: Sequence[Item]) -> Compared:
    """What is left out anyway stands in the list, but no difference is made by it."""
    told = [_told(item) for item in items]
    measured = [each for item, each in zip(items, told, strict=True) if not item.refused] or told
    labels = list(dict.fromkeys(label for each in measured for label in each))
    values = {label: [each.get(label) for each in measured] for label in labels}
    same = [label for label in labels if len(measured) > 1 and len(set(values[label])) == 1]
    differing = [label for label in labels if label not in same]
    columns = _columns(differing, values)
    return Compared(
        same=[Cell(label, measured[0][label]) for label in same],
        columns=columns,
        differing=differing,
        rows=[
            Row(item, [Cell(label, each.get(label, "–")) for label in columns], item.page.facts)
            for item, each in zip(items, told, strict=True)
        ],
    )


def _told(item: Item) -> dict[str, str]:
    """What one approval says, by label; equal labels get a number, as a payload may call itself Graph."""
    run, page = item.approval.run, item.page
    whom = run.on_behalf_of or run.created_by
    own = {
        _("Graph"): item.approval.graph,
        _("For"): person_name(whom) if whom else "–",
        _("Tool"): page.effect.tool or "–",
    }
    seen = Counter(own.keys())
    told = {}
    for fact in page.facts:
        seen[fact.label] += 1
        label = fact.label if seen[fact.label] == 1 else f"{fact.label} ({seen[fact.label]})"
        told[label] = fact.text
    return told | {label: text for label, text in own.items() if text != "–"}


def _columns(differing: Sequence[str], values: dict[str, list[str | None]]) -> list[str]:
    """Those that most of them have: of what is asked before where it comes from, and what is short before what is long.

    They stand in their own order.
    """

    def standing(label: str) -> tuple[bool, bool]:
        return label in (_("Graph"), _("For"), _("Tool")), max(map(len, filter(None, values[label]))) > SHOWN

    common = [
        label
        for label in differing
        if sum(value is not None for value in values[label]) * 2 >= len(values[label])
    ]
    chosen = set(sorted(common, key=standing)[:COLUMNS])
    return [label for label in common if label in chosen]
