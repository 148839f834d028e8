"""The stop switch of a graph, with real workers: who is not driven is not taken, until the stop is lifted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import call_command

from runs.engine import clock
from runs.models import GraphStop, Run
from tests.acceptance.graphs import patient
from tests.acceptance.installation import begin, ended, until, working
from tests.acceptance.naps.graphs import naps
from tests.runs.driving import registered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

TAKES_HOLD = timedelta(seconds=2)


def test_a_stopped_graph_gets_no_lease_from_two_seconds_on_and_goes_on_when_the_stop_is_lifted(
    process_environment, tmp_path
):
    """Item 9: runs of another graph that were started later are driven meanwhile, so the workers did look."""
    apps = "tests.acceptance,tests.acceptance.naps"
    with registered(patient, naps), working(process_environment, tmp_path, apps=apps, workers=3):
        ended(begin(patient, tmp_path))
        call_command("stop", patient.name, "--reason", "the provider is down")
        stopped_at = GraphStop.objects.get(graph=patient.name).at
        until(lambda: clock.now() > stopped_at + TAKES_HOLD)
        held = begin(patient, tmp_path)
        witnesses = [_other_graph(naps) for _ in range(6)]
        for witness in witnesses:
            until(lambda witness=witness: Run.objects.get(pk=witness.pk).fence > 0)
        held.refresh_from_db()
        assert (held.status, held.fence, held.leased_by) == ("created", 0, None)
        lifted_at = clock.now()
        call_command("stop", patient.name, "--lift")
        done = ended(held)
    assert done.status == "completed"
    assert done.checkpoints.get(kind="claim").at >= lifted_at


def _other_graph(graph) -> Run:
    from runs import start

    return start(graph, {"seconds": 600, "rounds": 1})
