"""The WebSocket of the live pages: it carries names of changed things, never the things.

    page    -> {"watch": ["run:<id>", "inbox"], "age": 0.8}   all names of the page, and how many seconds old it is
    server  -> {"changed": ["inbox"]}                         once for each "watch", then whenever something changes

The page reads what changed from its own address, with its own rights.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import random
from collections.abc import Mapping, Set
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple  # Any: what channels passes on

from channels.generic.websocket import AsyncJsonWebsocketConsumer
from django.urls import path, re_path

from runs.audience import Audience, Onlooker
from runs.engine import clock
from runs.live import watching
from runs.live.listeners import listeners

log = logging.getLogger(__name__)

SIGNED_OUT, NOT_UNDERSTOOD, TROUBLE = 4401, 4400, 1011  # codes of a closed socket
MOST_LETTERS = 16_000
MOST_NAMES = 200
PAUSE_SECONDS = 0.1  # between two messages
RIGHTS_SECONDS = 60.0  # for so long a person who may watch something is taken to be still allowed to
RENEWED_AFTER = (
    0.5,
    0.9,
)  # of that, at random: what many sockets ask for does not come at once, before a message
MARGIN_SECONDS = 2.0  # between a commit and the look that finds it, at most


class Asked(NamedTuple):
    names: frozenset[str]
    age: float  # seconds since the page was made

    @classmethod
    def read(cls, text: str | None) -> Asked | None:
        """None if that is not a message of ours."""
        if text is None or len(text) > MOST_LETTERS:
            return None
        try:
            said = json.loads(text)
            names, age = said["watch"], float(said.get("age", 0))
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
            return None
        if not isinstance(names, list) or len(names) > MOST_NAMES or not math.isfinite(age):
            return None
        return cls(frozenset(names), age) if all(isinstance(name, str) for name in names) else None


class LiveSocket(AsyncJsonWebsocketConsumer):
    channel_layer_alias = "none"  # names come from the tail of the database

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked: frozenset[str] = frozenset()
        self.watched: set[str] = set()
        self.onlooker: Onlooker | None = None  # until the first word nothing is watched
        self.named: set[str] = set()  # what changed and is to be told
        self.owes_answer = False
        self.rights_at = -math.inf
        self.stirred = asyncio.Event()
        self.telling: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        self.user = self.scope["user"]
        await self.accept()  # a browser is told the code of an open socket only
        if not self.user.is_authenticated or not self.user.is_active:
            await self.close(SIGNED_OUT)
            return
        self.rights_at = clock.elapsed()
        listeners.join(self)
        self.telling = asyncio.create_task(self._tell())

    async def receive(
        self, text_data: str | None = None, bytes_data: bytes | None = None, **_more: Any
    ) -> None:
        if self.telling is None:
            return
        began, asked = clock.elapsed(), Asked.read(text_data)
        if asked is None:
            await self.close(NOT_UNDERSTOOD, reason="Not a message of this page.")
            return
        try:
            await self._watch(asked, began)
        except Exception:
            await self._give_up()

    async def send_json(self, content: dict[str, list[str]], close: bool = False) -> None:
        with suppress(OSError):  # of a page that has gone; `disconnect` follows
            await super().send_json(content, close)

    async def disconnect(self, code: int) -> None:
        if self.telling is not None:
            telling, self.telling = self.telling, None
            telling.cancel()
            await asyncio.wait({telling})
            await listeners.leave(self)

    def hear(self, names: Set[str], audiences: Mapping[str, Audience]) -> None:
        self.named |= self.watched & names
        for subject in watching.subjects():
            audience = audiences.get(subject.word)
            if audience and subject.plural in self.watched and self.onlooker.is_in(audience):
                self.named.add(subject.plural)
        if self.named:
            self.stirred.set()

    async def _watch(self, asked: Asked, began: float) -> None:
        self.asked = asked.names
        await self._read_rights()
        age = max(0.0, asked.age) + clock.elapsed() - began + MARGIN_SECONDS
        changed = listeners.changed_within(age)
        if changed is None:
            await listeners.first_look()  # the page reads again on this answer; what comes later must be told
            self.named |= self.watched
        else:
            lists = await listeners.ask(partial(watching.sees_any, self.user, changed))
            self.hear(watching.names(changed), {})
            self.named |= lists & self.watched
        self.owes_answer = True
        self.stirred.set()

    async def _tell(self) -> None:
        try:
            while True:
                told = await self._stirred_within(RIGHTS_SECONDS * random.uniform(*RENEWED_AFTER))
                if not await self._may_go_on(renew=not told):
                    await self.close(SIGNED_OUT)
                    return
                if not told:
                    continue
                self.stirred.clear()
                owes_answer, self.owes_answer = self.owes_answer, False
                changed, self.named = self.named & self.watched, set()
                if changed or owes_answer:
                    await self.send_json({"changed": sorted(changed)})
                await asyncio.sleep(PAUSE_SECONDS)
        except Exception:
            await self._give_up()

    async def _give_up(self) -> None:
        log.warning("A live page's socket is closed; the page opens another", exc_info=True)
        with suppress(Exception):  # it may be closed already
            await self.close(TROUBLE)

    async def _stirred_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(max(seconds, PAUSE_SECONDS)):
                await self.stirred.wait()  # not wait_for, which makes a task each time
        return self.stirred.is_set()

    async def _may_go_on(self, renew: bool) -> bool:
        """Is that person still signed in, and what may they still watch? Asked now and then while nothing happens, so
        that it rarely has to be asked before something is told."""
        if not renew and clock.elapsed() - self.rights_at < RIGHTS_SECONDS:
            return True
        self.user = await listeners.ask(partial(watching.signed_in, self.scope["session"].session_key))
        if not self.user.is_authenticated:
            self.watched = set()
            return False
        await self._read_rights()
        return True

    async def _read_rights(self) -> None:
        self.onlooker, self.watched = await listeners.ask(partial(watching.onlooker, self.user, self.asked))
        self.rights_at = clock.elapsed()


class Nowhere(AsyncJsonWebsocketConsumer):
    """Every other address: refused before it opens."""

    channel_layer_alias = "none"

    async def connect(self) -> None:
        await self.close()


websocket_urlpatterns = [
    path("live/", LiveSocket.as_asgi()),
    re_path(r"", Nowhere.as_asgi()),
]
