"""Runs that wait for a signal, with and without a deadline."""

from __future__ import annotations

from datetime import timedelta

from runs import Graph, TimedOut, tool
from tests.runs.states import Log

HOUR = timedelta(hours=1)


paid = Graph("signal-paid", state=Log)


@paid.node
def wait_for_payment(run, state):
    state.log.append(str(run.wait_for("paid")))


timed = Graph("signal-timed", state=Log)


@timed.node
def wait_an_hour(run, state):
    try:
        state.log.append(str(run.wait_for("paid", timeout=HOUR)))
    except TimedOut as late:
        state.log.append(f"{late.name}: {late}")


@tool
def look(word: str) -> str:
    return word
