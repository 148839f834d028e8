"""The live pages' socket: names of what changed, to those who may see it, and to nobody else."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import ModuleType

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from asgiref.testing import ApplicationCommunicator  # that of channels.testing needs daphne
from django.contrib.auth.models import AnonymousUser, User
from django.db import OperationalError
from django.test import Client

from runs import Graph, start
from runs.engine import clock
from runs.engine.ids import uuid7
from runs.live import listeners, sockets
from runs.live.listeners import Listeners
from tests.approvals.cases import ask
from tests.runs.driving import registered

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 60  # seconds, for a machine that is busy

note = Graph("note", operators="ops")


@note.node
def write(run, state):
    run.note("written")


@pytest.fixture(autouse=True)
def own_listeners(monkeypatch) -> Listeners:
    monkeypatch.setenv("DURABLEWEB_WEB_CONNECTIONS", "0")  # this is no web process
    fresh = Listeners()
    monkeypatch.setattr(sockets, "listeners", fresh)
    return fresh


def served() -> ModuleType:
    """Loaded by a test, whose environment says that this is no web process, and not before: nothing could fork."""
    from durableweb import asgi

    return asgi


class Page:
    """What a browser does with the socket; it watches names, and hears those that changed."""

    def __init__(self, client: Client | None = None, origin: str = "http://testserver", path: str = "/live/"):
        cookies = (
            "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items()) if client else ""
        )
        headers = {"host": "testserver", "origin": origin, "cookie": cookies}
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), text.encode()) for name, text in headers.items()],
            "subprotocols": [],
        }
        self.socket = ApplicationCommunicator(served().application, scope)

    async def __aenter__(self) -> Page:
        assert await self.open()
        return self

    async def __aexit__(self, kind, *_error) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1000})
        if kind is None:
            await self.socket.wait(PATIENCE)
        else:
            self.socket.stop(exceptions=False)

    async def open(self) -> bool:
        """Whether it was accepted."""
        await self.socket.send_input({"type": "websocket.connect"})
        return (await self.socket.receive_output(PATIENCE))["type"] == "websocket.accept"

    async def send(self, text: str | None = None, bytes: bytes | None = None) -> None:
        await self.socket.send_input({"type": "websocket.receive", "text": text, "bytes": bytes})

    async def watch(self, *names: object, age: float = 0.0) -> list[str]:
        """Watch these alone; what of it changed lately."""
        await self.send(json.dumps({"watch": list(map(str, names)), "age": age}))
        return await self.hear()

    async def hear(self) -> list[str]:
        said = await self.socket.receive_output(PATIENCE)
        assert said["type"] == "websocket.send", said
        return json.loads(said["text"])["changed"]

    async def hear_all_of(self, *names: str) -> None:
        """Until all of them were told; nothing else may be."""
        missing = set(names)
        while missing:
            heard = set(await self.hear())
            assert heard <= set(names), f"told {heard - set(names)}"
            missing -= heard

    async def code(self) -> int:
        """How it was closed by the server."""
        closed = await self.socket.receive_output(PATIENCE)
        assert closed["type"] == "websocket.close", closed
        return closed.get("code", 1000)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def scene(play: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Let a coroutine be a test; rows are written in the thread that has the test's connection."""

    @functools.wraps(play)
    def test(*arguments, **fixtures):
        async_to_sync(play)(*arguments, **fixtures)

    return test


@sync_to_async
def rows(act: Callable[[], object]) -> object:
    return act()


async def first_look(listeners: Listeners) -> None:
    """Until it is known where the tables end: what came before is new to every page."""
    async with asyncio.timeout(PATIENCE):
        while listeners.memory is None:
            await asyncio.sleep(0.01)


def names_of(approval) -> tuple[str, str]:
    return f"approval:{approval.pk}", f"run:{approval.run_id}"


@scene
async def test_a_change_is_told_by_name_and_by_list(ada, bob):
    approval = await rows(ask)
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.watch(*names_of(approval), "inbox", "runs")
        await rows(lambda: approval.decide(by=bob, verdict="approve"))
        await page.hear_all_of(*names_of(approval), "inbox", "runs")


@scene
async def test_a_new_approval_is_told_as_the_inbox_and_without_its_id(ada):
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.watch("inbox")
        await rows(ask)
        assert await page.hear() == ["inbox"]


@scene
async def test_only_what_is_watched_is_told_and_the_latest_word_counts(ada):
    one, other = await rows(ask), await rows(ask)
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.watch(names_of(one)[0])
        await page.watch(names_of(other)[0])
        await rows(lambda: one.comment(ada, "Hm."))
        await rows(lambda: other.comment(ada, "Hm."))
        await page.hear_all_of(names_of(other)[0])


@scene
async def test_a_guessed_id_is_watched_in_vain(ada, eve, person):
    """O5"""
    hers = await rows(lambda: ask(reviewers=("eve",)))
    foreign = await rows(ask)
    async with Page(await rows(lambda: signed_in(eve))) as page:
        answer = await page.watch(*names_of(foreign), *names_of(hers), age=3600)
        assert answer == sorted(
            names_of(hers)
        )  # all of it may have changed, and the others are as if not there
        await rows(lambda: foreign.comment(ada, "Nobody's business."))
        await rows(lambda: hers.comment(eve, "Hm."))
        await page.hear_all_of(*names_of(hers))


@scene
async def test_a_missing_one_a_strange_one_and_a_foreign_one_look_alike(ada, eve):
    """O5"""
    foreign = await rows(ask)
    missing = uuid7()
    strange = (
        "run:",
        "run:1",
        f"run:{{{missing}}}",
        f"run:{foreign.run_id.hex}",
        "users",
        "user:1",
        "",
        "a:b:c",
    )
    async with Page(await rows(lambda: signed_in(eve))) as page:
        assert await page.watch(*names_of(foreign), f"run:{missing}", *strange, age=3600) == []


@scene
async def test_a_list_is_told_only_to_whom_it_changes(ada, eve):
    hers = await rows(lambda: ask(reviewers=("eve",)))
    foreign = await rows(ask)
    async with (
        Page(await rows(lambda: signed_in(eve))) as page,
        Page(await rows(lambda: signed_in(ada))) as other,
    ):
        await page.watch("inbox", "runs", names_of(hers)[0])
        await other.watch("inbox")
        await rows(lambda: foreign.comment(ada, "Hm."))
        assert await other.hear() == ["inbox"]
        assert await page.socket.receive_nothing(timeout=0.3)
        await rows(lambda: hers.comment(eve, "Hm."))
        await page.hear_all_of(names_of(hers)[0], "inbox", "runs")


@scene
async def test_nobody_in_particular_is_sent_away():
    async with Page() as page:
        assert await page.code() == sockets.SIGNED_OUT


@scene
async def test_a_page_of_another_site_cannot_open_it(ada):
    page = Page(await rows(lambda: signed_in(ada)), origin="https://evil.example")
    assert not await page.open()


@scene
async def test_another_address_is_refused(ada):
    page = Page(await rows(lambda: signed_in(ada)), path="/live/run:1/")
    assert not await page.open()


@scene
async def test_who_signs_out_hears_nothing_more(ada, bob, monkeypatch):
    monkeypatch.setattr(sockets, "RIGHTS_SECONDS", 0.0)
    approval = await rows(ask)
    client = await rows(lambda: signed_in(ada))
    async with Page(client) as page:
        await page.watch("inbox")
        await rows(client.logout)
        await rows(lambda: approval.comment(bob, "Hm."))
        assert await page.code() == sockets.SIGNED_OUT


@scene
async def test_who_loses_the_right_hears_nothing_more(ada, bob, monkeypatch):
    monkeypatch.setattr(sockets, "RIGHTS_SECONDS", 0.0)
    lost, kept = await rows(ask), await rows(lambda: ask(reviewers=("ada",)))
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.watch(*names_of(lost), *names_of(kept))
        await rows(ada.groups.clear)
        await rows(lambda: lost.comment(bob, "Hm."))
        await rows(lambda: kept.comment(ada, "Hm."))
        await page.hear_all_of(*names_of(kept))


NOT_OURS = (
    "{",
    "[]",
    '"watch"',
    "{}",
    '{"watch": "inbox"}',
    '{"watch": [1]}',
    '{"watch": [], "age": "x"}',
    '{"watch": [], "age": 1e999}',
    '{"watch": [], "age": 1' + "0" * 400 + "}",
    json.dumps({"watch": ["inbox"] * (sockets.MOST_NAMES + 1)}),
    json.dumps({"watch": ["x" * sockets.MOST_LETTERS]}),
    "[" * 15_000,
)


@scene
async def test_what_is_no_message_of_a_page_ends_it(ada):
    client = await rows(lambda: signed_in(ada))
    for text in NOT_OURS:
        async with Page(client) as page:
            await page.send(text)
            assert await page.code() == sockets.NOT_UNDERSTOOD, text[:80]
    async with Page(client) as page:
        await page.send(bytes=b"\0")
        assert await page.code() == sockets.NOT_UNDERSTOOD


@scene
async def test_what_changed_between_page_and_socket_is_told_and_nothing_else(ada, bob, own_listeners):
    changed, same = await rows(ask), await rows(ask)
    client = await rows(lambda: signed_in(ada))
    async with Page(client) as older:
        await older.watch(names_of(changed)[0])
        await first_look(own_listeners)
        clock.AHEAD += timedelta(seconds=30)  # the page is younger than what is remembered
        await rows(lambda: changed.comment(bob, "Hm."))
        await older.hear_all_of(names_of(changed)[0])
        async with Page(client) as page:
            assert await page.watch(*names_of(changed), *names_of(same), age=20) == sorted(names_of(changed))
            clock.AHEAD += timedelta(seconds=30)
            assert await page.watch(*names_of(changed), *names_of(same), age=20) == []


@scene
async def test_nothing_is_missed_between_the_pages_of_a_single_reader(ada, bob, own_listeners):
    approval = await rows(ask)
    client = await rows(lambda: signed_in(ada))
    async with Page(client) as page:
        await page.watch(names_of(approval)[0])
        tail = own_listeners.tail
    await rows(lambda: approval.comment(bob, "Hm."))
    async with Page(client) as page:
        heard = set(await page.watch(names_of(approval)[0]))
        if not heard:  # the look that finds it may come before the word to watch, or after
            heard = set(await page.hear())
        assert heard == {names_of(approval)[0]}
        assert own_listeners.tail is tail


@scene
async def test_after_a_long_time_without_sockets_everything_is_new(ada, own_listeners):
    approval = await rows(ask)
    client = await rows(lambda: signed_in(ada))
    async with Page(client) as page:
        await page.watch(names_of(approval)[0])
        tail = own_listeners.tail
    clock.AHEAD += timedelta(seconds=listeners.REMEMBERED_SECONDS + 1)
    async with Page(client) as page:
        assert await page.watch(names_of(approval)[0]) == [names_of(approval)[0]]
        assert own_listeners.tail is not tail


@scene
async def test_the_database_is_read_only_while_a_socket_is_open(ada, own_listeners):
    client = await rows(lambda: signed_in(ada))
    async with Page(client) as one:
        async with Page(client) as other:
            await other.watch("inbox")
        await one.watch("inbox")  # the other's leaving did not end it
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert "live tail" not in names
    assert own_listeners.joined == set()


@scene
async def test_a_database_that_fails_is_asked_again_and_nothing_is_lost(
    ada, bob, own_listeners, monkeypatch, caplog
):
    monkeypatch.setattr(listeners, "LONGEST_PAUSE_SECONDS", 0.01)
    approval = await rows(ask)
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.watch(names_of(approval)[0])
        look, failures = own_listeners.tail.look, iter([OperationalError("gone"), RuntimeError("a bug")])

        def failing():
            for error in failures:
                raise error
            return look()

        own_listeners.tail.look = failing
        await rows(lambda: approval.comment(bob, "Hm."))
        await page.hear_all_of(names_of(approval)[0])
    assert "cannot look into the database" in caplog.text
    assert "stumbled" in caplog.text


@scene
async def test_a_socket_whose_rights_cannot_be_read_is_closed_and_forgotten(ada, own_listeners, monkeypatch):
    def fails(*_arguments):
        raise OperationalError("gone")

    monkeypatch.setattr("runs.live.watching.may_watch", fails)
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.send('{"watch": ["inbox"]}')
        assert await page.code() == sockets.TROUBLE
    assert own_listeners.joined == set()


@scene
async def test_a_page_that_has_gone_is_no_trouble(ada, own_listeners, monkeypatch, caplog):
    """As something is sent, servers say so by an OSError (ASGI); the end itself is told after it."""
    tried, real = asyncio.Event(), served().application

    async def application(scope, receive, send):
        async def send_to_nobody(message):
            if message["type"] == "websocket.send":
                tried.set()
                raise ConnectionError("gone")
            await send(message)

        await real(scope, receive, send_to_nobody)

    monkeypatch.setattr(served(), "application", application)
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.send('{"watch": ["inbox"]}')
        await asyncio.wait_for(tried.wait(), PATIENCE)
    assert own_listeners.joined == set()
    assert caplog.records == []


@scene
async def test_many_changes_are_told_in_few_messages(ada, bob):
    approvals = [await rows(ask) for _ in range(20)]
    names = [names_of(approval)[0] for approval in approvals]
    async with Page(await rows(lambda: signed_in(ada))) as page:
        await page.watch(*names)
        began = clock.elapsed()
        for approval in approvals:
            await rows(lambda approval=approval: approval.comment(bob, "Hm."))
        messages, missing = 0, set(names)
        while missing:
            missing -= set(await page.hear())
            messages += 1
        assert messages <= 1 + (clock.elapsed() - began) / sockets.PAUSE_SECONDS


@scene
async def test_a_run_started_by_another_is_not_told(ada, eve, bob):
    """O5"""
    with registered(note):
        theirs = await rows(lambda: start("note", by=bob))
        mine = await rows(lambda: start("note", by=eve))
        async with Page(await rows(lambda: signed_in(eve))) as page:
            await page.watch(f"run:{theirs.pk}", f"run:{mine.pk}")
            await rows(lambda: theirs.cancel("user bob", "No more need."))
            await rows(lambda: mine.cancel("user eve", "No more need."))
            await page.hear_all_of(f"run:{mine.pk}")


def test_a_session_without_end_is_nobodys():
    from runs.live.watching import signed_in as whose

    assert isinstance(whose(None), AnonymousUser)
    assert isinstance(whose("x" * 32), AnonymousUser)
