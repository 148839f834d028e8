"""What a run has spent, added up from what `run.spend` recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.core import codec
from runs.core.errors import DurableError
from runs.models import LedgerEntry

NAME = "spend"
PLACES = Decimal("0.0001")  # of a dollar; a call of a model costs less than a cent


@dataclass(frozen=True, slots=True)
class Spent:
    tokens: int
    usd: Decimal

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


def spent(entries: Iterable[LedgerEntry]) -> Spent:
    """Of those entries that tell of it; what is not of that form is somebody's own value of the same name."""
    tokens, usd = 0, Decimal(0)
    for entry in entries:
        if entry.kind == "value" and entry.name == NAME and entry.status == "done":
            more_tokens, more_usd = _told(entry.result or "null")
            tokens, usd = tokens + more_tokens, usd + more_usd
    return Spent(tokens, usd)


def _told(result: str) -> tuple[int, Decimal]:
    nothing = 0, Decimal(0)
    try:
        value = codec.loads(result)
        if not isinstance(value, dict) or value.keys() != {"tokens", "usd"}:
            return nothing
        tokens, usd = int(value["tokens"]), Decimal(str(value["usd"]))
    except (DurableError, InvalidOperation, TypeError, ValueError):
        return nothing
    return (tokens, usd) if usd.is_finite() else nothing
