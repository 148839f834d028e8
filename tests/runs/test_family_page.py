"""What a run's page and the list of runs say of parents and children."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import call_command
from django.urls import reverse

from runs import Graph, start
from runs.engine import clock
from runs.models import Run
from runs.pages.rows import rows
from tests.runs.driving import drive, registered
from tests.runs.families import GRAPHS, children_of, leaf, mapper, waiter
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

top = Graph("page-top", state=Log)


@top.node
def go(run, state):
    run.join(run.start(waiter))


giver = Graph("page-giver", state=Log)


@giver.node
def give(run, state):
    run.join(run.start(leaf, {"name": "Oslo"}))


@pytest.fixture(autouse=True)
def graphs_are_known():
    with registered(*GRAPHS, top, giver):
        yield


def page_of(client, run: Run) -> str:
    response = client.get(reverse("runs:run", args=[run.pk]))
    assert response.status_code == 200
    return response.content.decode()


def sentence(run: Run) -> str:
    run.refresh_from_db()
    return rows([run], clock.now())[0].sentence.text


def test_a_page_leads_up_to_parent_and_root_and_down_to_the_children(client, ada):
    run = start(top, {}, by=ada)
    drive(run)
    [middle] = children_of(run)
    drive(middle)
    [below] = children_of(middle)
    client.force_login(ada)
    page = page_of(client, below)
    assert (
        f'href="{middle.get_absolute_url()}">parent' in page
        and f'href="{run.get_absolute_url()}">root' in page
    )
    page = page_of(client, middle)
    assert f'href="{run.get_absolute_url()}">parent' in page and ">root" not in page
    assert f'id="run-{below.pk}"' in page and "1 created" in page
    assert f'href="{reverse("runs:run", args=[below.pk])}"' in page, "from its entry, too"
    assert 'id="children"' not in page_of(client, below)


def test_children_that_one_may_not_see_are_not_listed(client, ada, eve):
    run = start(top, {}, by=ada)
    drive(run)
    [child] = children_of(run)
    Run.objects.filter(pk=run.pk).update(on_behalf_of=eve)
    client.force_login(eve)
    page = page_of(client, run)
    assert 'id="children"' not in page and f'id="run-{child.pk}"' not in page
    assert client.get(child.get_absolute_url()).status_code == 404


def test_in_the_timeline_a_child_is_called_as_its_graph_with_what_it_was_given(client, ada):
    run = start(top, {}, by=ada)
    drive(run)
    client.force_login(ada)
    timeline = page_of(client, run).partition('id="timeline"')[2].partition("</section>")[0]
    assert ">child-waiter" in timeline
    lone = start(giver, {}, by=ada)
    drive(lone)
    assert ">child-leaf: name=Oslo<" in page_of(client, lone)
    assert "waits for a person" not in timeline, "what it waits for is a child"


def test_a_parent_says_what_it_waits_for_and_a_child_that_it_waits_for_its_turn():
    run = start(mapper, {"names": ["a", "bad"], "at_once": 1})
    drive(run)
    assert sentence(run) == "Waiting for its 2 children child-leaf"
    first, second = children_of(run)
    assert sentence(second) == "Waiting for its turn among the children of its parent"
    lone = start(waiter, {})
    drive(lone)
    assert sentence(lone) == "Waiting for its child child-slow"


def test_the_ledger_says_how_children_ended(client, olga, django_user_model):
    olga.is_superuser = True
    olga.save()
    run = start(mapper, {"names": ["a", "bad"], "at_once": 2})
    drive(run)
    for child in children_of(run):
        drive(child)
    client.force_login(olga)
    page = page_of(client, run)
    assert "1 completed, 1 failed" in page and "its 2 children child-leaf" in page
    lone = start(waiter, {})
    drive(lone)
    children_of(lone)[0].cancel(by="ada", reason="no")
    assert "Cancelled" in page_of(client, lone)


def test_many_children_are_counted_and_the_first_are_shown(client, ada):
    run = start(mapper, {"names": ["a"] * 30}, by=ada)
    drive(run)
    client.force_login(ada)
    page = page_of(client, run)
    assert page.count('<tr id="run-') == 25
    assert "30 created" in page and "5 more children, in the list of the whole family" in page


def test_the_list_can_be_narrowed_to_a_family(client, ada):
    run, other = start(mapper, {"names": ["a", "b"]}, by=ada), start(mapper, {"names": []}, by=ada)
    drive(run)
    client.force_login(ada)
    page = client.get(reverse("runs:list"), {"family": str(run.pk)}).content.decode()
    assert page.count('<tr id="run-') == 3 and f'id="run-{other.pk}"' not in page
    assert f"family of {run.short_id}" in page
    everything = client.get(reverse("runs:list"), {"family": "not an id"}).content.decode()
    assert everything.count('<tr id="run-') == 4


def test_show_tells_a_runs_family():
    run = start(mapper, {"names": ["a", "bad"], "at_once": 1})
    drive(run)
    first, _second = children_of(run)
    drive(first)
    told = shown(run)
    assert (told["parent"], told["root"], told["children"]) == (
        None,
        str(run.pk),
        {"completed": 1, "created": 1},
    )
    assert shown(first)["parent"] == str(run.pk)
    lone = start(waiter, {})
    drive(lone)
    assert shown(lone)["ledger"][0]["child"] == str(children_of(lone)[0].pk)


def shown(run: Run) -> dict:
    out = io.StringIO()
    call_command("show", str(run.pk), "--json", stdout=out)
    return json.loads(out.getvalue())
