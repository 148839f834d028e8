"""A graph that keeps its promises, and one that does something outside of a tool."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from runs import Ask, Graph, tool


class Letter(BaseModel):
    to: str
    log: list[str] = []


def book(line: str) -> None:
    """What was posted, in the home of whoever runs it."""
    with open(Path(os.environ["DURABLEWEB_HOME"]) / "posted.txt", "a") as file:
        file.write(f"{line}\n")


@tool(kind="write", limit=timedelta(seconds=60))
def post(to: str) -> str:
    """Posts a letter."""
    book(to)
    return f"posted to {to}"


letters = Graph("trial-letters", state=Letter)


@letters.node(then="wait")
def write(run: Any, state: Letter) -> None:
    state.log.append(run.once("draft", lambda: f"dear {state.to}"))
    state.log.append(run.call(post, to=state.to, approve=Ask("Post it?", reviewers="pm")))


@letters.node
def wait(run: Any, state: Letter) -> None:
    state.log.append(run.wait_for("seen")["by"])


careless = Graph("trial-careless", state=Letter)


@careless.node
def hurry(run: Any, state: Letter) -> None:
    book(state.to)
    state.log.append(run.call(post, to=state.to))


def pretend(to: str) -> str:
    return f"pretended for {to}"


STAND_INS = {"post": pretend}
