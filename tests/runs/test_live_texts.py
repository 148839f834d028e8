"""What a call says while it is under way: shown to those who may see the run, and recorded once, whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from runs import END, Graph, secrets, start, tool
from runs.agent import Agent, Scripted
from runs.engine import saying
from runs.engine.ledger import RowLedger
from runs.engine.saying import SHOWN_LETTERS, Speaker, rounds
from runs.live.tail import Tail
from runs.model_endpoint import Endpoint
from runs.models import LedgerEntry, LiveText, Run
from runs.work.bell import Bell
from tests.runs.buying import Case
from tests.runs.chat_server import ChatServer, stream
from tests.runs.driving import claim, drive, pass_lease, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE_SECONDS = 60.0
SECRET = "a-very-long-password"


@pytest.fixture(autouse=True)
def without_proxy(monkeypatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def known_secret(monkeypatch):
    monkeypatch.setenv("DURABLEWEB_SECRET_MODEL_KEY", SECRET)
    secrets.forget()
    yield
    secrets.forget()


def graph_of(model: Any, in_loop: bool = False) -> Graph:
    agent, graph = Agent("You write.", model), Graph("writing", state=Case, viewers="pm")

    def write(run, state):
        state.answer = agent.turn(run, state.talk, "A letter to Ada.")
        return END if state.answer else "write"

    async def write_in_loop(run, state):
        state.answer = await agent.turn(run, state.talk, "A letter to Ada.")
        return END if state.answer else "write_in_loop"

    node = write_in_loop if in_loop else write
    graph.node(then=(node.__name__, END))(node)
    return graph


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)
    return found


def shown(run: Run) -> str:
    found = LiveText.objects.filter(run=run).under_way().first()
    return found.text if found is not None else ""


def in_thread(act: Callable[[], Any]) -> threading.Thread:
    def do() -> None:
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=do)
    thread.start()
    return thread


@pytest.mark.parametrize("in_loop", [False, True], ids=["node", "async node"])
def test_a_reply_is_shown_while_it_comes_and_recorded_once_without_secrets(
    in_loop, known_secret, client, ada, eve
):
    goes_on, ends = threading.Event(), threading.Event()
    pieces = stream("Dear <b>Ada</b>,\n", "your key is a-very-", goes_on, "long-password. ", "Bye", ends, ".")
    with ChatServer(pieces) as server, registered(graph_of(Endpoint(server.url, "tiny"), in_loop)):
        run = start("writing", {})
        driving = in_thread(lambda: drive(Run.objects.get(pk=run.pk)))
        try:
            assert until(lambda: shown(run)) == "Dear <b>Ada</b>,\nyour key is ", (
                "the rest may become a secret"
            )
            assert not run.entries.exists(), "nothing of it is in the ledger"
            client.force_login(ada)
            page = client.get(reverse("runs:texts", args=[run.pk])).content.decode()
            assert "Dear &lt;b&gt;Ada&lt;/b&gt;,\nyour key is " in page
            assert "Dear &lt;b&gt;Ada" in client.get(reverse("runs:run", args=[run.pk])).content.decode()
            client.force_login(eve)
            assert client.get(reverse("runs:texts", args=[run.pk])).status_code == 404
            goes_on.set()
            until(lambda: shown(run).endswith("key is «secret:MODEL_KEY». Bye"))
        finally:
            goes_on.set()
            ends.set()
            driving.join(PATIENCE_SECONDS)
        run.refresh_from_db()
        assert run.status == "completed" and not LiveText.objects.exists()
        assert run.state_at()["answer"] == "Dear <b>Ada</b>,\nyour key is «secret:MODEL_KEY». Bye."
        assert run.entries.filter(kind="effect").count() == len(server.requests) == 1
    client.force_login(ada)
    assert "live-text" not in client.get(reverse("runs:run", args=[run.pk])).content.decode()


def test_a_killed_worker_s_text_is_shown_no_more_and_replaced_when_the_call_is_made_again():
    graph = Graph("telling", state=Log, viewers="pm")
    told: list[str] = []

    @tool
    def tell(show_text: Callable[[str], None]) -> str:
        show_text("second try")
        rounds.write()
        told.append(shown(run))
        return "told"

    @graph.node
    def go(run, state):
        state.log = [run.call(tell)]

    with registered(graph):
        run = start(graph, {})
        dead = claim(run, "dead")
        key = f"tell:{tell.bind().digest[:8]}#1"
        say(dead, key, "first try, and then it died")
        assert shown(run)
        tail = Tail()
        tail.look()
        pass_lease()
        drive(run, "w2")  # recovers, and drives
        drive(run, "w2")
        assert (run.status, told) == ("completed", ["second try"])
        assert not LiveText.objects.exists()
        assert run.pk in tail.look()["text"]


def say(held: Any, key: str, text: str) -> Speaker:
    speaker = Speaker(held.lease.run_id, held.lease.fence, held.lease.step + 1, key, "tell")
    speaker(text)
    rounds.write()
    return speaker


@pytest.fixture
def waiting_run():
    graph = Graph("idle", state=Log, viewers="pm")

    @graph.node
    def go(run, state):
        run.wait_for("go")

    with registered(graph):
        yield start(graph, {})


def test_a_worker_that_lost_its_run_shows_nothing_more(waiting_run):
    """P2"""
    held = claim(waiting_run)
    speaker = say(held, "tell#1", "mine ")
    assert shown(waiting_run) == "mine "
    pass_lease()
    other = claim(waiting_run, "w2") or claim(waiting_run, "w2")
    speaker("still talking")
    rounds.write()
    assert speaker.over and LiveText.objects.get().text == "mine " and shown(waiting_run) == ""
    Bell().look()
    assert not LiveText.objects.exists(), "what was left behind is forgotten"
    say(other, "tell#1", "and now this")
    Bell().look()
    assert shown(waiting_run) == "and now this"


def test_open_pages_are_told_of_each_change_and_of_its_end(waiting_run):
    held, tail = claim(waiting_run), Tail()
    tail.look()
    speaker = say(held, "tell#1", "a")
    assert tail.look() == {"text": {waiting_run.pk}}
    assert tail.look() == {}
    speaker("b")
    rounds.write()
    assert tail.look() == {"text": {waiting_run.pk}}
    RowLedger(held.lease, []).hush(LedgerEntry(key="tell#1"))
    assert tail.look() == {}, "another execution's"
    ledger = RowLedger(held.lease, [])
    ledger.speakers["tell#1"] = speaker
    ledger.hush(LedgerEntry(key="tell#1"))
    assert tail.look() == {"text": {waiting_run.pk}}


def test_of_a_secret_that_begins_with_another_nothing_is_shown(waiting_run, monkeypatch, known_secret):
    """The shorter one, as when a key was lengthened, may be all that has come so far."""
    monkeypatch.setenv("DURABLEWEB_SECRET_NEW", f"{SECRET}-and-more")
    secrets.look()
    held = claim(waiting_run)
    speaker = say(held, "tell#1", f"It is {SECRET}")
    assert shown(waiting_run) == "It is "
    for more, text in (("-and-", "It is "), ("more, you see", "It is «secret:NEW», you see")):
        speaker(more)
        rounds.write()
        assert shown(waiting_run) == text


def test_of_a_long_text_the_end_is_kept_and_its_length_told(waiting_run):
    say(claim(waiting_run), "tell#1", "x" * SHOWN_LETTERS + "\x00the end")
    row = LiveText.objects.get()
    assert row.text.endswith("x\\x00the end") and len(row.text) == SHOWN_LETTERS
    assert row.letters == SHOWN_LETTERS + len("\\x00the end") and row.cut


def test_a_text_that_cannot_be_shown_is_no_fault_of_the_call(waiting_run, monkeypatch, caplog):
    """The database is away for a round; what was said meanwhile is shown with the next words."""
    monkeypatch.setattr(saying, "ROUND_SECONDS", 0.01)
    held, real = claim(waiting_run), type(LiveText.objects.all()).show
    failed = threading.Event()

    def fails_once(self, *args):
        if not failed.is_set():
            failed.set()
            raise RuntimeError("the database is away")
        return real(self, *args)

    monkeypatch.setattr(type(LiveText.objects.all()), "show", fails_once)
    speaker = Speaker(held.lease.run_id, held.lease.fence, 1, "tell#1", "tell")
    speaker("a")
    until(failed.is_set)
    until(lambda: "not shown for a moment" in caplog.text)
    speaker("b")
    assert until(lambda: shown(waiting_run)) == "ab"
    speaker.end()
    speaker("c")
    until(lambda: rounds.thread is None)
    assert shown(waiting_run) == "ab"


def test_a_reply_that_is_there_before_a_round_comes_costs_no_statement(monkeypatch):
    monkeypatch.setattr(rounds, "have", lambda speaker: None)
    with registered(graph_of(Scripted("A letter that is written at once."))):
        claimed = claim(start("writing", {}))
        with CaptureQueriesContext(connection) as queries:
            claimed.run()
    assert not [one for one in queries if "livetext" in one["sql"]]
    assert LedgerEntry.objects.get(kind="effect").status == "done"


def test_a_call_that_is_cancelled_leaves_nothing_that_is_shown(waiting_run):
    held = claim(waiting_run)
    say(held, "tell#1", "half a")
    waiting_run.refresh_from_db()
    waiting_run.cancel("user ada", "no need")
    assert shown(waiting_run) == ""
    Bell().look()
    assert not LiveText.objects.exists()
