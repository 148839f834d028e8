"""The inbox as a page: its groups, its numbers, its filter, and what is new in it."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from approvals.listing import Filter, Listing
from approvals.models import Approval
from approvals.scopes import Numbers
from tests.approvals.cases import ask, waiting_run
from tests.approvals.pages import overdue

pytestmark = pytest.mark.django_db


def test_the_inbox_is_grouped_by_deadline(signed_in):
    late = ask(question="Late?", due=timedelta(hours=1))
    overdue(late)
    ask(question="Later?", due=timedelta(days=3))
    ask(question="Whenever?")
    page = signed_in.get("/").content.decode()
    order = [page.index(word) for word in ("Overdue", "Late?", "Later", "Later?", "No deadline", "Whenever?")]
    assert order == sorted(order)


def test_badge_header_and_list_give_one_number(signed_in, ada, bob):
    """A10"""
    for number in range(7):
        ask(run=waiting_run(created_by=ada if number % 3 == 0 else bob), quorum=1 + number % 2)
    listing = Listing(ada, Filter())
    mine = Numbers(listing).mine
    badge = signed_in.get("/inbox/count/").content.decode()
    assert len(listing.rows) == listing.count.number == mine.number
    assert mine.number == Approval.objects.mine(ada).count()
    assert f'value="{listing.count}"' in badge


def test_the_address_carries_the_filter(signed_in):
    ask(question="Send it?", risk="high", run=waiting_run(graph="mailing"))
    ask(question="Refund it?", risk="low", run=waiting_run(graph="refunds"))
    for query, there, gone in (
        ("?risk=high", "Send it?", "Refund it?"),
        ("?graph=refunds", "Refund it?", "Send it?"),
        ("?q=refund", "Refund it?", "Send it?"),
    ):
        page = signed_in.get(f"/{query}").content.decode()
        assert there in page and gone not in page


def test_a_filter_that_fits_nothing_says_how_to_leave_it(signed_in):
    ask()
    page = signed_in.get("/?q=zeppelin").content.decode()
    assert "Nothing fits the filter" in page


@pytest.mark.parametrize(
    "query", ["?scope=nonsense", "?risk=7", "?until=x", "?decided=x", "?q=%00", "?graph=%00"]
)
def test_an_address_typed_wrong_is_no_error(signed_in, query):
    assert signed_in.get(f"/{query}", follow=True).status_code == 200


def test_what_is_new_waits_behind_its_number(signed_in, ada):
    ask(question="First?")
    until = Listing(ada, Filter()).until_text
    ask(question="Second?")
    said = {"until": until}
    assert "1 new" in signed_in.get("/inbox/new/", said).content.decode()
    rows = signed_in.get("/inbox/list/", said).content.decode()
    assert "First?" in rows and "Second?" not in rows


def test_what_others_decide_meanwhile_stays_where_it_was(signed_in, ada, bob):
    first, _second = ask(question="First?"), ask(question="Second?")
    until = Listing(ada, Filter()).until_text
    first.decide(by=bob, verdict="reject", reason="No.")
    rows = signed_in.get("/inbox/list/", {"until": until}).content.decode()
    assert rows.index("First?") < rows.index("Second?")
    assert 'data-outcome="rejected"' in rows


def test_the_scopes_show_what_their_name_says(signed_in, ada, bob, person):
    person("zoe", "legal")
    ask(question="For pm?")
    mine = ask(question="For Ada?", reviewers=("ada",))
    stuck = ask(question="For nobody?", reviewers=("ghosts", "ada"), quorum=2)
    done = ask(question="Done?")
    done.decide(by=bob, verdict="approve")
    shown = {
        scope: {row.title for row in Listing(ada, Filter(scope=scope)).rows}
        for scope in ("mine", "teams", "all", "attention", "decided")
    }
    assert shown == {
        "mine": {"For pm?", mine.title, stuck.title},
        "teams": {"For pm?"},
        "all": {"For pm?", mine.title, stuck.title},
        "attention": {stuck.title},
        "decided": {"Done?"},
    }


@pytest.mark.parametrize("many", [2, 12])
def test_the_inbox_asks_the_database_a_fixed_number_of_questions(
    signed_in, ada, bob, django_assert_max_num_queries, many
):
    for _number in range(many):
        ask(run=waiting_run(created_by=bob))
    with django_assert_max_num_queries(13):
        signed_in.get("/")


def test_a_row_that_is_not_read_again_is_not_counted_twice(signed_in, ada):
    """The badge of a page is the number in its header: one reading."""
    ask()
    Approval.objects.update(revision=F("revision"))
    page = signed_in.get("/").content.decode()
    assert page.count('<data class="count" id="inbox-count" value="1"') == 1


def test_what_waits_for_others_is_offered_only_if_something_does(signed_in, ada, eve):
    offer = "See what waits for others"
    assert offer not in signed_in.get("/").content.decode()
    ask(reviewers=("eve",), run=waiting_run(created_by=ada))
    assert offer in signed_in.get("/").content.decode()


def test_what_people_typed_is_escaped_in_a_row(signed_in, ada, bob):
    bad = '"><script>alert(1)</script>'
    User.objects.filter(pk=bob.pk).update(first_name=bad)
    approval = ask(question=bad, run=waiting_run(created_by=bob))
    Approval.objects.filter(pk=approval.pk).update(assignee=bob, graph=bad)
    for address in ("/?scope=all", f"/?{urlencode({'scope': 'all', 'q': bad})}"):
        page = signed_in.get(address).content.decode()
        assert "<script>alert" not in page
        assert page.count("&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;") >= 5, (
            "title, box, graph, for whom, holder"
        )
