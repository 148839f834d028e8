"""After it: the node has another name, and the state a label."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from runs import END, Graph
from tests.acceptance.deploys.parcel import Labelled, enter

STOP = "stop"  # a file beside the diary: the migration waits until it is gone, so that it can be killed meanwhile

parcel = Graph("shipment", version=2, state=Labelled, operators="ops")


@parcel.node(then=("deliver", END))
def deliver(run: Any, state: Labelled) -> str:
    enter(state, run, 2)
    return END if len(state.by) >= state.rounds else "deliver"


@parcel.migrate(1)
def from_first(state: dict[str, Any], node: str) -> tuple[dict[str, Any], str]:
    diary = Path(state["path"])
    with diary.open("a") as lines:
        lines.write(f"migration:{state['name']} {os.getpid()} {time.time()}\n")
    while diary.with_name(STOP).exists():
        time.sleep(0.05)
    return state | {"label": f"was at {node}", "seconds": 0.0}, "deliver"
