from __future__ import annotations

import math
import uuid
from typing import TYPE_CHECKING

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from approvals.bulk import VERDICTS, Result, Selection, decide_all, picks_of, undo_all
from approvals.differing import compared
from approvals.filters import Filter
from approvals.proof import signed_in
from approvals.trouble import Trouble
from approvals.views.decision import reason_of
from approvals.words import APPROVE
from runs.conf import conf
from runs.engine import clock
from runs.errors import Invalid
from runs.pages.posting import posted_from

if TYPE_CHECKING:
    from django.http import HttpRequest


@require_http_methods(["GET", "HEAD", "POST"])
def bulk(request: HttpRequest) -> HttpResponse:
    """Looking shows the frozen list, how its items differ, and what would happen to each; posting decides them."""
    try:
        picks = picks_of((request.POST if request.method == "POST" else request.GET).getlist("pick"))
    except Invalid as refusal:
        return _preview(request, Selection([], request.user), Trouble(refusal.status, refusal.message))
    if not picks:
        return redirect(f"{reverse('approvals:inbox')}{Filter.of(request.GET).query}")
    selection = Selection(picks, request.user)
    if request.method != "POST":
        return _preview(request, selection)
    verdict, reason = request.POST.get("verdict", ""), reason_of(request)
    try:
        _must_be_typed(request, selection)
        results = decide_all(
            picks,
            by=request.user,
            verdict=verdict,
            reason=reason,
            operation_id=request.POST.get("operation_id", "")[:64] or uuid.uuid4().hex,
            signed_in=signed_in(request),
        )
    except Invalid as refusal:
        fields = getattr(refusal, "fields", {})
        trouble = Trouble(
            refusal.status,
            refusal.message,
            reason=request.POST.get("reason", ""),
            verdict=verdict,
            fields=fields,
        )
        return _preview(request, selection, trouble)
    return _done(request, results, verdict)


@posted_from("approvals:inbox")
def undo(request: HttpRequest) -> HttpResponse:
    """Take back what one has just decided together."""
    try:
        results = undo_all(picks_of(request.POST.getlist("pick")), by=request.user)
    except Invalid as refusal:
        return _preview(request, Selection([], request.user), Trouble(refusal.status, refusal.message))
    return _done(request, results, "undo")


def _must_be_typed(request: HttpRequest, selection: Selection) -> None:
    if selection.must_type and request.POST.get("number", "").strip() != str(len(selection.picks)):
        fault = _("Type %(count)s, the number of approvals in the list.") % {"count": len(selection.picks)}
        raise Invalid(_("Nothing was decided yet."), {"number": [fault]})


def _preview(request: HttpRequest, selection: Selection, trouble: Trouble | None = None) -> HttpResponse:
    context = {
        "selection": selection,
        "compared": compared(selection.items),
        "counts": {verdict: len(selection.decidable(verdict)) for verdict in VERDICTS},
        "concluded": len(selection.decidable(APPROVE)) - selection.votes,
        "verdict": trouble.verdict if trouble and trouble.verdict in VERDICTS else APPROVE,
        "trouble": trouble,
        "number": request.POST.get("number", ""),
        "preset": request.POST.get("preset", ""),
        "operation_id": request.POST.get("operation_id", "")[:64] or uuid.uuid4().hex,
        "back": Filter.of(request.GET),
        "now": selection.now,
    }
    return render(request, "approvals/bulk.html", context, status=trouble.status if trouble else 200)


def _done(request: HttpRequest, results: list[Result], verdict: str) -> HttpResponse:
    votes = sum(result.is_vote for result in results) if verdict == APPROVE else 0
    done = [result for result in results if result.is_done]
    context = {
        "done": done,
        "votes": votes,
        "concluded": len(done) - votes,
        "refused": [result for result in results if not result.is_done],
        "verdict": verdict,
        "seconds": _seconds_left(done),
        "back": Filter.of(request.GET),
    }
    return render(request, "approvals/bulk_done.html", context)


def _seconds_left(done: list[Result]) -> int:
    """Until the first of the runs takes its answer: a long list takes a while, and each has its own window."""
    decided = [
        result.approval.decided_at for result in done if result.approval and result.approval.decided_at
    ]
    if not decided:
        return 0
    passed = clock.now() - min(decided)
    return max(0, math.floor(conf.undo_seconds - passed.total_seconds()))
