"""The competitive brief: research, draft, ask a person, send one e-mail. The refund agent is in refunds/, an order of
several parcels in orders/."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from examples.distributions import Distribution, look_up
from examples.drafting import MODEL_KEY, draft_brief, has_model_key
from examples.mail import Address, send_email
from examples.orders.graphs import orders, parcels
from examples.plain_text import literal
from examples.refunds.graphs import refund_agent
from runs import END, Ask, BlobRef, Expired, Graph, Rejected

__all__ = ["brief", "orders", "parcels", "refund_agent"]  # graphs are found here

DRAFTS_AT_MOST = 3
MAIL_KEY = "email:{run_id}:brief"

Vendor = Annotated[str, Field(min_length=1, max_length=200)]


class Brief(BaseModel):
    """Input: goal, vendors, to. The rest is what the run finds and makes."""

    model_config = ConfigDict(extra="forbid")

    goal: Annotated[str, Field(min_length=1, max_length=500, pattern=r"\S")]
    vendors: Annotated[list[Vendor], Field(min_length=1, max_length=50)] = [
        "django-q2",
        "channels",
        "django-htmx",
    ]
    to: Address
    findings: dict[str, Distribution] = {}
    feedback: list[str] = []  # why each earlier draft was rejected
    drafts: int = 0
    draft: BlobRef | None = None
    drafted_by: str = ""
    outcome: str = ""


brief = Graph("competitive-brief", version=1, state=Brief, viewers="pm", operators="ops")


@brief.node(then=("research", "draft"))
def research(run: Any, state: Brief) -> str:
    """One vendor a step, so that a crash costs at most one look-up."""
    vendor = next((vendor for vendor in state.vendors if vendor not in state.findings), None)
    if vendor is None:
        return "draft"
    state.findings[vendor] = run.call(look_up, vendor=vendor)
    return "research"


@brief.node(then="email")
def draft(run: Any, state: Brief) -> None:
    """Draft with what was found and what reviewers said; the state keeps a reference to the text."""
    drafted = run.call(
        draft_brief,
        goal=state.goal,
        findings=found(state),
        feedback=state.feedback,
        api_key=run.secret(MODEL_KEY) if has_model_key() else None,
    )
    if drafted.tokens:
        run.spend(tokens=drafted.tokens)
    state.draft = run.blob(drafted.text.encode(), "text/plain; charset=utf-8")
    state.drafted_by = drafted.by
    state.drafts += 1


@brief.node(then=("draft", END))
def email(run: Any, state: Brief) -> str:
    """A PM approves the very message that is sent; a rejection leads back to the draft, with its reason."""
    try:
        run.call(
            send_email,
            key=MAIL_KEY,
            approve=Ask(
                f"Send the competitive brief to {state.to}?",
                reviewers="pm",
                due=timedelta(hours=8),
                risk="medium",
                reasons=("Shorter, please", "More detail, please", "Wrong recipient", "Not needed any more"),
                why=what_was_found(state),
            ),
            to=state.to,
            subject=f"Competitive brief: {' '.join(state.goal.split())}"[:200],
            body=run.read(state.draft).decode(),
        )
    except Rejected as no:
        state.feedback.append(no.reason)
        if state.drafts < DRAFTS_AT_MOST:
            return "draft"
        state.outcome = "rejected three times"
    except Expired:
        state.outcome = "expired: nobody answered in time"
    else:
        state.outcome = f"sent to {run.sent(MAIL_KEY)['to']}"
    return END


def found(state: Brief) -> list[Distribution]:
    """What was found, in the order in which the vendors were given."""
    return [state.findings[vendor] for vendor in dict.fromkeys(state.vendors)]


def what_was_found(state: Brief) -> str:
    """The reviewer's evidence, as Markdown."""
    rows = "\n".join(
        f"| {literal(one.name)} {literal(one.version)} | {literal(one.licence)} | {literal(one.python)} "
        f"| {literal(', '.join(one.requires) or 'nothing')} | {literal(one.summary)} |"
        for one in found(state)
    )
    asked = "".join(
        f"\n- Rejected draft {number}: {literal(reason)}" for number, reason in enumerate(state.feedback, 1)
    )
    return (
        f"**Goal:** {literal(state.goal)}\n\n"
        f"Draft {state.drafts} of at most {DRAFTS_AT_MOST}, drafted by: {literal(state.drafted_by)}.\n"
        f"{asked}\n\n"
        f"**What was found** in the packages' own metadata:\n\n"
        f"| Package | Licence | Python | Needs | What it says it is |\n|---|---|---|---|---|\n{rows}\n"
    )
