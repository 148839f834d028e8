"""The tools of the refund agent: what was paid, and paying it back once.

Environment: REFUND_PROVIDER_URL, the address of the payment provider (examples/refunds/provider.py is one).
"""

from __future__ import annotations

import os
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any  # what is sent and answered is any JSON

from pydantic import BaseModel, Field

from runs import Permanent, Retry, tool

LATER = {408, 425, 429}  # refusals that pass

Number = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[\w-]+$", title="Order")]
Amount = Annotated[Decimal, Field(gt=0, max_digits=9, decimal_places=2, title="Amount in EUR")]
Reason = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2_000,
        title="Reason",
        description="Why it is fair, so that a colleague can check it.",
        json_schema_extra={"format": "textarea"},
    ),
]


class Order(BaseModel):
    """What was bought, and what was paid for it."""

    order: str
    item: str
    paid: Decimal
    currency: str


@tool(kind="read", limit=timedelta(seconds=10))
def find_order(order: Number, *, timeout: float = 10.0) -> Order:
    """Look the order up: what was bought, and how much was paid."""
    return Order.model_validate(_ask("GET", f"/orders/{order}", timeout))


@tool(kind="write", limit=timedelta(seconds=10), retry=Retry(attempts=5), honours_key=True)
def pay_back(
    order: Number, amount: Amount, reason: Reason, *, idempotency_key: str, timeout: float = 10.0
) -> str:
    """Pay money back for the order, at most what was paid."""
    asked = {"order": order, "amount": f"{amount:.2f}"}
    return _ask("POST", "/refunds", timeout, json=asked, headers={"Idempotency-Key": idempotency_key})["id"]


def _ask(method: str, path: str, timeout: float, **request: Any) -> dict[str, Any]:
    """The provider's answer. A refusal is Permanent, in its own words; other failures the engine knows by itself."""
    import httpx  # here, for most processes that know the graph never ask

    with httpx.Client(base_url=_provider(), timeout=timeout) as client:
        answer = client.request(method, path, **request)
    if answer.is_client_error and answer.status_code not in LATER:
        raise Permanent(f"The payment provider refuses: {answer.json()['error']}")
    return answer.raise_for_status().json()


def _provider() -> str:
    url = os.environ.get("REFUND_PROVIDER_URL", "").strip()
    if not url:
        raise Permanent("REFUND_PROVIDER_URL is not set: there is no payment provider. `bin/up` starts one.")
    return url
