"""Tools that can be undone, and whose effects a test can count in `happened`.

`moods` says what befalls the next calls for one thing: an error that is raised, or something that is done first. A
booking and a message have happened by then, what undoes them has not.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from runs import Permanent, Retry, tool
from tests.runs.states import Log

happened: list[str] = []
moods: dict[str, list[BaseException | Callable[[], None]]] = {}

ONE_TRY = Retry(attempts=1)


class Trip(Log):
    """`then` is what the last node does: fail, ask, wait, retry or go on."""

    things: list[str] = ["flight", "hotel"]
    then: str = "fail"


def _mood(word: str) -> None:
    mood = moods[word].pop(0) if moods.get(word) else None
    if isinstance(mood, BaseException):
        raise mood
    if mood is not None:
        mood()


@tool(kind="write", retry=Retry(attempts=3, first=60), limit=timedelta(seconds=5), honours_key=True)
def cancel_booking(arguments: dict[str, Any], result: str, idempotency_key: str) -> str:
    _mood(f"cancel {arguments['what']}")
    happened.append(f"cancelled {result}")
    return "gone"


@tool(kind="write", compensate=cancel_booking, limit=timedelta(seconds=5))
def book(what: str) -> str:
    happened.append(f"booked {what}")
    _mood(what)
    return what.upper()


def write_again(arguments: dict[str, Any]) -> None:
    _mood("write again")
    happened.append(f"told {arguments['to']} otherwise")


@tool(kind="write", compensate=write_again, retry=ONE_TRY, limit=timedelta(seconds=5))
def tell(to: str) -> None:
    happened.append(f"told {to}")
    _mood(to)


def refuse() -> None:
    raise Permanent("sold out")
