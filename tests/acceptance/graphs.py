"""Graphs that a real worker drives while it is being killed. Each execution of a node leaves a line in a file."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from runs import END, Found, Graph, Retry, tool


class Diary(BaseModel):
    """The file at `path` says which nodes were begun. Each takes `seconds`; the first ones, as many as `held`, end only
    once the test lets them go (installation.let_go), however long it takes the test to come to that."""

    path: str
    seconds: float = 0.0
    held: int = 0
    rounds: int = 1
    done: int = 0


def leave(path: str, number: int) -> Path:
    """The file with which node `number` is let go, counted from 1."""
    return Path(f"{path}.let-go-{number}")


def write(state: Diary, what: str) -> None:
    with Path(state.path).open("a") as diary:
        diary.write(f"{what} {os.getpid()} {time.time()}\n")


patient = Graph("patient", state=Diary, operators="ops")


@patient.node(then=("take_time", END))
def take_time(run: Any, state: Diary) -> str:
    write(state, f"{run.id}")
    time.sleep(state.seconds)
    while state.done < state.held and not leave(state.path, state.done + 1).exists():
        time.sleep(0.02)
    state.done += 1
    return END if state.done == state.rounds else "take_time"


deadly = Graph("deadly", state=Diary, operators="ops")


@deadly.node(then="die")
def live(run: Any, state: Diary) -> None:
    state.done += 1


@deadly.node
def die(run: Any, state: Diary) -> None:
    if not Path(state.path).with_name("mended").exists():
        write(state, "death")
        os._exit(9)


stuck = Graph("stuck", state=Diary, operators="ops")


@stuck.node(limit=timedelta(seconds=1), retry=Retry(attempts=1))
def never_end(run: Any, state: Diary) -> None:
    write(state, "stuck")
    time.sleep(600)


def find_deposit(idempotency_key: str, arguments: dict[str, Any]) -> Found | None:
    deposits = Path(arguments["path"])
    return Found("found") if deposits.exists() and idempotency_key in deposits.read_text() else None


@tool(kind="write", limit=timedelta(seconds=6), reconcile=find_deposit)
def deposit(path: str, idempotency_key: str) -> str:
    """The process is stopped between its last look and the effect; whoever wakes it lets it go on."""
    stops = Path(path + ".stopped")
    if not stops.exists():
        stops.write_text(str(os.getpid()))
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # before this thread does anything more
    with Path(path).open("a") as deposits:
        deposits.write(f"{idempotency_key}\n")
    return "made"


stopped = Graph("stopped", operators="ops")


@stopped.node
def pay_in(run: Any, state: dict[str, Any]) -> None:
    state["result"] = run.call(deposit, path=state["path"])
