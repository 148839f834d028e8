"""What a run has spent, added up from what `run.spend` recorded."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.core import spending
from runs.models import LedgerEntry

PLACES = Decimal("0.0001")  # of a dollar; a call of a model costs less than a cent


class Cost(spending.Spent):
    @property
    def lines(self) -> list[str]:
        """What it was in words, the money first; neither where it is nothing."""
        said = []
        if self.usd:
            rounded = self.usd.quantize(PLACES if abs(self.usd) < 1 else Decimal("0.01"))
            said.append(_("%(usd)s USD") % {"usd": formats.number_format(rounded, force_grouping=True)})
        if self.tokens:
            told = ngettext("%(tokens)s token", "%(tokens)s tokens", self.tokens)
            said.append(told % {"tokens": formats.number_format(self.tokens, force_grouping=True)})
        return said


def spent(entries: Iterable[LedgerEntry]) -> Cost:
    total = spending.Spent()
    for entry in entries:
        if entry.kind == "value" and entry.name == spending.NAME and entry.status == "done":
            total += spending.told_by(entry.result or "null")
    return Cost(total.tokens, total.usd)
