"""What a run's page, list and commands say of waits and of the mailbox."""

from __future__ import annotations

import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from runs import Ask, Graph, TimedOut, Timer, Wait, start
from runs.core import codec
from runs.engine import clock
from runs.live.tail import Tail
from runs.models import Run, Signal
from runs.pages.contents import RunPage
from runs.pages.rows import rows
from tests.runs.driving import answer, drive, pass_time, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)

parcels = Graph("page-parcels", state=Log, viewers="pm")


@parcels.node(then="rest")
def wait(run, state):
    state.log.append(
        str(run.gather(Wait("arrived", timeout=HOUR), Ask("Fine?", name="fine", reviewers="pm"))[0])
    )


@parcels.node
def rest(run, state):
    try:
        run.wait_for("<returned>", timeout=HOUR)
    except TimedOut:
        run.gather(Timer(HOUR), *[Wait("more") for _ in range(3)])


@pytest.fixture(autouse=True)
def known():
    with registered(parcels):
        yield


def page(run: Run) -> RunPage:
    run.refresh_from_db()
    return RunPage(run, clock.now())


def text_of(client, run: Run) -> str:
    return client.get(reverse("runs:run", args=[run.pk])).content.decode()


def in_rest() -> Run:
    """It waits for <returned>, with one signal read, one unread."""
    run = start(parcels, {})
    run.signal("lost", {"why": "<b>rain</b>"}, key="evt_7", by="the carrier")
    run.signal("arrived", "today")
    drive(run)
    answer(run, "fine")
    drive(run)
    return run


def test_a_waiting_run_says_what_for_and_until_when(client, ada):
    run = start(parcels, {})
    drive(run)
    sentence = page(run).sentence
    assert sentence.text == "Waiting for the signal “arrived” and pm to answer “Fine?”"
    assert sentence.due_at == run.entries.get(kind="signal").due_at
    run = in_rest()
    assert page(run).sentence.text == "Waiting for the signal “<returned>”"
    assert [row.sentence.text for row in rows([run], clock.now())] == ["Waiting for the signal “<returned>”"]
    client.force_login(ada)
    assert "Waiting for the signal “&lt;returned&gt;”" in text_of(client, run)
    pass_time(3601)
    drive(run)
    assert page(run).sentence.text == "Waiting for 4 answers"
    for _ in range(3):
        run.signal("more")
    drive(run)
    assert page(run).sentence.text == "Waiting for its timer"


def test_the_mailbox_shows_each_signal_and_who_read_it(client, ada):
    run = in_rest()
    arrived, lost = page(run).mailbox
    assert (arrived.status, arrived.signal.consumed_by.key, arrived.payload) == (
        "delivered",
        "arrived#1",
        '"today"',
    )
    assert (lost.status, lost.by) == ("unread", "the carrier")
    client.force_login(ada)
    text = text_of(client, run)
    assert "2 signals, newest first" in text and "evt_7" in text
    assert "&lt;b&gt;rain&lt;/b&gt;" in text and "<b>rain" not in text
    assert 'data-status="unread"' in text
    assert f'href="?entry={arrived.signal.consumed_by_id}#entry-{arrived.signal.consumed_by_id}"' in text


def test_what_a_run_never_read_is_undelivered_when_it_has_ended(client, ada):
    """S10"""
    run = in_rest()
    run.cancel("olga", "enough")
    assert [mail.status for mail in page(run).mailbox] == ["delivered", "undelivered"]
    client.force_login(ada)
    text = text_of(client, run)
    assert 'data-status="undelivered"' in text
    assert "what is undelivered is kept" in text


def test_a_run_without_signals_has_no_mailbox(client, ada):
    run = start(parcels, {})
    drive(run)
    client.force_login(ada)
    assert 'id="mailbox"' not in text_of(client, run)


def test_a_wait_that_timed_out_is_expired_and_not_failed(client, ada):
    run = in_rest()
    pass_time(3601)
    drive(run)
    views = {view.entry.key: view for view in page(run).ledger}
    assert (views["<returned>#1"].shown, views["arrived#1"].shown) == ("expired", "done")
    assert "came before" in views["<returned>#1"].answer
    told = {row.name: row for row in page(run).timeline.rows}
    assert told["the signal “<returned>”"].status == "expired"
    assert told["the signal “arrived”"].note == "today, from system"
    client.force_login(ada)
    assert 'data-status="expired"' in text_of(client, run)


def test_an_open_page_learns_of_a_signal():
    run = start(parcels, {})
    tail = Tail()
    tail.look()
    run.signal("arrived")
    assert tail.look() == {"run": {run.pk}}


# -- commands -------------------------------------------------------------------------------------------------


def command(*words: str) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()


def test_the_command_sends_a_signal_once_under_a_key(tmp_path):
    run = start(parcels, {})
    drive(run)
    (tmp_path / "payload.json").write_text('{"at": "noon"}')
    words = (
        "signal",
        str(run.pk),
        "arrived",
        "--payload",
        f"@{tmp_path}/payload.json",
        "--key",
        "evt_1",
        "--json",
    )
    told = json.loads(command(*words))
    assert json.loads(command(*words)) == told
    sent = Signal.objects.get()
    assert (told["run"], told["signal"], told["name"]) == (str(run.pk), sent.pk, "arrived")
    assert (told["key"], told["by"], told["status"]) == ("evt_1", sent.by, "waiting")
    assert sent.by.startswith("shell of ")
    assert codec.loads(sent.payload) == {"at": "noon"}
    assert "is in its mailbox" in command("signal", run.short_id, "arrived")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("arrived", "--payload", "{"), "--payload is not JSON"),
        (("arrived", "--payload", '"other"', "--key", "evt_1"), "give it a key of its own"),
        ((" ",), "a name has 1 to 120 characters"),
    ],
)
def test_the_command_says_in_one_line_what_is_wrong(words, said):
    run = start(parcels, {})
    run.signal("arrived", key="evt_1")
    with pytest.raises(CommandError, match=said) as refused:
        command("signal", str(run.pk), *words)
    assert "\n" not in str(refused.value)


def test_show_tells_of_the_mailbox():
    run = in_rest()
    lost, arrived = json.loads(command("show", str(run.pk), "--json"))["signals"]
    assert (arrived["name"], arrived["payload"], arrived["read_by"]) == (
        "arrived",
        "today",
        {"step": 1, "key": "arrived#1"},
    )
    assert (lost["key"], lost["payload"], lost["read_by"]) == ("evt_7", {"why": "<b>rain</b>"}, None)
    text = command("show", str(run.pk))
    assert "  lost: unread\n" in text and "  arrived: read in step 1" in text
