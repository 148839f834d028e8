"""The run console: the list, one run, and what an open page reads again."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from runs import sight
from runs.engine import blobs, clock
from runs.errors import Refusal
from runs.models import Blob, Run
from runs.models.statuses import STATUSES
from runs.pages.contents import RunPage
from runs.pages.family import family
from runs.pages.filters import PAGE, STILL, TRIES, RunFilter, counted, graphs_of, is_id
from runs.pages.live_texts import live_texts
from runs.pages.posting import posted_from
from runs.pages.rows import rows

BYTES = "application/octet-stream"


@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    return render(request, "runs/list.html", _list(request))


@require_safe
def run_rows(request: HttpRequest) -> HttpResponse:
    """The same rows again, with newer ones only counted: nothing moves under a reader."""
    return render(request, "runs/_rows.html", _list(request, frozen=True))


@require_safe
def run_detail(request: HttpRequest, run_id: UUID) -> HttpResponse:
    return render(request, "runs/detail.html", _one(request, run_id))


@require_safe
def run_live(request: HttpRequest, run_id: UUID) -> HttpResponse:
    return render(request, "runs/_run.html", _one(request, run_id))


@require_safe
def run_texts(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """What its calls are saying now, read again a few times a second while they do."""
    run = _visible(request, run_id)
    return render(request, "runs/_live_texts.html", {"run": run, "live_texts": live_texts(run)})


@require_safe
def run_blob(request: HttpRequest, run_id: UUID, sha256: str) -> HttpResponseBase:
    """Stored bytes, only below a run that uses them. Never shown as a page: they are whatever a tool returned."""
    run = _visible(request, run_id)
    blob = get_object_or_404(Blob, pk=sha256, uses__run=run)
    try:
        content = blobs.read(run.pk, blob.pk)
    except blobs.BlobGone as gone:
        raise Http404(str(gone)) from gone
    is_text = blob.media_type.split("/")[0] == "text" or blob.media_type.endswith("json")
    response = HttpResponse(content, content_type="text/plain; charset=utf-8" if is_text else BYTES)
    response["Content-Disposition"] = f'{"inline" if is_text else "attachment"}; filename="{blob.pk[:12]}"'
    response["Content-Security-Policy"] = "sandbox; default-src 'none'"
    response["X-Content-Type-Options"] = "nosniff"
    return response


@posted_from("runs:run")
def run_cancellation(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """Cancel, for operators of the graph; the reason is in the trail."""
    run = _visible(request, run_id)
    if not _may_operate(request, run):
        raise PermissionDenied(_("Only operators of %(graph)s may cancel its runs.") % {"graph": run.graph})
    reason = request.POST.get("reason", "").strip()
    if not reason:
        messages.error(request, _("Not cancelled: say why, for it goes into the trail."))
        return redirect(run)
    try:
        run.cancel(
            f"user {request.user.get_username()}", reason, compensate=request.POST.get("compensate") == "on"
        )
    except Refusal as refusal:
        messages.error(request, refusal.message)
    else:
        done = (
            _("Run %(run)s undoes what it did, and is cancelled then.")
            if run.ending
            else _("Run %(run)s is cancelled.")
        )
        messages.success(request, done % {"run": run.short_id})
    return redirect(run)


def _list(request: HttpRequest, frozen: bool = False) -> dict[str, Any]:
    now, chosen = clock.now(), RunFilter.read(request.GET)
    seen = Run.objects.visible_to(request.user)
    narrowed = chosen.narrow(seen, now).select_related("created_by", "on_behalf_of")
    counts = counted(chosen.narrow(seen, now, status=False))
    top = request.GET.get("top", "") if is_id(request.GET.get("top", "")) else ""
    page = narrowed.filter(pk__lt=chosen.before) if chosen.before else narrowed
    if frozen and top:
        page = page.filter(pk__lte=top)
    shown = list(page.order_by("-pk")[: PAGE + 1])
    more, shown = len(shown) > PAGE, shown[:PAGE]
    return {
        "now": now,
        "filter": chosen,
        "rows": rows(shown, now),
        "scopes": [(status, counts[status], chosen.status == status) for status in ("", *STATUSES)],
        "total": counts[chosen.status],
        "graphs": graphs_of(request.user, seen),
        "stills": [(key, words) for key, (_length, words) in STILL.items()],
        "tries": TRIES,
        "more": shown[-1].pk if more else None,
        "top": top if frozen else (shown[0].pk if shown else ""),
        "newer": narrowed.filter(pk__gt=top).count() if frozen and top and not chosen.before else 0,
    }


def _one(request: HttpRequest, run_id: UUID) -> dict[str, Any]:
    run = _visible(request, run_id)
    at, against, entry = (_number(request, name) for name in ("at", "against", "entry"))
    page = RunPage(run, clock.now(), at=at, against=against, entry=entry)
    if at is not None and page.checkpoint is None:
        raise Http404(_("Run %(run)s has no checkpoint %(seq)s.") % {"run": run.short_id, "seq": at})
    may_operate = _may_operate(request, run)
    return {
        "now": page.now,
        "page": page,
        "run": run,
        "family": family(run, request.user, page.now),
        "query": request.GET.urlencode(),
        "may_operate": may_operate,
        "live_texts": live_texts(run),
    }


def _visible(request: HttpRequest, run_id: UUID) -> Run:
    runs = Run.objects.visible_to(request.user).select_related(
        "created_by", "on_behalf_of", "tombstone", "archival"
    )
    forks = Run.objects.filter(origin=OuterRef("pk"))
    return get_object_or_404(runs.annotate(has_forks=Exists(forks)), pk=run_id)


def _may_operate(request: HttpRequest, run: Run) -> bool:
    return sight.may_operate(request.user, run)


def _number(request: HttpRequest, name: str) -> int | None:
    text = request.GET.get(name, "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
