"""Open pages follow what happens elsewhere, without a reload and without touching what their reader does."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from playwright.sync_api import Locator, Page, WebSocketRoute, expect

from runs import Graph, start
from runs.agent import Agent
from runs.model_endpoint import Endpoint
from runs.models import Run
from tests.approvals.cases import answer_of, ask
from tests.browser.conftest import SOON
from tests.runs.chat_server import ChatServer, stream
from tests.runs.driving import drive, registered
from tests.runs.test_agent import Case

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

note = Graph("note", operators="pm")


@note.node
def write(run, state):
    run.note("written")


def is_live(page: Page) -> Page:
    """Once its socket has answered; marked, so that a reload would be noticed."""
    expect(page.locator("html[data-socket=open]")).to_be_attached()
    page.evaluate("window.unbroken = true")
    return page


def is_unbroken(page: Page) -> bool:
    return page.evaluate("window.unbroken === true")


def until(condition: Callable[[], object], page: Page) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        page.evaluate("new Promise(requestAnimationFrame)")  # lets routes be called meanwhile


def with_its_clock_in_hand(page: Page, address: str) -> Page:
    """Open the address; from here on time passes for that page only in `seen_within` and `run_for`."""
    page.clock.install()
    page.clock.pause_at(datetime.now(UTC) + timedelta(seconds=1))
    page.goto(address)
    page.evaluate("window.unbroken = true")
    return page


def seen_within(page: Page, seconds: int, shown: Locator) -> None:
    """Let no more time than that pass for the page, until it shows this. How long that really takes does not count."""
    for _ in range(5 * seconds):
        page.clock.run_for(200)
        with suppress(AssertionError):
            return expect(shown).to_be_visible(timeout=SOON / (5 * seconds))
    raise AssertionError(f"after {seconds} s of its own the page does not show {shown}")


def test_a_decision_in_one_browser_is_seen_in_the_other_by_itself(open_as, ada, bob):
    """A11: its two seconds are those of the other page's clock, from when the socket has told it.

    So no timer of the page takes longer, and nothing that is read every 30 s can show it. What a busy machine takes
    for the way to the socket is waited for, not measured.
    """
    approval = ask(question="Send the brief?")
    told: list[str] = []
    other = open_as(bob)
    other.on("websocket", lambda socket: socket.on("framereceived", lambda said: told.append(str(said))))
    with_its_clock_in_hand(other, other.url.rstrip("/") + approval.get_absolute_url())
    expect(other.locator("html[data-socket=open]")).to_be_attached()
    page = open_as(ada, approval.get_absolute_url())
    page.locator(".action-bar .button-primary").click()
    until(lambda: answer_of(approval), page)
    until(lambda: str(approval.pk) in "".join(told), page)
    seen_within(other, 2, other.locator("#approval-state").get_by_text("ada approved this"))
    expect(other.locator(f"#row-{approval.pk}")).to_have_attribute("data-outcome", "approved")
    expect(other.locator(".action-bar .button-primary")).to_have_count(0)
    assert is_unbroken(other)


def test_with_sockets_blocked_the_page_reads_by_itself(open_as, ada, bob):
    """A11: not before 30 s and within 35 s of the page's own clock, which is moved; nothing is set shorter for it."""
    approval = ask()
    page, read = open_as(ada), []
    page.route_web_socket("**/live/", lambda socket: socket.close())
    with_its_clock_in_hand(page, page.url.rstrip("/") + approval.get_absolute_url())
    page.on("request", lambda request: read.append(request.url) if "hx-request" in request.headers else None)
    page.clock.run_for(4_000)
    expect(page.locator("[data-live-mark]")).to_contain_text("Reads every 30 s")
    approval.decide(by=bob, verdict="reject", reason="No.")
    page.clock.run_for(25_500)
    assert read == []
    seen_within(page, 5, page.locator("#approval-state").get_by_text("bob rejected this"))
    assert read
    assert is_unbroken(page)


def test_a_page_whose_socket_falls_silent_is_never_older_than_a_minute(open_as, ada, bob):
    """Whatever is lost on the way: it reads itself every 60 s of its own clock, though nothing was told."""
    approval = ask()
    page, read = open_as(ada), []

    def that_nothing_changed(socket: WebSocketRoute) -> None:
        socket.on_message(lambda _watched: socket.send('{"changed": []}'))

    page.route_web_socket("**/live/", that_nothing_changed)
    with_its_clock_in_hand(page, page.url.rstrip("/") + approval.get_absolute_url())
    page.on("request", lambda request: read.append(request.url) if "hx-request" in request.headers else None)
    expect(page.locator("html[data-socket=open]")).to_be_attached()
    approval.decide(by=bob, verdict="reject", reason="No.")
    page.clock.run_for(55_000)
    assert read == []
    seen_within(page, 6, page.locator("#approval-state").get_by_text("bob rejected this"))
    assert is_unbroken(page)


def test_what_one_decision_changes_is_read_in_two_answers(open_as, ada, bob):
    """The approval's three parts in one, the list, its "new" and the number in the other: all of it is put in."""
    approval = ask(question="Send the first?")
    page, read = open_as(ada), []
    with_its_clock_in_hand(page, page.url.rstrip("/") + approval.get_absolute_url())
    expect(page.locator("html[data-socket=open]")).to_be_attached()
    page.clock.run_for(1_000)
    page.on("request", lambda request: read.append(request.url) if "hx-request" in request.headers else None)
    ask(question="Send the second?")
    approval.decide(by=bob, verdict="reject", reason="No.")
    for shown in (
        page.locator("#approval-state").get_by_text("bob rejected this"),
        page.locator("#approval-people").get_by_text("bob rejected"),
        page.locator(f"#row-{approval.pk}[data-outcome=rejected]"),
        page.locator("#inbox-new").get_by_text("1 new"),
        page.locator("#inbox-count[value='1']"),
    ):
        seen_within(page, 5, shown)
    expect(page.locator("#approval-acts .button-primary")).to_have_count(0)
    expect(page.locator("hx-partial, template[hx]")).to_have_count(0)
    assert {re.sub("[?].*|http://[^/]+", "", url) for url in read} == {
        f"{approval.get_absolute_url()}parts/all/",
        "/inbox/list/",
    }
    assert is_unbroken(page)


IN_SIGHT_OR_NOT = """(state) => {
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_page_that_nobody_looks_at_reads_nothing_until_somebody_does(open_as, ada, bob):
    """Of fifty open pages the server makes anew those that are in front."""
    approval = ask()
    page, other, read, told = open_as(ada), open_as(bob), [], []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda said: told.append(str(said))))
    with_its_clock_in_hand(page, page.url.rstrip("/") + approval.get_absolute_url())
    expect(page.locator("html[data-socket=open]")).to_be_attached()
    page.evaluate(IN_SIGHT_OR_NOT, "hidden")
    page.clock.run_for(1_000)
    told.clear()
    page.on("request", lambda request: read.append(request.url) if "hx-request" in request.headers else None)
    approval.decide(by=bob, verdict="reject", reason="No.")
    until(lambda: str(approval.pk) in "".join(told) and "inbox" in "".join(told), other)
    page.clock.run_for(59_000)
    assert read == []
    page.evaluate(IN_SIGHT_OR_NOT, "visible")
    seen_within(page, 2, page.locator("#approval-state").get_by_text("bob rejected this"))
    assert is_unbroken(page)


def test_who_has_paused_it_catches_up_when_it_goes_on(open_as, ada, bob):
    approval = ask()
    page = is_live(open_as(ada, approval.get_absolute_url()))
    page.locator("[popovertarget=account]").first.click()
    follow = page.get_by_label("Follow changes while a page is open")
    follow.uncheck()
    expect(page.locator("html[data-socket=paused]")).to_be_attached()
    expect(page.locator("[data-live-mark]")).to_contain_text("Paused")
    approval.decide(by=bob, verdict="reject", reason="No.")
    expect(page.locator("#approval-state").get_by_text("bob rejected this")).to_have_count(0)
    follow.check()
    expect(page.locator("#approval-state").get_by_text("bob rejected this")).to_be_visible()
    assert is_unbroken(page)


def test_a_lost_socket_comes_back_and_the_page_catches_up(open_as, ada, bob):
    approval = ask()
    page = open_as(ada)
    opened, refused, is_down = [], [], False

    def connect(socket: WebSocketRoute) -> None:
        if is_down:
            refused.append(socket)
            socket.close()
        else:
            socket.connect_to_server()
            opened.append(socket)

    page.route_web_socket("**/live/", connect)
    page.goto(page.url.rstrip("/") + approval.get_absolute_url())
    is_live(page)
    is_down = True
    opened[-1].close()
    until(lambda: refused, page)
    approval.decide(by=bob, verdict="reject", reason="No.")
    is_down = False
    expect(page.locator("#approval-state")).to_contain_text("bob rejected this")
    approval.undo(bob)
    expect(page.locator("#approval-state")).to_contain_text("Waiting for you")
    assert is_unbroken(page)


def test_typed_text_caret_and_scroll_survive_what_arrives(open_as, ada, bob):
    approval = ask(quorum=2, why="\n\n".join(["A long reason."] * 60))
    page = is_live(open_as(ada, approval.get_absolute_url(), height=600))
    subject = page.get_by_role("textbox", name="Subject", exact=True)
    subject.fill("What ada types")
    subject.evaluate("(element) => element.setSelectionRange(5, 8)")
    standing = """() => {
      const field = document.activeElement;
      return [field.value, field.selectionStart, field.selectionEnd, Math.round(field.getBoundingClientRect().top),
        scrollY, document.querySelector(".split-detail").scrollTop];
    }"""
    before = page.evaluate(standing)
    assert before[:3] == ["What ada types", 5, 8]
    assert max(before[4:]) > 0, "the page must have been scrolled"
    approval.comment(bob, "Mind the date.")
    expect(page.locator("#approval-people")).to_contain_text("Mind the date.", timeout=SOON)
    approval.decide(by=bob, verdict="approve")
    expect(page.locator("#approval-people")).to_contain_text(re.compile("bob approved"), timeout=SOON)
    assert page.evaluate(standing) == before
    page.keyboard.type("bob")
    expect(subject).to_have_value("What bob types")
    assert is_unbroken(page)


def test_what_a_reader_opened_stays_open(open_as, ada, bob):
    approval = ask(quorum=2)
    page = is_live(open_as(ada, approval.get_absolute_url()))
    opened = page.locator("#detail details").first
    opened.locator("summary").click()
    approval.decide(by=bob, verdict="approve")
    expect(page.locator("#approval-people")).to_contain_text("bob approved", timeout=SOON)
    expect(opened).to_have_attribute("open", "")


def test_new_approvals_wait_behind_a_count_and_move_no_row(open_as, ada):
    first = ask(question="First?")
    page = is_live(open_as(ada))
    expect(page.locator("#inbox-count")).to_contain_text("1")
    ask(question="Second?")
    expect(page.locator("#inbox-new")).to_contain_text("1 new", timeout=SOON)
    expect(page.locator("#inbox-count")).to_contain_text("2", timeout=SOON)
    expect(page.locator(".inbox-row")).to_have_count(1)
    expect(page.locator(f"#row-{first.pk}")).to_be_visible()
    assert is_unbroken(page)


def test_an_approval_opened_in_place_is_watched_too(open_as, ada, bob):
    """What a page watches follows what it shows."""
    ask(question="First?")
    second = ask(question="Second?")
    page = is_live(open_as(ada))
    page.evaluate(
        """(path) => fetch(path).then((answer) => answer.text()).then((text) => {
          const page = new DOMParser().parseFromString(text, "text/html");
          document.querySelector(".split-detail").replaceWith(page.querySelector("#detail"));
        })""",
        second.get_absolute_url(),
    )
    expect(page.locator("#approval-people")).to_be_attached()
    second.comment(bob, "Mind the date.")
    expect(page.locator("#approval-people")).to_contain_text("Mind the date.")
    assert is_unbroken(page)


def test_a_run_is_followed_while_it_changes(open_as, ada, bob):
    with registered(note):
        run = start("note", by=ada)
        page = is_live(open_as(ada, run.get_absolute_url()))
        run.cancel("user bob", "No more need.")
        expect(page.locator("#run")).to_contain_text("No more need.", timeout=SOON)
        assert is_unbroken(page)


def test_what_changed_before_the_socket_opened_is_caught_up_with(open_as, ada, bob):
    approval = ask()
    page = open_as(ada)
    held = []
    page.route("**/live.js", lambda route: held.append(route))
    page.goto(page.url.rstrip("/") + approval.get_absolute_url(), wait_until="commit")
    until(lambda: held, page)
    approval.decide(by=bob, verdict="reject", reason="No.")
    expect(page.locator("#approval-state")).to_contain_text("Waiting for you")
    held[0].continue_()
    expect(page.locator("#approval-state")).to_contain_text("bob rejected this")


def test_a_text_is_seen_growing_and_then_as_it_was_recorded(open_as, ada, monkeypatch):
    """A21: over the socket, between processes; nothing on the page moves for it, and nothing is read aloud twice."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    goes_on, ends = threading.Event(), threading.Event()
    pieces = stream("Dear <i>Ada</i>,\n", goes_on, "the parcel is ", "\n" * 40, "on its way", ends, ".")
    letter, agent = Graph("letter", state=Case, viewers="pm"), Agent("You write.", None)

    @letter.node
    def write(run, state):
        state.answer = agent.turn(run, state.talk, "A letter to Ada.")

    with ChatServer(pieces) as server, registered(letter):
        agent.model = Endpoint(server.url, "tiny")
        run = start(letter, {})
        page = is_live(open_as(ada, run.get_absolute_url()))
        driving = threading.Thread(target=driven, args=(run.pk,))
        driving.start()
        try:
            text = page.locator(".live-text p")
            expect(text).to_contain_text("Dear <i>Ada</i>,", timeout=SOON)
            ledger = page.locator("#ledger")
            expect(ledger).not_to_contain_text("Dear")
            box, top = page.locator(".live-text").bounding_box(), ledger.bounding_box()
            goes_on.set()
            expect(text).to_contain_text("on its way", timeout=SOON)
            assert page.locator(".live-text").bounding_box() == box and ledger.bounding_box() == top
            assert "on its way" in page.evaluate(IN_SIGHT), "the newest line is the one in sight"
            expect(page.locator(".live-text [aria-live], .live-texts[aria-live]")).to_have_count(0)
        finally:
            goes_on.set()
            ends.set()
            driving.join(60)
        expect(ledger).to_contain_text("on its way.", timeout=SOON)
        expect(page.locator(".live-text")).to_have_count(0)
        assert is_unbroken(page)


IN_SIGHT = """() => {
  const frame = document.querySelector(".live-text-frame"), end = document.createRange();
  const text = frame.querySelector("p").lastChild;
  end.setStart(text, text.length - 10);
  end.setEnd(text, text.length);
  const line = end.getBoundingClientRect(), around = frame.getBoundingClientRect();
  return line.top >= around.top && line.bottom <= around.bottom ? end.toString() : "";
}"""


def driven(run_id: object) -> None:
    """In a thread of its own, as a worker would."""
    try:
        drive(Run.objects.get(pk=run_id))
    finally:
        connection.close()
