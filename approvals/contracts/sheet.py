"""The answer while somebody is at it: one card an action, filled in on the page, kept as a draft, read as replies.

A sheet is plain JSON, {"action_1": {"decision": ..., "args": {...}, "message": ...}, ...}, so that the form, its check
without scripts, its marks of what differs, and drafts work as for any payload.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any  # sheets and answers are any JSON

from django.utils.translation import gettext as _

from approvals.contracts.contract import (
    APPROVE,
    EDIT,
    IGNORE,
    REJECT,
    RESPOND,
    WITH_WORDS,
    Action,
    Contract,
    Reply,
    Wrong,
    is_edited,
)
from approvals.facts import Fact, facts
from approvals.forms.paths import ROOT, below
from approvals.forms.schemas import moved
from approvals.forms.values import visible
from approvals.payload import as_json
from runs.errors import Invalid

if TYPE_CHECKING:
    from approvals.forms.fields import Field


@dataclass(frozen=True, slots=True)
class Card:
    """One action for a page: its fields while it is answered (None where it is not offered), else facts and reply."""

    number: int
    action: Action
    facts: list[Fact]
    choice: Field | None = None
    args: Field | None = None
    message: Field | None = None
    reply: Reply | None = None

    @property
    def name(self) -> str:
        return visible(self.action.name)

    @property
    def description(self) -> str:
        return visible(self.action.description)

    @property
    def choices(self) -> list[tuple[str, str]]:
        """(verdict, what its button says) of what may be said to this one."""
        return [(verdict, offer(verdict)) for verdict in self.action.allowed]

    @property
    def answers(self) -> bool:
        """It may be answered in words."""
        return RESPOND in self.action.allowed

    @property
    def rejects(self) -> bool:
        return REJECT in self.action.allowed

    @property
    def reply_word(self) -> str:
        return word(self.reply.verdict) if self.reply is not None else ""

    @property
    def outcome(self) -> str:
        """The status whose icon the reply has."""
        return _STATUS[self.reply.verdict] if self.reply is not None else ""


def blank(contract: Contract) -> dict[str, Any]:
    """The sheet that nobody has written on; what can be said in one way only is said."""
    return filled(contract, [Reply("")] * len(contract.actions))


def filled(contract: Contract, replies: list[Reply]) -> dict[str, Any]:
    sheet: dict[str, Any] = {}
    for number, (action, reply) in enumerate(zip(contract.actions, replies, strict=True), 1):
        only = action.allowed[0] if len(action.allowed) == 1 else None
        card: dict[str, Any] = {"decision": reply.verdict or only}
        if EDIT in action.allowed:
            card["args"] = as_json(reply.args if reply.verdict == EDIT else action.args)
        if set(WITH_WORDS) & set(action.allowed):
            card["message"] = reply.message
        sheet[_name(number)] = card
    return sheet


def schema(contract: Contract) -> dict[str, Any]:
    """Of a sheet: what its form is made from."""
    cards, definitions = {}, {}
    for number, action in enumerate(contract.actions, 1):
        properties: dict[str, Any] = {
            "decision": {"title": _("Decision"), "enum": [*action.allowed, None]},
        }
        if EDIT in action.allowed:
            # each tool's schema stands whole under a name of its own: two tools may have definitions of one name
            place = f"#/$defs/{_name(number)}"
            definitions[_name(number)] = moved(action.schema, place)
            properties["args"] = {"$ref": place}
        if set(WITH_WORDS) & set(action.allowed):
            properties["message"] = {"title": _("Message"), "type": "string", "format": "textarea"}
        cards[_name(number)] = {
            "type": "object",
            "title": action.name,
            "properties": properties,
            "required": list(properties),
        }
    return {"type": "object", "properties": cards, "required": list(cards), "$defs": definitions}


def answer(contract: Contract, sheet: Any) -> Any:
    """The answer that a filled-in sheet means. Raises Invalid with the paths of the sheet."""
    replies, wrong = [], _unknown(contract, sheet)
    for number, action in enumerate(contract.actions, 1):
        card = sheet.get(_name(number)) if isinstance(sheet, dict) else None
        if not isinstance(card, dict):
            raise Invalid(_("This is no answer to what was asked; load the page again."), {ROOT: []})
        verdict, args = card.get("decision"), card.get("args", action.args)
        if verdict == APPROVE and is_edited(action, as_json(args)) and EDIT in action.allowed:
            verdict = EDIT
        if not verdict:
            wrong[_place(number - 1, "")] = [_("Say what is to be done with this one.")]
        words = card.get("message")
        message = words if isinstance(words, str) and verdict in WITH_WORDS else ""
        replies.append(Reply(str(verdict or ""), args if verdict == EDIT else None, message))
    said = contract.wrong_with(replies, _place) | wrong
    if said:
        many = _("%(count)s answers are missing or do not fit; nothing was sent.") % {"count": len(said)}
        raise Invalid(next(iter(said.values()))[0] if len(said) == 1 else many, said)
    return contract.write(contract.actions, replies)


def _unknown(contract: Contract, sheet: Any) -> Wrong:
    """What JSON says that no card has: its author would believe that it counts."""
    cards = blank(contract)
    found = _others(cards, sheet, ROOT, "")
    for number, action in enumerate(contract.actions, 1):
        name = _name(number)
        found |= _others(
            cards[name], sheet.get(name) if isinstance(sheet, dict) else None, below(ROOT, name), action.name
        )
    return found


def _others(known: dict[str, Any], given: Any, place: str, tool: str) -> Wrong:
    others = sorted(set(given) - set(known)) if isinstance(given, dict) else []
    fixed = _("A decision cannot change the tool: it stays %(name)s.") % {"name": tool}
    return {
        below(place, key): [
            fixed if key == "name" and tool else _("Not known here: %(names)s.") % {"names": key}
        ]
        for key in others
    }


def named(contract: Contract, path: str, label: str) -> str:
    """The label of a field of the cards, with its action; "" for what no card shows."""
    for number, (name, card) in enumerate(blank(contract).items(), 1):
        place = below(ROOT, name)
        if any(re.match(rf"{re.escape(below(place, part))}(?![\w-])", path) for part in card):
            action = visible(contract.actions[number - 1].name)
            return f"{number}. {action}: {label}" if len(contract.actions) > 1 else label
    return ""


def cards(contract: Contract, form: Field | None, given: Any = None) -> list[Card]:
    """The cards with the fields of `form`, or with what an answer that was `given` says."""
    replies = contract.listen(given) if given is not None else [None] * len(contract.actions)
    groups = {field.key: field for field in form.fields} if form is not None else {}
    told = []
    for number, (action, reply) in enumerate(zip(contract.actions, replies, strict=True), 1):
        fields = {field.key: field for field in groups[_name(number)].fields} if groups else {}
        proposed = as_json(action.args)
        shown = as_json(reply.args) if reply is not None and reply.verdict == EDIT else proposed
        told.append(
            Card(
                number,
                action,
                facts(shown, proposed, action.schema),
                fields.get("decision"),
                fields.get("args"),
                fields.get("message"),
                reply,
            )
        )
    return told


def told(contract: Contract, given: Any) -> str:
    """An answer in a line, for the trail and the mail: pay approved, wipe rejected."""
    replies = contract.listen(given)
    return ", ".join(
        f"{action.name} {word(reply.verdict)}"
        for action, reply in zip(contract.actions, replies, strict=True)
    )


def word(verdict: str) -> str:
    return {
        APPROVE: _("approved"),
        EDIT: _("approved with edits"),
        REJECT: _("rejected"),
        RESPOND: _("answered in words"),
        IGNORE: _("passed over"),
    }[verdict]


def offer(verdict: str) -> str:
    return {
        APPROVE: _("Approve"),
        EDIT: _("Edit"),
        REJECT: _("Reject"),
        RESPOND: _("Answer in words"),
        IGNORE: _("Pass over"),
    }[verdict]


_STATUS = {
    APPROVE: "approved",
    EDIT: "approved_with_edits",
    REJECT: "rejected",
    RESPOND: "responded",
    IGNORE: "cancelled",
}


def _name(number: int) -> str:
    return f"action_{number}"


def _place(number: int, part: str) -> str:
    return below(below(ROOT, _name(number + 1)), part or "decision")
