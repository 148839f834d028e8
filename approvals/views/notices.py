"""Of what a person wants mail, and which of it did not arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from approvals.models import Notice, NoticeWish, Target
from approvals.notices import words
from runs.engine import clock

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@require_http_methods(["GET", "HEAD", "POST"])
def notices(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        wanted = set(request.POST.getlist("mail"))
        NoticeWish.keep(request.user, [kind for kind in words.FOR_PEOPLE if kind not in wanted])
        messages.success(request, _("Kept."))
        return redirect("approvals:notices")
    wish = NoticeWish.objects.filter(person=request.user).first()
    unwanted = wish.unwanted if wish is not None else []
    failed = Notice.objects.filter(person=request.user, status=words.FAILED).order_by("-made_at").first()
    context = {
        "choices": [(kind, name, said, kind not in unwanted) for kind, name, said in _choices()],
        "is_on": bool(settings.DURABLEWEB["site_url"]),
        "failed": failed,
        **(_failing() if request.user.is_staff else {}),
        "now": clock.now(),
    }
    return render(request, "approvals/notices.html", context)


def _failing() -> dict[str, object]:
    """What operators should know: targets that take nothing, and mail that waits because it could not be sent."""
    mails = Notice.objects.filter(channel=words.MAIL, status=words.WAITING).exclude(error="")
    return {
        "failing": Target.objects.filter(failing_since__isnull=False),
        "mails_waiting": mails.count(),
        "mail_error": mails.order_by("-made_at").values_list("error", flat=True).first(),
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
        (
            words.DECIDED,
            _("My runs’ questions are decided"),
            _("Once the decision cannot be undone any more."),
        ),
        (words.EXPIRED, _("My runs’ questions expire"), _("Nobody decided in time.")),
    ]
