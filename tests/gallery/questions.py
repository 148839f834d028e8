"""Approvals in every state: what is asked, by whom it was answered, and what one does on its page."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import User

from approvals.files import Sent
from approvals.models import Approval, KeptDraft
from tests.approvals.cases import ask, close, waiting_run
from tests.approvals.langchain_requests import BATCHED, BY_CALL, BY_CALL_ANSWERS
from tests.gallery.shown import Pages, Shown

LONG = (
    "A sentence that goes on for as long as somebody who is in a hurry would ever write one, and then some. "
    * 12
)
UNBROKEN = "a_name_without_any_place_to_break_it_" * 8
CALL = {"tool": "send_mail", "kind": "write", "key": "k", "description": "One e-mail goes out to two people."}
LETTER = {
    "to": ["helen@example.com", "jose@example.com"],
    "subject": "Brief: which package carries our background work",
    "body": "Dear Helen,\n\nCorvid is 38 % cheaper.\n\nUse Corvid for everyone else.",
    "copies": 7,
}
KINDS = {
    "title": "Launch",
    "body": LONG,
    "count": 3,
    "price": 2.5,
    "urgent": True,
    "day": "2026-12-01",
    "moment": "2026-12-01T09:30:00+01:00",
    "plan": "pro",
    "country": "Country number 7",
    "tags": ["one", "two"],
    "nested": {"street": "Main Street 1", "deep": [{"a": [1, {"b": 2}]}]},
    "nothing": None,
}
SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {
        "title": {"type": "string", "maxLength": 40, "description": "As it stands in the calendar."},
        "count": {"type": "integer", "minimum": 1, "maximum": 10},
        "price": {"type": "number"},
        "day": {"type": "string", "format": "date"},
        "moment": {"type": "string", "format": "date-time"},
        "plan": {"enum": ["free", "pro", "team"]},
        "country": {"enum": [f"Country number {number}" for number in range(1, 51)]},
    },
}
ARABIC = {
    "إلى": "هيلين@example.com",
    "الموضوع": "ملخص",
    "النص": "عزيزتي هيلين،\n\nالعرض أرخص بنسبة ٣٨٪ من Corvid.",
}
MAIN = ".action-bar .button-primary"
EDITED = (
    ("fill", "[data-field='$.subject'] .input", "Brief, second try"),
    ("fill", "[data-field='$.body'] .input", LETTER["body"].replace("Use Corvid", "Ask Corvid for an offer")),
)


def approval_pages(people: dict[str, User]) -> Pages:
    pm, mara, tomas = people["pm"], people["mara"], people["tomas"]
    hours = {"due": timedelta(hours=4)}
    reasons = ["Wrong people", "Wrong price", "Too early: legal has not read it, and they said they want to"]
    asked = {
        "call": ask(LETTER, question="Send the brief?", call=CALL, risk="high", reasons=reasons, **hours),
        "kinds": ask(KINDS, question="Enter the launch?", schema=SCHEMA, **hours),
        "long": ask({"text": LONG * 3, UNBROKEN: UNBROKEN}, question=LONG, why=LONG * 2),
        "unbroken": ask(
            {"a": UNBROKEN}, question=UNBROKEN, why=UNBROKEN, run=waiting_run(graph=UNBROKEN[:90])
        ),
        "right-to-left": ask(ARABIC, question="هل نرسل الملخص إلى هيلين؟", why="طلبته **اليوم**."),
        "broken-form": ask({"a": 1}, question="Is this right?", schema={"type": "nonsense"}),
        "in-words": ask(None, question="What shall the run do next?", verdicts=["respond", "reject"]),
        "signed": ask(LETTER, question="Sign the order?", sign=True),
        "two-votes": ask(LETTER, question="Pay 40,000 €?", quorum=2, risk="medium"),
        "own": ask(LETTER, question="My own run?", run=waiting_run(created_by=pm)),
        "claimed": ask(LETTER, question="Claimed by another"),
        "expired": ask(LETTER, question="Nobody came"),
        "rejected": ask(LETTER, question="Was rejected"),
        "edited": ask(LETTER, question="Was edited"),
        "decided": ask(LETTER, question="Just decided"),
        "stale-draft": ask(LETTER, question="Send it as it stands now?"),
        "comments": ask(LETTER, question="Talked about", **hours),
        "stages": ask(
            LETTER,
            question="Two stages?",
            reviewers=(),
            stages=[
                {"name": name, "reviewers": [who], "quorum": 1, "when": None, "needed": True}
                for name, who in (("Legal", "pm"), ("Finance", "finance"))
            ],
        ),
        "cards": ask(BATCHED, question="Two tools want to run", verdicts=["respond"]),
        "one-card": ask(BY_CALL, question="Pay bob?", verdicts=["respond"], schema=BY_CALL_ANSWERS),
    }
    for name in ("edits", "refused", "conflict", "busy"):
        asked[name] = ask(LETTER, question="Send the brief?", call=CALL, reasons=reasons, **hours)
    asked["two-votes"].decide(by=mara, verdict="approve")
    asked["claimed"].claim(by=mara)
    close(asked["expired"], "expired")
    asked["rejected"].decide(by=mara, verdict="reject", reason="Not a word of it is true.")
    asked["edited"].decide(by=mara, verdict="edit", payload={**LETTER, "copies": 2})
    asked["decided"].decide(by=pm, verdict="approve")
    KeptDraft.keep(
        asked["stale-draft"], pm, json='{"copies": 3,\n "to": ["helen@example.com"]}', table="0" * 64
    )
    _talk(asked["comments"], pm, tomas)
    pages = {f"approval-{name}": Shown("pm", each.get_absolute_url()) for name, each in asked.items()}
    return pages | _acts({name: each.get_absolute_url() for name, each in asked.items()})


def _talk(approval: Approval, pm: User, tomas: User) -> None:
    approval.comment(
        by=tomas, text="Helen is away until Thursday.\nJosé reads it first, @pm; @nobody knows why."
    )
    approval.comment(
        by=pm,
        text="@mara @tomas see the offer.",
        files=[Sent("offer.pdf", b"%PDF-1.4\n%%EOF\n")],
    )


def _acts(at: dict[str, str]) -> Pages:
    call = at["call"]

    def opened(button: str, shown: str, where: str = call) -> Shown:
        return Shown("pm", where, (("press", button), ("see", shown)))

    return {
        "approval-edits": Shown("pm", at["edits"], (*EDITED, ("see", ".word-diff ins"))),
        "approval-refused": Shown(
            "pm",
            at["refused"],
            (("fill", "[data-field='$.copies'] .input", "many"), ("press", MAIN), ("see", "#trouble")),
        ),
        "approval-json": opened("[name=view][value=json]", "#json"),
        "approval-select": Shown(
            "pm",
            at["kinds"],
            (("choose", "[data-field='$.country'] select", "50"), ("scroll", "[data-field='$.country']")),
        ),
        "approval-conflict": Shown(
            "pm",
            at["conflict"],
            (
                *EDITED,
                ("set", "#decision", "action", f"{at['rejected']}decision/"),
                ("press", MAIN),
                ("see", "#trouble"),
            ),
        ),
        "approval-busy": Shown(
            "pm", at["busy"], (("hold", "#decision"), ("press", MAIN), ("see", "[aria-busy=true]"))
        ),
        "approval-just-decided": Shown(
            "pm",
            at["in-words"],
            (
                ("fill", "[data-field='$'] .input", "Ask Helen."),
                ("press", MAIN),
                ("see", ".toasts-decided [data-key=z]"),
            ),
            after=(("press", ".toasts-decided [data-key=z]"), ("see", MAIN)),
        ),
        "reject-open": opened("[data-key=r]", "#reject"),
        "hand-over-open": opened("[popovertarget=hand-over]", "#hand-over"),
        "deadline-open": opened("[popovertarget=deadline]", "#deadline"),
        "comment-open": opened(".comment-more > summary", "#files"),
        "keys-open": Shown("pm", "/", (("key", "?"), ("see", "#keys"))),
        "account-open": opened("[popovertarget=account]", "#account", "/"),
    }
