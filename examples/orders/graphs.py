"""An order of several parcels: the card is charged, a person says yes to a large one, each parcel is a run of its own
that waits for the carrier, and if one is lost the parcels that arrived are called back and the money is returned.

Environment: ORDER_PARTNERS_URL, the address of bank and carrier (examples/orders/partners.py is one).
"""

from __future__ import annotations

import os
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any  # `run`, and what a compensation is given

from pydantic import BaseModel, ConfigDict, Field

from examples.refunds.payments import LATER
from runs import END, Graph, Permanent, Rejected, Retry, TimedOut, tool

WITHOUT_ASKING = Decimal(500)  # EUR of an order that nobody looks at
REMIND_AFTER, LOST_AFTER = timedelta(days=3), timedelta(days=10)  # a parcel that nobody has heard of

Number = Annotated[str, Field(min_length=1, max_length=40, pattern=r"^[\w-]+$")]
Money = Annotated[Decimal, Field(gt=0, max_digits=9, decimal_places=2)]
PATIENT = Retry(attempts=5)


class Item(BaseModel):
    """What one parcel holds."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200)]
    price: Money


class Parcel(BaseModel):
    """Input: order and item. The rest is what its run does."""

    model_config = ConfigDict(extra="forbid")

    order: Number
    item: Item
    label: str = ""
    left_at: str = ""


class Order(BaseModel):
    """Input: number and items, each of which goes in a parcel of its own."""

    model_config = ConfigDict(extra="forbid")

    number: Number
    items: list[Item] = Field(min_length=1, max_length=100)
    payment: str = ""
    arrived: list[str] = []  # labels
    lost: list[str] = []  # what was said of each


# -- what the partners do


def _do(act: str, key: str, timeout: float, **about: str) -> str:
    """The number of what was done. A refusal is Permanent, in the partner's words."""
    url = os.environ.get("ORDER_PARTNERS_URL", "").strip()
    if not url:
        raise Permanent("ORDER_PARTNERS_URL is not set: there is neither bank nor carrier.")
    import httpx  # here, for most processes that know the graph never ask

    with httpx.Client(base_url=url, timeout=timeout) as client:
        answer = client.post(f"/{act}", json=about, headers={"Idempotency-Key": key})
    if answer.is_client_error and answer.status_code not in LATER:
        raise Permanent(f"{act} was refused: {answer.json()['error']}")
    return answer.raise_for_status().json()["number"]


@tool(kind="write", retry=PATIENT, honours_key=True)
def refund(result: str, idempotency_key: str, timeout: float) -> str:
    """The whole charge goes back to the card."""
    return _do("refund", idempotency_key, timeout, of=result)


@tool(kind="write", retry=PATIENT, honours_key=True, compensate=refund)
def charge(order: str, amount: Decimal, *, idempotency_key: str, timeout: float = 10.0) -> str:
    return _do("charge", idempotency_key, timeout, order=order, amount=f"{amount:.2f}")


@tool(kind="write", retry=PATIENT, honours_key=True)
def recall(result: str, idempotency_key: str, timeout: float) -> str:
    """The carrier brings it back, or does not take it."""
    return _do("recall", idempotency_key, timeout, label=result)


@tool(kind="write", retry=PATIENT, honours_key=True, compensate=recall)
def book(order: str, item: str, *, idempotency_key: str, timeout: float = 10.0) -> str:
    return _do("book", idempotency_key, timeout, order=order, item=item)


@tool(kind="write", retry=PATIENT, honours_key=True)
def call_back(label: str, *, idempotency_key: str, timeout: float = 10.0) -> str:
    """A parcel that has arrived is collected again."""
    return _do("recall", idempotency_key, timeout, label=label)


# -- one parcel

parcels = Graph("parcel", state=Parcel, viewers="pm", operators="ops", on_failure="compensate")


@parcels.node(then="follow")
def hand_over(run: Any, state: Parcel) -> None:
    state.label = run.call(book, key="book:{run_id}", order=state.order, item=state.item.name)


@parcels.node(then=END)
def follow(run: Any, state: Parcel) -> None:
    """The carrier's signal `delivered` says where; one `lost`, or silence, fails the parcel and undoes its booking."""
    said = None
    for patience in (REMIND_AFTER, LOST_AFTER - REMIND_AFTER):
        try:
            said = run.wait_for("carrier", timeout=patience)
            break
        except TimedOut:
            run.note(f"Nothing was heard of {state.label} for {patience.days} days.")
    if said is None or "left_at" not in said:
        raise Permanent(
            f"parcel {state.label} ({state.item.name}) is lost: {(said or {}).get('why', 'no word')}"
        )
    state.left_at = str(said["left_at"])


# -- the order

orders = Graph("order", state=Order, viewers="pm", operators="ops", on_failure="compensate")


@orders.node(then="approve")
def take_money(run: Any, state: Order) -> None:
    state.payment = run.call(charge, key="charge:{run_id}", order=state.number, amount=total(state))


@orders.node(then="ship")
def approve(run: Any, state: Order) -> None:
    """A large order waits for a person; a rejection, or no answer, returns the money."""
    if total(state) > WITHOUT_ASKING:
        answer = run.interrupt(
            f"Ship order {state.number} for {total(state)} EUR?",
            {"order": state.number, "items": [one.model_dump(mode="json") for one in state.items]},
            name="ship",
            reviewers="pm",
            verdicts=("approve", "reject"),
            due=timedelta(days=2),
        )
        if answer.verdict == "reject":
            raise Rejected(answer.reason, answer.by)


@orders.node(then=("complete", "undo"))
def ship(run: Any, state: Order) -> str:
    """A run for each parcel. That one is lost is a value here, not a failure."""
    ends = run.map(parcels, [{"order": state.number, "item": item} for item in state.items], at_once=20)
    state.arrived = [end.result["label"] for end in ends if end.completed]
    state.lost = [end.error for end in ends if not end.completed]
    return "undo" if state.lost else "complete"


@orders.node(then=END)
def undo(run: Any, state: Order) -> None:
    """Half an order is none: what arrived is collected, then failing returns the money."""
    for label in state.arrived:
        run.call(call_back, key=f"collect:{{run_id}}:{label}", label=label)
    raise Permanent(f"order {state.number}: {len(state.lost)} of {len(state.items)} parcels were lost")


@orders.node(then=END)
def complete(run: Any, state: Order) -> None:
    run.note(f"All {len(state.arrived)} parcels of order {state.number} have arrived.")


def total(state: Order) -> Decimal:
    return sum((item.price for item in state.items), Decimal())
