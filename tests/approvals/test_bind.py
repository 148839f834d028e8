"""What a payload only names is bound by its digest: if it changes before the call, the question is asked anew."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command

from approvals.chain import first_break
from approvals.models import Approval
from runs import END, Ask, Graph, start, tool
from runs.engine import clock
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, Invalid
from runs.models import LedgerEntry
from tests.approvals.cases import told
from tests.approvals.pages import as_person, page_of
from tests.runs.driving import drive, pass_time, registered

pytestmark = pytest.mark.django_db(transaction=True)

content = {"contract.pdf": "as agreed"}
signed: list[tuple[str, str]] = []


@tool(kind="write", honours_key=True)
def sign_file(path: str, *, idempotency_key: str) -> str:
    """Sign a file."""
    signed.append((path, content[path]))
    return "signed"


@tool(kind="write", honours_key=True)
def pay_back(order: str, amount: Decimal, note: str, *, idempotency_key: str) -> None:
    """Pay back."""


signing = Graph("signing", viewers="pm")


@signing.node(then=END)
def contract(run, state):
    run.call(
        sign_file,
        key="sign:{run_id}",
        path="contract.pdf",
        approve=Ask("Sign it?", reviewers="pm", bind=lambda arguments: content[arguments["path"]]),
    )
    return END


@pytest.fixture(autouse=True)
def served() -> Iterator[None]:
    content["contract.pdf"] = "as agreed"
    signed.clear()
    with registered(signing):
        yield
    clock.AHEAD = timedelta()


def test_all_that_is_wrong_with_an_edited_call_is_said_at_once(ada):
    """By command as by page: the missing argument, and the one of another kind."""
    refund = Graph("refund of two", viewers="pm")

    @refund.node
    def pay(run, state):
        run.call(
            pay_back, key="pay", approve=Ask("Pay?", reviewers="pm"), order="A", amount=Decimal(3), note=""
        )

    with registered(refund):
        run = start(refund.name, {})
        drive(run)
        approval = Approval.objects.open().get(run=run)
        edit = ["--verdict", "edit", "--by", "ada", "--payload"]
        with pytest.raises(CommandError) as refused:
            call_command("decide", str(approval.pk), *edit, '{"order": "A", "amount": "x"}')
        assert str(refused.value) == (
            '$.note: "note" is missing; it is required. $.amount: Input should be a valid decimal.'
        )
        with pytest.raises(Invalid) as one:
            approval.decide(by=ada, verdict="edit", payload={"order": "A", "amount": "x", "note": ""})
        assert list(one.value.fields) == ["$.amount"]


def approved(run, by):
    """Whoever approves the open question of a run, and time passes until the run may take it."""
    approval = Approval.objects.open().get(run=run)
    approval.decide(by=by, verdict="approve")
    pass_time(10)
    return approval


def test_what_changed_after_the_approval_is_not_done_and_is_asked_anew(ada):
    """A6"""
    run = start(signing, {})
    drive(run)
    first = approved(run, ada)
    content["contract.pdf"] = "something else"
    drive(run)
    assert (run.status, signed) == ("waiting", [])
    first.refresh_from_db()
    assert (first.outcome, first.conclusion.by) == ("superseded", ada)
    assert told(first) == ["opened", "approve by ada", "closed"]
    assert first_break(first) is None
    with pytest.raises(Conflict, match="superseded"):
        first.decide(by=ada, verdict="approve")
    with pytest.raises(Conflict, match="Too late to undo"):
        first.undo(ada)
    second = approved(run, ada)
    assert second.entry.key == "sign:{run_id}?2"
    drive(run)
    assert run.status == "completed"
    assert signed == [("contract.pdf", "something else")]
    effect = LedgerEntry.objects.get(run=run, kind="effect")
    assert effect.decided_by == second.entry
    assert first_bad_row(run) is None


def test_what_stays_as_it_was_is_done(ada):
    run = start(signing, {})
    drive(run)
    approved(run, ada)
    drive(run)
    assert (run.status, signed) == ("completed", [("contract.pdf", "as agreed")])


def test_the_pages_say_what_is_bound_and_what_was_asked_before(ada):
    run = start(signing, {})
    drive(run)
    first = approved(run, ada)
    content["contract.pdf"] = "something <else>"
    drive(run)
    second = Approval.objects.open().get(run=run)
    client = as_person(ada)
    page = page_of(client, second)
    assert "something &lt;else&gt;" in page
    assert first.get_absolute_url() in page and "Asked anew" in page
    page = page_of(client, first)
    assert "so it was not done and the run asks anew" in page
    assert "as agreed" in page
