"""Show one run: state, checkpoints, ledger and approvals."""

from __future__ import annotations

import argparse
from typing import Any  # states, requests and results are any JSON

from django.db.models import Count

from approvals.models import Approval, Decision
from runs.command_line import OneLineCommand, about_a_run, as_json, visible
from runs.core import codec
from runs.core.errors import DurableError
from runs.engine import blobs
from runs.models import LedgerEntry, Run, Signal
from runs.pages.rows import refer


class Command(OneLineCommand):
    help = "Shows a run: where it stands, its state, every checkpoint, its ledger and its approvals."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        about_a_run(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with self.one_line_errors():
            run = Run.objects.named(options["run"])
        told = _run(run)
        self.stdout.write(as_json(told) if options["json"] else _text(told))


def _run(run: Run) -> dict[str, Any]:
    approvals = Approval.objects.filter(run=run).select_related("entry", "amendment").order_by("opened_at")
    entries, signals = list(run.entries.order_by("id")), list(run.signals.order_by("id"))
    refer(entries, "compensates", among=entries)
    refer(signals, "consumed_by", among=entries)
    return {
        "id": str(run.id),
        "graph": run.graph,
        "version": run.version,
        "status": run.status,
        "ending": run.ending,
        "node": run.node,
        "step": run.step,
        "seq": run.seq,
        "key": run.key,
        "parent": run.parent_id and str(run.parent_id),
        "root": str(run.root),
        "origin": run.origin and {"run": str(run.origin), "checkpoint": run.origin_seq},
        "closed_at": run.closed_at,
        "children": dict(run.children.order_by().values_list("status").annotate(Count("pk"))),
        "archived": _archived(run),
        "error": {"kind": run.error_kind, "text": run.error} if run.error else None,
        "state": _state(run),
        "checkpoints": list(
            run.checkpoints.order_by("seq").values(
                "seq", "kind", "step", "node", "status", "at", "actor", "reason", "digest"
            )
        ),
        "ledger": [_entry(entry) for entry in entries],
        "signals": [_signal(signal) for signal in signals],
        "approvals": [_approval(approval) for approval in approvals],
    }


def _archived(run: Run) -> dict[str, Any] | None:
    archival = getattr(run, "archival", None)
    return archival and {"since": archival.since, "by": archival.by, "reason": archival.reason}


def _state(run: Run) -> Any:
    """The latest state; where it cannot be read, the reason stands in its place."""
    try:
        return run.state_at()
    except DurableError as error:
        return {"unreadable": str(error)}


def _entry(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "step": entry.step,
        "key": entry.key,
        "kind": entry.kind,
        "name": entry.name,
        "child": entry.child_id and str(entry.child_id),
        "status": entry.status,
        "aside": entry.aside,
        "copied": entry.copied_from is not None,
        "idempotency_key": entry.idempotency_key,
        "request": _tree(entry, entry.request),
        "result": _tree(entry, entry.result),
        "error": entry.error,
        "undoes": entry.compensates and {"step": entry.compensates.step, "key": entry.compensates.key},
        "attempts": entry.attempts,
        "opened_at": entry.opened_at,
        "answered_at": entry.answered_at,
        "answered_by": entry.answered_by,
    }


def _signal(signal: Signal) -> dict[str, Any]:
    return {
        "name": signal.name,
        "key": signal.key,
        "by": signal.by,
        "at": signal.at,
        "payload": _tree(signal, signal.payload),
        "read_by": signal.consumed_by and {"step": signal.consumed_by.step, "key": signal.consumed_by.key},
    }


def _tree(row: LedgerEntry | Signal, text: str | None) -> Any:
    """As it is stored, typed values with their mark; nothing that needs the author's classes."""
    if text is None:
        return None
    try:
        return codec.decode(blobs.load_text(row.run_id, text, row.key or row.name))
    except DurableError as error:
        return {"unreadable": str(error)}


def _approval(approval: Approval) -> dict[str, Any]:
    decisions = Decision.objects.filter(approval=approval).select_related("by").order_by("at")
    return {
        "id": str(approval.id),
        "title": approval.title,
        "status": "open" if approval.is_open else "closed",
        "outcome": approval.outcome or None,
        "payload": approval.payload,
        "due_at": approval.due_at,
        "decisions": [
            {
                "by": decision.by.get_username(),
                "via": decision.via,
                "verdict": decision.verdict,
                "payload": codec.decode(decision.payload) if decision.payload else None,
                "reason": decision.reason,
                "at": decision.at,
                "undone": decision.withdrawals.exists(),
            }
            for decision in decisions
        ],
    }


def _text(told: dict[str, Any]) -> str:
    lines = [f"{told['id']}  {told['graph']} version {told['version']}: {told['status']} at {told['node']}"]
    if told["error"]:
        lines.append(f"  {told['error']['kind'] or 'error'}: {_first(told['error']['text'])}")
    if (archived := told["archived"]) is not None:
        lines.append(f"  in the archive since {archived['since']:%Y-%m-%d}, by {visible(archived['by'])}")
    lines.append(f"  state {as_json(told['state'])}")
    lines.append("checkpoints")
    for one in told["checkpoints"]:
        reason = f"  {_first(one['reason'])}" if one["reason"] else ""
        place = f"{one['kind']:<10} {one['node']} ({one['status']})"
        lines.append(f"  {one['seq']:>4} {place} {one['at']:%H:%M:%S}{reason}")
    if told["ledger"]:
        lines.append("ledger")
    for one in told["ledger"]:
        lines.append(f"  step {one['step']} {visible(one['key'])}: {one['kind']} {one['status']}")
    if told["signals"]:
        lines.append("signals")
    for one in told["signals"]:
        read = f"read in step {one['read_by']['step']}" if one["read_by"] else "unread"
        lines.append(f"  {visible(one['name'])}: {read}")
    if told["approvals"]:
        lines.append("approvals")
    for one in told["approvals"]:
        lines.append(f"  {one['id']} {visible(one['title'])}: {one['outcome'] or 'open'}")
    return "\n".join(lines)


def _first(text: str) -> str:
    return visible(next(iter(text.splitlines()), ""))
