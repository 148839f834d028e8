"""A narrowed list among very many is looked through only so far: what it shows is true, and it leads on to the rest."""

from __future__ import annotations

import random
from datetime import timedelta
from urllib.parse import parse_qsl

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import caches
from django.db import connection
from django.db.models.expressions import RawSQL

from approvals import looking
from approvals.counting import Count
from approvals.filters import Filter
from approvals.listing import Listing
from approvals.models import Approval, attention, reach
from runs.engine import clock
from tests.amounts import THOROUGH, some_of
from tests.approvals.cases import ask, waiting_run

pytestmark = pytest.mark.django_db
NARROWED = [
    {},
    {"q": "zebra"},
    {"q": "ze"},
    {"q": "nowhere"},
    {"risk": "high"},
    {"graph": "refunds", "q": "zebra"},
    {"graph": "refunds", "risk": "high"},
    {"reviewer": "LEGAL"},
    {"reviewer": "nobody"},
    {"requester": "bob"},
    {"due": "7d", "risk": "high"},
    {"due": "none", "q": "zebra"},
    {"age": "1h", "requester": "bob"},
]


@pytest.fixture
def shelf(bob, person):
    """Forty questions to pm of two graphs, each with what the filters ask of some; a third are decided."""
    chance = random.Random(32)
    carl = person("carl", "pm")
    for number in range(40):
        approval = ask(
            question=f"Send {chance.choice(['zebra', 'yak', 'gnu'])} {number}?",
            reviewers=("pm", "Legal") if chance.random() < 0.2 else ("pm",),
            run=waiting_run(
                graph=chance.choice(["mailing", "refunds"]), created_by=bob if chance.random() < 0.3 else None
            ),
            due=chance.choice([None, timedelta(hours=2), timedelta(days=3)]),
            risk=chance.choice(["low", "low", "high"]),
        )
        if number % 3 == 0:
            approval.decide(by=carl, verdict="approve")
    Approval.objects.filter(risk="high").update(opened_at=clock.now() - timedelta(hours=2))


@pytest.fixture
def very_many(monkeypatch):
    """As if these few were very many: nobody's list is short, and one looks at three rows, then at five."""
    monkeypatch.setattr(reach, "FEW", 0)
    monkeypatch.setattr(reach, "NEAR", 8)
    monkeypatch.setattr(looking, "LONG", 2)
    monkeypatch.setattr(looking, "NEAR", 3)
    monkeypatch.setattr(looking, "FAR_OPEN", 5)
    monkeypatch.setattr(looking, "FAR_DECIDED", 5)
    monkeypatch.setattr(looking, "PATIENCE", 60_000)
    monkeypatch.setattr("approvals.listing.SHOWN", 4)


@pytest.mark.parametrize("few", [0, 2, 1_000], ids=["no-index", "some-by-index", "all-by-index"])
def test_whoever_looks_on_finds_every_row_once_in_its_order(ada, shelf, very_many, monkeypatch, few):
    monkeypatch.setattr(looking, "FEW", few)
    monkeypatch.setattr(looking, "READ", 10 * few)
    found_any = 0
    for scope in ("mine", "teams", "all", "decided"):
        for said in some_of(f"{scope} {few}", NARROWED):
            wanted = Filter(scope=scope, **said)
            person = User.objects.get(pk=ada.pk)
            rows = Approval.objects.in_scope(scope, person, clock.now())
            whole = list(wanted.applied(rows, clock.now()).values_list("pk", flat=True))
            listing, found = Listing(person, wanted), []
            if not listing.count.is_cut:
                assert listing.count == Count(len(whole)), wanted
            for _page in range(20):
                found += [row.pk for row in listing.rows]
                if not listing.next_query:
                    break
                listing = Listing.of(person, dict(parse_qsl(listing.next_query.removeprefix("?"))))
            assert found == whole, wanted
            found_any += len(whole)
    assert found_any > (100 if THOROUGH else 0)


def test_a_page_that_is_not_full_says_how_far_it_looked(signed_in, ada, shelf, very_many, monkeypatch):
    page = signed_in.get("/", {"scope": "all", "age": "7d"}).content.decode()
    assert "Nothing found so far" in page
    assert "8 approvals of the list were looked through" in page
    assert "Look further" in page
    monkeypatch.setattr(looking, "FAR_OPEN", 100)
    page = signed_in.get("/", {"scope": "all", "age": "7d"}).content.decode()
    assert "Nothing fits the filter" in page and "looked through" not in page


def test_what_comes_meanwhile_waits_also_beside_a_narrowed_list(ada, shelf, very_many):
    until = clock.now()
    for _ in range(3):
        ask(question="Send zebra at last?")
    ada = User.objects.get(pk=ada.pk)
    listing = Listing(ada, Filter(q="zebra"), until=until)
    assert listing.fresh == Count(3)
    assert not [row for row in listing.rows if row.title == "Send zebra at last?"]


@pytest.fixture
def watcher(person):
    watching = person("watcher")
    watching.user_permissions.add(Permission.objects.get(codename="audit"))
    return User.objects.get(pk=watching.pk)


def test_what_needs_attention_is_gathered_as_the_rule_says(ada, bob, watcher, monkeypatch):
    """A15: for who sees everything, for who sees too much to be asked row by row, and for who sees a part."""
    monkeypatch.setattr(reach, "FEW", 0)
    ask()
    ask(reviewers=("legal", "pm"), run=waiting_run(created_by=ada))
    stuck = {
        ask(reviewers=("legal",)),
        ask(reviewers=()),
        ask(reviewers=("ada",), exclude=["ada"]),
        ask(reviewers=("ada",), run=waiting_run(created_by=ada)),
        ask(quorum=4),
        ask(quorum=3),
        ask(schema={"type": "objekt"}),
    }
    old = ask()
    Approval.objects.filter(pk=old.pk).update(opened_at=clock.now() - timedelta(days=4))
    now = clock.now()
    assert set(Approval.objects.needs_attention(now)) == {*stuck, old}
    assert set(Approval.objects.in_scope("attention", watcher, now)) == {*stuck, old}
    listing = Listing(watcher, Filter(scope="attention"))
    assert set(listing.rows) == {*stuck, old} and not listing.is_not_all_counted
    ada = User.objects.get(pk=ada.pk)
    seen = set(Approval.objects.visible_to(ada))
    assert set(Approval.objects.in_scope("attention", ada, now)) == {*stuck, old} & seen
    monkeypatch.setattr(reach, "FEW", 1_000)
    monkeypatch.setattr(attention, "ASKED", 0)
    ada = User.objects.get(pk=ada.pk)
    caches["process"].clear()
    assert set(Listing(ada, Filter(scope="attention")).rows) == {*stuck, old} & seen
    assert {*stuck, old} & seen and attention.found(Approval.objects.all(), now).keys == {
        row.pk for row in (*stuck, old)
    }
    bob.is_active = False
    bob.save()
    assert set(Approval.objects.in_scope("attention", watcher, now)) == set(
        Approval.objects.needs_attention(now)
    )


def test_where_more_may_need_attention_than_were_looked_at_the_page_says_so(client, watcher, monkeypatch):
    monkeypatch.setattr(attention, "MOST", 2)
    for _ in range(4):
        ask(reviewers=("legal",))
    client.force_login(watcher)
    page = client.get("/", {"scope": "attention"}).content.decode()
    assert "not all of them were looked at" in page
    assert '<data value="2+">2+</data>' in page


@pytest.mark.postgres_only
def test_what_is_expected_too_often_is_not_looked_up(ada, monkeypatch, django_assert_num_queries):
    wanted = ask(question="Send zebra?")
    keys = Approval.objects.open().matching("zebra").order_by().values_list("pk", flat=True)
    assert looking.at_once(keys, by_words=True) == [wanted.pk]
    monkeypatch.setattr(looking, "FREQUENT", 0)
    with django_assert_num_queries(1):
        assert looking.at_once(keys, by_words=True) is None


@pytest.mark.postgres_only
def test_an_index_that_takes_too_long_is_left_and_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(looking, "PATIENCE", 1)
    endless = RawSQL("SELECT id FROM approvals_approval, pg_sleep(600)", [])
    ask()
    monkeypatch.setattr(looking, "FREQUENT", 10**9)
    for by_words in (False, True):
        keys = Approval.objects.filter(pk__in=endless).order_by().values_list("pk", flat=True)
        assert looking.at_once(keys, by_words=by_words) is None
    with connection.cursor() as cursor:
        for setting, value in (
            ("statement_timeout", "0"),
            ("enable_seqscan", "on"),
            ("enable_indexscan", "on"),
        ):
            cursor.execute(f"SHOW {setting}")
            assert cursor.fetchone() == (value,)
