"""A graph whose runs do something, fail, and undo it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from runs import Graph, Permanent, tool
from tests.runs.states import Log

LIMIT = timedelta(seconds=5)


def take_back(result: str) -> str:
    return f"took back: {result}"


@tool(kind="write", limit=LIMIT, compensate=take_back)
def post_for_now(text: str) -> str:
    return f"posted {text}"


failing = Graph("failing", state=Log, operators="ops", on_failure="compensate")


@failing.node(then="refuse")
def publish(run: Any, state: Log) -> None:
    state.log.append(run.call(post_for_now, text="a"))


@failing.node
def refuse(run: Any, state: Log) -> None:
    raise Permanent("no")
