"""Signals that are refused or kept once: the same key, an ended run, what cannot be stored."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, transaction

from runs import Graph, start
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import Run, Signal
from tests.at_once import at_once
from tests.runs.driving import drive, registered
from tests.runs.payments import paid, timed
from tests.runs.states import log_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("payments_known")]


def test_the_same_key_is_accepted_once_and_says_the_same_each_time():
    run = start(paid, {})
    first = run.signal("paid", {"n": 1}, key="evt_1", by="the bank")
    run.refresh_from_db()
    counted = run.answers
    assert run.signal("paid", {"n": 1}, key="evt_1", by="the bank again") == first
    for name, payload in (("paid", {"n": 2}), ("refunded", {"n": 1})):
        with pytest.raises(Conflict, match="evt_1"):
            run.signal(name, payload, key="evt_1")
    run.refresh_from_db()
    assert (Signal.objects.count(), run.answers) == (1, counted)
    drive(run)
    assert run.status == "completed"
    assert run.signal("paid", {"n": 1}, key="evt_1") == first, "also after its end"


def test_the_same_key_from_eight_senders_at_once_is_one_signal():
    run = start(paid, {})
    ends = at_once(*[lambda: Run.objects.get(pk=run.pk).signal("paid", 1, key="evt")] * 8)
    assert {end.pk for end in ends} == {Signal.objects.get().pk}
    run.refresh_from_db()
    assert run.answers == 1


def test_a_run_that_ends_keeps_its_unread_signals_and_takes_no_more():
    """S10"""
    run = start(paid, {})
    run.signal("paid", 1)
    run.signal("paid", 2)
    run.signal("shipped", 3)
    drive(run)
    assert run.status == "completed"
    assert list(Signal.objects.unread().order_by("pk").values_list("payload", flat=True)) == ["2", "3"]
    with pytest.raises(Conflict, match="has ended; it takes no signals any more"):
        run.signal("paid", 4)
    assert Signal.objects.count() == 3


def test_a_cancelled_run_closes_its_waits_and_takes_no_more_signals():
    run = start(timed, {})
    drive(run)
    run.cancel("ada", "not needed")
    assert run.entries.get().status == "cancelled"
    with pytest.raises(Conflict, match="has ended"):
        run.signal("paid")
    assert first_bad_row(run) is None


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"key": ""}, "key"),
        ({"key": " "}, "key"),
        ({"key": "x" * 201}, "key"),
        ({"key": "\u200b"}, "key"),
        ({"key": "a\nb"}, "key"),
        ({"name": "\u3164"}, "name"),
        ({"name": "a\x01b"}, "name"),
        ({"payload": {"n": float("nan")}}, "$.n"),
        ({"payload": [object()]}, "$[0]"),
    ],
)
def test_what_cannot_be_stored_is_refused_naming_the_place(given, field):
    run = start(paid, {})
    with pytest.raises(Invalid) as refused:
        run.signal(**{"name": "paid"} | given)
    assert list(refused.value.fields) == [field]
    assert not Signal.objects.exists()


def test_what_was_accepted_before_it_had_to_be_readable_goes_on(monkeypatch):
    graph = Graph("waits for an odd name")

    @graph.node
    def wait(run, state):
        state["said"] = run.wait_for("a\nb")

    with registered(graph):
        run = start(graph.name, {})
        drive(run)
        with monkeypatch.context() as before:
            before.setattr("runs.models.signal.is_legible", lambda text: True)
            first = run.signal("paid", key="\u200b")
        assert run.signal("paid", key="\u200b") == first
        run.signal("a\nb", 7)
        drive(run)
    assert (run.status, run.state_at()) == ("completed", {"said": 7})


def test_a_payload_that_holds_a_secret_is_refused_naming_the_path(monkeypatch):
    from runs import secrets

    monkeypatch.setenv("DURABLEWEB_SECRET_BANK", "correct horse battery")
    secrets.forget()
    try:
        run = start(paid, {})
        with pytest.raises(Invalid) as refused:
            run.signal("paid", {"token": "correct horse battery"})
    finally:
        monkeypatch.undo()
        secrets.forget()
    assert list(refused.value.fields) == ["$.token"]
    assert "correct horse" not in str(refused.value)


def test_a_long_payload_is_kept_as_a_blob_and_read_whole():
    run = start(paid, {})
    run.signal("paid", "x" * 100_000)
    assert len(Signal.objects.get().payload) < 200
    drive(run)
    assert log_of(run) == ["x" * 100_000]


def test_the_database_refuses_to_change_a_signal_or_to_have_it_read_twice():
    run = start(paid, {})
    signal = run.signal("paid", 1)
    drive(run)
    for change in ({"payload": "2"}, {"consumed_by": None}, {"name": "other"}):
        with pytest.raises(DatabaseError, match="a signal is final"), transaction.atomic():
            Signal.objects.filter(pk=signal.pk).update(**change)
