"""The form of langchain's middleware by default: all gated calls of one turn at once, answered by position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any  # requests and answers are any JSON

from django.utils.translation import gettext as _

from approvals.contracts.contract import (
    APPROVE,
    EDIT,
    REJECT,
    RESPOND,
    Action,
    Contract,
    Reply,
    action,
    decision,
    decision_at,
    decision_place,
    must_be,
)
from approvals.forms.paths import ROOT

KNOWN = (APPROVE, EDIT, REJECT, RESPOND)


def read(payload: Any) -> Contract | None:
    """The contract of {"action_requests": [...], "review_configs": [...]}."""
    if not isinstance(payload, dict) or set(payload) != {"action_requests", "review_configs"}:
        return None
    asked, configs = payload["action_requests"], payload["review_configs"]
    if not (isinstance(asked, list) and asked and isinstance(configs, list)):
        return None
    by_name: dict[str, dict[str, Any]] = {}
    for config in configs:
        if not isinstance(config, dict) or not isinstance(config.get("action_name"), str):
            return None
        by_name[config["action_name"]] = config
    actions = [_action(each, by_name) for each in asked]
    if any(each is None for each in actions):
        return None
    return Contract("batched", tuple(each for each in actions if each), _write, _listen, _place)


def _action(asked: Any, configs: dict[str, dict[str, Any]]) -> Action | None:
    if not isinstance(asked, dict) or not isinstance(asked.get("name"), str):
        return None
    config = configs.get(asked["name"], {})
    allowed = config.get("allowed_decisions")
    if not isinstance(allowed, list) or not all(each in KNOWN for each in allowed):
        return None
    return action(
        asked["name"], asked.get("args"), asked.get("description"), allowed, config.get("args_schema")
    )


def _write(actions: Sequence[Action], replies: Sequence[Reply]) -> Any:
    return {"decisions": [decision(each, reply) for each, reply in zip(actions, replies, strict=True)]}


def _listen(answer: Any) -> list[Reply]:
    fits = isinstance(answer, dict) and set(answer) == {"decisions"} and isinstance(answer["decisions"], list)
    must_be(fits, ROOT, _('The answer is {"decisions": [...]}, one for each action in its order.'))
    return [decision_at(_at(number), each) for number, each in enumerate(answer["decisions"])]


def _at(number: int) -> str:
    return f"{ROOT}.decisions[{number}]"


def _place(number: int, part: str) -> str:
    return decision_place(_at(number), part)
