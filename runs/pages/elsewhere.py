"""Pages of other apps about a ledger entry, such as where a question is decided. Apps above this one add theirs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runs.models import LedgerEntry

# entries -> the address of each entry that has a page, by the entry's id
Addresses = Callable[[Sequence["LedgerEntry"]], dict[int, str]]

_known: list[Addresses] = []


def also(addresses: Addresses) -> None:
    if addresses not in _known:
        _known.append(addresses)


def addresses(entries: Sequence[LedgerEntry]) -> dict[int, str]:
    """What every app knows, one call an app for all entries."""
    found: dict[int, str] = {}
    for known in _known:
        found |= known(entries)
    return found
