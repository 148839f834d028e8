"""What pages may cost, and what they remember of what they read."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from approvals.context import badge
from approvals.counting import Count
from approvals.filters import Filter
from approvals.listing import Listing
from approvals.models import Absence, Approval, attention, reach
from runs.engine import clock
from tests.approvals.cases import ask, waiting_run

pytestmark = pytest.mark.django_db
CLOCK = 1  # PostgreSQL is asked for its clock as well


@pytest.fixture
def remembering(settings):
    """As the web process does; tests begin with nothing remembered."""
    settings.CACHES = settings.CACHES | {
        "process": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "pages"}
    }
    caches["process"].clear()
    yield
    caches["process"].clear()


def form_of(client: Client, address: str) -> str:
    return client.get(address).content.decode().split('id="filter"')[1].split("</form>")[0]


def test_names_to_filter_by_are_remembered_for_one_person_and_a_minute(remembering, signed_in, ada, eve):
    ask(run=waiting_run(graph="first"))
    hers = Client()
    hers.force_login(eve)
    assert "<option>first</option>" in form_of(signed_in, "/?risk=low")
    ask(run=waiting_run(graph="second"))
    assert "<option>second</option>" not in form_of(signed_in, "/?risk=high")
    assert "<option>second</option>" in form_of(signed_in, "/"), "what is shown is offered"
    chosen = form_of(signed_in, "/?risk=high&graph=second")
    assert "<option selected>second</option>" in chosen, "and what is chosen"
    assert "first" not in form_of(hers, "/?risk=low"), "nobody sees another's"
    caches["process"].clear()
    assert "<option>second</option>" in form_of(signed_in, "/?risk=high")


def test_what_is_drawn_once_a_language_and_choice_is_drawn_for_each(remembering, signed_in):
    def account(**cookies: str) -> str:
        signed_in.cookies.clear()
        signed_in.cookies.load({"sessionid": session, **cookies})
        return signed_in.get("/").content.decode()

    session = signed_in.cookies["sessionid"].value
    for _time in range(2):
        plain, dark, german = account(), account(theme="dark"), account(language="de", keys="off")
        assert 'value="system" checked' in plain and 'value="dark" checked' not in plain
        assert 'value="dark" checked' in dark and 'value="system" checked' not in dark
        assert '<option value="de" lang="de" selected>' in german and "selected>Deutsch" not in plain
        assert 'name="keys" value="on" checked' in plain and 'name="keys" value="on" checked' not in german
        assert "Approve</span>" in plain and "Approve</span>" not in german
        assert "Freigeben</span>" in german
        tokens = {page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0] for page in (plain, dark)}
        assert len(tokens) == 2, "what belongs to one answer is in no other"


def test_that_none_of_very_many_waits_for_somebody_is_remembered_too(remembering, ada, eve, monkeypatch):
    monkeypatch.setattr(reach, "FEW", 0)
    monkeypatch.setattr(reach, "NEAR", 1)
    ask(reviewers=("ops",), due=timedelta(hours=1))
    ask(due=timedelta(hours=2))
    assert badge(ada) == Count(0, is_cut=True)
    with CaptureQueriesContext(connection) as captured:
        assert badge(ada) == Count(0, is_cut=True)
    assert not captured
    assert [row.due_at for row in Listing(ada, Filter()).rows] == [Approval.objects.mine(ada).get().due_at]


def test_old_ones_are_looked_at_so_far_and_the_page_says_so(ada, signed_in, monkeypatch):
    monkeypatch.setattr(reach, "FEW", 0)
    monkeypatch.setattr(attention, "OLDEST", 2)
    kept = [ask(), ask(reviewers=("ops",)), ask()]
    for days, approval in enumerate(reversed(kept)):
        Approval.objects.filter(pk=approval.pk).update(opened_at=clock.now() - timedelta(days=5 + days))
    listing = Listing(ada, Filter(scope="attention"))
    assert listing.rows == [kept[0]] and listing.is_not_all_counted
    assert "not all of them were looked at" in signed_in.get("/?scope=attention").content.decode()
    monkeypatch.setattr(attention, "OLDEST", 4)
    listing = Listing(ada, Filter(scope="attention"))
    assert listing.rows == [kept[0], kept[2]] and not listing.is_not_all_counted


@pytest.mark.parametrize("many", [1, 6])
def test_a_persons_own_pages_ask_a_fixed_number_of_questions(
    signed_in, ada, eve, person, django_assert_max_num_queries, many
):
    now = clock.now()
    Absence.plan(ada, eve, now + timedelta(days=1), now + timedelta(days=2))
    for number in range(many):
        ask()
        group = Group.objects.create(name=f"team {number}")
        group.user_set.add(ada, person(f"colleague-{number}"))
    for address, most in (
        ("/away/", 6),
        ("/notices/", 8),
        ("/account/", 8),
        ("/account/password/", 5),
        ("/account/passkeys/", 6),
        ("/account/provider/", 7),
    ):
        with django_assert_max_num_queries(most + CLOCK):
            assert signed_in.get(address, follow=True).status_code == 200, address
