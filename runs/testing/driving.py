"""Driving one run to its end in a test: a fresh worker for each claim, scripted answers, and no waiting."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from typing import Any  # inputs and answers are the author's

from django.db import transaction

from runs import registry
from runs.conf import conf
from runs.core import codec
from runs.core.graph import Graph
from runs.core.ledger import OUTCOMES
from runs.engine.boundaries import boundary
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.family import cancel_children
from runs.engine.starting import start
from runs.engine.telling import tell_all
from runs.models.entry import INTERRUPT, OPEN, SIGNAL, LedgerEntry
from runs.models.run import Run
from runs.models.signal import Signal
from runs.models.untold_end import UntoldEnd
from runs.testing.clock import Clock, moved_clock
from runs.testing.family import asking, family_of, next_due

PATIENCE_SECONDS = 60.0  # for the locks of a process that was just killed

Script = Callable[[LedgerEntry, dict[str, Any]], "dict[str, Any] | None"]
Answers = Mapping[str, Any]

_numbers = count(1)


class Unanswered(AssertionError):
    """The run waits, and neither an answer nor the clock will ever wake it."""


def drive(graph: Graph, input: Any = None, answers: Answers | None = None, by: Any = None) -> Run:
    """Start a run of `graph` and drive it to its end; returns the ended Run.

    `answers` maps an interrupt's key (a gated call's is `<key>?`, an effect in doubt asks as `<key>!`) to a dict
    {verdict, payload, reason, by}, of which all but the verdict may be left out, or to a function of the request that
    returns one. A question without an answer, or whose function returns None, runs into its deadline; without a
    deadline Unanswered is raised. For a wait, such as `paid#1`, the answer is {payload, by}: a signal that is sent once
    the wait is open. One that comes earlier is sent with `run.signal(...)` before `go_on`. `by` is the user who starts
    it. Its children are driven as well, with the same answers: those that it leaves behind as far as they go.
    """
    graph.check()
    with moved_clock():
        return go_on(start(graph, input, by=by), graph, answers)


def go_on(run: Run, graph: Graph, answers: Answers | Script | None = None) -> Run:
    """Drive a run that exists already, wherever it stands, to its end; otherwise as `drive`."""
    script = answers if callable(answers) else scripted(answers or {})
    with moved_clock() as moved:
        while _move_on(run, graph, script, moved):
            pass
        if not _fresh(run).ended:
            raise Unanswered(_what_is_missing(run))
        return run


def _move_on(run: Run, graph: Graph, script: Script, moved: Clock) -> bool:
    """The next thing that happens in the run's family; False where nothing will."""
    family = list(family_of(run).order_by("id"))
    if any(give_answers(one, script, moved) for one in asking(family)):
        return True
    if (left := next((one for one in family if one.cascade_at), None)) is not None:
        cancel_children(left.pk)
        return True
    untold = UntoldEnd.objects.filter(parent__in=[one.pk for one in family])
    if (left := untold.values_list("parent", flat=True).first()) is not None:
        tell_all(left)
        return True
    if (due := next_due(family)) is None:
        return False
    moved.move_to(due.wake_at)
    _claim_and_drive(due, [graph] if due.pk == run.pk else [*registry.served(), graph], moved)
    return True


def _claim_and_drive(run: Run, graphs: list[Graph], moved: Clock) -> None:
    stood, began = _place(run), time.monotonic()
    while True:
        worker = f"kit:{os.getpid()}:{next(_numbers)}"
        taken = Claimer(worker, graphs, patience=timedelta()).claim(alone=True, only=run.pk)
        if taken is not None:
            work(Drive(*taken), moved)
            return
        if _place(_fresh(run)) != stood:
            return
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise Unanswered(f"Run {run.pk} is due and cannot be claimed; something holds its row.")
        time.sleep(0.002)


def scripted(answers: Answers) -> Script:
    """The script that looks an answer up by the question's key."""

    def look_up(entry: LedgerEntry, request: dict[str, Any]) -> dict[str, Any] | None:
        given = answers.get(entry.key)
        return given(request) if callable(given) else given

    return look_up


def give_answers(run: Run, script: Script, moved: Clock) -> bool:
    """Give every scripted answer to what is open; whether there was one."""
    gave = send_signals(run, script)
    asked = LedgerEntry.objects.filter(run=run, step=run.step + 1, kind=INTERRUPT, status=OPEN)
    for entry in asked.select_related("settles").order_by("id"):
        request = entry.request_value()
        said = script(entry, request)
        if said is None:
            continue
        if entry.settles is not None and entry.settles.due_at is not None:
            moved.move_to(entry.settles.due_at)  # until then the earlier call may be under way
        boundary("answer")
        answer(run, entry, request, said)
        boundary("answered")
        gave = True
    return gave


def send_signals(run: Run, script: Script) -> bool:
    """Send what the script has for open waits, each once; whether there was something to send."""
    sent = False
    for entry in LedgerEntry.objects.filter(run=run, step=run.step + 1, kind=SIGNAL, status=OPEN).order_by(
        "id"
    ):
        said = script(entry, entry.request_value())
        key = f"kit:{entry.step}:{entry.key}"
        if said is None or Signal.objects.filter(run=run, key=key).exists():
            continue
        boundary("signal")
        run.signal(entry.name, said.get("payload"), key=key, by=said.get("by", "someone"))
        boundary("signalled")
        sent = True
    return sent


def answer(run: Run, entry: LedgerEntry, request: dict[str, Any], said: dict[str, Any]) -> None:
    """Answer one open question as a person's decision would, effective after the undo window."""
    verdict = said["verdict"]
    payload = said.get("payload", request["payload"])
    if request["call"]:
        payload = registry.check_payload(run, request, payload)
    result = {"reason": "", "by": "someone", "outcome": OUTCOMES[verdict], **said, "payload": payload}
    agreed = verdict in ("approve", "edit")
    with transaction.atomic():
        locked, now = Run.objects.lock(run.pk)
        LedgerEntry.objects.get(pk=entry.pk).answer(
            locked,
            result,
            by=result["by"],
            now=now,
            effective_at=now + timedelta(seconds=conf.undo_seconds),
            approved_digest=codec.digest(codec.dumps(payload)) if agreed else "",
        )


def work(driven: Drive, moved: Clock) -> None:
    """Drive as far as it goes, with a heartbeat whenever the clock is moved inside a node."""
    moved.held.append(driven.lease)
    try:
        driven.run()
    finally:
        moved.held.remove(driven.lease)


def _fresh(run: Run) -> Run:
    run.refresh_from_db()
    return run


def _place(run: Run) -> tuple[Any, ...]:
    return run.seq, run.fence, run.status, run.wake_at, run.answers


def _what_is_missing(run: Run) -> str:
    asked = LedgerEntry.objects.filter(run__in=family_of(run), kind__in=(INTERRUPT, SIGNAL), status=OPEN)
    kinds = dict(asked.order_by("id").values_list("key", "kind"))
    if not kinds:
        return f"Run {run.pk} waits in node {run.node!r} and nothing is open: its wake-up was lost."
    keys = ", ".join(map(repr, kinds))
    said = " or ".join(sorted({"'payload'" if kind == SIGNAL else "'verdict'" for kind in kinds.values()}))
    return f"Run {run.pk} waits in node {run.node!r} for {keys}: give answers={{key: {{{said}: ...}}}}."
