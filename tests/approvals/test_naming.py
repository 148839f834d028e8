"""One way of naming a person: by the full name on pages, by the user name in trail and JSON, by both to operators."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from approvals.models import Activity, Approval
from runs.models import GraphStop, Run
from tests.approvals.cases import ask, waiting_run
from tests.approvals.pages import as_person, page_of, press

pytestmark = pytest.mark.django_db


@pytest.fixture
def mara(person):
    mara = person("mara", "pm")
    mara.first_name, mara.last_name = "Mara", "Lind"
    mara.save()
    return mara


@pytest.fixture
def chief(person):
    chief = person("chief", staff=True)
    chief.is_superuser = True
    chief.save()
    return chief


def test_who_was_first_has_one_name_on_pages_and_another_in_trail_and_command(ada, mara):
    approval = ask()
    client = as_person(ada)
    before = page_of(client, approval)
    approval.decide(by=mara, verdict="reject", reason="Too dear")
    late = press(client, approval, html=before)
    assert late.status_code == 409
    for page in (late.content.decode(), page_of(client, approval)):
        assert "Mara Lind rejected this" in page and "mara rejected" not in page
    assert "mara rejected this" in Activity.objects.get(approval=approval, kind="refused").text
    with pytest.raises(CommandError, match="mara rejected this"):
        call_command("decide", str(approval.pk), "--verdict", "approve", "--by", "ada")


def test_operators_read_both_names_in_what_a_command_prints_and_in_the_admin_site(chief, mara, capsys):
    approval = ask()
    call_command("decide", str(approval.pk), "--verdict", "approve", "--by", "mara")
    assert capsys.readouterr().out.endswith("approved by Mara Lind (mara).\n")
    GraphStop.objects.stop("mailing", "mara", "The list is old.")
    approval.run.keep("The court has asked for it.", "user mara (shell of root)")
    client = as_person(chief)
    assert "Mara Lind (mara)" in client.get("/admin/runs/graphstop/").content.decode()
    kept = client.get(f"/admin/runs/run/{approval.run_id}/change/").content.decode()
    assert "Mara Lind (mara) (shell of root): The court has asked for it." in kept


def test_who_is_asked_and_who_has_it_are_named_alike(ada, eve, mara):
    approval = ask(reviewers=("mara",))
    Run.objects.filter(pk=approval.run_id).update(created_by=eve)
    assert (
        "Waiting for Mara Lind to answer" in as_person(eve).get(f"/runs/{approval.run_id}/").content.decode()
    )
    approval.decide(by=mara, verdict="approve")
    page = as_person(eve).get(f"/runs/{approval.run_id}/").content.decode()
    assert "Mara Lind" in page and "by mara" not in page
    held = ask()
    held.claim(mara)
    refused = as_person(ada).post(f"/approvals/{held.pk}/claim/")
    assert refused.status_code == 409 and "Mara Lind has this" in refused.content.decode()
    assert Approval.objects.get(pk=held.pk).assignee == mara


def test_who_cancelled_a_run_is_named_on_its_page(olga):
    olga.first_name = "Olga"
    olga.save()
    run = ask(run=waiting_run(created_by=olga)).run
    run.cancel("user olga (shell of root)", "ordered twice")
    page = as_person(olga).get(f"/runs/{run.pk}/").content.decode()
    assert "Cancelled by Olga (shell of root): ordered twice" in page


def test_names_and_words_that_run_from_the_right_turn_nothing_around_them(ada, person):
    """Each stands apart (U+2068 ... U+2069), and what surrounds it runs as the page does; the trail holds them as they
    are."""
    huda = person("huda", "pm")
    huda.first_name, huda.last_name = "هدى", "سالم"
    huda.save()
    name, why = "\u2068هدى سالم\u2069", "\u2068السعر مرتفع\u2069"
    held, decided, run = ask(), ask(), ask(run=waiting_run(created_by=ada)).run
    held.claim(huda)
    refused = as_person(ada).post(f"/approvals/{held.pk}/claim/").content.decode()
    assert f"{name} has this" in refused and f"{name} claimed this" in refused
    decided.decide(by=huda, verdict="reject", reason="السعر مرتفع")
    assert f"{name} rejected this" in page_of(as_person(ada), decided)
    run.cancel("user huda", "السعر مرتفع")
    assert f"Cancelled by {name}: {why}" in as_person(ada).get(f"/runs/{run.pk}/").content.decode()
    assert run.checkpoints.latest("seq").reason == "السعر مرتفع"
