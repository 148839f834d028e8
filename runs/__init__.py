"""Durable runs: what graph authors import."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runs.core.ask import Answer, Ask, Found
from runs.core.child import Child, ChildEnd
from runs.core.codec import BlobRef, SecretRef, storable
from runs.core.errors import (
    Ambiguous,
    CodecError,
    Diverged,
    DurableError,
    EffectFailed,
    Expired,
    GraphError,
    Permanent,
    Rejected,
    TimedOut,
    Transient,
)
from runs.core.graph import END, Graph
from runs.core.rate import Rate
from runs.core.retry import Retry
from runs.core.rules import Stage
from runs.core.tool import tool
from runs.core.waiting import Timer, Wait

if TYPE_CHECKING:
    from runs.models.run import Run


def start(
    graph: Graph | str, input: Any = None, key: str | None = None, by: Any = None, **options: Any
) -> Run:
    """Start a run; see runs.engine.starting.start. Imported when called, for rows need Django to be set up."""
    from runs.engine import starting

    return starting.start(graph, input, key, by, **options)


__all__ = [
    "END",
    "Ambiguous",
    "Answer",
    "Ask",
    "BlobRef",
    "Child",
    "ChildEnd",
    "CodecError",
    "Diverged",
    "DurableError",
    "EffectFailed",
    "Expired",
    "Found",
    "Graph",
    "GraphError",
    "Permanent",
    "Rate",
    "Rejected",
    "Retry",
    "SecretRef",
    "Stage",
    "TimedOut",
    "Timer",
    "Transient",
    "Wait",
    "start",
    "storable",
    "tool",
]
