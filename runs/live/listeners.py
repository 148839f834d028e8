"""The open sockets of this process, and the one task that looks for them while there are any."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

from django.db import DatabaseError, InterfaceError, connections

from runs.audience import EVERYONE, Audience
from runs.engine import clock
from runs.engine.row_threads import RowThreads
from runs.live import watching
from runs.live.tail import Tail
from runs.live.watching import Changed

log = logging.getLogger(__name__)

T = TypeVar("T")

LOOK_SECONDS = 0.1
FIRST_LOOK_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 30.0  # between two looks into a database that does not answer
REMEMBERED_SECONDS = 120.0
MOST_REMEMBERED = 20_000  # things, over all looks


class Listener(Protocol):
    def hear(self, names: Set[str], audiences: Mapping[str, Audience]) -> None:
        """Called in the event loop; must not wait. `names`: of each thing that changed. `audiences`: who sees any of
        it, by the word of its subject."""


class Listeners:
    """One a process: `listeners`. It must be used from one event loop."""

    def __init__(self) -> None:
        self.joined: set[Listener] = set()
        self.tail: Tail | None = None
        self.memory: Memory | None = None
        self.looked_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._stirred, self._looked = asyncio.Event(), asyncio.Event()
        self._rights: RowThreads | None = None

    def join(self, listener: Listener) -> None:
        self.joined.add(listener)
        if self._task is None:
            self._stirred, self._looked = asyncio.Event(), asyncio.Event()
            self._rights = RowThreads(1)
            self._task = asyncio.create_task(self._watch(self._rights), name="live tail")

    async def leave(self, listener: Listener) -> None:
        """The last one to leave waits until the task has ended and its connections are closed."""
        self.joined.discard(listener)
        if not self.joined and self._task is not None:
            self._stirred.set()
            await asyncio.wait({self._task})

    async def ask(self, read: Callable[[], T]) -> T:
        """Read from the database for somebody who has joined; once more if its connection turns out to be dead."""
        assert self._rights is not None, "only those who have joined may ask"
        return await asyncio.get_running_loop().run_in_executor(self._rights, _anew_if_lost, read)

    def changed_within(self, seconds: float) -> Changed | None:
        """What changed since then; None if it is not known so far back."""
        return None if self.memory is None else self.memory.since(clock.elapsed() - seconds)

    async def first_look(self) -> None:
        """Until it is known where the tables end: what changes from now on is told. Not long, if nobody can look."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._looked.wait(), FIRST_LOOK_SECONDS)

    async def _watch(self, rights: RowThreads) -> None:
        """Goes on where the last one ended, so that nothing is missed between two pages of a single reader."""
        if self.tail is None or clock.elapsed() - self.looked_at > REMEMBERED_SECONDS:
            self.tail, self.memory = Tail(), None
        looking, pause = RowThreads(1), LOOK_SECONDS
        try:
            while self.joined:
                try:
                    await self._look(self.tail, looking)
                    pause = 0.0 if self.tail.has_more else LOOK_SECONDS
                except Exception as error:
                    pause = min(max(pause, 1.0) * 2, LONGEST_PAUSE_SECONDS)
                    _say_it_failed(error, pause)
                await self._rest(pause)
        finally:
            self._task = self._rights = None  # who joins while these threads end gets others
            await asyncio.gather(asyncio.to_thread(looking.close), asyncio.to_thread(rights.close))

    async def _look(self, tail: Tail, looking: RowThreads) -> None:
        look = partial(_look_for_all, tail)
        changed, audiences = await asyncio.get_running_loop().run_in_executor(looking, _closed_if_lost, look)
        self.looked_at = clock.elapsed()
        if self.memory is None:
            self.memory = Memory(self.looked_at)
        self._looked.set()
        if changed:
            self.memory.add(self.looked_at, changed)
            names = watching.names(changed)
            for listener in tuple(self.joined):
                listener.hear(names, audiences)

    async def _rest(self, seconds: float) -> None:
        """Until the next look, or until the last socket has left."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stirred.wait()


class Memory:
    """What changed lately, for a socket that opens a moment after its page was made."""

    def __init__(self, begins_at: float) -> None:
        self.begins_at = begins_at
        self.looks: deque[tuple[float, Changed]] = deque()
        self.size = 0

    def add(self, at: float, changed: Changed) -> None:
        self.looks.append((at, changed))
        self.size += _count(changed)
        while self.looks and (self.size > MOST_REMEMBERED or self.looks[0][0] < at - REMEMBERED_SECONDS):
            self.begins_at, oldest = self.looks.popleft()
            self.size -= _count(oldest)

    def since(self, moment: float) -> Changed | None:
        if moment < self.begins_at:
            return None
        found: defaultdict[str, set[uuid.UUID]] = defaultdict(set)
        for at, changed in reversed(self.looks):
            if at < moment:
                break
            for word, keys in changed.items():
                found[word].update(keys)
        return found


listeners = Listeners()


def _look_for_all(tail: Tail) -> tuple[Changed, dict[str, Audience]]:
    """What changed, and who sees it: read once for all sockets."""
    changed = tail.look_if_stirred()
    try:
        return changed, watching.audiences(changed)
    except (DatabaseError, InterfaceError):  # the tail has moved on: better too many are told than too few
        connections.close_all()
        return changed, dict.fromkeys(changed, EVERYONE)


def _count(changed: Changed) -> int:
    return sum(map(len, changed.values()))


def _closed_if_lost(read: Callable[[], T]) -> T:
    """In a thread that keeps its connection: a broken one is closed, and the next read opens another."""
    try:
        return read()
    except (DatabaseError, InterfaceError):
        connections.close_all()
        raise


def _anew_if_lost(read: Callable[[], T]) -> T:
    try:
        return _closed_if_lost(read)
    except (DatabaseError, InterfaceError):
        return _closed_if_lost(read)


def _say_it_failed(error: Exception, pause: float) -> None:
    if isinstance(error, DatabaseError | InterfaceError):
        log.warning("Live pages cannot look into the database, and try again in %g s: %s", pause, error)
    else:
        log.error("Live pages stumbled, and look again in %g s", pause, exc_info=error)
