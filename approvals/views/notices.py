"""Of what a person wants mail, and which of it did not arrive."""

from __future__ import annotations

from datetime import time
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import available_timezones

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_time
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from approvals.models import Notice, NoticeWish, Target
from approvals.notices import words
from approvals.notices.quiet import Quiet
from approvals.notices.troubles import troubles
from runs.engine import clock
from runs.errors import Invalid

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
def notices(request: HttpRequest) -> HttpResponse:
    wish = NoticeWish.objects.filter(person=request.user).first() or NoticeWish(person=request.user)
    unwanted, faults, quiet = wish.unwanted, {}, _typed_quiet(wish)
    if request.method == "POST":
        wanted = set(request.POST.getlist("mail"))
        unwanted = [kind for kind in words.FOR_PEOPLE if kind not in wanted]
        quiet = {name: request.POST.get(name, "").strip() for name in quiet}
        try:
            NoticeWish.keep(request.user, unwanted, _quiet(quiet), get_language() or "")
        except Invalid as refusal:
            faults = refusal.fields
        else:
            messages.success(request, _("Kept."))
            return redirect("approvals:notices")
    failed = Notice.objects.filter(person=request.user, status=words.FAILED).order_by("-made_at").first()
    context = {
        "choices": [(kind, name, said, kind not in unwanted) for kind, name, said in _choices()],
        "is_on": bool(settings.DURABLEWEB["site_url"]),
        "failed": failed,
        "failed_for": troubles.retold(failed.error) if failed else "",
        "quiet": quiet,
        "faults": faults,
        "zones": [(zone, "") for zone in _zones()],  # a name is its own word
        "held": Notice.objects.filter(person=request.user, status=words.WAITING, held=True).count(),
        **(_failing() if request.user.is_staff else {}),
        "now": clock.now(),
    }
    return render(request, "approvals/notices.html", context, status=422 if faults else 200)


@cache
def _zones() -> tuple[str, ...]:
    """Looked up once a process: a few hundred files are read for it."""
    return tuple(sorted(available_timezones()))


def _typed_quiet(wish: NoticeWish) -> dict[str, str]:
    """What stands in the fields of the quiet hours."""
    return {
        "quiet_from": f"{wish.quiet_from:%H:%M}" if wish.quiet_from else "",
        "quiet_until": f"{wish.quiet_until:%H:%M}" if wish.quiet_until else "",
        "zone": wish.zone or settings.TIME_ZONE,
    }


def _quiet(typed: dict[str, str]) -> Quiet | None:
    """The hours that were typed; none where both fields are empty. Raises Invalid by the name of the field."""
    if not typed["quiet_from"] and not typed["quiet_until"]:
        return None
    begin, end = _hour(typed, "quiet_from"), _hour(typed, "quiet_until")
    if begin == end:
        said = _("The end is the beginning; give another time, or leave both empty.")
        raise Invalid(said, {"quiet_until": [said]})
    if typed["zone"] not in _zones():
        said = _("Give a time zone as in the list, such as Europe/Berlin.")
        raise Invalid(said, {"zone": [said]})
    return Quiet(begin, end, typed["zone"])


def _hour(typed: dict[str, str], name: str) -> time:
    try:
        found = parse_time(typed[name])
    except ValueError:
        found = None
    if found is None or found.tzinfo is not None:
        said = _("Give a time, such as 21:30.")
        raise Invalid(said, {name: [said]})
    return found


def _failing() -> dict[str, object]:
    """What operators should know: targets that take nothing, and mail that waits because it could not be sent."""
    mails = Notice.objects.filter(channel=words.MAIL, status=words.WAITING).exclude(error="")
    latest = mails.order_by("-made_at").values_list("error", flat=True).first()
    return {
        "failing": [
            (target, troubles.retold(target.last_error))
            for target in Target.objects.filter(failing_since__isnull=False)
        ],
        "mails_waiting": mails.count(),
        "mail_error": troubles.retold(latest) if latest else None,
    }


def _choices() -> list[tuple[str, str, str]]:
    return [
        (
            words.ASKED,
            _("Something waits for me"),
            _("When it is asked, and again after others have changed it."),
        ),
        (words.ASSIGNED, _("Something is given to me"), _("Assigned to me, or somebody’s part in it.")),
        (
            words.REMINDED,
            _("A deadline is near"),
            _("After three quarters of the time, and in the last hour."),
        ),
        (words.ESCALATED, _("Nobody else has decided"), _("When I am asked as well.")),
        (words.MENTIONED, _("Somebody mentions me"), _("In a comment, with an @ before my name.")),
        (
            words.DECIDED,
            _("My runs’ questions are decided"),
            _("Once the decision cannot be undone any more."),
        ),
        (words.EXPIRED, _("My runs’ questions expire"), _("Nobody decided in time.")),
    ]
