"""The short way of a step: on PostgreSQL by the name of its statement, on SQLite one statement for a view.

Whatever becomes of that name or of the view, the run goes on.
"""

from __future__ import annotations

import time

import psycopg
import pytest
from django.db import IntegrityError, connection
from pydantic import BaseModel

from runs import END, Graph, start
from runs.core.outcomes import Lost
from runs.engine import sql
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.prepared import Prepared
from runs.engine.step_view import StepView
from runs.engine.verify import first_bad_row
from runs.models import Checkpoint, Run
from tests.runs.driving import claim, drive, kinds, registered

pytestmark = pytest.mark.django_db(transaction=True)
on_postgres = pytest.mark.postgres_only


class Line(BaseModel):
    left: int = 3
    said: str = ""


line = Graph("line", state=Line)
meanwhile: list[object] = []


@line.node(then=("say", END))
def say(run, state):
    for act in meanwhile:
        act()
    state.left -= 1
    state.said += "ü'\"\\ %s €1 \n"
    return "say" if state.left else END


there_and_back = Graph("there-and-back", state=Line)


@there_and_back.node(then="come")
def go(run, state):
    state.said += "there "


@there_and_back.node(then=("go", END))
def come(run, state):
    state.said += "back "
    state.left -= 2
    return "go" if state.left else END


@pytest.fixture(autouse=True)
def apart():
    """Only where nobody watches the statements, as in a worker, is it taken."""
    meanwhile.clear()
    with registered(line, there_and_back):
        yield


@pytest.fixture
def seen(monkeypatch):
    """The steps that went the short way."""
    steps = []
    for way, act in ((Prepared, "change"), (StepView, "take")):
        usual = getattr(way, act)

        def counted(self, *words, usual=usual):
            steps.append(usual(self, *words))
            return steps[-1]

        monkeypatch.setattr(way, act, counted)
    return steps


def our_statements() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE name LIKE 'durableweb%%'")
        return cursor.fetchone()[0]


def ended_well(run: Run, steps: int = 3) -> None:
    run.refresh_from_db()
    assert (run.status, run.step, run.error) == ("completed", steps, "")
    assert run.state_at(run.seq)["said"] == "ü'\"\\ %s €1 \n" * steps
    seqs = list(Checkpoint.objects.filter(run=run).order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(len(seqs)))
    assert first_bad_row(run) is None


def test_a_step_goes_the_short_way_and_says_the_same_as_any_other(seen):
    run = start("line", {})
    drive(run)
    ended_well(run)
    assert seen == [True, True], "the last one ends the run"


def test_the_next_node_is_the_one_that_follows_also_for_another_worker(seen):
    """A checkpoint names the node that is done, its run the one to come."""
    run = start("there-and-back", {"left": 4})
    while not run.ended:
        Drive(*Claimer("w1").claim(alone=True, only=run.pk), most_steps=1).run()
        run.refresh_from_db()
    assert seen == [True] * 3, "the last one ends the run"
    assert run.state_at(run.seq)["said"] == "there back there back "
    nodes = (
        run.checkpoints.filter(kind__in=("step", "complete")).order_by("seq").values_list("node", flat=True)
    )
    assert list(nodes) == ["go", "come"] * 2
    assert first_bad_row(run) is None


def test_a_new_connection_is_given_its_own(seen):
    """The name or the view of the one before is gone with it, which costs the run nothing."""

    def close_once():
        if len(seen) == 2:
            meanwhile.clear()
            connection.close()

    run = start("line", {"left": 5})
    meanwhile.append(close_once)
    drive(run)
    ended_well(run, 5)
    assert seen == [True, True, True], "one step found no connection, and the last one ended the run"


@on_postgres
@pytest.mark.parametrize("gone", ["DEALLOCATE ALL", "DISCARD ALL"])
def test_a_name_that_the_server_has_forgotten_is_given_again(gone, seen):
    meanwhile.append(lambda: connection.connection.execute(gone))
    run = start("line", {})
    drive(run)
    ended_well(run)
    assert None in seen, "it was sent, refused, and done in the ordinary way"


@on_postgres
def test_behind_a_pooler_nothing_is_prepared():
    run = start("line", {})
    held = claim(run)
    connection.connection.prepare_threshold = None
    held.run()
    ended_well(run)
    assert our_statements() == 0


def test_what_the_database_refuses_is_told_as_always():
    held = claim(start("line", {}))
    link = held.lease._link("step", 1, "{}", True)
    link.seq -= 1  # there is one of that number
    with pytest.raises(IntegrityError, match="checkpoint_seq_once|UNIQUE constraint failed: runs_checkpoint"):
        sql.advance(held.lease.fence, held.lease.seq, {"seq": link.seq}, link.seal(), progress=True)


@on_postgres
def test_a_session_that_ends_in_the_middle_costs_the_step_but_not_the_run():
    def end_this_session():
        meanwhile.clear()
        session = [connection.connection.info.backend_pid]
        alive = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        # a transaction would see the same statistics to its end
        with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", session)
            patience = time.monotonic() + 60
            while other.execute(alive, session).fetchone():
                assert time.monotonic() < patience

    run = start("line", {})
    meanwhile.append(end_this_session)
    drive(run)
    ended_well(run)


def test_a_run_that_moved_on_changes_nothing(seen):
    run = start("line", {})
    held = claim(run)
    meanwhile.append(lambda: Run.objects.filter(pk=run.pk).update(fence=run.fence + 7))
    assert isinstance(held.run(), Lost)
    assert list(kinds(run)) == ["start", "claim"]
    assert seen in ([0], [False])


@on_postgres
@pytest.mark.parametrize("value", ["a\0b", None, 1.5])
def test_what_libpq_would_send_in_part_or_wrongly_is_not_sent(value):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    known = Prepared(connection.connection)
    assert known.change("SELECT %s::text", [value]) is None
    assert our_statements() == 0
