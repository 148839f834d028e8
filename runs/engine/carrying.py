"""What a drive does with each command of the engine's logic: sleeps, calls the author's functions, or writes rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any  # what the author's functions return

from django.db import connection

from runs.core.commands import Command, Ended, Invoke, Pause, Together, carry_out, carry_out_async
from runs.core.errors import Ambiguous, Transient
from runs.engine import clock
from runs.engine.boundaries import boundary
from runs.engine.row_threads import Threads

GATHER_THREADS = 16


def do_now(command: Command) -> Any:
    match command:
        case Pause(seconds):
            time.sleep(clock.to_sleep(seconds))
            return None
        case Invoke():
            boundary("call" if command.write else "read")
            if command.is_async:
                return asyncio.run(_timed(command))
            result = command.fn(*command.positional, **command.arguments)
            boundary("called" if command.write else "was read")
            return result
        case Together(works):
            return _together(works)
        case _:
            return command()


def _together(works: tuple[Any, ...]) -> list[Ended]:
    """Works at once, each in a thread with a connection of its own."""

    def one(work: Any) -> Ended:
        try:
            return Ended(carry_out(work, do_now))
        except BaseException as error:
            return Ended(raised=error)
        finally:
            connection.close()

    if len(works) == 1:
        try:
            return [Ended(carry_out(works[0], do_now))]
        except BaseException as error:
            return [Ended(raised=error)]
    with ThreadPoolExecutor(min(len(works), GATHER_THREADS)) as pool:
        return list(pool.map(one, works))


async def do_async(threads: Threads, seconds: float, command: Command) -> Any:
    """`seconds`: how long a thread of an author's function may take before it counts as lost."""
    match command:
        case Pause(seconds):
            return await asyncio.sleep(clock.to_sleep(seconds))
        case Invoke():
            boundary("call" if command.write else "read")
            if command.is_async:
                result = await _timed(command)
            else:
                call = partial(command.fn, *command.positional, **command.arguments)
                result = await threads.in_call_thread(seconds, call)
            boundary("called" if command.write else "was read")
            return result
        case Together(works):
            return await _at_once(partial(do_async, threads, seconds), works)
        case _:
            return await _to_its_end(threads.in_row_thread(command))


async def _at_once(do: Callable[[Command], Any], works: tuple[Any, ...]) -> list[Ended]:
    """Who is cancelled waits until each of them has ended, also those that are in a commit: none outlives its node."""
    parts = [asyncio.ensure_future(_ended(do, work)) for work in works]
    try:
        return await asyncio.gather(*parts)
    except asyncio.CancelledError as error:
        while going_on := [part for part in parts if not part.done()]:
            for part in going_on:
                part.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait(going_on)
        raise error


async def _to_its_end(act: asyncio.Future[Any]) -> Any:
    """A commit cannot be cancelled: who is, while it is under way, waits for it first. None outlives its node so."""
    cancelled: asyncio.CancelledError | None = None
    while not act.done():
        try:
            await asyncio.wait({act})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        with suppress(BaseException):
            act.result()
        raise cancelled
    return act.result()


async def _ended(do: Callable[[Command], Any], work: Any) -> Ended:
    try:
        return Ended(await carry_out_async(work, do))
    except asyncio.CancelledError:
        raise
    except BaseException as error:
        return Ended(raised=error)


async def _timed(command: Invoke) -> Any:
    """An async tool is cancelled at its limit: a read may be asked again, a write is unknown."""
    try:
        call = command.fn(*command.positional, **command.arguments)
        return await asyncio.wait_for(call, command.seconds)
    except TimeoutError as error:
        message = f"no answer within {command.seconds:g} s"
        raise (Ambiguous(message) if command.write else Transient(message)) from error
