"""What people see of a run that undoes what it did, and how they begin it."""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from runs import Ambiguous, Permanent, Transient, start
from runs.engine import clock
from runs.models import Run
from runs.pages.contents import RunPage
from runs.pages.rows import rows
from tests.runs.driving import drive, pass_time, registered
from tests.runs.travel import happened, moods
from tests.runs.trips import started, trip

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def nothing_happened():
    happened.clear()
    moods.clear()
    with registered(trip):
        yield


def sentence(run: Run) -> str:
    run.refresh_from_db()
    return RunPage(run, clock.now()).sentence.text


def test_its_page_says_how_far_it_is_and_how_it_will_end():
    run = started()
    assert sentence(run) == "Undoing: 0 of 3, then failed"
    moods["cancel hotel"] = [Transient("the desk is closed", retry_after=60)]
    drive(run)
    said = sentence(run)
    assert said.startswith("Undoing: 1 of 3, then failed. A try failed: ") and "the desk is closed" in said
    pass_time(100)
    moods["cancel flight"] = [Permanent("too late")]
    drive(run)
    assert sentence(run) == (
        "Undoing: 2 of 3, then failed. Waiting for someone to say whether cancel_booking happened"
    )
    run.cancel("user olga", "leave it")
    assert sentence(run) == (
        "Cancelled by olga: leave it; whether cancel_booking happened is still open; 2 of 3 writes undone"
    )


def test_an_ended_run_says_what_is_undone_and_the_list_says_it_without_counting():
    run = started("ask")
    run.cancel("user olga", "ordered twice", compensate=True)
    [row] = rows([run], clock.now())
    assert row.sentence.text == "Undoing what was done, then cancelled"
    drive(run)
    assert sentence(run) == "Cancelled by olga: ordered twice; 3 of 3 writes undone"


def test_what_became_of_the_last_write_is_looked_into_first():
    moods["bob"] = [Ambiguous("no answer")]
    run = started("call")
    run.cancel("user olga", "ordered twice", compensate=True)
    drive(run)
    said = "Undoing: 0 of 3, then cancelled. tell was sent and no answer came; "
    assert sentence(run) == f"{said}what became of it is looked into"
    pass_time(86_400)
    page = RunPage(run, clock.now())
    assert page.sentence.text == f"{said}the next worker looks into what became of it"
    assert page.sentence.due_at is None, "no moment that has passed"


def test_the_ledger_says_which_entry_undoes_which(client, olga):
    run = started()
    drive(run)
    client.force_login(olga)
    html = client.get(reverse("runs:run", args=[run.pk])).content.decode()
    entry = run.entries.get(name="write_again")
    assert f'href="?entry={entry.pk}#entry-{entry.pk}"' in html and "Undone by" in html
    assert f'href="?entry={entry.compensates_id}#entry-{entry.compensates_id}"' in html and "Undoes" in html
    assert "Began to undo what was done" in html
    assert "begins to undo" in html


def test_an_operator_chooses_whether_to_undo_where_there_is_something(client, olga):
    client.force_login(olga)
    bare = start("trip", {})
    assert 'name="compensate"' not in client.get(reverse("runs:run", args=[bare.pk])).content.decode()
    run = started("ask")
    html = client.get(reverse("runs:run", args=[run.pk])).content.decode()
    assert 'name="compensate"' in html and "3 calls have a compensation" in html
    address = reverse("runs:cancellation", args=[run.pk])
    told = client.post(address, {"reason": "ordered twice", "compensate": "on"}, follow=True)
    assert "undoes what it did, and is cancelled then" in told.content.decode()
    assert 'name="compensate"' not in told.content.decode()
    drive(run)
    assert (run.status, len(happened)) == ("cancelled", 6)


def test_the_page_of_the_question_says_what_is_to_be_undone_by_hand(client, olga):
    moods["write again"] = [Permanent("nobody reads it")]
    run = started()
    drive(run)
    client.force_login(olga)
    asked = run.entries.get(kind="interrupt")
    html = client.get(asked.approval.get_absolute_url()).content.decode()
    assert "Undo that call by hand" in html
    assert "nobody reads it" in html


def test_show_tells_it_to_programs(capsys):
    run = started()
    call_command("show", str(run.pk), "--json")
    assert json.loads(capsys.readouterr().out)["ending"] == "failed"
    drive(run)
    call_command("show", str(run.pk), "--json")
    told = json.loads(capsys.readouterr().out)
    assert [entry["undoes"]["step"] for entry in told["ledger"] if entry["undoes"]] == [2, 1, 1]
