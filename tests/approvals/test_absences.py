"""While a person is away somebody else decides for them: what waits moves over, and what is left comes back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from django.utils.translation import override

from approvals.chain import first_break
from approvals.models import Absence, Activity, Approval
from approvals.models.absence import AGAIN
from approvals.text import respoken
from runs import chores
from runs.engine import clock
from runs.errors import Conflict, Invalid
from tests.approvals.cases import ask, told, waiting_run
from tests.approvals.pages import as_person
from tests.approvals.test_stages import stage
from tests.runs.driving import do_due, pass_time

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def clock_is_put_back():
    yield
    clock.AHEAD = timedelta()


def plan(person, deputy, begins=timedelta(0), lasts=3 * DAY):
    return Absence.plan(person, deputy, clock.now() + begins, clock.now() + begins + lasts)


def of(person):
    return list(Approval.objects.mine(person).order_by("opened_at"))


def test_what_waits_moves_over_and_what_is_left_comes_back(ada, eve):
    """Each with its own row of the trail, in the name of who is away."""
    decided, left = ask(), ask()
    plan(ada, eve)
    chores.do_due()
    assert (of(ada), of(eve)) == ([], [decided, left])
    row = Activity.objects.filter(kind="delegated").first()
    assert (row.by, row.to) == (ada, eve) and row.text.startswith("away until ")
    assert Approval.objects.get(pk=decided.pk).decide(by=eve, verdict="approve").instead_of == ada
    pass_time(3 * DAY.total_seconds())
    chores.do_due()
    assert (of(ada), of(eve)) == ([left], [])
    assert told(left) == ["opened", "delegated by ada", "recalled by ada"]
    assert first_break(Approval.objects.get(pk=left.pk)) is None
    assert not chores.are_due(clock.now() + 30 * DAY)


def test_however_many_wait_all_move_over_and_all_come_back(ada, eve, monkeypatch):
    """A few at a time; those that are refused, the oldest, keep none of the others back."""
    monkeypatch.setattr("approvals.models.absence.AT_ONCE", 2)
    barred = [ask(exclude=["eve"]) for _ in range(3)]
    theirs = [ask(quorum=2) for _ in range(6)]
    plan(ada, eve)
    do_due()
    assert (of(ada), of(eve)) == (barred, theirs)
    voted = [Approval.objects.get(pk=each.pk).decide(by=eve, verdict="approve") for each in theirs[:3]]
    assert {decision.instead_of for decision in voted} == {ada}
    pass_time(3 * DAY.total_seconds())
    do_due()
    assert (of(ada), of(eve)) == (barred + theirs[3:], [])


def test_it_begins_on_its_day(ada, eve):
    ask()
    plan(ada, eve, begins=DAY)
    assert chores.do_due() == 0
    pass_time(DAY.total_seconds())
    chores.do_due()
    assert len(of(eve)) == 1


def test_what_comes_meanwhile_moves_too(ada, bob, eve):
    """Also what comes to a later stage; and nothing is moved twice."""
    plan(ada, eve)
    chores.do_due()
    late = ask()
    staged = ask(reviewers=(), stages=[stage("bob"), stage("pm")])
    staged.decide(by=bob, verdict="approve")
    pass_time(AGAIN.total_seconds() + 1)
    chores.do_due()
    assert of(eve) == [late, staged]
    length = Activity.objects.count()
    pass_time(AGAIN.total_seconds() + 1)
    chores.do_due()
    assert Activity.objects.count() == length


def test_a_colleague_who_may_decide_anyway_gets_what_was_claimed(ada, bob):
    claimed, other = ask(), ask()
    claimed.claim(ada)
    plan(ada, bob)
    chores.do_due()
    claimed.refresh_from_db()
    assert claimed.assignee == bob
    assert told(other) == ["opened"]


def test_what_the_deputy_may_not_decide_stays(ada, eve):
    """A4: their own request, or where they are excluded."""
    own, barred = ask(run=waiting_run(created_by=eve)), ask(exclude=["eve"])
    plan(ada, eve)
    chores.do_due()
    assert of(ada) == [own, barred]
    assert told(barred) == ["opened"]


def test_it_can_be_ended_before_its_time(ada, eve):
    approval = ask()
    absence = plan(ada, eve)
    chores.do_due()
    absence.end()
    chores.do_due()
    assert of(ada) == [approval]
    with pytest.raises(Conflict, match="over already"):
        absence.end()
    plan(ada, eve, begins=DAY).end()
    chores.do_due()
    plan(ada, eve)


@pytest.mark.parametrize("fault", ["self", "inactive", "backwards", "past", "long"])
def test_what_does_not_fit_is_refused(ada, eve, bob, fault):
    now = clock.now()
    bob.is_active = False
    deputy = {"self": ada, "inactive": bob}.get(fault, eve)
    since, until = {
        "backwards": (now + 2 * DAY, now + DAY),
        "past": (now - 2 * DAY, now - DAY),
        "long": (now, now + 400 * DAY),
    }.get(fault, (now, now + DAY))
    with pytest.raises(Invalid):
        Absence.plan(ada, deputy, since, until)


def test_a_person_is_away_once_at_a_time(ada, eve):
    plan(ada, eve)
    with pytest.raises(Conflict, match="already"):
        plan(ada, eve, begins=10 * DAY)


def test_the_page_plans_shows_and_ends_it(ada, eve):
    client, today = as_person(ada), timezone.localdate()
    page = client.get("/away/").content.decode()
    assert f'value="{today:%Y-%m-%d}"' in page
    days = {"since": f"{today:%Y-%m-%d}", "until": f"{today + 2 * DAY:%Y-%m-%d}"}
    for wrong in (
        {"to": "nobody"},
        {"to": "ada"},
        {"to": "eve", "until": "soon"},
        {"to": "eve", "since": ""},
    ):
        answer = client.post("/away/", {**days, **wrong})
        assert answer.status_code == 422
        assert 'aria-invalid="true"' in answer.content.decode()
    assert client.post("/away/", {**days, "to": "eve"}).status_code == 302
    absence = Absence.objects.get()
    assert (absence.deputy, absence.until - absence.since <= 3 * DAY) == (eve, True)
    page = client.get("/away/").content.decode()
    assert "eve decides for you" in page
    last = absence.until.date() - timedelta(days=1)
    assert last == absence.last_day == today + 2 * DAY
    assert f"up to and including {last:%a} {last.day} {last:%b %Y}" in page
    german = client.get("/away/", headers={"Accept-Language": "de"}).content.decode()
    assert "bis einschließlich" in german
    assert client.post("/away/", {**days, "to": "eve"}).status_code == 409
    assert client.post("/away/", {"end": "1"}).status_code == 302
    chores.do_due()
    assert client.post("/away/", {"end": "1"}).status_code == 409


def test_the_trail_says_up_to_which_day(ada, eve):
    """In the language of who reads it; an absence that ends within a day says until when."""
    approval = ask()
    midnight = (timezone.localtime(clock.now()) + 3 * DAY).replace(hour=0, minute=0, second=0, microsecond=0)
    Absence.plan(ada, eve, clock.now(), midnight)
    chores.do_due()
    row = Activity.objects.get(approval=approval, kind="delegated")
    assert row.text == f"away up to and including {midnight.date() - DAY}"
    with override("de"):
        assert respoken(row.text) == f"abwesend bis einschließlich {midnight.date() - DAY}"
        assert respoken("away until 14:06:09 CET on 2026-11-26").startswith("abwesend bis 14:06:09 CET")
