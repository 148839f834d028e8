"""The order in which people read arguments: who gets it, how much, what it is called, the long text, the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any  # payloads are any JSON

RECIPIENTS = (
    *("to", "cc", "bcc", "recipient", "recipients", "email", "emails", "phone", "channel", "customer"),
    *("account", "iban", "payee"),
)
AMOUNTS = ("amount", "total", "price", "sum", "cost", "quantity", "currency")
HEADINGS = ("subject", "title", "name", "question", "summary")
LONG_TEXT = 80

_RANKS = {
    name: rank * 100 + place
    for rank, names in enumerate((RECIPIENTS, AMOUNTS, HEADINGS))
    for place, name in enumerate(names)
}
_TEXT, _REST = 900, 901


def is_recipient_or_amount(name: str) -> bool:
    return _RANKS.get(name.casefold(), _REST) < 200


def in_order(names: Sequence[str], declared: Sequence[str], payload: Mapping[str, Any]) -> list[str]:
    """The names as their author ordered them; where only the alphabet did, as people read them.

    The ledger keeps objects sorted by name, so that an author's order is known only if it differs from that.
    """
    if list(declared) != sorted(declared):
        known = [name for name in declared if name in names]
        return known + [name for name in names if name not in declared]
    if list(names) != sorted(names) and not declared:
        return list(names)
    return sorted(names, key=lambda name: _rank(name, payload.get(name)))


def _rank(name: str, value: Any) -> int:
    is_long = isinstance(value, str) and (len(value) > LONG_TEXT or "\n" in value)
    return _RANKS.get(name.casefold(), _TEXT if is_long else _REST)
