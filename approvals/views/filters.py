from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _

from approvals.filters import Filter
from approvals.models import SavedFilter
from runs.errors import Refusal
from runs.pages.posting import posted_from

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@posted_from("approvals:inbox")
def filters(request: HttpRequest) -> HttpResponse:
    """Keep a filter of the inbox under a name, or with `forget` remove the one of that name; then the list it shows."""
    query = Filter.of(QueryDict(request.POST.get("query", "")[:4000].removeprefix("?"))).kept_query
    name = request.POST.get("name", "").replace("\0", "")
    if "forget" in request.POST:
        if SavedFilter.forget(request.user, name):
            messages.success(request, _("The filter “%(name)s” is removed.") % {"name": name})
    else:
        try:
            kept = SavedFilter.keep(request.user, name, query)
        except Refusal as refusal:
            messages.error(request, refusal.message)
        else:
            messages.success(request, _("Kept as “%(name)s”.") % {"name": kept.name})
    return redirect(f"{reverse('approvals:inbox')}{query}")
