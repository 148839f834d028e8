from __future__ import annotations

import random
from contextlib import suppress

import pytest
from django.contrib.auth.models import AnonymousUser, User

from approvals import who
from approvals.models import Activity, Approval, Decision, Reviewer, Vote, entitled
from approvals.words import VIAS
from runs.engine import clock
from runs.errors import Invalid, Missing, NotAllowed
from tests.approvals.cases import answer_of, ask, told, waiting_run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("via", VIAS)
@pytest.mark.parametrize("role", ["created_by", "on_behalf_of"])
def test_nobody_approves_their_own_request(ada, role, via):
    """A4: on every path, for who started it and for whom it works, also when named in person."""
    approval = ask(run=waiting_run(**{role: ada}), reviewers=("pm", "ada"))
    for verdict in ("approve", "reject"):
        with pytest.raises(NotAllowed, match="four eyes"):
            approval.decide(by=ada, verdict=verdict, via=via)
    assert answer_of(approval) is None
    assert told(approval) == ["opened", "refused by ada", "refused by ada"]


def test_a_superuser_has_no_vote_of_their_own(person):
    root = person("root")
    root.is_superuser = True
    root.save()
    with pytest.raises(NotAllowed, match="Only pm can decide this"):
        ask().decide(by=root, verdict="approve")


def test_a_person_can_be_named_instead_of_a_group(eve):
    approval = ask(reviewers=("eve",))
    approval.decide(by=eve, verdict="approve")
    assert answer_of(approval)["by"] == "eve"


def test_who_is_excluded_is_told_so(ada, bob):
    approval = ask(exclude=["ada"])
    with pytest.raises(NotAllowed, match="excluded"):
        approval.decide(by=ada, verdict="approve")
    approval.decide(by=bob, verdict="approve")


def test_who_may_not_know_of_it_is_told_that_it_does_not_exist(eve):
    """O5"""
    approval = ask()
    for act in (
        lambda: approval.decide(by=eve, verdict="approve"),
        lambda: approval.undo(eve),
        lambda: approval.take_back(eve),
        lambda: approval.comment(eve, "hello"),
        lambda: approval.claim(eve),
        lambda: approval.release(eve),
        lambda: approval.assign(eve, to=eve),
        lambda: approval.delegate(eve, to=eve),
        lambda: approval.recall(eve),
        lambda: approval.extend(eve, clock.now()),
    ):
        with pytest.raises(Missing):
            act()
    assert told(approval) == ["opened"]


def test_no_decision_without_a_person(ada):
    """A3"""
    approval = ask()
    ada.is_active = False
    for nobody in (AnonymousUser(), None, "ada", User(username="ada"), ada):
        for verdict in ("approve", "reject"):
            with pytest.raises(NotAllowed):
                approval.decide(by=nobody, verdict=verdict)
    assert not Decision.objects.exists()
    assert not Activity.objects.exclude(kind="opened").exists()


def test_membership_is_looked_up_when_it_matters(ada, pm_group):
    """A cached user object does not keep a right that was taken away."""
    approval = ask()
    assert who.why_not(approval, ada) == ""
    ada.groups.remove(pm_group)
    assert "not among them" in who.why_not(approval, ada)


def test_a_reviewer_sees_the_run_and_whoever_decided_sees_it_later(ada, eve, pm_group):
    approval = ask()
    assert Approval.objects.visible_to(ada).get() == approval
    assert not Approval.objects.visible_to(eve).exists()
    approval.decide(by=ada, verdict="approve")
    ada.groups.remove(pm_group)
    assert Approval.objects.visible_to(User.objects.get(pk=ada.pk)).get() == approval


def test_the_inbox_and_the_reasons_are_the_same_rules(person):
    """A10: for every person and approval of a random office, with stages, votes, and parts given to others."""
    chance = random.Random(7)
    groups = ["pm", "ops", "legal"]
    people = [person(f"p{number}", *chance.sample(groups, chance.randint(0, 2))) for number in range(8)]
    people[0].is_active = False
    people[0].save()
    names = groups + [one.username for one in people] + ["nobody", "empty"]
    given, staged = 0, 0
    for number in range(60):
        run = waiting_run(
            created_by=chance.choice([None, *people]), on_behalf_of=chance.choice([None, None, *people])
        )
        some = [tuple(chance.sample(names, chance.randint(0, 3))) for _ in range(3)]
        stages = [
            {"name": f"s{place}", "reviewers": some[place], "quorum": 1, "when": None, "needed": place == 0}
            for place in range(3)
        ]
        approval = ask(
            run=run,
            reviewers=() if number % 2 else some[0],
            exclude=chance.sample(names, chance.randint(0, 2)),
            quorum=1 if number % 2 else chance.randint(1, 2),
            stages=stages if number % 2 else [],
        )
        free = [one for one in people if who.why_not(approval, one) == ""]
        if free and chance.random() < 0.5:
            giver, to = free[0], chance.choice(people)
            with suppress(Invalid):
                approval.delegate(giver, to)
                given += 1
        if number % 2 and (voter := chance.choice([None, *free])) is not None:
            decision = Decision.objects.create(
                approval=approval, seq=900, by=voter, via="page", verdict="approve", payload="1",
                payload_digest="x", operation_id=f"op{number}", operation_digest="x", revision=1,
                at=approval.opened_at, digest="x",
            )  # fmt: skip
            Vote.objects.create(approval=approval, by=voter, decision=decision, stage=2)
            staged += 1
    giver = User.objects.get(pk=Reviewer.objects.filter(instead_of__isnull=False).first().instead_of_id)
    giver.is_active = False
    giver.save()
    people = list(User.objects.filter(username__startswith="p").order_by("username"))
    counts = dict(Approval.objects.annotate(able=entitled.able_count()).values_list("pk", "able"))
    theirs = [set(Approval.objects.may_decide(one).values_list("pk", flat=True)) for one in people]
    some = False
    for approval in Approval.objects.select_related("run").prefetch_related("reviewers"):
        may = [one for one in people if who.why_not(approval, one) == ""]
        some = some or bool(may)
        assert [one for one, their in zip(people, theirs, strict=True) if approval.pk in their] == may
        assert list(who.able(approval)) == may
        assert counts[approval.pk] == len(may)
    assert some and given > 3 and staged > 3


def test_the_way_it_came_is_one_of_the_known_ones(ada):
    with pytest.raises(Invalid):
        ask().decide(by=ada, verdict="approve", via="pigeon")
