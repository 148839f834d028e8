from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser, User
from prometheus_client.parser import text_string_to_metric_families

from approvals.counting import Count, counted
from approvals.models import Approval
from approvals.models.inbox import SCOPES
from approvals.models.shown import shown
from runs.engine import clock
from runs.pages.words import person_name
from tests.approvals.cases import ask, waiting_run

pytestmark = pytest.mark.django_db


def test_mine_is_what_waits_for_me_and_nobody_else_has_taken(ada, bob, eve):
    free, taken, claimed = ask(), ask(), ask()
    taken.claim(bob)
    claimed.claim(ada)
    ask(run=waiting_run(created_by=ada))
    ask(reviewers=("ops",))
    ask().decide(by=bob, verdict="approve")
    assert set(Approval.objects.mine(ada)) == {free, claimed}
    assert set(Approval.objects.for_user(ada)) == {free, claimed, taken}
    assert not Approval.objects.mine(eve).exists()


def test_my_teams_are_those_that_name_my_groups(ada, bob):
    named, taken, own = ask(), ask(), ask(run=waiting_run(created_by=ada))
    taken.claim(bob)
    ask(reviewers=("ada",))
    assert set(Approval.objects.teams(ada)) == {named, taken, own}


@pytest.mark.parametrize("scope", SCOPES)
def test_nobody_sees_nothing(scope):
    ask()
    assert not Approval.objects.in_scope(scope, AnonymousUser(), clock.now()).exists()


def test_every_scope_stays_within_what_one_may_see(person):
    """O5, A10: on random rows a scope's list, its count and its groups agree, and nothing in it is hidden."""
    chance = random.Random(5)
    people = [
        person(f"p{number}", *chance.sample(["pm", "ops"], chance.randint(0, 2))) for number in range(4)
    ]
    for _ in range(50):
        due = chance.choice([None, timedelta(seconds=-5), timedelta(hours=1), timedelta(days=4)])
        approval = ask(
            run=waiting_run(created_by=chance.choice([None, *people])),
            reviewers=tuple(chance.sample(["pm", "ops", "p0", "nobody"], chance.randint(0, 2))),
            due=due,
            quorum=chance.randint(1, 3),
        )
        mine = (one for one in people if Approval.objects.for_user(one).filter(pk=approval.pk).exists())
        voter = next(mine, None)
        if voter is not None and chance.random() < 0.5 and (due is None or due > timedelta(0)):
            approval.decide(by=voter, verdict=chance.choice(["approve", "reject"]), reason="no")
    now, filled = clock.now(), set()
    for one in people:
        seen = set(Approval.objects.visible_to(one).values_list("pk", flat=True))
        for scope in SCOPES:
            rows = Approval.objects.in_scope(scope, one, now)
            listed = list(rows.values_list("pk", flat=True))
            assert len(listed) == rows.count() == len(set(listed)), (scope, one)
            assert set(listed) <= seen, (scope, one)
            filled |= {scope} if listed else set()
    assert filled == set(SCOPES)


def test_what_nobody_can_decide_needs_attention(ada, bob):
    """A15"""
    now = clock.now()
    fine = ask()
    unknown = ask(reviewers=("legal",))
    unnamed = ask(reviewers=())
    excluded = ask(reviewers=("ada",), exclude=["ada"])
    own = ask(reviewers=("ada",), run=waiting_run(created_by=ada))
    short = ask(quorum=3)
    assert set(Approval.objects.needs_attention(now)) == {unknown, unnamed, excluded, own, short}
    bob.is_active = False
    bob.save()
    ada.is_active = False
    ada.save()
    assert fine in Approval.objects.needs_attention(now)


def test_what_needs_attention_is_counted_for_whoever_watches(ada, client, settings):
    """A15: over all runs, whoever may see them."""
    ask()
    ask(reviewers=("legal",))
    Approval.objects.filter(pk=ask(due=timedelta(hours=1)).pk).update(due_at=clock.now() - timedelta(hours=1))
    ask().decide(by=ada, verdict="approve")
    settings.DURABLEWEB = {**settings.DURABLEWEB, "metrics_token": "watch"}
    assert client.get("/metrics/", headers={"Authorization": "Bearer wrong"}).status_code == 403
    told = client.get("/metrics/", headers={"Authorization": "Bearer watch"}).content.decode()
    found = {one.name: one.samples[0].value for one in text_string_to_metric_families(told)}
    assert {
        name: number for name, number in found.items() if "_run" not in name and "_effect" not in name
    } == {
        "durableweb_approvals_open": 3,
        "durableweb_approvals_overdue": 1,
        "durableweb_approvals_needing_attention": 1,
        "durableweb_targets_failing": 0,
    }


def test_what_is_old_and_has_no_deadline_needs_attention(ada):
    """A15"""
    old, with_deadline, fresh = ask(), ask(due=timedelta(days=9)), ask()
    Approval.objects.exclude(pk=fresh.pk).update(opened_at=clock.now() - timedelta(days=4))
    assert set(Approval.objects.needs_attention(clock.now())) == {old}
    assert with_deadline.is_open


def test_the_inbox_is_grouped_by_deadline(ada, settings):
    """Today ends at midnight where the reader is: 23:30 UTC is tomorrow in Berlin."""
    settings.TIME_ZONE = "Europe/Berlin"
    now = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
    moments = {
        "overdue": now,
        "today": datetime(2026, 11, 26, 22, 59, tzinfo=UTC),
        "later": datetime(2026, 11, 26, 23, 0, tzinfo=UTC),
        "none": None,
    }
    for due_at in reversed(moments.values()):
        Approval.objects.filter(pk=ask().pk).update(due_at=due_at)
    rows = Approval.objects.open().by_due(now)
    assert [(row.due_group, row.due_at) for row in rows] == list(moments.items())


def test_the_latest_decision_comes_first(ada):
    first, second = ask(), ask()
    second.decide(by=ada, verdict="approve")
    first.decide(by=ada, verdict="approve")
    assert list(Approval.objects.decided()) == [first, second]


def test_an_approval_is_found_by_either_end_of_its_id(ada):
    approval, other = ask(), ask()
    text = str(approval.pk)
    for part in (text, text.replace("-", ""), text.upper(), text[-6:], approval.short_id, f" {text[-12:]} "):
        assert list(Approval.objects.called(part)) == [approval], part
    assert set(Approval.objects.called(text[:4])) == {approval, other}
    for part in ("", "abc", "x" * 8, "not-an-id", "0" * 33, "%%%%"):
        assert not Approval.objects.called(part).exists()


def test_a_list_costs_one_statement_however_long_it_is(ada, django_assert_num_queries):
    for _ in range(8):
        ask(run=waiting_run(created_by=None))
    mine = Approval.objects.mine(ada)
    keys = list(mine.values_list("pk", flat=True))
    with django_assert_num_queries(1):
        rows = shown(keys)
        assert [row.pk for row in rows] == keys
        for row in rows:
            assert (row.graph, row.assignee_id, row.votes_so_far) == ("mailing", None, 0)
    with django_assert_num_queries(1):
        assert counted(mine) == Count(8)


def test_people_are_named_in_a_list_as_everywhere(ada, bob):
    User.objects.filter(pk=bob.pk).update(first_name="Bob", last_name="Roe")
    bob.refresh_from_db()
    for served, starter in ((None, None), (None, bob), (bob, ada), (ada, None)):
        approval = ask(run=waiting_run(created_by=starter, on_behalf_of=served))
        Approval.objects.filter(pk=approval.pk).update(assignee=bob)
        (row,) = shown([approval.pk])
        requester = served or starter
        assert row.requester_name == (person_name(requester) if requester else None)
        assert row.holder_name == person_name(bob) == "Bob Roe"
        assert row.served_as == (served.username if served else None)
        assert row.started_as == (starter.username if starter else None)


def test_an_unknown_id_is_left_out_of_a_list():
    approval = ask()
    assert shown([uuid.uuid4(), approval.pk]) == [approval]
    assert shown([]) == []


def test_a_question_whose_schema_is_none_needs_attention(ada):
    broken = ask(schema={"type": "objekt"})
    ask(schema={"type": "object"})
    now = clock.now()
    assert list(Approval.objects.needs_attention(now)) == [broken]
    assert Approval.objects.may_need_attention(now).exists()
