"""What a search of the inbox finds: three letters or more wherever they stand, fewer where a word begins.

One or two letters stand in nearly every text, and no index knows them; words that begin with them are what is meant.
On PostgreSQL the lookups made here are those for which approvals/search_index.py has indexes. SQLite has none, and
would tell capitals apart beyond A to Z: there Python folds the texts.
"""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

from django.db import connection
from django.db.models import CharField, Func, Q, TextField, Value
from django.db.models.functions import Cast, Concat, Replace, Upper

if TYPE_CHECKING:
    from approvals.models.inbox import ApprovalQuerySet

COLUMNS = ("title", "body", "graph")
COLUMNS_APART = ("title", Value("\n"), "body", Value("\n"), "graph")
SHORTEST_ID = 4
SHORTEST_ANYWHERE = 3
# What a word begins after. ASCII only: from a pattern with other letters PostgreSQL takes no trigrams.
_BEGINS = r"""(^|[-\s#(\["'/_.:,;*+=@&$>|~])"""
WHOLE = Concat(*COLUMNS_APART, output_field=TextField())
FOLDED = Func(WHOLE, function="FOLDED", output_field=TextField())  # durableweb/sqlite/base.py
PLAIN_ID = Replace(Cast("id", CharField()), Value("-"), Value(""))


def matching(rows: ApprovalQuerySet, text: str) -> ApprovalQuerySet:
    """Those that have `text` in question, reason or graph, or whose id begins or ends with it."""
    if len(text) < SHORTEST_ANYWHERE and text.isascii():
        begins = _BEGINS + re.escape(text.upper())
        rows = rows.alias(**{f"upper_{name}": Upper(name) for name in COLUMNS})
        return rows.filter(_any({f"upper_{name}__regex": begins for name in COLUMNS}))
    if connection.vendor != "postgresql":
        return met(rows, text)
    words = _any({f"{name}__icontains": text for name in COLUMNS})
    digits = _digits(text)
    if not digits:
        return rows.filter(words)
    return rows.alias(plain_id=PLAIN_ID).filter(words | _called(digits))


def met(rows: ApprovalQuerySet, text: str) -> ApprovalQuerySet:
    """As `matching`, for who walks rows in their order: so written that no index of texts is used instead."""
    if len(text) < SHORTEST_ANYWHERE and text.isascii():
        begins = _BEGINS + re.escape(text.upper())
        return rows.alias(all_text=Upper(WHOLE)).filter(all_text__regex=begins)
    if connection.vendor == "postgresql":
        whole, words = WHOLE, Q(all_text__icontains=text)
    else:
        whole, words = FOLDED, Q(all_text__contains=text.casefold())
    digits = _digits(text)
    if not digits:
        return rows.alias(all_text=whole).filter(words)
    return rows.alias(all_text=whole, plain_id=PLAIN_ID).filter(words | _called(digits))


def called(rows: ApprovalQuerySet, text: str) -> ApprovalQuerySet:
    """Those whose id begins or ends with `text` (hex digits, hyphens ignored): people copy either end."""
    digits = _digits(text)
    return rows.alias(plain_id=PLAIN_ID).filter(_called(digits)) if digits else rows.none()


def _any(lookups: dict[str, str]) -> Q:
    return Q(*lookups.items(), _connector=Q.OR)


def _digits(text: str) -> str:
    """The hex digits of a part of an id, or "" where `text` is none."""
    digits = text.strip().replace("-", "").lower()
    return "" if not SHORTEST_ID <= len(digits) <= 32 or set(digits) - set("0123456789abcdef") else digits


def _called(digits: str) -> Q:
    """Over rows with `plain_id`."""
    first, last = uuid.UUID(digits.ljust(32, "0")), uuid.UUID(digits.ljust(32, "f"))
    return Q(id__gte=first, id__lte=last) | Q(plain_id__endswith=digits)
