"""Before the deploy."""

from __future__ import annotations

from typing import Any

from runs import END, Graph
from tests.acceptance.deploys.parcel import Parcel, enter

parcel = Graph("shipment", version=1, state=Parcel, operators="ops")


@parcel.node(then=("carry", END))
def carry(run: Any, state: Parcel) -> str:
    enter(state, run, 1)
    return END if len(state.by) == state.rounds else "carry"
