"""A deploy in which somebody forgot to raise the version."""

from __future__ import annotations

from typing import Any

from runs import Graph
from tests.acceptance.deploys.parcel import Parcel

parcel = Graph("shipment", version=1, state=Parcel, operators="ops")


@parcel.node
def drop(run: Any, state: Parcel) -> None: ...
