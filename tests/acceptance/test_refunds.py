"""The refund agent against its payment provider, a real process, with each of its faults and with real kills."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from examples.refunds.graphs import REFUND_KEY, desk, refund_agent
from examples.refunds.payments import pay_back
from examples.refunds.provider import ORDERS, Book
from runs import Found, start
from runs.agent import Scripted, Use
from runs.engine.verify import first_bad_row
from runs.language_model import SCRIPTED
from runs.models import LedgerEntry, Run
from runs.testing import crash_everywhere, drive
from tests import warm_start
from tests.acceptance.installation import driver_of, ended, kill, until, working
from tests.amounts import KILLS
from tests.conftest import ROOT
from tests.runs.driving import kills_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

LAMP = {"order": "A-17", "request": "It arrived broken."}
SOFA = {"order": "B-4", "request": "It does not fit through the door."}
LAMP_KEY, SOFA_KEY = (REFUND_KEY.replace("{order}", given["order"]) for given in (LAMP, SOFA))
YES = {"verdict": "approve", "by": "ada"}

StartProvider = Callable[..., Book]


@pytest.fixture(autouse=True)
def without_model(monkeypatch) -> None:
    for name in ("BRIEF_MODEL_URL", "BRIEF_MODEL_NAME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def provider(monkeypatch, tmp_path) -> Iterator[StartProvider]:
    """provider("lose", forgets=True) starts one that fails so; returns its book."""
    with ExitStack() as running:

        def begin(*faults: str, forgets: bool = False, slow_seconds: float = 30.0) -> Book:
            book = Book(tmp_path / "refunds.jsonl")
            options = ["--faults", ",".join(faults), "--slow-seconds", str(slow_seconds)]
            url = running.enter_context(
                _serving(book.path, *options, *(["--forgets-keys"] if forgets else []))
            )
            monkeypatch.setenv("REFUND_PROVIDER_URL", url)
            return book

        yield begin


@contextmanager
def _serving(book: Path, *options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "examples.refunds.provider", "--book", str(book), *options]
    with warm_start.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


@pytest.fixture
def paying(monkeypatch) -> Callable[..., None]:
    """paying(honours_key=False) makes the desk pay with a tool that is otherwise."""

    def use(**changes: Any) -> None:
        own = desk.uses["pay_back"]
        monkeypatch.setitem(desk.uses, "pay_back", Use(replace(pay_back, **changes), own.approve, own.key))

    return use


def talk_of(run: Run) -> dict[str, Any]:
    return run.state_at()["talk"]["v"]


def told(run: Run) -> str:
    """What the model was told about the refund."""
    return [message for message in talk_of(run)["messages"] if message["role"] == "tool"][-1]["content"]


def only_refund(book: Book, run: Run) -> dict[str, str]:
    (refund,) = book.refunds()
    assert refund["key"].startswith(f"refund:{run.pk}:")
    return refund


# -- an ordinary case


def test_a_small_refund_is_paid_and_says_who_decided(provider):
    book = provider()
    run = drive(refund_agent, LAMP)

    refund = only_refund(book, run)
    assert (run.status, told(run), refund["amount"]) == ("completed", refund["id"], ORDERS["A-17"]["paid"])
    assert run.state_at()["answer"] == f"You get your money back. ({SCRIPTED}; {refund['id']})"
    request = json.loads(LedgerEntry.objects.get(run=run, name="pay_back").request)
    assert request["reason"] == f"({SCRIPTED}) The customer writes: It arrived broken."


def test_above_the_limit_a_person_sees_and_changes_the_very_payment(provider):
    book, seen = provider(), []

    def less(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        return {"verdict": "edit", "payload": request["payload"] | {"amount": "120.00"}, "by": "ada"}

    run = drive(refund_agent, SOFA, {f"{SOFA_KEY}?": less})
    assert (run.status, only_refund(book, run)["amount"]) == ("completed", "120.00")
    (request,) = seen
    assert request["question"] == "Refund 240.00 EUR for order B-4?"
    assert SCRIPTED in request["payload"]["reason"] and SCRIPTED in request["why"]
    assert told(run).startswith("A person changed it to {") and told(run).endswith(book.refunds()[0]["id"])


def test_a_rejected_refund_is_not_paid(provider):
    book = provider()
    no = {"verdict": "reject", "reason": "Ask the customer first", "by": "ada"}
    run = drive(refund_agent, SOFA, {f"{SOFA_KEY}?": no})
    assert (run.status, book.refunds()) == ("completed", [])
    assert run.state_at()["answer"].startswith("We do not refund this.")
    assert told(run) == "Not done: a person rejected it. Ask the customer first"


def test_what_the_provider_refuses_is_told_in_its_words_and_another_order_is_not_for_the_model_to_choose(
    provider, monkeypatch
):
    book, because = provider(), {"reason": "It is broken."}
    script = Scripted(
        ("pay_back", {"amount": "45.00"} | because),
        ("pay_back", {"amount": "30.00", "order": "B-4"} | because),
        "I am sorry.",
    )
    monkeypatch.setattr("examples.refunds.graphs.SCRIPT", script)
    run = drive(refund_agent, LAMP)
    refused, not_given = [
        message["content"] for message in talk_of(run)["messages"] if message["role"] == "tool"
    ]
    assert refused.endswith(
        "The payment provider refuses: 30.00 was paid for order A-17, so 45.00 cannot be refunded"
    )
    assert not_given == "Not done: order: is filled in already; leave it out"
    assert (run.status, book.refunds()) == ("completed", [])


def test_an_order_that_is_not_there_is_told_to_the_customer(provider):
    book = provider()
    run = drive(refund_agent, {"order": "Z-9", "request": "Money back!"})
    assert (run.status, book.refunds()) == ("completed", [])
    assert run.state_at()["answer"].startswith("We could not find your order.")


def test_without_a_provider_nothing_is_promised(monkeypatch):
    monkeypatch.delenv("REFUND_PROVIDER_URL", raising=False)
    run = drive(refund_agent, LAMP)
    assert "REFUND_PROVIDER_URL is not set" in run.state_at()["answer"]


# -- the provider's faults: exactly one refund each


@pytest.mark.parametrize(
    "faults", [("busy",), ("lose",), ("lose", "busy", "lose"), ("twice",), ("slow",), ("slow", "lose")]
)
def test_whatever_becomes_of_the_answer_the_money_is_paid_once(provider, paying, faults):
    """MISSION A6: the provider honours the key, so it is asked again with the same one."""
    paying(limit=timedelta(seconds=2 if "slow" in faults else 60))
    book = provider(*faults)
    run = drive(refund_agent, LAMP)
    assert (run.status, told(run)) == ("completed", only_refund(book, run)["id"])
    assert first_bad_row(run) is None


@pytest.mark.parametrize("fault", ["lose", "slow"])
def test_a_provider_that_forgets_keys_is_asked_first(provider, paying, fault):
    """MISSION A6: it would pay again, so it is not called again; it is asked what became of the first call."""
    paying(limit=timedelta(seconds=2), honours_key=False, reconcile=find_refund)
    book = provider(fault, forgets=True)
    run = drive(refund_agent, LAMP)
    assert (run.status, told(run)) == ("completed", only_refund(book, run)["id"])


def find_refund(idempotency_key: str, arguments: dict[str, Any]) -> Found | None:
    url = os.environ["REFUND_PROVIDER_URL"]
    answer = httpx.get(f"{url}/refunds", params={"key": idempotency_key})
    return None if answer.status_code == 404 else Found(answer.json()["id"])


@pytest.mark.parametrize(
    ("said", "refunds", "result"),
    [
        ({"outcome": "happened", "result": "R-17"}, 1, "R-17"),
        ({"outcome": "give_up"}, 1, "It failed: "),
    ],
)
def test_where_nobody_can_tell_it_is_in_doubt_and_a_person_settles_it(
    provider, paying, said, refunds, result
):
    """MISSION A6: neither a key nor a way to ask."""
    paying(honours_key=False)
    book = provider("lose", forgets=True)
    asked: list[Any] = []

    def settle(request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["settles"]["request"]["amount"])
        return {"verdict": "respond", "payload": said, "by": "olga"}

    run = drive(refund_agent, LAMP, {f"{LAMP_KEY}!": settle})
    assert (run.status, asked, len(book.refunds())) == ("completed", ["30.00"], refunds)
    assert told(run).startswith(result)


# -- kills


def test_wherever_its_process_is_killed_the_refund_is_paid_once(provider):
    """MISSION P1, P3, A11: each try is a run of its own. The provider's book is the witness, and the kit's journal."""
    book = provider()
    report = crash_everywhere(refund_agent, SOFA, {f"{SOFA_KEY}?": YES}, kills=KILLS)
    assert (report.status, report.effects, report.in_doubt) == ("completed", {"pay_back": 1}, 0)
    assert {"call", "called", "open effect", "change effect", "read", "was read"} <= set(report.boundaries)
    keys = [refund["key"] for refund in book.refunds()]
    assert len(keys) == len(set(keys)) == Run.objects.filter(graph="refund-agent").count()
    assert report.kills == kills_of(report) == len(keys) - (1 if KILLS else 2), (
        "one run nobody killed, and where all are tried one no kill reached"
    )
    replies = LedgerEntry.objects.filter(name="ask_model")
    assert replies.count() == 3 * len(keys), "three turns, each with one reply"
    assert set(replies.values_list("status", flat=True)) == {"done"}


def test_the_worker_is_killed_when_the_money_has_been_paid_and_the_answer_is_under_way(
    provider, process_environment, tmp_path
):
    """E6, MISSION P2 and P3: SIGKILL to the process that called; another one asks again, with the same key."""
    book = provider("slow")
    environment = process_environment | {
        name: os.environ[name] for name in ("REFUND_PROVIDER_URL", "NO_PROXY", "no_proxy")
    }
    with working(environment, tmp_path, lease_seconds=2, workers=3) as work:
        run = start(refund_agent, LAMP)
        until(book.refunds, work=work)
        driver = driver_of(run)
        assert LedgerEntry.objects.get(run=run, name="pay_back").status == "open"
        kill(driver)
        run = ended(run)
    assert (run.status, told(run)) == ("completed", only_refund(book, run)["id"]), run.error
    entry = LedgerEntry.objects.get(run=run, name="pay_back")
    assert (entry.status, entry.attempts) == ("done", 2)
    assert LedgerEntry.objects.filter(run=run, name="ask_model").count() == 3
    assert run.checkpoints.filter(kind="lost", reason__contains=str(driver.pid)).exists()
    assert first_bad_row(run) is None
