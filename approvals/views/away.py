"""While one is away: who decides in one's place, and until when."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from approvals.models.absence import Absence, current
from approvals.views.people import person_of
from runs.errors import Conflict, Invalid, Refusal

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
def away(request: HttpRequest) -> HttpResponse:
    """What is planned, with a form to plan it or to end it."""
    refused = None
    if request.method == "POST":
        try:
            _change(request)
        except Refusal as refusal:
            refused = refusal
        else:
            return redirect("approvals:away")
    context = {
        "absence": current(request.user),
        "now": timezone.now(),
        "trouble": refused,
        "fields": getattr(refused, "fields", {}),
        "typed": request.POST if refused else {},
        "today": timezone.localdate(),
    }
    return render(request, "approvals/away.html", context, status=refused.status if refused else 200)


def _change(request: HttpRequest) -> None:
    if "end" in request.POST:
        planned = current(request.user)
        if planned is None:
            raise Conflict(_("You are not away, so there is nothing to end."))
        planned.end()
        return
    since, until = _day(request, "since"), _day(request, "until")
    Absence.plan(request.user, person_of(request), since, until + timedelta(days=1))


def _day(request: HttpRequest, name: str) -> datetime:
    """The beginning of that day, in the zone of the pages."""
    try:
        day = parse_date(request.POST.get(name, ""))
    except ValueError:
        day = None
    if day is None or not 2000 <= day.year <= 9000:
        said = _("Give a day, such as 2026-12-24.")
        raise Invalid(said, {name: [said]})
    return timezone.make_aware(datetime.combine(day, time.min))
