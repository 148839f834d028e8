"""A search of the inbox: what it finds, and on PostgreSQL that it is answered from an index, where one can be made."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.test.utils import CaptureQueriesContext

from approvals import looking, search_index
from approvals.filters import Filter
from approvals.listing import Listing
from approvals.models import Approval
from bench.inbox import statements
from runs.engine import clock
from tests.approvals.cases import ask, waiting_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def shelf():
    """Four questions, by the word that tells them apart."""
    return {
        "lab": ask(question="Send the letter to the lab?"),
        "order": ask(question="Pay order #47?", why="It is (absent) from the list\nqueue-7 asked for it."),
        "refund": ask(question="Pay 100 %?", run=waiting_run(graph="refunds-eu")),
        "zürich": ask(question="Ship to Zürich 東京?"),
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("LETTER to", {"lab"}),
        ("etter", {"lab"}),
        ("47", {"order"}),
        ("#47", {"order"}),
        ("ab", {"order"}),  # the lab has these letters only inside a word
        ("a", {"order"}),
        ("qu", {"order"}),
        ("eu", {"refund"}),
        ("re", {"refund"}),
        ("7", {"order"}),
        ("%", {"refund"}),
        ("0 %", {"refund"}),
        ("100_%", set()),
        ("p.y", set()),
        (".*", set()),
        ("(a", {"order"}),
        ("京", {"zürich"}),
        ("ü", {"zürich"}),
        ("qz", set()),
        ("nowhere", set()),
    ],
)
def test_three_letters_are_found_anywhere_and_fewer_where_a_word_begins(ada, shelf, text, names):
    Approval.objects.exclude(pk=shelf["order"].pk).update(body="-")
    listing = Listing(ada, Filter(q=text))
    assert {name for name, approval in shelf.items() if approval in listing.rows} == names
    assert listing.count.number == len(names) == sum(group.count for group in listing.groups)


@pytest.mark.sqlite_only  # PostgreSQL's locale says what its capitals are
def test_capitals_are_not_told_apart_in_any_script(ada):
    zürich, москва = ask(question="Ship to ZÜRICH?"), ask(question="Отправить в Москву?")
    for text, wanted in (("zürich", zürich), ("Ü", zürich), ("МОСКВУ", москва), ("отправить", москва)):
        assert Listing(ada, Filter(q=text)).rows == [wanted], text


def test_an_id_is_found_by_either_end_under_every_scope(ada, shelf):
    wanted = shelf["refund"]
    for text in (wanted.pk.hex[-6:], str(wanted.pk)[:13], wanted.pk.hex.upper()):
        assert wanted in Listing(ada, Filter(scope="all", q=text)).rows, text


# -- the index on PostgreSQL --------------------------------------------------------------------------------


def plan(rows) -> str:
    """How PostgreSQL would answer if the table were so large that to walk it in any order were too slow."""
    with CaptureQueriesContext(connection) as asked:
        list(rows)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off")
        cursor.execute(f"DROP INDEX IF EXISTS {', '.join(index.name for index in Approval._meta.indexes)}")
        for (
            name
        ) in search_index.INDEXES:  # what earlier tests wrote and took back makes each look at them dear
            cursor.execute("SELECT gin_clean_pending_list(%s::regclass)", [name])
        cursor.execute("EXPLAIN " + asked.captured_queries[-1]["sql"])
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.postgres_only
@pytest.mark.parametrize("text", ["letter", "47", "a", "beef"])
def test_each_search_is_answered_from_the_trigrams(text):
    """Every part of its OR, or the whole would be read row by row."""
    for rows, name in (
        (Approval.objects.open(), "approval_words_open"),
        (Approval.objects.decided(), "approval_words_decided"),
    ):
        told = plan(rows.matching(text).values_list("pk"))
        parts = 4 if text == "beef" else 3
        assert told.count(f"Bitmap Index Scan on {name}") == parts, told


@pytest.mark.postgres_only
def test_what_is_missing_is_told_and_made_by_the_next_migrate(ada, shelf):
    def told():
        return [one.msg for one in run_checks(databases=["default"]) if one.id == "durableweb.W031"]

    assert search_index.missing() == [] == told()
    connection.check_constraints()  # an index is not made while a constraint of the transaction waits
    with connection.cursor() as cursor:
        cursor.execute("DROP INDEX approval_words_open; DROP STATISTICS approval_words_title")
    assert search_index.missing() == ["approval_words_open", "approval_words_title"]
    assert "approval_words_open, approval_words_title" in told()[0]
    search_index.install()
    assert search_index.missing() == []


@pytest.mark.postgres_only
def test_statistics_that_keep_few_texts_are_told_and_widened_by_the_next_migrate(ada, shelf):
    """Those that an earlier version made."""
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute("ALTER STATISTICS approval_words_body SET STATISTICS 100")
    assert search_index.missing() == ["approval_words_body"]
    search_index.install()
    assert search_index.missing() == []


@pytest.mark.postgres_only
def test_what_one_in_two_hundred_has_is_expected_about_as_often(ada):
    with connection.cursor() as cursor:
        for statement in statements(4_000, ada.pk, ada.pk):
            cursor.execute(statement)
        connection.check_constraints()
        cursor.execute("ANALYZE approvals_approval")
    for word in ("customer 12", "customer 47", "customer 83", "customer 9"):
        keys = Approval.objects.decided().matching(word).order_by().values_list("pk", flat=True)
        assert len(keys) / 3 < looking.expected(keys) < len(keys) * 3, word


@pytest.mark.postgres_only
def test_who_may_not_make_the_extension_migrates_and_searches_without_it(ada, shelf):
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute("DROP EXTENSION pg_trgm CASCADE")
        cursor.execute("CREATE ROLE searching_without_rights; SET LOCAL ROLE searching_without_rights")
        search_index.install()
        cursor.execute("RESET ROLE")
    assert {"approval_words_open", "approval_words_decided"} <= set(search_index.missing())
    assert Listing(ada, Filter(q="letter")).rows == [shelf["lab"]]
    search_index.install()
    assert search_index.missing() == []


@pytest.mark.postgres_only
def test_a_server_without_the_extension_migrates_and_searches_without_it(ada, shelf, monkeypatch):
    monkeypatch.setattr(search_index, "EXTENSION", "there_is_no_such_extension")
    connection.check_constraints()
    search_index.remove()
    search_index.install()
    assert set(search_index.missing()) == set(search_index.INDEXES)
    assert Listing(ada, Filter(q="47")).rows == [shelf["order"]]


def test_decided_ones_are_searched_too(ada, shelf):
    shelf["order"].decide(by=ada, verdict="approve")
    assert Listing(ada, Filter(scope="decided", q="47")).rows == [shelf["order"]]
    assert Listing(ada, Filter(q="47")).rows == []
    later = Listing(ada, Filter(scope="decided", q="47"), now=clock.now() + timedelta(days=1))
    assert later.rows == [shelf["order"]]
