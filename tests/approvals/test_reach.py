"""The quick ways to one person's approvals find what the rules say, however many there are."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import caches
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals.context import badge
from approvals.counting import Count, counted
from approvals.filters import Filter
from approvals.listing import Listing
from approvals.models import Approval, Reviewer, reach
from approvals.models.inbox import SCOPES
from approvals.neighbours import next_open
from approvals.scopes import Numbers
from approvals.views.inbox import count as count_view
from runs.audience import Onlooker
from runs.engine import clock
from runs.hooks import interrupt_opened, run_ended
from runs.live import watching
from runs.models import Run
from tests.approvals.cases import ask, close, waiting_run
from tests.approvals.pages import overdue

pytestmark = pytest.mark.django_db
REMEMBERING = {
    "default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"},
    "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}


@pytest.fixture
def office(person):
    """Six people, and thirty approvals of random runs, some decided, some of ended runs."""
    chance = random.Random(11)
    people = [
        person(f"p{number}", *chance.sample(["pm", "ops"], chance.randint(0, 2))) for number in range(6)
    ]
    people[5].user_permissions.add(Permission.objects.get(codename="audit"))
    runs = [
        waiting_run(
            created_by=chance.choice([None, *people]), on_behalf_of=chance.choice([None, None, *people])
        )
        for _ in range(12)
    ]
    for _ in range(30):
        approval = ask(
            run=chance.choice(runs),
            reviewers=tuple(chance.sample(["pm", "ops", "p0", "p3", "nobody"], chance.randint(0, 2))),
            exclude=chance.sample(["ops", "p1"], chance.choice([0, 0, 1])),
            due=chance.choice([None, timedelta(hours=2), timedelta(days=3)]),
            quorum=chance.randint(1, 3),
            risk=chance.choice(["low", "high"]),
        )
        able = [one for one in people if Approval.objects.may_decide(one).filter(pk=approval.pk).exists()]
        if able and chance.random() < 0.5:
            approval.decide(by=able[0], verdict=chance.choice(["approve", "reject"]), reason="no")
        elif able and chance.random() < 0.3:
            approval.claim(able[0])
    for run in runs[:4]:
        for approval in Approval.objects.open().filter(run=run):
            close(approval, "cancelled")
        Run.objects.filter(pk=run.pk).update(status="cancelled", wake_at=None, finished_at=clock.now())
        run_ended.send(sender=Run, run=run, now=clock.now())
    return [User.objects.get(pk=one.pk) for one in people]


@pytest.mark.parametrize("few", [0, 10_000], ids=["many", "few"])
def test_both_ways_find_what_one_may_see(office, monkeypatch, few):
    """A10, O5: whether a person's approvals are few or many, the rows are those of the run's one door."""
    monkeypatch.setattr(reach, "FEW", few)
    for one in office:
        seen = set(Approval.objects.filter(run__in=Run.objects.visible_to(one)))
        assert set(Approval.objects.visible_to(one)) == seen
        assert set(reach.seen_by(Approval.objects.all(), one, live=False)) == seen
        still_open = {approval for approval in seen if approval.is_open}
        assert set(reach.seen_by(Approval.objects.open(), one, live=True)) == still_open
        theirs = set(Approval.objects.open()) & set(Approval.objects.may_decide(one))
        voted = set(Approval.objects.filter(votes__by=one))
        assert set(Approval.objects.for_user(one)) == theirs - voted
        groups = [group.name for group in one.groups.all()]
        named = Reviewer.objects.filter(name__in=groups, excluded=False, approval__outcome="")
        assert set(Approval.objects.teams(one)) == {row.approval for row in named}


def test_who_sees_what_is_the_same_found_from_the_people_and_from_the_runs(office):
    """O5: an open page is told of a list by its audience, and of a thing by the run's one door."""
    runs, approvals = list(Run.objects.all()), list(Approval.objects.all())
    switched_off = office[4]
    switched_off.is_active = False
    switched_off.save()
    onlookers = [(one, Onlooker.of(one)) for one in office if one.is_active]
    assert len({onlooker.groups for _one, onlooker in onlookers}) > 1
    for run in runs:
        audience = watching.audiences({"run": {run.pk}})["run"]
        for one, onlooker in onlookers:
            seen = Run.objects.visible_to(one).filter(pk=run.pk).exists()
            assert onlooker.is_in(audience) == seen, (one, run)
            assert ("runs" in watching.sees_any(one, {"run": {run.pk}})) == seen
    for several in (approvals[:1], approvals[3:7], approvals[-1:], approvals):
        keys = {approval.pk for approval in several}
        audience = watching.audiences({"approval": keys})["approval"]
        for one, onlooker in onlookers:
            seen = Approval.objects.visible_to(one).filter(pk__in=keys).exists()
            assert onlooker.is_in(audience) == seen, (one, several)


def test_badge_header_scope_and_pages_give_one_number(office, rf, monkeypatch):
    """A10: on random data, in every scope, with pages of six rows."""
    monkeypatch.setattr("approvals.listing.SHOWN", 6)
    for one in office:
        request = rf.get("/inbox/count/")
        request.user = one
        badge = count_view(request).content.decode()
        visible = set(Approval.objects.visible_to(one))
        assert f'value="{Listing(one, Filter()).count.number}"' in badge
        for scope in SCOPES:
            for filter in (Filter(scope=scope), Filter(scope=scope, risk="high")):
                listing, found = Listing(one, filter), []
                while True:
                    found += listing.rows
                    if not listing.next_query:
                        break
                    listing = Listing.of(one, query(listing.next_query))
                assert len(found) == len(set(found)), "a row is on two pages"
                if scope != "decided":
                    assert listing.count == Count(len(found))
                    groups = Listing(one, filter).groups
                    assert all(len(group.rows) <= group.count for group in groups)
                assert visible.issuperset(found)


@pytest.mark.parametrize("few", [0, 10_000], ids=["many", "few"])
def test_the_numbers_beside_the_scopes_are_those_of_their_lists(office, monkeypatch, few):
    """A10: counted one by one, or in one reading; beside whichever scope is open."""
    monkeypatch.setattr(reach, "FEW", few)
    for one in office:
        lists = {scope: len(Listing(one, Filter(scope=scope)).rows) for scope in SCOPES if scope != "decided"}
        for current in SCOPES:
            one = User.objects.get(pk=one.pk)
            told = Numbers(Listing(one, Filter(scope=current))).scopes
            assert {each.name: each.count.number for each in told if each.count is not None} == lists
    assert sum(lists.values()) > 0


def query(text: str) -> dict[str, str]:
    from urllib.parse import parse_qsl

    return dict(parse_qsl(text.removeprefix("?")))


def test_pages_hold_every_row_once_in_the_order_of_one_list(ada, monkeypatch):
    """Rows with the same deadline, and without one, stand on either side of a page's end."""
    due = timedelta(hours=2)
    for number in range(11):
        ask(question=f"{number}?", due=due if number % 3 else None)
    Approval.objects.exclude(due_at=None).update(due_at=clock.now() + due)
    Approval.objects.filter(title__in=["1?", "2?", "3?"]).update(opened_at=clock.now())
    whole = [row.pk for row in Listing(ada, Filter()).rows]
    monkeypatch.setattr("approvals.listing.SHOWN", 2)
    listing, found = Listing(ada, Filter()), []
    while True:
        found += [row.pk for row in listing.rows]
        if not listing.next_query:
            break
        listing = Listing.of(ada, query(listing.next_query))
    assert found == whole and len(whole) == 11


def test_after_the_last_decision_of_a_page_the_next_page_begins(ada, monkeypatch):
    monkeypatch.setattr("approvals.listing.SHOWN", 2)
    rows = [ask(due=timedelta(hours=number)) for number in range(1, 5)]
    listing = Listing(ada, Filter())
    assert next_open(rows[1], listing) == rows[2]
    last = Listing.of(ada, query(listing.next_query))
    assert last.rows == rows[2:]
    assert next_open(rows[3], last) == rows[2]


def test_what_nobody_can_decide_any_more_is_not_what_comes_next(ada):
    """While there is anything else: its deadline has passed, and the run will take it up."""
    late, first, last = (ask(due=timedelta(hours=number)) for number in (1, 2, 3))
    overdue(late)
    assert Listing(ada, Filter()).rows == [late, first, last]
    assert next_open(last, Listing(ada, Filter())) == first
    assert next_open(ask(reviewers=("bob",)), Listing(ada, Filter())) == first
    first.decide(by=ada, verdict="approve")
    assert next_open(last, Listing(ada, Filter())) == late


@pytest.mark.parametrize(
    "after", ["x", "..", "1.2.3", "9" * 30 + ".1." + "0" * 32, "-1.-1.zz", "%00", "1.1." + "f" * 33]
)
def test_a_place_typed_wrong_is_the_first_page(ada, after):
    approval = ask()
    assert Listing(ada, Filter(after=after)).rows == [approval]
    assert Listing(ada, Filter(scope="decided", after=after)).rows == []


@pytest.mark.parametrize(
    "until",
    ["x", "2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z", "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00"]
    + ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"],
)
def test_a_moment_typed_wrong_is_now(ada, until):
    approval = ask()
    assert Listing.of(ada, {"until": until}).rows == [approval]


def test_very_many_are_told_as_more_than(ada, monkeypatch):
    monkeypatch.setattr("approvals.counting.MOST", 3)
    for _ in range(3):
        ask()
    assert str(counted(Approval.objects.all())) == "3"
    ask()
    assert str(counted(Approval.objects.all())) == "3+"
    assert Numbers(Listing(ada, Filter())).mine == Count(3, is_cut=True)


def test_that_there_are_very_many_is_remembered_and_never_how_few(ada, monkeypatch, settings):
    settings.CACHES = REMEMBERING
    monkeypatch.setattr("approvals.counting.MOST", 3)
    asked = [ask() for _ in range(3)]
    assert badge(ada) == Numbers(Listing(ada, Filter())).mine == Count(3)
    asked.append(ask())
    assert badge(ada) == Count(3, is_cut=True)
    with CaptureQueriesContext(connection) as captured:
        assert badge(ada) == Count(3, is_cut=True)
    assert len(captured) == 0
    close(asked[0], "approved")
    assert Numbers(Listing(ada, Filter())).mine == Count(3), "the list itself is read each time"
    caches["process"].clear()
    assert badge(ada) == Count(3)


def test_that_a_person_has_very_many_is_remembered_and_hides_nothing(ada, bob, monkeypatch, settings):
    settings.CACHES = REMEMBERING
    monkeypatch.setattr(reach, "FEW", 1)
    asked = {ask() for _ in range(3)}
    for _ in range(2):
        fresh = User.objects.get(pk=ada.pk)
        for scope in ("mine", "teams", "all"):
            assert set(Approval.objects.in_scope(scope, fresh, clock.now())) == asked
    caches["process"].clear()


def test_what_an_ended_run_asked_is_not_looked_through_again(ada):
    """The inbox of a reviewer stays short: names of ended runs are left out of its index, and come back on a repair."""
    run = waiting_run()
    approval = ask(run=run)
    close(approval, "cancelled")
    run_ended.send(sender=Run, run=run, now=clock.now())
    assert not Reviewer.objects.filter(live=True).exists()
    assert Approval.objects.in_scope("decided", ada, clock.now()).get() == approval
    again = ask(run=run)
    assert not Reviewer.objects.filter(live=False).exists()
    assert set(Approval.objects.in_scope("all", ada, clock.now())) == {again}
    assert interrupt_opened.has_listeners()


def test_a_large_team_suffices_until_its_people_are_gone(person):
    """A15: a group of enough people is taken to suffice; in a small one, or where one is excluded, they are counted."""
    people = [person(f"p{number}", "crowd") for number in range(5)]
    fine = ask(reviewers=("crowd",), quorum=3, run=waiting_run(created_by=people[0], on_behalf_of=people[1]))
    excluded = ask(reviewers=("crowd",), exclude=["crowd"])
    many = ask(reviewers=("crowd",), quorum=6)
    both = ask(reviewers=("crowd", "ghosts"))
    assert set(Approval.objects.needs_attention(clock.now())) == {excluded, many}
    for one in people:
        one.is_active = False
        one.save()
    assert set(Approval.objects.needs_attention(clock.now())) == {fine, excluded, many, both}
