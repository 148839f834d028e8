"""Reminders, escalation and moved deadlines: each a row of the trail, done once, by whoever does chores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from approvals.chain import first_break
from approvals.models import Activity, Approval
from approvals.reminders import next_reminder
from runs import END, Expired, Graph, chores, start
from runs.engine import clock
from runs.engine.shift import Shift
from runs.errors import Conflict, Invalid, NotAllowed
from runs.models import LedgerEntry
from tests.approvals.cases import answer_of, ask, close, told, waiting_run
from tests.at_once import at_once
from tests.runs.driving import drive, kinds, pass_time, registered

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def clock_is_put_back():
    yield
    clock.AHEAD = timedelta()


@pytest.mark.parametrize(
    ("lasts", "reminders"),
    [
        (8 * HOUR, [6 * HOUR, 7 * HOUR]),
        (4 * HOUR, [3 * HOUR]),  # both at once
        (2 * HOUR, [HOUR, 1.5 * HOUR]),
        (HOUR, [0.75 * HOUR]),
        (timedelta(minutes=20), [timedelta(minutes=15)]),
    ],
)
def test_reminders_come_at_three_quarters_and_an_hour_before(lasts, reminders):
    found, at = [], NOON
    while (at := next_reminder(NOON, NOON + lasts, at)) is not None:
        found.append(at - NOON)
    assert found == reminders


def test_without_a_deadline_nobody_is_reminded():
    assert next_reminder(NOON, None, NOON) is None
    assert ask().remind_at is None


def test_each_reminder_is_one_row_of_the_trail_and_leaves_the_revision(ada):
    approval = ask(due=8 * HOUR)
    assert chores.do_due() == 0
    pass_time(6 * 3600 + 1)
    assert chores.do_due() == 1
    assert chores.do_due() == 0
    pass_time(3600)
    assert chores.do_due() == 1
    approval.refresh_from_db()
    assert (approval.remind_at, approval.revision) == (None, 1)
    said = Activity.objects.filter(kind="reminded").values_list("text", flat=True)
    assert list(said) == ["three quarters of the time have passed", "the last hour has begun"]
    approval.decide(by=ada, verdict="approve", revision=1)
    assert first_break(approval) is None


def test_what_is_closed_or_late_is_not_reminded_of(ada):
    closed, late = ask(due=8 * HOUR), ask(due=8 * HOUR)
    close(closed, "superseded")
    pass_time(9 * 3600)
    chores.do_due()
    assert told(closed) == ["opened", "closed"]
    assert told(late) == ["opened"]
    assert not chores.are_due(clock.now())


def test_a_decision_that_is_undone_is_reminded_of_again(ada):
    approval = ask(due=8 * HOUR)
    approval.decide(by=ada, verdict="approve")
    approval.undo(ada)
    pass_time(6 * 3600 + 1)
    chores.do_due()
    assert told(approval)[-1] == "reminded"


def test_after_the_authors_time_others_are_asked_as_well(ada, eve):
    """The claim ends, so that all of them see it."""
    approval = ask(escalate={"to": ["eve", "pm"], "after": 7200})
    approval.claim(ada)
    pass_time(7100)
    assert chores.do_due() == 0
    pass_time(101)
    assert chores.do_due() == 1
    approval.refresh_from_db()
    assert (approval.assignee, approval.escalate_at, approval.revision) == (None, None, 3)
    assert Activity.objects.get(kind="escalated").text == "eve, pm"
    assert Approval.objects.mine(eve).get() == approval == Approval.objects.mine(ada).get()
    approval.decide(by=eve, verdict="approve")
    assert answer_of(approval)["by"] == "eve"


def test_an_escalation_is_for_nothing_once_it_is_decided(ada, eve):
    approval = ask(escalate={"to": ["eve"], "after": 7200})
    approval.decide(by=ada, verdict="approve")
    pass_time(7300)
    assert chores.do_due() == 0
    assert not Approval.objects.visible_to(eve).exists()


def test_a_moved_deadline_wakes_the_run_which_looks_and_waits_on(ada):
    approval = ask(due=HOUR)
    approval.run.refresh_from_db()
    answers, until = approval.run.answers, clock.now() + 5 * HOUR
    approval.extend(ada, until, reason="in a meeting", revision=1)
    entry = LedgerEntry.objects.get(pk=approval.entry_id)
    assert (approval.due_at, entry.due_at, approval.revision) == (until, until, 2)
    assert approval.remind_at == approval.opened_at + 0.75 * (until - approval.opened_at)
    approval.run.refresh_from_db()
    assert approval.run.answers == answers + 1
    row = Activity.objects.get(kind="extended")
    assert row.by == ada and row.text.endswith(": in a meeting")
    pass_time(2 * 3600)
    approval.decide(by=ada, verdict="approve")
    assert answer_of(approval)["outcome"] == "approved"


@pytest.mark.parametrize(
    "until", [None, "later", NOON.replace(year=2030, tzinfo=None), -HOUR, timedelta(0), 400 * 24 * HOUR]
)
def test_a_deadline_moves_only_to_a_later_moment_within_a_year(ada, until):
    approval = ask(due=HOUR)
    moment = approval.due_at + until if isinstance(until, timedelta) else until
    with pytest.raises(Invalid) as refused:
        approval.extend(ada, moment)
    assert list(refused.value.fields) == ["until"]
    approval.refresh_from_db()
    assert approval.revision == 1


def test_once_it_has_passed_a_deadline_does_not_move(ada):
    approval = ask(due=HOUR)
    pass_time(3600)
    with pytest.raises(Conflict, match="Too late"):
        approval.extend(ada, clock.now() + HOUR)
    with pytest.raises(Conflict, match="no deadline"):
        ask().extend(ada, clock.now() + HOUR)


def test_the_requester_moves_no_deadline_and_an_operator_does(ada, eve, person):
    operated = Graph("mailing", operators="ops", viewers="watchers")
    operated.node(lambda run, state: END, name="email")
    olga, vera = person("olga", "ops"), person("vera", "watchers")
    approval = ask(run=waiting_run(created_by=ada, on_behalf_of=eve), due=HOUR)
    with registered(operated):
        with pytest.raises(NotAllowed, match="Only pm"):
            approval.extend(vera, clock.now() + 2 * HOUR)
        for one in (ada, eve):
            with pytest.raises(NotAllowed, match="four eyes"):
                approval.extend(one, clock.now() + 2 * HOUR)
        approval.extend(olga, clock.now() + 2 * HOUR)
        with pytest.raises(NotAllowed, match="Only pm"):
            approval.decide(by=olga, verdict="approve")


waiting = Graph("waiting-long")


@waiting.node(then=END)
def wait(run, state):
    try:
        state["said"] = run.interrupt("Go?", **ASKED).outcome
    except Expired:
        state["said"] = "expired"
    return END


ASKED = {"reviewers": "pm", "due": HOUR, "escalate_to": "eve", "escalate_after": timedelta(minutes=30)}


@pytest.fixture
def parked():
    with registered(waiting):
        run = start(waiting, {})
        drive(run)
        yield run, Approval.objects.get(run=run)


@pytest.mark.django_db(transaction=True)
def test_a_run_whose_deadline_moved_parks_again_silently_and_expires_at_the_new_one(ada, parked):
    run, approval = parked
    approval.extend(ada, approval.due_at + HOUR)
    pass_time(3601)  # the old deadline, at which it wakes once more
    seen = kinds(run)
    assert drive(run) is None
    assert (run.status, run.wake_at, kinds(run)) == ("waiting", approval.due_at, seen)
    pass_time(3600)
    drive(run)
    assert run.state_at()["said"] == "expired"


@pytest.mark.django_db(transaction=True)
def test_a_shift_reminds_and_escalates_beside_its_runs(eve, parked):
    _, approval = parked
    pass_time(46 * 60)
    Shift(linger=0).work()
    assert sorted(told(approval)) == ["escalated", "opened", "reminded"]
    assert Approval.objects.mine(eve).get() == approval


@pytest.mark.django_db(transaction=True)
def test_a_deadline_moved_in_the_moment_it_passes_is_moved_or_has_passed(person, parked):
    """Never both: what expired stays expired."""
    ada = person("ada", "pm")
    _, approval = parked
    until = approval.due_at + HOUR
    pass_time(3599.9)
    moved, _ = at_once(
        lambda: Approval.objects.get(pk=approval.pk).extend(ada, until), lambda: _drive_until_passed(approval)
    )
    approval.refresh_from_db()
    if isinstance(moved, Exception):
        assert "Too late" in str(moved)
        drive(approval.run)  # the other one may have come while its row was locked
        approval.refresh_from_db()
        assert approval.outcome == "expired"
    else:
        assert (approval.outcome, approval.due_at) == ("", until)
    assert first_break(approval) is None


def _drive_until_passed(approval):
    due = approval.due_at
    while clock.now() <= due:
        pass
    drive(approval.run)
