"""Before children are forked: everything that Django and the engine make on first use is made once, in the parent."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any  # the state of the small graph is a dict

from django.db import transaction

from runs.conf import conf
from runs.core.ask import Ask
from runs.core.graph import Graph
from runs.core.tool import tool
from runs.engine import clock
from runs.engine.claim import Claimer
from runs.engine.starting import start
from runs.engine.verify import first_bad_row
from runs.testing.driving import go_on


@tool(kind="write")
def warm_write(text: str) -> str:
    """A write of the warm-up, which changes nothing."""
    return text


warm_up_graph = Graph("kit-warm-up")


@warm_up_graph.node(then="ask")
def work(run: Any, state: dict[str, Any]) -> None:
    state["read"] = run.once("value", lambda: "x")
    state["written"] = run.call(warm_write, text="x", approve=Ask("Go on?", due=timedelta(hours=1)))


@warm_up_graph.node
def ask(run: Any, state: dict[str, Any]) -> None:
    state["answer"] = run.interrupt("Enough?").payload


@cache
def warm_up() -> None:
    """Drive a small run of every kind of act, once in this process; its rows are rolled back."""
    before = clock.AHEAD
    with transaction.atomic():
        run = start(warm_up_graph, {})
        Claimer("kit:warm-up", [warm_up_graph]).claim(alone=True, only=run.pk)  # and never driven: a lost one
        clock.AHEAD += conf.lease
        run = go_on(run, warm_up_graph, lambda entry, request: {"verdict": "approve"})
        first_bad_row(run)
        transaction.set_rollback(True)
    clock.AHEAD = before
