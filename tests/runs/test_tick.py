"""One bounded slice without worker processes: the command and the address."""

from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from runs import END, Graph, start
from runs.work import tick as ticking
from tests.runs.driving import registered

pytestmark = pytest.mark.django_db(transaction=True)

TOKEN = "only for tests: 7fK2"
climbing = Graph("climbing")


@climbing.node(then=("climb", END))
def climb(run, state):
    state["height"] = state.get("height", 0) + 1
    return "climb" if state["height"] < 3 else END


@pytest.fixture(autouse=True)
def known():
    with registered(climbing):
        yield


@pytest.fixture
def token(settings):
    settings.DURABLEWEB = {**settings.DURABLEWEB, "tick_token": TOKEN}
    return {"Authorization": f"Bearer {TOKEN}"}


def post(headers, **fields):
    return Client(enforce_csrf_checks=True).post("/tick/", fields, headers=headers)


def tick(*arguments) -> str:
    out = StringIO()
    call_command("tick", *arguments, stdout=out)
    return out.getvalue()


def test_the_command_drives_what_is_due_and_ends():
    run = start(climbing)
    assert json.loads(tick("--json")) == {"steps": 3}
    run.refresh_from_db()
    assert run.status == "completed"
    assert json.loads(tick("--json")) == {"steps": 0}


def test_the_command_stops_after_so_many_steps_and_hands_the_run_back():
    run = start(climbing)
    assert tick("--steps", "2") == "2 steps done\n"
    run.refresh_from_db()
    assert (run.status, run.step, run.leased_by, run.silent) == ("running", 2, None, 0)
    assert tick() == "1 step done\n"


@pytest.mark.parametrize(
    "wrong", [("--steps", "0"), ("--seconds", "0"), ("--seconds", "nan"), ("--seconds", "-1")]
)
def test_the_command_refuses_a_bound_that_is_none(wrong):
    with pytest.raises(CommandError, match=wrong[0]):
        tick(*wrong)


def test_the_address_drives_a_slice_without_sign_in_or_cookie(token):
    start(climbing)
    assert post(token, steps="2").json() == {"steps": 2}
    assert post(token, seconds="5").json() == {"steps": 1}


def test_without_a_token_in_the_settings_there_is_no_such_address(settings):
    assert not settings.DURABLEWEB["tick_token"]
    run = start(climbing)
    assert post({"Authorization": "Bearer "}).status_code == 404
    run.refresh_from_db()
    assert run.status == "created"


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer wrong", TOKEN, "Bearer \u00e4"])
def test_a_wrong_token_is_refused_and_nothing_is_driven(token, given):
    run = start(climbing)
    response = post({"Authorization": given})
    assert response.status_code == 403
    assert "DURABLEWEB_TICK_TOKEN" in response.json()["error"]
    run.refresh_from_db()
    assert run.status == "created"


def test_only_a_post_ticks(token):
    assert Client().get("/tick/", headers=token).status_code == 405


@pytest.mark.parametrize(
    "field",
    [
        {"seconds": "3600"},
        {"seconds": "0"},
        {"seconds": "nan"},
        {"steps": "1.5"},
        {"steps": "-1"},
        {"steps": "x"},
    ],
)
def test_a_bound_that_does_not_fit_is_refused_by_name(token, field):
    response = post(token, **field)
    assert response.status_code == 422
    assert response.json()["error"].startswith(next(iter(field)))


def test_a_second_tick_in_the_process_is_refused_while_one_is_at_work(token):
    """A process has one claimer, so that a suspect is driven alone in it."""
    with ticking._busy:
        assert post(token).status_code == 409
    assert post(token).status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("command", ["work", "tick"])
def test_no_run_is_driven_on_a_database_that_lacks_migrations(command):
    run = start("climbing", {})
    MigrationRecorder.Migration.objects.filter(app="approvals").order_by("-id").first().delete()
    with pytest.raises(
        CommandError, match=r"lacks 1 of the migrations, first approvals\.\d{4}_\w+: run manage"
    ):
        call_command(command)
    run.refresh_from_db()
    assert run.seq == 0
