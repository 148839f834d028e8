"""What the engine's logic asks its surroundings to do, and the loop that does it.

The logic of every verb is written once, as a generator that yields commands; a synchronous and an asynchronous
loop carry them out. A plain callable is a durable act of the ledger.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any  # the author's functions and what they return


@dataclass(frozen=True, slots=True)
class Invoke:
    """Call the author's function; `seconds` is its time limit, for those that can be stopped."""

    fn: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()
    seconds: float | None = None
    write: bool = False

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


@dataclass(frozen=True, slots=True)
class Together:
    """Carry out all of these at once; the result is a list of `Ended`, in order."""

    works: tuple[Generator[Any, Any, Any], ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """One work's result, or what it raised."""

    result: Any = None
    raised: BaseException | None = None


Command = Callable[[], Any] | Invoke | Pause | Together
Work = Generator[Command, Any, Any]


def carry_out(work: Work, do: Callable[[Command], Any]) -> Any:
    """Run a work to its end, each command through `do`."""
    try:
        command = next(work)
        while True:
            try:
                result = do(command)
            except BaseException as error:
                command = work.throw(error)
            else:
                command = work.send(result)
    except StopIteration as end:
        return end.value


async def carry_out_async(work: Work, do: Callable[[Command], Awaitable[Any]]) -> Any:
    """The same, awaiting each command."""
    try:
        command = next(work)
        while True:
            try:
                result = await do(command)
            except BaseException as error:
                command = work.throw(error)
            else:
                command = work.send(result)
    except StopIteration as end:
        return end.value


def do_at_once(command: Command) -> Any:
    """The simplest surroundings: pauses take no time, works run one after the other. For a REPL and for tests."""
    match command:
        case Pause():
            return None
        case Together(works):
            return [ended(work, do_at_once) for work in works]
        case Invoke():
            return command.fn(*command.positional, **command.arguments)
        case _:
            return command()


async def do_at_once_async(command: Command) -> Any:
    """The same for an async node."""
    match command:
        case Together(works):
            return [await _ended_async(work) for work in works]
        case Invoke(is_async=True):
            return await command.fn(*command.positional, **command.arguments)
        case _:
            return do_at_once(command)


async def _ended_async(work: Work) -> Ended:
    try:
        return Ended(await carry_out_async(work, do_at_once_async))
    except BaseException as error:
        return Ended(raised=error)


def ended(work: Work, do: Callable[[Command], Any]) -> Ended:
    try:
        return Ended(carry_out(work, do))
    except BaseException as error:
        return Ended(raised=error)
