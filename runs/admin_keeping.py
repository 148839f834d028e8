"""Keep, release, archive and erase runs in the admin site: chosen, asked for a reason, then done by verbs of Run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # what the admin site passes on

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from unfold.decorators import action
from unfold.widgets import UnfoldAdminTextareaWidget

from runs import secrets
from runs.errors import Conflict, Invalid, Refusal, told
from runs.models import Archival, Run, Tombstone
from runs.models.repairs import LONGEST_REASON
from runs.models.statuses import ENDED

MOST = 100  # runs at once
LONGEST_SECONDS = 20.0  # then no further run is begun, so that the page answers
CONFIRMED = "confirmed"


class ReasonForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"), max_length=LONGEST_REASON, widget=UnfoldAdminTextareaWidget({"rows": 3})
    )

    def clean_reason(self) -> str:
        """What the verb would refuse of each run, once, at its field."""
        try:
            secrets.refuse(self.cleaned_data["reason"], "reason")
        except Invalid as refusal:
            raise ValidationError(refusal.fields["reason"]) from refusal
        return self.cleaned_data["reason"]


@dataclass(frozen=True)
class Act:
    """One of the four, in words; `do(run, reason, by)` calls the verb, says what came of it, or raises Refusal."""

    name: str
    title: Promise
    goes: tuple[Promise, ...]
    remains: tuple[Promise, ...]
    about_reason: Promise
    logged: str
    do: Callable[[Run, str, str], str | Promise]


def _keep(run: Run, reason: str, by: str) -> Promise:
    run.keep(reason, by)
    return _("Kept, with its family.")


def _release(run: Run, reason: str, by: str) -> Promise:
    run.release_keep(reason, by)
    return _("Released, with its family.")


def _archive(run: Run, reason: str, by: str) -> Promise:
    earlier = Archival.objects.filter(run=run.root).first()
    if earlier is not None:
        raise Conflict(told(_("Archived before, by %(who)s; nothing was done."), who=earlier.by))
    if run.archive(reason, by).archived_at is None:
        return _("On its way to the archive, with its family; workers go on with it.")
    return _("Archived, with its family.")


def _erase(run: Run, reason: str, by: str) -> Promise:
    earlier = Tombstone.objects.filter(run=run.root).first()
    if earlier is not None:
        raise Conflict(told(_("Erased before, by %(who)s; nothing was done."), who=earlier.by))
    if run.erase(reason, by).erased_at is None:
        return _("Being erased, with its family; workers go on with it.")
    return _("Erased, with its family.")


ACTS = {
    act.name: act
    for act in (
        Act(
            "keep",
            _("Keep runs and their families"),
            (),
            (
                _(
                    "Everything, until they are released: they are neither erased nor archived. Live runs go on."
                ),
            ),
            _("It is shown on the run's page, with your name."),
            "Kept",
            _keep,
        ),
        Act(
            "release",
            _("Release runs and their families"),
            (),
            (_("Everything. But from now on they may be erased and archived again."),),
            _("It is kept with the run, with your name."),
            "Released",
            _release,
        ),
        Act(
            "archive",
            _("Archive runs and their families"),
            (),
            (
                _("Everything, and it is read as before. But nothing brings them back to life: fork them."),
                _("They can be kept and erased as before."),
            ),
            _("It is shown on the run's page, with your name."),
            "Archived",
            _archive,
        ),
        Act(
            "erase",
            _("Erase runs and their families"),
            (
                _("Inputs, states, requests, results, signals, remarks, errors, reasons and labels."),
                _(
                    "Of their approvals: titles, payloads, what was seen, reasons, comments, drafts and attached files."
                ),
                _("Large values and files, a day later, where no other run uses them."),
            ),
            (
                _("Ids, graph, version, status, times, keys, names of tools, and who did what."),
                _("Digests of all that is gone, so that the trail can still be checked."),
                _("A tombstone with your name, the time, and the reason that you give."),
                _("What forks of these runs took over from them: each is erased by itself."),
                _("Backups as they are: let them expire."),
            ),
            _("It stays on the tombstone for ever, so write nothing that has to be forgotten."),
            "Erased",
            _erase,
        ),
    )
}


class Keeping:
    """Of the admin page of runs: the four actions, on many runs in the list and on one run's own page."""

    actions = ("keep_selected", "release_selected", "archive_selected", "erase_selected")
    actions_detail = ("keep_it", "release_it", "archive_it", "erase_it")

    # -- who may

    def has_erase_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return request.user.has_perm("runs.erase")

    def has_keep_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may(request, object_id, is_held=False, tombstone=None)

    def has_release_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may(request, object_id, is_held=True)

    def has_archive_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        untouched = {"is_held": False, "tombstone": None, "archived_at": None}
        return self._may(request, object_id, status__in=ENDED, **untouched)

    def has_begin_erasing_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may(request, object_id, is_held=False, tombstone=None)

    def _may(self, request: HttpRequest, object_id: Any, **state: Any) -> bool:
        if not self.has_erase_permission(request):
            return False
        return object_id is None or self._one(request, object_id).filter(**state).exists()

    # -- what is done

    @action(description=_("Keep runs and their families"), permissions=["erase"])
    def keep_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._ask(request, ACTS["keep"], queryset)

    @action(description=_("Release runs and their families"), permissions=["erase"])
    def release_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._ask(request, ACTS["release"], queryset)

    @action(description=_("Archive runs and their families"), permissions=["erase"])
    def archive_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._ask(request, ACTS["archive"], queryset)

    @action(description=_("Erase runs and their families"), permissions=["erase"])
    def erase_selected(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        return self._ask(request, ACTS["erase"], queryset)

    @action(description=_("Keep the run"), permissions=["keep"])
    def keep_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._page(request, ACTS["keep"], list(self._one(request, object_id)), ReasonForm())

    @action(description=_("Release the run"), permissions=["release"])
    def release_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._page(request, ACTS["release"], list(self._one(request, object_id)), ReasonForm())

    @action(description=_("Archive the run"), permissions=["archive"])
    def archive_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._page(request, ACTS["archive"], list(self._one(request, object_id)), ReasonForm())

    @action(description=_("Erase the run"), permissions=["begin_erasing"])
    def erase_it(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._page(request, ACTS["erase"], list(self._one(request, object_id)), ReasonForm())

    def response_action(self, request: HttpRequest, queryset: QuerySet[Run]) -> HttpResponse | None:
        try:
            return super().response_action(request, queryset)
        except ValidationError:  # what was sent as a run's id is none
            self.message_user(request, _("There is no such run."), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def _one(self, request: HttpRequest, object_id: Any) -> QuerySet[Run]:
        try:
            return self.get_queryset(request).filter(pk=object_id).select_related("tombstone")
        except ValidationError:
            return self.get_queryset(request).none()

    def _ask(self, request: HttpRequest, act: Act, queryset: QuerySet[Run]) -> HttpResponse | None:
        """First the page that asks, with the runs as they were selected; sent back by it, the act."""
        runs = list(queryset.order_by("pk").select_related("tombstone")[: MOST + 1])
        if len(runs) > MOST:
            said = told(_("Select at most %(most)s runs at once; nothing was done."), most=MOST)
            self.message_user(request, said, messages.ERROR)
            return None
        form = ReasonForm(request.POST if CONFIRMED in request.POST else None)
        if not form.is_valid():
            return self._page(request, act, runs, form)
        self._carry_out(request, act, runs, form.cleaned_data["reason"])
        return HttpResponseRedirect(reverse("admin:runs_run_changelist"))

    def _page(self, request: HttpRequest, act: Act, runs: list[Run], form: ReasonForm) -> HttpResponse:
        families = Run.objects.filter(root__in={run.root for run in runs}).order_by().values_list("root")
        sizes = dict(families.annotate(many=Count("pk")))
        context = {
            **self.admin_site.each_context(request),
            "title": act.title,
            "opts": self.opts,
            "act": act,
            "runs": [(run, sizes[run.root] - 1) for run in runs],
            "form": form,
            "checkbox": ACTION_CHECKBOX_NAME,
            "confirmed": CONFIRMED,
        }
        return TemplateResponse(request, "runs/admin/keeping.html", context)

    def _carry_out(self, request: HttpRequest, act: Act, runs: list[Run], reason: str) -> None:
        """One after the other, each by its verb, and a message for each: what is refused keeps no other back."""
        by, until = request.user.get_username(), time.monotonic() + LONGEST_SECONDS
        done: dict[Any, Run] = {}  # top of a family -> the run through which it was done
        for run in runs:
            level, said = messages.SUCCESS, None
            if run.root in done:
                said = told(_("Done together with %(run)s, of the same family."), run=done[run.root].short_id)
            elif time.monotonic() > until:
                level, said = messages.WARNING, _("Left as it is, for this took long; select it again.")
            else:
                try:
                    said = act.do(run, reason, by)
                except Refusal as refusal:
                    level, said = messages.ERROR, refusal.message
                else:
                    done[run.root] = run
                    self.log_change(request, run, act.logged)
            self.message_user(request, f"{run}: {said}", level)
