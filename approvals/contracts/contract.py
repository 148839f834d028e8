"""What the three forms have in common: actions that a model wants done, and one reply to each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any  # arguments and answers are any JSON

from django.utils.translation import gettext as _

from approvals.forms.paths import ROOT, below
from approvals.forms.problems import problems
from approvals.forms.schemas import root_of
from approvals.forms.values import same
from approvals.payload import closed, kept_references, other_keys, other_references
from runs.errors import Invalid

APPROVE, EDIT, REJECT, RESPOND, IGNORE = "approve", "edit", "reject", "respond", "ignore"
WITH_WORDS = (REJECT, RESPOND)
Wrong = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Action:
    """One call that waits for a person. `schema` is that of its arguments, {} where nobody gave one."""

    name: str
    args: dict[str, Any]
    description: str
    allowed: tuple[str, ...]
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a person says to one action: `args` of an edit, `message` of a rejection or an answer in words."""

    verdict: str
    args: Any = None
    message: str = ""
    name: str = ""  # the tool's, as an edit repeats it; "" means unchanged


@dataclass(frozen=True, slots=True)
class Contract:
    """A request that was understood.

    `write`: the replies, one for each action, as the answer that resumes the framework. `listen`: that answer as
    replies; raises Invalid for what has another shape. `place`: the path in the answer of a reply's part ("", "args",
    "message", "name").
    """

    form: str
    actions: tuple[Action, ...]
    write: Callable[[Sequence[Action], Sequence[Reply]], Any]
    listen: Callable[[Any], list[Reply]]
    place: Callable[[int, str], str]

    def fitting(self, answer: Any) -> Any:
        """The answer in its canonical shape. Raises Invalid, naming each path, for what the request does not allow."""
        replies = self.listen(answer)
        if len(replies) != len(self.actions):
            said = _(
                "%(asked)s actions are asked about and %(given)s are answered; each needs one answer."
            ) % {
                "asked": len(self.actions),
                "given": len(replies),
            }
            raise Invalid(said, {ROOT: [said]})
        wrong = self.wrong_with(replies, self.place)
        if wrong:
            path, said = next(iter(wrong.items()))
            raise Invalid(
                _("The answer does not fit: %(path)s: %(said)s") % {"path": path, "said": said[0]}, wrong
            )
        return self.write(self.actions, replies)

    def wrong_with(self, replies: Sequence[Reply], place: Callable[[int, str], str]) -> Wrong:
        """What these replies may not be, by the path that `place` gives."""
        wrong: Wrong = {}
        for number, (action, reply) in enumerate(zip(self.actions, replies, strict=True)):
            for part, said in _faults(action, reply).items():
                at = place(number, part.partition("$")[0])
                wrong[at + part.partition("$")[2]] = said
        return wrong


def _faults(action: Action, reply: Reply) -> Wrong:
    """By part; of arguments by "args$" and the rest of the path below them."""
    if reply.verdict not in action.allowed:
        offered = " / ".join(action.allowed)
        return {"": [_("Choose one of: %(offered)s.") % {"offered": offered}]}
    if reply.name and reply.name != action.name:
        return {"name": [_("A decision cannot change the tool: it stays %(name)s.") % {"name": action.name}]}
    if reply.verdict == RESPOND and not reply.message.strip():
        return {"message": [_("Write the answer.")]}
    if reply.verdict != EDIT:
        return {}
    return {f"args${path.removeprefix(ROOT)}": said for path, said in unfit(action, reply.args).items()}


def unfit(action: Action, args: Any) -> Wrong:
    """What is wrong with edited arguments, by path. Without a schema the model's own keys are the only ones known."""
    if not isinstance(args, dict):
        return {ROOT: [_("Arguments are an object.")]}
    if action.schema:
        kept = kept_references(action.args, args)
        wrong = {
            path: said for path, said in problems(args, closed(action.schema)).items() if path not in kept
        }
    else:
        wrong = other_keys(action.args, args)
    return wrong | other_references(action.args, args)


def action(name: Any, args: Any, description: Any, allowed: Sequence[str], schema: Any) -> Action | None:
    """The action, if its parts are what they should be."""
    if not (isinstance(name, str) and name and isinstance(args, dict) and allowed):
        return None
    told = description if isinstance(description, str) else ""
    told = told.partition(f"\n\nTool: {name}\nArgs: ")[0]  # langchain's own words: it is shown anyway
    return Action(name, args, told, tuple(dict.fromkeys(allowed)), root_of(schema))


def is_edited(action: Action, args: Any) -> bool:
    return not same(args, action.args)


def must_be(fits: bool, path: str, said: str) -> None:
    """Raises Invalid for a part of an answer that has another shape."""
    if not fits:
        raise Invalid(
            _("The answer does not fit: %(path)s: %(said)s") % {"path": path, "said": said}, {path: [said]}
        )


def decision_at(path: str, given: Any) -> Reply:
    """One decision as langchain's middleware writes it. Raises Invalid for what it would not take."""
    must_be(isinstance(given, dict), path, _("A decision is an object with a type."))
    verdict = given.get("type")
    must_be(
        isinstance(verdict, str) and verdict in _PARTS,
        below(path, "type"),
        _("The type is approve, edit, reject or respond."),
    )
    others = set(given) - {"type", _PARTS[verdict]}
    must_be(
        not others, path, _("Not known here: %(names)s.") % {"names": ", ".join(sorted(map(str, others)))}
    )
    if verdict == EDIT:
        edited, at = given.get("edited_action"), below(path, "edited_action")
        must_be(
            isinstance(edited, dict) and set(edited) == {"name", "args"},
            at,
            _("It has a name and args, no more."),
        )
        must_be(
            isinstance(edited["name"], str) and edited["name"] != "", below(at, "name"), _("Name the tool.")
        )
        return Reply(EDIT, edited["args"], name=edited["name"])
    message = given.get("message", "")
    must_be(isinstance(message, str), below(path, "message"), _("The message is a text."))
    return Reply(verdict, message=message)


def decision(action: Action, reply: Reply) -> dict[str, Any]:
    """One reply as langchain's middleware reads it; the tool's name is always the one that was asked about."""
    if reply.verdict == EDIT:
        return {"type": EDIT, "edited_action": {"name": action.name, "args": reply.args}}
    if reply.verdict == RESPOND or (reply.verdict == REJECT and reply.message):
        return {"type": reply.verdict, "message": reply.message}
    return {"type": reply.verdict}


def decision_place(path: str, part: str) -> str:
    if part in ("args", "name"):
        return below(below(path, "edited_action"), part)
    return below(path, part or "type")


_PARTS = {APPROVE: "", EDIT: "edited_action", REJECT: "message", RESPOND: "message"}
