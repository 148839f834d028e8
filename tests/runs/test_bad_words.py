"""What verbs beside a run's own are given by mistake: each refuses it in words, and changes nothing."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from runs import Graph, start
from runs.core.errors import DurableError
from runs.engine.claim import Claimer
from runs.errors import Refusal
from runs.models import Run
from runs.models.limits import GraphStop, QueueLimit
from runs.models.schedule import Schedule
from tests.runs.driving import drive, registered
from tests.runs.families import leaf

pytestmark = pytest.mark.django_db(transaction=True)

ODD = (None, "", "  ", 7, b"x", 1.5, float("nan"), "\ud800", "a\x00b", [], {}, object(), 2**70, -1)

plain = Graph("plain")


@plain.node
def only(run, state): ...


VERBS = {
    "stop a graph": lambda odd: GraphStop.objects.stop(odd, "ada", "why"),
    "stop, by": lambda odd: GraphStop.objects.stop("plain", odd, "why"),
    "stop, why": lambda odd: GraphStop.objects.stop("plain", "ada", odd),
    "lift": lambda odd: GraphStop.objects.lift(odd),
    "a queue": lambda odd: QueueLimit.objects.put(odd, starts=1),
    "a number": lambda odd: QueueLimit.objects.put("q", starts=odd, at_once=3),
    "a period": lambda odd: QueueLimit.objects.put("q", starts=1, per_seconds=odd),
    "a schedule's graph": lambda odd: Schedule.objects.make(odd, "s", "* * * * *"),
    "a schedule's name": lambda odd: Schedule.objects.make("plain", odd, "* * * * *"),
    "a cron": lambda odd: Schedule.objects.make("plain", "s", odd),
    "a zone": lambda odd: Schedule.objects.make("plain", "s", "* * * * *", zone=odd),
    "an input": lambda odd: Schedule.objects.make("plain", "s", "* * * * *", input=odd),
    "pause, by": lambda odd: Schedule.objects.make("plain", "s", "* * * * *").pause(odd),
    "a signal, by": lambda odd: start("plain", {}).signal("go", by=odd),
    "keep, why": lambda odd: start("plain", {}).keep(odd, "ada"),
    "labels": lambda odd: start("plain", {}, labels=odd),
    "a label": lambda odd: start("plain", {}, labels={"team": odd}),
    "a priority": lambda odd: start("plain", {}, priority=odd),
}


@pytest.fixture(autouse=True)
def known():
    with registered(plain, leaf):
        yield


@pytest.mark.parametrize("verb", VERBS)
def test_what_does_not_fit_is_refused_in_words(verb):
    refused = 0
    for odd in ODD:
        try:
            VERBS[verb](odd)
        except Refusal as refusal:
            refused += 1
            assert str(refusal.message).strip()
            str(refusal.message).encode()
        except DurableError as error:
            refused += 1
            assert str(error)
        GraphStop.objects.all().delete()
        Schedule.objects.all().delete()
        QueueLimit.objects.all().delete()
    assert refused >= 3


def test_a_name_that_is_no_text_is_refused_by_the_command_in_one_line():
    with pytest.raises(CommandError, match="There is no graph"):
        call_command("stop", "\udcff", "--reason", "x")


def test_no_period_of_a_limit_is_too_long_to_be_reckoned_with():
    """One number may not stop every claim of the installation."""
    for seconds in (10**14, 10**9):
        with pytest.raises(Refusal):
            QueueLimit.objects.put("q", starts_a_lane=3, per_seconds=seconds)
    QueueLimit.objects.put("q", starts_a_lane=3, per_seconds=366 * 24 * 60 * 60)
    run = start("plain", {}, lane="ada")
    Run.objects.filter(pk=run.pk).update(queue="q")
    assert Claimer("w1").claim(alone=True, only=run.pk) is not None
    drive(start("plain", {}))
