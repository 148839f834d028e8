"""The run console: who sees what, what a run's page says of it, and how its story is told."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection
from django.urls import reverse
from django.utils import timezone
from pydantic import BaseModel

from runs import END, Ambiguous, Graph, Permanent, Retry, Transient, start, tool
from runs.conf import conf
from runs.engine import clock
from runs.models import Run
from runs.models.tombstone import ERASED
from runs.pages.contents import RunPage
from tests.runs.driving import answer, claim, drive, pass_lease, pass_time, registered

pytestmark = pytest.mark.django_db(transaction=True)


class Order(BaseModel):
    number: str
    note: str = ""
    fate: str = "ship"
    tries: int = 0


@tool
def stock(number: str) -> int:
    return 7


@tool(kind="write")
def charge_card(number: str) -> str:
    raise Ambiguous("no answer within 30 s")


order = Graph("page-order", state=Order, viewers="pm", operators="ops")


@order.node(then=("check", "ask"), retry=Retry(attempts=2, first=20))
def check(run, state):
    run.call(stock, number=state.number)
    if state.fate == "fail":
        raise Permanent("the currency does not match")
    if state.fate == "charge":
        run.call(charge_card, number=state.number)
    if state.fate == "retry" and run.step == 1:
        raise Transient("the warehouse is closed")
    state.note = run.note("7 in stock") or "7 in stock"
    return "ask"


@order.node(then=END)
def ask(run, state):
    run.interrupt("Ship <it> & go?", payload={"number": state.number}, reviewers="pm", due=timedelta(hours=8))
    blob = run.blob(b"the <b>slip</b>", "text/html")
    state.note = blob.sha256
    return END


@pytest.fixture(autouse=True)
def known():
    with registered(order):
        yield


def started(fate: str = "ship", **more: object) -> Run:
    return start(order, {"number": "51-0447", "fate": fate}, **more)


def page(run: Run, **asked: int) -> RunPage:
    run.refresh_from_db()
    return RunPage(run, clock.now(), **asked)


ROUTES = ["runs:run", "runs:live"]


@pytest.mark.parametrize("route", ROUTES)
def test_someone_elses_run_is_not_there(client, person, eve, route: str) -> None:
    """O5: also not by a guessed id."""
    run = started(by=person("bob"))
    client.force_login(eve)
    assert client.get(reverse(route, args=[run.pk])).status_code == 404
    client.force_login(person("ada", "pm"))
    assert client.get(reverse(route, args=[run.pk])).status_code == 200


def test_the_list_shows_only_what_one_may_see(client, person, eve) -> None:
    """O5"""
    mine, other = started(by=eve), started(by=person("bob"))
    client.force_login(eve)
    text = client.get(reverse("runs:list")).content.decode()
    assert mine.short_id in text
    assert other.short_id not in text


def test_strangers_are_asked_to_sign_in(client) -> None:
    for address in (reverse("runs:list"), reverse("runs:rows"), reverse("runs:run", args=[started().pk])):
        answered = client.get(address)
        assert answered.status_code == 302
        assert answered.url.startswith(reverse("login"))


def test_a_blob_is_served_only_below_a_run_that_uses_it_and_never_as_a_page(client, ada, eve) -> None:
    """O5"""
    run, other = started(), started()
    drive(run)
    answer(run)
    drive(run)
    sha256 = run.state_at()["note"]
    client.force_login(ada)
    served = client.get(reverse("runs:blob", args=[run.pk, sha256]))
    assert served.content == b"the <b>slip</b>"
    assert served["Content-Type"].startswith("text/plain")
    assert "sandbox" in served["Content-Security-Policy"]
    assert client.get(reverse("runs:blob", args=[other.pk, sha256])).status_code == 404
    client.force_login(eve)
    assert client.get(reverse("runs:blob", args=[run.pk, sha256])).status_code == 404


def test_a_waiting_run_says_in_a_sentence_what_for(client, ada) -> None:
    run = started()
    drive(run)
    assert page(run).sentence.text == "Waiting for pm to answer “Ship <it> & go?”"
    client.force_login(ada)
    text = client.get(reverse("runs:run", args=[run.pk])).content.decode()
    assert "Ship &lt;it&gt; &amp; go?" in text
    assert "<it>" not in text


def test_the_steps_that_were_taken_are_told_and_drawn() -> None:
    run = started()
    drive(run)
    answer(run)
    drive(run)
    story = page(run).story
    assert [(step.node, step.status) for step in story.steps] == [
        ("check", "completed"),
        ("ask", "completed"),
    ]
    assert story.taken == {("check", "ask"), ("ask", END)}
    picture = page(run).picture
    assert {(edge.line.source, edge.line.target) for edge in picture.tall.edges if edge.taken} == story.taken
    assert [node.word for node in picture.wide.nodes] == ["Completed", "Completed"]


def test_the_state_at_any_checkpoint_is_shown_with_what_changed(client, ada) -> None:
    """MISSION C1"""
    run = started()
    drive(run)
    step = run.checkpoints.get(kind="step")
    view = page(run, at=step.seq).checkpoint
    assert [(line.path, line.old, line.new) for line in view.lines] == [("note", '""', '"7 in stock"')]
    assert json.loads(view.state)["note"] == "7 in stock"
    assert page(run, at=step.seq, against=step.seq).checkpoint.lines == []
    client.force_login(ada)
    assert client.get(reverse("runs:run", args=[run.pk]), {"at": 999}).status_code == 404
    assert client.get(reverse("runs:run", args=[run.pk]), {"at": "x"}).status_code == 200


def test_the_state_when_it_failed_is_one_click_away(client, ada) -> None:
    """MISSION C2"""
    run = started("fail")
    drive(run)
    shown = page(run)
    assert shown.sentence.text.startswith("Failed in check")
    assert "the currency does not match" in shown.sentence.text
    client.force_login(ada)
    text = client.get(reverse("runs:run", args=[run.pk])).content.decode()
    assert f'href="?at={run.seq}#state"' in text
    assert page(run, at=run.seq).checkpoint.says == "failed"


def test_a_lost_worker_and_the_claim_after_it_are_in_the_timeline() -> None:
    run = started()
    claim(run, "host-a:boot:41:1")
    pass_lease()
    drive(run, "w2")
    drive(run, "w2")
    first = page(run).story.steps[0]
    assert first.kills == 1
    assert "Its worker died or fell silent" in [row.name for row in page(run).timeline.rows]


def test_a_retry_is_told_with_its_reason_and_when_it_goes_on() -> None:
    run = started("retry")
    drive(run)
    sentence = page(run).sentence
    assert sentence.text.startswith("Try 1 of check failed")
    assert "the warehouse is closed" in sentence.text
    assert sentence.due_at == run.wake_at
    pass_time(60)
    assert page(run).sentence.text.endswith("the next one is due now")


def test_only_operators_cancel_and_only_with_a_reason(client, ada, olga) -> None:
    run = started()
    drive(run)
    address = reverse("runs:cancellation", args=[run.pk])
    client.force_login(ada)
    assert client.post(address, {"reason": "because"}).status_code == 403
    client.force_login(olga)
    assert client.get(address).url == run.get_absolute_url()
    client.post(address, {"reason": " "})
    run.refresh_from_db()
    assert run.status == "waiting"
    client.post(address, {"reason": "ordered twice"})
    run.refresh_from_db()
    assert run.status == "cancelled"
    assert page(run).sentence.text == "Cancelled by olga: ordered twice"


def test_a_cancelled_run_whose_write_is_in_doubt_says_both(olga) -> None:
    """Also when the run has ended, someone must say what became of what was sent."""
    run = started("charge")
    claimed = claim(run)
    claimed.run()
    run.refresh_from_db()
    run.cancel("user olga", "ordered twice")
    assert page(run).sentence.text == (
        "Cancelled by olga: ordered twice; whether charge_card happened is still open"
    )
    [doubtful] = page(run).doubtful
    assert doubtful.entry.name == "charge_card"


def test_the_list_is_narrowed_by_what_its_address_says(client, ada) -> None:
    waiting, failed = started(labels={"customer": "northwind"}), started("fail")
    drive(waiting)
    drive(failed)
    client.force_login(ada)

    def listed(**query: str) -> set[str]:
        rows = client.get(reverse("runs:list"), query).context["rows"]
        return {row.run.pk for row in rows}

    assert listed() == {waiting.pk, failed.pk}
    assert listed(status="failed") == {failed.pk}
    assert listed(q="currency") == {failed.pk}
    assert listed(q=str(waiting.pk)) == {waiting.pk}
    assert listed(q=waiting.short_id) == {waiting.pk}
    assert listed(label="customer: northwind") == {waiting.pk}
    assert listed(graph="none") == set()
    assert listed(still="1h") == set()
    assert listed(status="nonsense", before="nonsense", tries="x") == {waiting.pk, failed.pk}
    pass_time(2 * 3600)
    assert listed(still="1h") == {waiting.pk}


def test_new_runs_are_counted_and_move_nothing(client, ada) -> None:
    old = started()
    client.force_login(ada)
    top = client.get(reverse("runs:list")).context["top"]
    started()
    again = client.get(reverse("runs:rows"), {"top": top})
    assert [row.run.pk for row in again.context["rows"]] == [old.pk]
    assert again.context["newer"] == 1
    assert "1 new run" in again.content.decode()


def test_a_page_of_the_list_costs_the_same_for_one_run_and_for_many(
    client, ada, django_assert_max_num_queries
) -> None:
    client.force_login(ada)
    for _ in range(12):
        drive(started())
    with django_assert_max_num_queries(14):  # PostgreSQL is asked for its clock as well
        client.get(reverse("runs:list"))


def test_what_a_run_spent_is_added_up_on_its_page(client, ada, monkeypatch) -> None:
    """C1: from the rows alone; a value of somebody's own under that name is none, and no cost is not shown."""

    class Bill(BaseModel):
        tokens: int = 0

    billed = Graph("page-bill", state=Bill, viewers="pm")

    @billed.node(then=END)
    def pay(run, state):
        run.spend(tokens=1_200, usd="0.0123")
        run.spend(tokens=34, usd=Decimal("1.10"))
        run.once("spend", lambda: {"tokens": "many"})
        run.once("other", lambda: 1)
        return END

    with registered(billed):
        run = start(billed, {})
        drive(run)
        assert page(run).spent == ["1.11 USD", "1,234 tokens"]
        monkeypatch.setattr("runs.pages.contents.ENTRIES_SHOWN", 1)
        assert page(run).spent == ["1.11 USD", "1,234 tokens"], "also of those that the page does not list"
        client.force_login(ada)
        assert "1,234 tokens" in client.get(run.get_absolute_url()).content.decode()
    free = started()
    drive(free)
    assert page(free).spent == []


def test_the_page_of_a_run_costs_few_statements(client, ada, django_assert_max_num_queries) -> None:
    client.force_login(ada)
    run = started()
    drive(run)
    clock = connection.vendor == "postgresql"  # which is asked for its time
    with django_assert_max_num_queries(24 + clock):  # two of them for the names of people
        client.get(reverse("runs:run", args=[run.pk]))


def test_the_pages_hold_no_inline_script_and_no_inline_style(client, ada) -> None:
    run = started("fail")
    drive(run)
    client.force_login(ada)
    for address in (reverse("runs:list"), reverse("runs:run", args=[run.pk])):
        answered = client.get(address)
        text = answered.content.decode()
        assert " style=" not in text
        assert "<style" not in text
        assert " onclick=" not in text
        assert "hx-on" not in text
        for script in text.split("<script")[1:]:
            assert "src=" in script.split(">", 1)[0]
            assert 'nonce="' in script.split(">", 1)[0]


def test_preferences_go_into_cookies_and_lead_back(client, ada) -> None:
    client.force_login(ada)
    address = reverse("runs:preferences")
    kept = client.post(address, {"theme": "dark", "back": "/runs/"})
    assert kept.url == "/runs/"
    assert client.cookies["theme"].value == "dark"
    assert client.cookies["keys"].value == client.cookies["live"].value == "off"
    page = client.get(reverse("runs:list")).content.decode()
    assert 'data-theme="dark"' in page and 'data-follow="off"' in page
    away = client.post(address, {"theme": "purple", "keys": "on", "back": "https://elsewhere.example/"})
    assert away.url == "/"
    assert client.cookies["theme"].value == "system"
    assert client.cookies["live"].value == "off"
    client.post(address, {"theme": "dark", "keys": "on", "live": "on"})
    assert "data-follow" not in client.get(reverse("runs:list")).content.decode()
    assert client.get(address).url == "/"
    assert client.cookies["theme"].value == "dark"


def test_every_template_of_the_runs_is_reached_by_a_page() -> None:
    here = Path(__file__).resolve().parents[2] / "templates" / "runs"
    texts = {path.name: path.read_text() for path in here.glob("*.html")}
    for name in texts:
        if name.startswith("_") and name not in {"_rows.html", "_run.html"}:
            assert any(f"runs/{name}" in text for other, text in texts.items() if other != name), name


def test_a_run_names_its_worker_and_when_it_was_heard(client, ada) -> None:
    """A worker that is dead stays named until its lease ends."""
    run = started()
    claim(run)
    heard = page(run).heard_at
    assert heard is not None and abs(clock.now() - heard) < conf.lease
    assert heard + conf.lease == run.wake_at
    client.force_login(ada)
    text = client.get(reverse("runs:run", args=[run.pk])).content.decode()
    assert "heard at" in text and f"{timezone.localtime(heard):%H:%M:%S}" in text
    assert page(started()).heard_at is None


def test_each_row_of_the_timeline_of_an_erased_run_has_a_name() -> None:
    run = started()
    drive(run)
    run.cancel("olga", "not needed")
    run.refresh_from_db()
    run.erase("asked for", "olga")
    names = [row.name for row in page(run).timeline.rows]
    assert all(names) and ERASED in names
