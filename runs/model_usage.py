"""What a reply took, in tokens and money: as its endpoint tells it, and estimated where it tells nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any  # whatever the endpoint wrote

from runs.language_model import Wish

MILLION = 1_000_000
BYTES_A_TOKEN = (
    3  # of UTF-8: about four make a token of English, and three one of Chinese; rather too many than too few
)

Prices = tuple[Decimal | str, Decimal | str] | None


@dataclass(frozen=True)
class Usage:
    """`estimated`: the tokens, in whole or in part. `priced`: the money is known; else it counts as none."""

    tokens: int
    usd: Decimal
    estimated: bool
    priced: bool


def usage_of(
    told: Any, request: Mapping[str, Any], text: str, wishes: list[Wish], usd_per_million: Prices
) -> Usage:
    """From the `usage` of an answer. Of the tokens in and out, what is not told is estimated by the length of what was
    sent and of what came: a token for each three bytes, and at least one. Money is as told, else by the prices."""
    told = told if isinstance(told, dict) else {}
    tokens_in, tokens_out = _count(told.get("prompt_tokens")), _count(told.get("completion_tokens"))
    total = _count(told.get("total_tokens"))
    estimated = not total and not (tokens_in and tokens_out)
    if estimated:
        tokens_in = tokens_in or _estimate(request["messages"], *(request.get("tools") or ()))
        tokens_out = tokens_out or _estimate(text, *((wish.name, wish.arguments) for wish in wishes))
    tokens = total or tokens_in + tokens_out
    if (cost := _cost(told.get("cost"))) is not None:
        return Usage(tokens, cost, estimated, priced=True)
    if usd_per_million is None:
        return Usage(tokens, Decimal(0), estimated, priced=False)
    price_in, price_out = map(Decimal, usd_per_million)
    if not tokens_in and not tokens_out:  # only their sum is told: at the higher price
        return Usage(tokens, tokens * max(price_in, price_out) / MILLION, estimated, priced=True)
    return Usage(tokens, (tokens_in * price_in + tokens_out * price_out) / MILLION, estimated, priced=True)


def _estimate(*parts: Any) -> int:
    texts = [part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in parts]
    written = sum(len(text.encode(errors="replace")) for text in texts)
    return max(-(-written // BYTES_A_TOKEN), 1)


def _cost(told: object) -> Decimal | None:
    try:
        cost = Decimal(str(told))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and cost >= 0 else None


def _count(told: object) -> int:
    return told if type(told) is int and told >= 0 else 0
