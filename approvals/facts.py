"""What will happen, as facts a person reads in ten seconds: who gets it and how much first, long texts last."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any  # payloads are any JSON

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from approvals.forms.difference import Change, change_of
from approvals.forms.order import in_order, is_recipient_or_amount
from approvals.forms.paths import ROOT, below, label_of, title_of
from approvals.forms.values import ABSENT, json_text, same, visible
from runs import registry
from runs.core.codec_tree import MARK
from runs.core.graph import END
from runs.pages.words import dated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runs.models import Run

LONG_TEXT = 200
MANY = 8  # items of a list that are shown without asking

_ORDINARY, _LONG = 2, 3
_DAY = re.compile(r"\d{4}-\d\d-\d\d\Z", re.ASCII)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?\Z")


@dataclass(frozen=True, slots=True)
class Fact:
    label: str
    kind: str  # text, long, list or json
    text: str
    path: str = ROOT
    items: tuple[str, ...] = ()
    rank: int = _ORDINARY
    change: Change | None = None
    tabled: Fact | None = None  # the fact as it stands without the edit that is being made

    @property
    def is_strong(self) -> bool:
        return self.rank < _ORDINARY

    @property
    def first_items(self) -> tuple[str, ...]:
        return self.items[:MANY]

    @property
    def more_items(self) -> tuple[str, ...]:
        return self.items[MANY:]

    @property
    def length_words(self) -> str:
        """How much is behind "show all"."""
        if self.kind == "json":
            lines = self.text.count("\n") + 1
            return ngettext("%(count)s line", "%(count)s lines", lines) % {"count": lines}
        words = len(self.text.split())
        return ngettext("%(count)s word", "%(count)s words", words) % {"count": words}


def facts(payload: Any, proposed: Any, schema: Any = None) -> list[Fact]:
    """One fact for each argument, or one for all where the payload is no object; edits of `proposed` are marked."""
    if not isinstance(payload, dict) or MARK in payload:
        return [] if payload is None else [_fact(ROOT, _("Answer"), payload, proposed)]
    was = proposed if isinstance(proposed, dict) else {}
    declared = schema.get("properties") if isinstance(schema, dict) else None
    told = [
        _fact(
            below(ROOT, name),
            label_of(name, title_of(declared, name)),
            payload[name],
            was.get(name, ABSENT),
            name,
        )
        for name in in_order(list(payload), (), payload)
    ]
    return sorted(told, key=lambda fact: fact.rank)


def facts_as_typed(payload: Any, proposed: Any, typed: Any, schema: Any = None) -> list[Fact]:
    """The facts of `payload`, and in the place of each that an unsent edit touches what the edit says."""
    edited = {fact.path: fact for fact in facts(typed, payload, schema)}
    told = []
    for fact in facts(payload, proposed, schema):
        now = edited.pop(fact.path, None)
        if now is None:
            gone = Change(fact.path, fact.label, "removed", fact.text, "")
            told.append(replace(fact, change=gone, tabled=fact))
        else:
            told.append(replace(now, tabled=fact) if now.change else fact)
    none = {path: Fact(fact.label, "text", "–", path) for path, fact in edited.items()}
    return [*told, *(replace(fact, tabled=none[path]) for path, fact in edited.items())]


def _fact(path: str, label: str, value: Any, was: Any, name: str = "") -> Fact:
    change = None if same(value, was) else change_of(path, label, was, value)
    rank = 0 if is_recipient_or_amount(name) else _ORDINARY
    if isinstance(value, dict) and isinstance(value.get("v"), str) and MARK in value:
        value = value["v"]
    if isinstance(value, str):
        text = (
            _moment(value) if _MOMENT.match(value) else _day(value) if _DAY.match(value) else visible(value)
        )
        is_long = len(text) > LONG_TEXT or "\n" in text.strip()
        return Fact(
            visible(label), "long" if is_long else "text", text, path, (), _LONG if is_long else rank, change
        )
    if isinstance(value, list) and value and not any(isinstance(each, dict | list) for each in value):
        items = tuple(visible(each) if isinstance(each, str) else _plain(each) for each in value)
        return Fact(visible(label), "list", ", ".join(items), path, items, rank, change)
    if value in ([], {}):
        return Fact(visible(label), "text", _("none"), path, (), rank, change)
    if isinstance(value, dict | list):
        text = json_text(value)
        return Fact(visible(label), "json" if "\n" in text else "text", text, path, (), _LONG, change)
    return Fact(visible(label), "text", _plain(value), path, (), rank, change)


def _moment(text: str) -> str:
    """A moment as people read it, in the zone in which it is written."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = moment.strftime("%z")
    told = dated(moment, "D j M Y, H:i:s" if moment.second else "D j M Y, H:i")
    return f"{told} UTC{zone[:3]}:{zone[3:5]}".replace("UTC+00:00", "UTC") if zone else told


def _day(text: str) -> str:
    """A day likewise."""
    try:
        return dated(date.fromisoformat(text), "D j M Y")
    except ValueError:
        return text


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return "–" if value is None else json_text(value)


@dataclass(frozen=True, slots=True)
class Effect:
    """The sentence on top: what a yes does."""

    lead: str
    tool: str
    key: str
    writes: bool
    then: tuple[str, ...]  # the nodes that may follow; "" stands for the run's end
    known: bool  # whether this process knows the graph, so that `then` can be believed


def effect(run: Run, request: dict[str, Any], actions: Sequence[str] = ()) -> Effect:
    """`actions`: the tools that a framework asks about in one question."""
    call = request.get("call") or {}
    settles = request.get("settles") or {}
    tool = str(call.get("tool", ""))
    if tool:
        lead = str(call.get("description") or "") or _("%(tool)s is called.") % {"tool": label_of(tool)}
    elif settles:
        lead = _("%(tool)s was sent and its outcome is unknown. You say what became of it.") % {
            "tool": label_of(str(settles.get("tool", "")))
        }
    elif actions:
        lead = _("The run waits for your answer to: %(tools)s.") % {"tools": ", ".join(actions)}
    else:
        lead = _("Your answer goes to the run, which goes on with it.")
    graph = registry.find(run.graph, run.version)
    node = graph.nodes.get(run.node) if graph else None
    then = tuple("" if target == END else target for target in node.then) if node else ()
    return Effect(
        lead=visible(lead),
        tool=tool,
        key=str(call.get("key") or settles.get("key") or "").replace("{run_id}", str(run.pk)),
        writes=call.get("kind") == "write",
        then=then,
        known=node is not None,
    )
