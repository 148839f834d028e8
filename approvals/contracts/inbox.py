"""The form of LangGraph's agent inbox: one interrupt or a list of them, answered by a list in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # requests and answers are any JSON

from django.utils.translation import gettext as _

from approvals.contracts.contract import (
    APPROVE,
    EDIT,
    IGNORE,
    RESPOND,
    Action,
    Contract,
    Reply,
    action,
    must_be,
)
from approvals.forms.paths import ROOT, below

WORD_OF = {APPROVE: "accept", EDIT: "edit", RESPOND: "response", IGNORE: "ignore"}
VERDICT_OF = {word: verdict for verdict, word in WORD_OF.items()}
ALLOWS = {"allow_accept": APPROVE, "allow_edit": EDIT, "allow_respond": RESPOND, "allow_ignore": IGNORE}


def read(payload: Any) -> Contract | None:
    """The contract of {"action_request": ..., "config": ...}, or of a list of these."""
    asked = payload if isinstance(payload, list) else [payload]
    actions = [_action(each) for each in asked]
    if not actions or any(each is None for each in actions):
        return None
    return Contract("inbox", tuple(each for each in actions if each), _write, _listen, _place)


def _action(asked: Any) -> Action | None:
    if not isinstance(asked, dict) or not {"action_request", "config"} <= set(asked):
        return None
    call, config = asked["action_request"], asked["config"]
    if not (isinstance(call, dict) and isinstance(config, dict)):
        return None
    allowed = [verdict for word, verdict in ALLOWS.items() if config.get(word) is True]
    return action(call.get("action"), call.get("args"), asked.get("description"), allowed, None)


def _write(actions: Sequence[Action], replies: Sequence[Reply]) -> Any:
    return [
        {"type": WORD_OF[reply.verdict], "args": _args(each, reply)}
        for each, reply in zip(actions, replies, strict=True)
    ]


def _args(asked: Action, reply: Reply) -> Any:
    if reply.verdict == EDIT:
        return {"action": asked.name, "args": reply.args}
    return reply.message if reply.verdict == RESPOND else None


def _listen(answer: Any) -> list[Reply]:
    must_be(isinstance(answer, list), ROOT, _("The answer is a list, with one response for each action."))
    return [_reply(_at(number), each) for number, each in enumerate(answer)]


def _reply(path: str, given: Any) -> Reply:
    must_be(
        isinstance(given, dict) and set(given) <= {"type", "args"}, path, _("A response has type and args.")
    )
    verdict = VERDICT_OF.get(given.get("type"), "") if isinstance(given.get("type"), str) else ""
    must_be(bool(verdict), below(path, "type"), _("The type is accept, edit, response or ignore."))
    args, at = given.get("args"), below(path, "args")
    if verdict == EDIT:
        fits = isinstance(args, dict) and set(args) == {"action", "args"} and isinstance(args["action"], str)
        must_be(fits and args["action"] != "", at, _("It has action and args, no more."))
        return Reply(EDIT, args["args"], name=args["action"])
    if verdict == RESPOND:
        must_be(isinstance(args, str), at, _("The answer is a text."))
        return Reply(RESPOND, message=args)
    must_be(args is None, at, _("It has no args."))
    return Reply(verdict)


def _at(number: int) -> str:
    return f"{ROOT}[{number}]"


def _place(number: int, part: str) -> str:
    at = _at(number)
    named = {"args": f"{at}.args.args", "name": f"{at}.args.action", "message": f"{at}.args"}
    return named.get(part, f"{at}.type")
