"""Runs in the admin site: found there, kept, released and erased with a reason, by the verbs that code calls."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from runs import Graph, admin_keeping, secrets, start
from runs.models import Remark, Run, Tombstone
from runs.testing import drive
from tests.runs.driving import registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db

LIST = "/admin/runs/run/"
KEEP, RELEASE, ERASE = "keep_selected", "release_selected", "erase_selected"
ARCHIVE = "archive_selected"

leaf = Graph("administered-leaf", state=Log)
top = Graph("administered", state=Log)


@leaf.node
def grow(run, state):
    state.log.append("canary-51c0")


@top.node
def part(run, state):
    run.join(run.start(leaf, {}))


@pytest.fixture(autouse=True)
def known():
    with registered(leaf, top):
        yield


def signed_in(person: User, *codenames: str) -> Client:
    person.is_staff = True
    person.save()
    person.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(person)
    return client


@pytest.fixture
def eraser(olga) -> Client:
    """Olga, who may keep and erase runs, and sees no run elsewhere."""
    return signed_in(olga, "erase")


@pytest.fixture
def ended(ada) -> Run:
    run = drive(top, {}, by=ada)
    assert run.status == "completed" and run.children.count() == 1
    return run


def chosen(client: Client, action: str, *runs: Run, at: str = LIST, **more: str):
    """The page that asks."""
    return client.post(at, {"action": action, "_selected_action": [run.pk for run in runs], **more})


def confirmed(client: Client, action: str, *runs: Run, reason: str = "asked for") -> list[str]:
    """What the next page says."""
    answer = chosen(client, action, *runs, confirmed="yes", reason=reason)
    assert answer.status_code == 302, answer.context["form"].errors
    return [str(message) for message in client.get(LIST).context["messages"]]


def test_one_is_kept_released_and_erased_each_with_a_reason_and_the_person_is_named(eraser, ended):
    child = ended.children.get()
    assert confirmed(eraser, KEEP, child, reason="a court asked") == [f"{child}: Kept, with its family."]
    assert confirmed(eraser, KEEP, ended) == [f"{ended}: Run {ended.short_id} is kept already."]
    assert f"Run {ended.short_id} is kept" in confirmed(eraser, ERASE, child)[0]
    assert not Tombstone.objects.exists()
    assert confirmed(eraser, RELEASE, ended, reason="the court is done") == [
        f"{ended}: Released, with its family."
    ]
    trail = Remark.objects.filter(run=ended).order_by("pk").values_list("kind", "worker", "body")
    assert list(trail) == [("kept", "olga", "a court asked"), ("released", "olga", "the court is done")]

    assert confirmed(eraser, ERASE, ended) == [f"{ended}: Erased, with its family."]
    assert {(stone.by, stone.reason) for stone in Tombstone.objects.all()} == {("olga", "asked for")}
    assert Tombstone.objects.under_way().count() == 0 and Tombstone.objects.count() == 2
    assert confirmed(eraser, ERASE, ended) == [f"{ended}: Erased before, by olga; nothing was done."]
    assert confirmed(eraser, KEEP, ended)[0].endswith("nothing is left to keep.")
    logged = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(logged) == ["Kept", "Released", "Erased"]


def test_one_is_archived_with_a_reason_and_found_among_the_archived(eraser, ended):
    child = ended.children.get()
    assert confirmed(eraser, ARCHIVE, child, reason="long over") == [f"{child}: Archived, with its family."]
    assert confirmed(eraser, ARCHIVE, ended) == [f"{ended}: Archived before, by olga; nothing was done."]
    found = {answer: eraser.get(f"{LIST}?archived={answer}").text for answer in ("yes", "no")}
    assert [f"{ended.pk}" in text for text in found.values()] == [True, False]
    page = eraser.get(f"{LIST}{ended.pk}/change/").text
    assert "long over" in page and "archive_it" not in page and "erase_it" in page
    assert confirmed(eraser, KEEP, ended) == [f"{ended}: Kept, with its family."]


def test_the_page_that_asks_lists_what_was_selected_says_what_goes_and_does_nothing(eraser, ended):
    other = drive(top, {})
    for action in (KEEP, RELEASE, ARCHIVE, ERASE):
        page = chosen(eraser, action, ended, other, index="0")
        assert page.status_code == 200
        assert f"{ended}" in page.text and f"{other}" in page.text
        assert page.text.count("and 1 other run of its family") == 2
        assert ("What goes for ever" in page.text) == (action == ERASE)
        assert "What remains" in page.text
        in_german = eraser.get(f"{LIST}{ended.pk}/keep_it/", headers={"accept-language": "de"}).text
        assert "Was bleibt" in in_german and "Läufe und ihre Familien bewahren" in in_german
        nothing = chosen(eraser, action, ended, other, confirmed="yes", reason="  ")
        assert nothing.status_code == 200 and nothing.context["form"].errors["reason"]
    assert not Tombstone.objects.exists() and not Run.objects.filter(kept=True).exists()


def test_the_selection_stays_as_it_was_whatever_the_list_shows_afterwards(eraser, ended):
    """All that a filter showed were selected: what fits it since then is not taken, what fits no more is told."""
    at = f"{LIST}?graph=administered&kept=no"
    page = chosen(eraser, ERASE, ended, at=at, index="0", select_across="1")
    frozen = [run for run, _others in page.context["runs"]]
    assert frozen == [ended]
    later = drive(top, {})
    ended.keep("a court asked", "bob")
    (said,) = confirmed(eraser, ERASE, *frozen)
    assert f"Run {ended.short_id} is kept" in said
    assert not Tombstone.objects.filter(run=later).exists()


def test_many_are_erased_with_a_result_for_each_and_a_refusal_keeps_no_other_back(eraser, ended):
    alive, other = start(leaf, {}), drive(leaf, {})
    child = ended.children.get()
    said = confirmed(eraser, ERASE, ended, child, alive, other)
    assert said == [
        f"{ended}: Erased, with its family.",
        f"{child}: Done together with {ended.short_id}, of the same family.",
        f"{alive}: Run {alive.short_id} of the family is created, and not done with; only what has ended is erased.",
        f"{other}: Erased, with its family.",
    ]
    assert set(Tombstone.objects.values_list("run", flat=True)) == {ended.pk, child.pk, other.pk}


def test_what_there_was_no_time_for_is_named_and_left_and_too_many_are_not_begun(eraser, ended, monkeypatch):
    monkeypatch.setattr(admin_keeping, "LONGEST_SECONDS", -1)
    assert "Left as it is" in confirmed(eraser, ERASE, ended)[0]
    monkeypatch.setattr(admin_keeping, "MOST", 1)
    assert chosen(eraser, ERASE, *Run.objects.all(), confirmed="yes", reason="all of it").status_code == 302
    assert "at most 1" in eraser.get(LIST).text
    assert not Tombstone.objects.exists()


def test_who_lacks_the_permission_sees_none_of_the_actions_and_may_do_none(ada, bob, client, ended):
    viewer = signed_in(ada, "view_run")
    page = viewer.get(LIST)
    assert ended.short_id in page.text and "erase_selected" not in page.text
    own = viewer.get(f"{LIST}{ended.pk}/change/")
    assert own.status_code == 200 and "erase_it" not in own.text
    for action in (KEEP, RELEASE, ERASE):
        chosen(viewer, action, ended, confirmed="yes", reason="asked for")
    for action in ("keep_it", "release_it", "erase_it"):
        assert viewer.get(f"{LIST}{ended.pk}/{action}/").status_code == 403
    outsider = signed_in(bob, "view_run")
    assert ended.short_id not in outsider.get(LIST).text, "a run that he sees nowhere else"
    assert outsider.get(f"{LIST}{ended.pk}/change/").status_code == 302
    other = signed_in(bob, "view_schedule")
    assert other.get(LIST).status_code == 403
    assert chosen(other, ERASE, ended, confirmed="yes", reason="asked for").status_code == 403
    assert not Tombstone.objects.exists() and not Run.objects.filter(kept=True).exists()


def test_one_runs_page_shows_nothing_of_what_it_was_about_and_offers_what_can_be_done(eraser, ended):
    address = f"{LIST}{ended.pk}/change/"
    page = eraser.get(address).text
    assert (
        "canary-51c0" not in page
        and "Completed" in page
        and "('completed'" not in page
        and 'name="_save"' not in page
    )
    assert "/keep_it/" in page and "/erase_it/" in page and "/release_it/" not in page
    assert "What goes for ever" in eraser.get(f"{LIST}{ended.pk}/erase_it/").text
    ended.keep("a court asked", "bob")
    page = eraser.get(address).text
    assert "bob: a court asked" in page
    assert "/release_it/" in page and "/erase_it/" not in page and "/keep_it/" not in page
    ended.release_keep("done", "bob")
    ended.erase("asked for by its customer", "bob")
    page = eraser.get(address).text
    assert "bob: asked for by its customer" in page and "/erase_it/" not in page
    assert eraser.post(address, {"status": "failed"}).status_code == 403
    for never in ("add/", f"{ended.pk}/delete/"):
        assert eraser.post(f"{LIST}{never}", {"post": "yes"}).status_code == 403


def test_the_way_to_the_runs_own_page_is_offered_to_who_may_see_it(eraser, ended, olga, ada):
    """Else it would end at 404."""
    address = f"{LIST}{ended.pk}/change/"
    assert (
        eraser.get(address).context["absolute_url"] is None and "View on site" not in eraser.get(address).text
    )
    seeing = signed_in(ada, "erase")
    page = seeing.get(address)
    assert "View on site" in page.text
    shown = seeing.get(page.context["absolute_url"], follow=True)
    assert shown.status_code == 200 and shown.redirect_chain[-1][0].endswith(ended.get_absolute_url())


def test_runs_are_found_by_id_and_narrowed(eraser, ended):
    other = drive(leaf, {})
    other.keep("a court asked", "bob")

    def found(query: str) -> set:
        return set(eraser.get(f"{LIST}?{query}").context["cl"].result_list)

    child = ended.children.get()
    assert found(f"q={ended.pk}") == {ended} == found(f"q={ended.pk.hex.upper()}")
    assert found(f"q={ended.short_id}") == {ended}
    assert found("q=nothing") == found("q=ab") == set()
    assert found("graph=administered") == {ended} and found("graph=administered-leaf") == {child, other}
    assert found("kept=yes") == {other} and found("kept=no") == {ended, child}
    assert found("status=completed") == {ended, child, other} and found("status=failed") == set()
    assert found("q=%00&graph=%00&status=%00&kept=%00") == {ended, child, other}


@pytest.mark.postgres_only
def test_those_that_are_kept_are_found_by_an_index(eraser, ended):
    ended.keep("a court asked", "bob")
    with CaptureQueriesContext(connection) as asked:
        eraser.get(f"{LIST}?kept=yes")
    listing = next(each["sql"] for each in asked if "LIMIT" in each["sql"] and "kept" in each["sql"])
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {listing}")
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "run_kept" in plan, plan


def test_what_is_no_id_and_a_secret_in_the_reason_are_refused(eraser, ended, monkeypatch):
    answer = eraser.post(LIST, {"action": ERASE, "_selected_action": ["x"]}, follow=True)
    assert "There is no such run." in answer.text
    assert eraser.get(f"{LIST}nonsense/erase_it/").status_code == 403
    monkeypatch.setenv("DURABLEWEB_SECRET_BANK", "hush-hush-4711")
    secrets.forget()
    try:
        page = chosen(eraser, ERASE, ended, confirmed="yes", reason="the code is hush-hush-4711")
        assert "the secret BANK" in str(page.context["form"].errors["reason"])
    finally:
        monkeypatch.undo()
        secrets.forget()
    assert not Tombstone.objects.exists()


def test_the_list_costs_as_many_statements_however_long_it_is(eraser, ended):
    eraser.get(LIST)
    with CaptureQueriesContext(connection) as few:
        eraser.get(LIST)
    for _number in range(10):
        drive(leaf, {})
    Run.objects.exclude(pk=ended.pk).filter(root=ended.pk).get().erase("asked for", "bob")
    with CaptureQueriesContext(connection) as many:
        assert eraser.get(LIST).text.count("/change/") >= 12
    assert len(many) == len(few) <= 12, [query["sql"] for query in many]
