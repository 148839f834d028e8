"""Schedules in the admin site: seen, made, changed and paused there, by the verbs that code calls."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.test import Client

from runs import Graph
from runs.engine import clock, schedules
from runs.models import Schedule
from tests.runs.driving import registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db

LIST, ADD = "/admin/runs/schedule/", "/admin/runs/schedule/add/"
PAUSE, RESUME = "runs_schedule_pause_it", "runs_schedule_resume_it"
ASKED = {
    "graph": "weekly",
    "name": "on mondays",
    "cron": "0 9 * * 1",
    "zone": "Europe/Berlin",
    "input": '{"log": ["began"]}',
    "slot_field": "",
    "catch_up": "latest",
    "most": "10",
}

weekly = Graph("weekly", state=Log)


@weekly.node
def work(run, state): ...


@weekly.every("30 2 * * *", tz="Europe/Berlin")
def nightly(slot):
    return {}


@pytest.fixture(autouse=True)
def known():
    with registered(weekly):
        yield
    clock.AHEAD = timedelta()


@pytest.fixture
def staff(olga) -> Client:
    """Olga, who may see, make and change schedules."""
    olga.user_permissions.set(
        Permission.objects.filter(codename__in=["view_schedule", "add_schedule", "change_schedule"])
    )
    client = Client()
    client.force_login(olga)
    return client


@pytest.fixture
def made(ada) -> Schedule:
    return Schedule.objects.make("weekly", "on mondays", "0 9 * * 1", zone="Europe/Berlin", by=ada)


def page(schedule: Schedule) -> str:
    return f"{LIST}{schedule.pk}/change/"


def test_one_is_made_by_a_form_and_its_maker_asks_for_its_runs(staff, olga):
    answer = staff.post(ADD, ASKED)
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    (row,) = Schedule.objects.all()
    assert (row.created_by, row.cron, row.zone, row.declared) == (olga, "0 9 * * 1", "Europe/Berlin", False)
    assert row.due_at is not None
    shown = staff.get(LIST).content.decode()
    assert "At 09:00 on Monday" in shown and "active" in shown


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"cron": "often"}, "is no cron expression"),
        ({"zone": "Mars"}, "is no time zone"),
        ({"input": '{"log": 7}'}, "does not fit"),
        ({"input": "{"}, "JSON"),
        ({"graph": "unknown"}, "There is no graph"),
    ],
)
def test_what_does_not_fit_stands_at_its_field_and_nothing_is_made(staff, wrong, said):
    answer = staff.post(ADD, ASKED | wrong)
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert list(errors) == list(wrong)
    assert said in str(errors)
    assert not Schedule.objects.exists()


def test_a_change_holds_from_the_next_slot_on(staff, made):
    before = made.done_until
    assert staff.post(page(made), ASKED | {"cron": "0 10 * * 1"}).status_code == 302
    made.refresh_from_db()
    assert made.cron == "0 10 * * 1"
    assert made.done_until > before
    staff.post(page(made), ASKED | {"cron": "0 10 * * 1"})
    assert Schedule.objects.get().done_until == made.done_until, "saved without a change, it is as it was"


def test_it_is_paused_and_resumed_by_name_and_that_is_kept(staff, made):
    assert "Pause" in staff.get(page(made)).content.decode()
    staff.post(page(made), ASKED | {PAUSE: "1"})
    made.refresh_from_db()
    assert (made.paused_by, made.due_at) == ("olga", None)
    shown = staff.get(page(made)).content.decode()
    assert "paused by olga" in shown and f'name="{RESUME}"' in shown and f'name="{PAUSE}"' not in shown
    staff.post(LIST, {"action": "resume_selected", "_selected_action": [made.pk]})
    made.refresh_from_db()
    assert made.paused_at is None and made.due_at is not None
    staff.post(LIST, {"action": "pause_selected", "_selected_action": [made.pk]})
    made.refresh_from_db()
    assert made.paused_by == "olga"
    said = LogEntry.objects.filter(object_id=str(made.pk)).order_by("id")
    assert [entry.change_message for entry in said if entry.change_message.isalpha()] == [
        "Paused",
        "Resumed",
        "Paused",
    ]


def test_what_the_code_declares_can_be_paused_and_nothing_else(staff):
    schedules.sync()
    (row,) = Schedule.objects.all()
    staff.post(page(row), ASKED)
    staff.post(page(row), {PAUSE: "1"})
    row.refresh_from_db()
    assert (row.name, row.cron, row.paused_by) == ("nightly", "30 2 * * *", "olga")


def test_somebody_elses_pause_in_the_meantime_is_told(staff, made, monkeypatch):
    real = Schedule.put

    def late(self):
        Schedule.objects.get(pk=self.pk).pause("bob")
        real(self)

    monkeypatch.setattr(Schedule, "put", late)
    answer = staff.post(page(made), ASKED | {"cron": "0 10 * * 1"}, follow=True)
    assert "was not changed. It is paused by bob now" in answer.content.decode()


def test_who_may_only_look_changes_nothing(client, bob, made):
    bob.is_staff = True
    bob.save()
    bob.user_permissions.set(Permission.objects.filter(codename="view_schedule"))
    client.force_login(bob)
    assert "on mondays" in client.get(LIST).content.decode()
    assert client.get(page(made)).status_code == 200
    assert client.post(page(made), ASKED | {PAUSE: "1"}).status_code == 403
    client.post(LIST, {"action": "pause_selected", "_selected_action": [made.pk]})
    assert client.post(ADD, ASKED).status_code == 403
    made.refresh_from_db()
    assert made.paused_at is None


def test_one_that_nobody_serves_is_shown_as_such(staff, made):
    Schedule.objects.update(due_at=clock.now() - timedelta(hours=1))
    assert "no worker serves its graph" in staff.get(LIST).content.decode()
    Schedule.objects.update(fault="the calendar is away")
    shown = staff.get(page(made)).content.decode()
    assert "could not be started" in shown and "('bad'" not in shown and "the calendar is away" in shown
