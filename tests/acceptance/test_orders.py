"""The order saga against bank and carrier, a real process: it arrives as a whole, or all of it is undone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from examples.orders.graphs import orders, parcels
from runs import start
from runs.engine.verify import first_bad_row
from runs.models import Run
from runs.testing import crash_everywhere, drive, go_on
from tests import warm_start
from tests.amounts import THOROUGH
from tests.conftest import ROOT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

LAMP, SOFA, PIANO = (
    {"name": name, "price": price} for name, price in (("lamp", "30"), ("sofa", "240"), ("piano", "900"))
)
SMALL = {"number": "A-17", "items": [LAMP, SOFA]}
LARGE = {"number": "B-4", "items": [LAMP, PIANO]}
ARRIVED = {"payload": {"left_at": "the door"}, "by": "carrier"}


@pytest.fixture
def partners(monkeypatch, tmp_path) -> Iterator[Callable[..., Callable[[], list[dict[str, Any]]]]]:
    """partners("lose") starts bank and carrier with such faults; returns what reads their book."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    with ExitStack() as running:

        def begin(*faults: str) -> Callable[[], list[dict[str, Any]]]:
            command = [
                sys.executable,
                "-m",
                "examples.orders.partners",
                "--book",
                str(tmp_path / "book.jsonl"),
            ]
            process = running.enter_context(
                warm_start.Popen(
                    [*command, "--faults", ",".join(faults)], cwd=ROOT, stdout=subprocess.PIPE, text=True
                )
            )
            running.callback(process.kill)
            url = json.loads(process.stdout.readline())["url"]
            monkeypatch.setenv("ORDER_PARTNERS_URL", url)
            return lambda: httpx.get(f"{url}/book").json()

        yield begin


def carrier(**said: dict[str, Any]) -> Callable[..., dict[str, Any] | None]:
    """Answers of the kit: what the carrier signals of each item; of what is left out nothing is ever heard."""

    def answer(entry: Any, request: dict[str, Any]) -> dict[str, Any] | None:
        if entry.key == "ship":
            return {"verdict": "approve", "by": "ada"}
        if entry.key.startswith("carrier#"):
            return said.get(entry.run.state_at()["item"]["v"]["name"])
        return None

    return answer


def acts(book: Callable[[], list[dict[str, Any]]]) -> Counter[str]:
    return Counter(line["act"] for line in book())


def ordered(given: dict[str, Any], **said: dict[str, Any]) -> Run:
    return go_on(start(orders, given), orders, carrier(**said))


@pytest.mark.parametrize("faults", [(), ("busy", "lose", "lose", "busy")])
def test_every_parcel_arrives_and_nothing_is_done_twice(partners, faults):
    book = partners(*faults)
    run = ordered(SMALL, lamp=ARRIVED, sofa=ARRIVED)
    assert (run.status, run.error, acts(book)) == ("completed", "", {"charge": 1, "book": 2})
    assert {run.state_at()["payment"], *run.state_at()["arrived"]} == {line["number"] for line in book()}
    children = Run.objects.filter(parent=run)
    assert {(child.root, child.status) for child in children} == {(run.pk, "completed")}
    assert first_bad_row(run) is None


def test_one_lost_parcel_undoes_the_order_in_reverse(partners):
    book = partners()
    run = ordered(SMALL, lamp=ARRIVED, sofa={"payload": {"why": "fell into a river"}, "by": "carrier"})
    assert (run.status, run.error_kind) == ("failed", "permanent")
    assert "1 of 2 parcels were lost" in run.error
    assert acts(book) == {"charge": 1, "book": 2, "recall": 2, "refund": 1}
    assert book()[-1] == {
        "act": "refund",
        "key": book()[-1]["key"],
        "number": book()[-1]["number"],
        "of": book()[0]["number"],
    }
    lost = Run.objects.get(parent=run, status="failed")
    assert "fell into a river" in lost.error
    assert lost.entries.get(kind="effect", compensates=None).status == "compensated"


def test_a_parcel_that_nobody_hears_of_is_lost_after_ten_days(partners):
    book = partners()
    run = ordered(SMALL, lamp=ARRIVED)
    assert (run.status, acts(book)["refund"]) == ("failed", 1)
    lost = Run.objects.get(parent=run, status="failed")
    assert lost.error.startswith("Permanent: parcel ") and "(sofa) is lost: no word" in lost.error
    assert (lost.finished_at - lost.created_at).days >= 10
    assert lost.entries.filter(name="note").count() == 2, "once after three days, once more at the end"


def test_a_large_order_asks_first_and_a_rejection_returns_the_money(partners):
    book = partners()
    run = drive(orders, LARGE, {"ship": {"verdict": "reject", "reason": "Fraud", "by": "ada"}})
    assert (run.status, run.error_kind, acts(book)) == ("failed", "rejected", {"charge": 1, "refund": 1}), (
        run.error
    )
    run = ordered(LARGE | {"number": "B-5"}, lamp=ARRIVED, piano=ARRIVED)
    assert run.status == "completed"
    run = drive(orders, LARGE | {"number": "B-6"})
    assert (run.error_kind, acts(book)["refund"]) == ("expired", 2)


def test_wherever_a_process_is_killed_each_act_is_done_once(partners):
    """P1, P3: with a parcel lost, so that everything is also undone. The partners' book is the witness."""
    book, kills = partners(), 15 if THOROUGH else 5
    report = crash_everywhere(
        orders, SMALL, carrier(lamp=ARRIVED, sofa={"payload": {"why": "lost"}}), kills=kills
    )
    assert (report.status, report.kills, report.in_doubt) == ("failed", kills, 0)
    families = Run.objects.filter(graph=orders.name).count()
    assert acts(book) == {
        "charge": families,
        "book": 2 * families,
        "recall": 2 * families,
        "refund": families,
    }
    assert Run.objects.filter(graph=parcels.name).count() == 2 * families
