from __future__ import annotations

from datetime import timedelta

import pytest
from django.http import QueryDict
from django.test import Client

from approvals.filters import Filter
from approvals.listing import Listing
from approvals.models import Approval, SavedFilter
from approvals.models.saved import MOST
from runs.engine import clock
from runs.errors import Conflict, Invalid
from tests.approvals.cases import ask, waiting_run

pytestmark = pytest.mark.django_db


def titles(user, **said):
    return {row.title for row in Listing(user, Filter(**said)).rows}


def test_each_filter_leaves_what_its_name_says(ada, bob, eve, settings):
    settings.TIME_ZONE = "UTC"
    ask(question="late?", due=timedelta(hours=5), run=waiting_run(created_by=bob))
    ask(question="soon?", due=timedelta(minutes=30), risk="high", run=waiting_run(on_behalf_of=eve))
    ask(question="later?", due=timedelta(days=5), reviewers=("ada",), run=waiting_run(graph="refunds"))
    ask(question="whenever?", reviewers=("pm", "Legal"), why="The **zebra** asked.")
    Approval.objects.filter(title="late?").update(due_at=clock.now() - timedelta(hours=1))
    Approval.objects.filter(title="whenever?").update(opened_at=clock.now() - timedelta(days=2))
    for said, there in (
        ({"due": "overdue"}, {"late?"}),
        ({"due": "1h"}, {"soon?"}),
        ({"due": "7d"}, {"soon?", "later?"}),
        ({"due": "none"}, {"whenever?"}),
        ({"risk": "high"}, {"soon?"}),
        ({"graph": "refunds"}, {"later?"}),
        ({"age": "1d"}, {"whenever?"}),
        ({"age": "7d"}, set()),
        ({"requester": "bob"}, {"late?"}),
        ({"requester": "EVE"}, {"soon?"}),
        ({"requester": "nobody"}, set()),
        ({"reviewer": "legal"}, {"whenever?"}),
        ({"reviewer": "ada"}, {"later?"}),
        ({"q": "zebra"}, {"whenever?"}),
        ({"q": "REFUND"}, {"later?"}),
        ({"q": Approval.objects.get(title="soon?").short_id}, {"soon?"}),
        ({"due": "7d", "risk": "high"}, {"soon?"}),
    ):
        assert titles(ada, **said) == there, said
        assert Listing(ada, Filter(**said)).count.number == len(there), said


def test_due_today_ends_at_the_readers_midnight(ada, settings):
    settings.TIME_ZONE = "Asia/Tokyo"
    from approvals.models.inbox import midnight_after

    midnight = midnight_after(clock.now())
    inside, outside = ask(question="today?"), ask(question="tomorrow?")
    Approval.objects.filter(pk=inside.pk).update(due_at=midnight - timedelta(microseconds=1))
    Approval.objects.filter(pk=outside.pk).update(due_at=midnight + timedelta(microseconds=1))
    assert titles(ada, due="today") == {"today?"}


def test_the_address_says_the_whole_filter_and_is_read_back():
    said = Filter("teams", "a b&c", "high", "1d", "7d", "ada", "pm", "50 %?", "1.2.3")
    assert Filter.of(QueryDict(said.query.removeprefix("?"))) == said
    assert Filter.of(QueryDict("scope=x&risk=x&age=x&due=x&graph=%00")) == Filter()
    assert (Filter().query, said.bare_query) == ("", "?scope=teams")
    assert "after" not in said.kept_query


def test_each_thing_that_narrows_can_be_taken_away_alone():
    chips = Filter(graph="refunds", risk="high", q="x").chips
    assert [(str(chip.word), str(chip.value), chip.without) for chip in chips] == [
        ("Graph", "refunds", "?risk=high&q=x"),
        ("Risk", "high", "?graph=refunds&q=x"),
    ]


def test_a_filter_is_kept_for_one_person_under_its_name(ada, bob):
    one, other = Client(), Client()
    one.force_login(ada)
    other.force_login(bob)
    answer = one.post("/inbox/filters/", {"name": "  High   risk ", "query": "?risk=high&after=1.1.x&evil=1"})
    assert answer.url == "/?risk=high"
    page = one.get("/?risk=high").content.decode()
    assert "Kept as “High risk”" in page
    assert 'aria-current="true">' in page.split('class="saved"')[1].split("</ul>")[0]
    assert "High risk</a>" not in other.get("/").content.decode()
    one.post("/inbox/filters/", {"name": "High risk", "query": "?risk=high&due=7d"})
    assert SavedFilter.objects.get().query == "?risk=high&due=7d"
    other.post("/inbox/filters/", {"name": "High risk", "forget": "1"})
    assert SavedFilter.objects.count() == 1
    one.post("/inbox/filters/", {"name": "High risk", "forget": "1"})
    assert not SavedFilter.objects.exists()


def test_a_name_is_needed_and_the_number_is_limited(ada, signed_in):
    for name in ("", "   ", "x" * 41):
        with pytest.raises(Invalid):
            SavedFilter.keep(ada, name, "")
        assert (
            "1 to 40 characters"
            in signed_in.post("/inbox/filters/", {"name": name}, follow=True).content.decode()
        )
    for number in range(MOST):
        SavedFilter.keep(ada, f"filter {number}", "")
    with pytest.raises(Conflict, match="remove one first"):
        SavedFilter.keep(ada, "one more", "")
    assert SavedFilter.keep(ada, "filter 3", "?q=x").query == "?q=x"


def test_the_form_offers_what_the_list_holds(ada, signed_in, bob):
    ask(run=waiting_run(graph="refunds", created_by=bob))
    ask(reviewers=("others",), run=waiting_run(graph="secret-graph", created_by=bob))
    page = signed_in.get("/?risk=low").content.decode()
    form = page.split('id="filter"')[1].split("</form>")[0]
    assert "<option>refunds</option>" in form and "<option>bob</option>" in form
    assert "secret-graph" not in page


def test_a_list_longer_than_a_page_leads_on(ada, signed_in, monkeypatch):
    monkeypatch.setattr("approvals.listing.SHOWN", 2)
    rows = [ask(question=f"question {number}?", due=timedelta(hours=number)) for number in range(1, 6)]
    page = signed_in.get("/").content.decode()
    assert "question 2?" in page and "question 3?" not in page and "5 in all" in page
    following = page.split('rel="next"')[0].rsplit('href="', 1)[1].split('"')[0]
    page = signed_in.get(following).content.decode()
    assert "question 2?" not in page and "question 3?" in page and "First page" in page
    beside = signed_in.get(f"{rows[2].get_absolute_url()}?{following.partition('?')[2]}").content.decode()
    assert "question 4?" in beside and 'aria-current="true"' in beside
