"""Steps of a person at the pages of approvals: sign in, open one, type, press."""

from __future__ import annotations

from datetime import timedelta

from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from approvals.models import Approval
from runs.engine import clock
from runs.models import LedgerEntry
from tests.approvals.browser_post import posted_by

CALL = {
    "tool": "send_email",
    "kind": "write",
    "key": "email:{run_id}:brief",
    "description": "One e-mail goes out.",
}


def as_person(person) -> Client:
    client = Client()
    client.force_login(person)
    return client


def url(approval: Approval, what: str = "approval", **more) -> str:
    return reverse(f"approvals:{what}", kwargs={"pk": approval.pk, **more})


def page_of(client: Client, approval: Approval) -> str:
    answer = client.get(url(approval))
    assert answer.status_code == 200
    return answer.content.decode()


def post(client: Client, address: str, entries: QueryDict):
    """As browsers send a form: several values of one name are several pairs."""
    return client.post(address, entries.urlencode(), content_type="application/x-www-form-urlencoded")


def press(client: Client, approval: Approval, verdict: str = "approve", html: str = "", **typed):
    """Open the page, if it is not there as `html`, type, press the button, as a browser without scripts does."""
    form = "reject" if verdict == "reject" else "decision"
    entries = posted_by(html or page_of(client, approval), form, **typed)
    entries["verdict"] = verdict
    return post(client, url(approval, "decision"), entries)


def overdue(approval: Approval) -> None:
    past = clock.now() - timedelta(hours=2)
    LedgerEntry.objects.filter(pk=approval.entry_id).update(due_at=past)
    Approval.objects.filter(pk=approval.pk).update(due_at=past)
