"""What somebody had typed, put back into the page: after leaving it, after a refusal, after an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

from approvals.contracts import sheet
from approvals.forms.posted import Draft, resumed
from approvals.forms.values import json_text
from approvals.models import KeptDraft
from approvals.payload import as_json, read
from approvals.words import EDIT, REJECT, RESPOND
from runs.core import codec
from runs.errors import Invalid

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from approvals.models import Approval, Decision
    from approvals.pages import ApprovalPage


def take_up(page: ApprovalPage) -> None:
    """Show what this person typed here and did not send. A draft of an earlier text is offered, never put in."""
    page.kept = KeptDraft.of(page.approval, page.user)
    if page.kept is None or not page.kept.json or page.given is not None or not page.has_form:
        return
    if page.kept.table != page.approval.payload_digest:
        page.stale_json = page.kept.json
        return
    given = read_json(page, page.kept.json)
    if given.is_edited:
        page.given, page.is_taken_up = given, True


def read_json(page: ApprovalPage, text: str) -> Draft:
    """The draft of a text of JSON, as a form where it can be one."""
    return resumed(text, *page.blank())


def keep_typed(page: ApprovalPage, draft: Draft, table: str, **texts: str) -> None:
    """Keep what came with a form that decided nothing, for the next visit. What may not be stored is not.

    `table`: the digest of the payload that the form was made from, as it says itself.
    """
    edited = {"json": draft.json, "table": table} if _is_edited(page, draft, table) else {}
    typed = {name: text for name, text in texts.items() if text.strip()}
    try:
        KeptDraft.keep(page.approval, page.user, **edited, **typed)
    except Invalid:
        pass  # it is on the page that says so; a secret, or too much of it, is no text to keep


def _is_edited(page: ApprovalPage, draft: Draft, table: str) -> bool:
    """Against what its author had before them, which may not be on the table any more."""
    if draft.errors or table == page.approval.payload_digest:
        return draft.is_edited
    if not table:
        return False
    try:
        return codec.digest(read(draft.payload)[1]) != table
    except Invalid:
        return True


def give_back(approval: Approval, person: User, withdrawn: Decision) -> None:
    """After an undo: the edit, reason or answer of the decision is a draft again. Raises Invalid where it cannot be."""
    typed = {}
    contract = approval.contract
    if contract is not None:
        filled = sheet.filled(contract, contract.listen(withdrawn.value))
        typed = {"json": json_text(filled), "table": approval.payload_digest}
    elif withdrawn.verdict in (EDIT, RESPOND):
        typed = {"json": json_text(as_json(withdrawn.value)), "table": approval.payload_digest}
    if withdrawn.verdict in (REJECT, RESPOND):
        typed["reason" if withdrawn.verdict == REJECT else "words"] = withdrawn.reason
    if typed:
        KeptDraft.keep(approval, person, **typed)
