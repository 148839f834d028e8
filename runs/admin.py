"""The admin site's pages of schedules, limits and stops. They call the verbs of code, and write no row behind them.

Those of runs are in admin_runs.py.
"""

from __future__ import annotations

from typing import Any  # what the admin site passes on

from django import forms
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.functional import Promise
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from runs import registry
from runs.admin_runs import RunAdmin
from runs.admin_words import of_schedules  # before the forms: importing it names what they show
from runs.engine import clock
from runs.errors import Invalid, Refusal, told
from runs.models import Run
from runs.models.limits import NUMBERS, GraphStop, QueueLimit
from runs.models.schedule import WRITTEN, Schedule
from runs.naming import for_operators
from runs.pages.words import dated

ACTIVE, STOPPED, BAD = "active", "stopped", "bad"
LABELS = {ACTIVE: "success", STOPPED: "info", BAD: "danger"}

admin.site.register(Run, RunAdmin)


def _graph_names(own: str = "") -> UnfoldAdminSelectWidget:
    names = {graph.name for graph in registry.served()} | {own} - {""}
    return UnfoldAdminSelectWidget(choices=[("", "---------"), *((name, name) for name in sorted(names))])


class ScheduleForm(forms.ModelForm):
    class Meta:
        model = Schedule
        fields = WRITTEN
        widgets = {"input": UnfoldAdminTextareaWidget({"rows": 6, "spellcheck": "false"})}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "graph" in self.fields:
            self.fields["graph"].widget = _graph_names(self.instance.graph)

    def add_error(self, field: str | None, error: Any) -> None:
        """What the core found is in English, and is said again."""
        if hasattr(error, "error_dict"):
            found = {name: map(of_schedules.retold, said) for name, said in error.message_dict.items()}
            error = forms.ValidationError({name: list(said) for name, said in found.items()})
        super().add_error(field, error)


@admin.register(Schedule)
class ScheduleAdmin(ModelAdmin):
    form = ScheduleForm
    list_display = ("name", "graph", "when", "next_slot_in_words", "state")
    list_filter = ("graph",)
    search_fields = ("name", "graph")
    ordering = ("graph", "name")
    empty_says = _("Graphs that start by themselves, such as each night, appear here.")
    actions = ("pause_selected", "resume_selected")
    actions_submit_line = ("pause_it", "resume_it")
    seen = ("when", "next_slot_in_words", "latest_in_words", "state_in_words", "asked_by", "fault")

    # -- what is shown

    @display(description=_("when"), ordering="cron")
    def when(self, schedule: Schedule) -> str:
        written = f"{schedule.cron}, {schedule.zone}"
        spoken = (get_language() or "en").partition("-")[0]
        return f"{schedule.recurrence.explained()} ({written})" if spoken == "en" else written

    @display(description=_("next"), ordering="due_at")
    def next_slot_in_words(self, schedule: Schedule) -> str:
        slot = schedule.next_slot
        return f"{dated(slot, 'D j M Y, H:i')} {slot.tzname()}" if slot else "-"

    @display(description=_("latest that started a run"), ordering="latest_slot")
    def latest_in_words(self, schedule: Schedule) -> str:
        if schedule.latest_slot is None:
            return "-"
        slot = schedule.recurrence.local(schedule.latest_slot)
        return f"{dated(slot, 'D j M Y, H:i')} {slot.tzname()}"

    @display(description=_("state"), label=LABELS)
    def state(self, schedule: Schedule) -> tuple[str, Any]:
        return self._state(schedule)

    @display(description=_("state"))
    def state_in_words(self, schedule: Schedule) -> Any:
        return self._state(schedule)[1]

    @display(description=_("created by"))
    def asked_by(self, schedule: Schedule) -> str:
        return for_operators(schedule.created_by) if schedule.created_by else "-"

    def _state(self, schedule: Schedule) -> tuple[str, Any]:
        if schedule.withdrawn_at is not None:
            return STOPPED, _("the code declares it no more")
        if schedule.paused_at is not None:
            return STOPPED, _("paused by %(name)s") % {"name": for_operators(schedule.paused_by)}
        if schedule.fault:
            return BAD, _("its run could not be started")
        if schedule.is_overdue(clock.now()):
            return BAD, _("due, and no worker serves its graph")
        return ACTIVE, _("active")

    def get_fieldsets(self, request: HttpRequest, obj: Schedule | None = None) -> list[Any]:
        written = (None, {"fields": WRITTEN})
        if obj is None:
            return [written]
        if obj.declared:
            written = (None, {"fields": ("graph", "name", "catch_up", "most")})
        return [(_("As it is"), {"fields": self.seen}), written]

    # -- who may

    def get_readonly_fields(self, request: HttpRequest, obj: Schedule | None = None) -> tuple[str, ...]:
        """What the code declares is changed in the code."""
        if obj is not None and obj.declared:
            return (*self.seen, *WRITTEN)
        return self.seen

    def has_delete_permission(self, request: HttpRequest, obj: Schedule | None = None) -> bool:
        """It would come back at the next start."""
        may = super().has_delete_permission(request, obj)
        return may and not (obj is not None and obj.declared and obj.withdrawn_at is None)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Schedule]) -> None:
        queryset.exclude(declared=True, withdrawn_at=None).delete()

    def has_pause_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may_change(request, object_id, paused_at__isnull=True)

    def has_resume_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return self._may_change(request, object_id, paused_at__isnull=False)

    def _may_change(self, request: HttpRequest, object_id: Any, **state: bool) -> bool:
        if not self.has_change_permission(request):
            return False
        return object_id is None or Schedule.objects.filter(pk=object_id, **state).exists()

    # -- what is done

    def save_model(self, request: HttpRequest, obj: Schedule, form: forms.ModelForm, change: bool) -> None:
        if not change:
            obj.created_by = request.user
        if not obj.declared and (not change or form.has_changed()):
            obj.put()
        for pressed in self.get_actions_submit_line(request, obj.pk):
            if pressed.action_name in request.POST:
                pressed.method(request, obj)

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        try:
            return super().changeform_view(request, *args, **options)
        except Refusal as refusal:
            self.message_user(request, refusal.message, messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    @action(description=_("Pause"), permissions=["pause"])
    def pause_it(self, request: HttpRequest, obj: Schedule) -> None:
        self._pause(request, obj)

    @action(description=_("Resume"), permissions=["resume"])
    def resume_it(self, request: HttpRequest, obj: Schedule) -> None:
        self._resume(request, obj)

    @action(description=_("Pause"), permissions=["change"])
    def pause_selected(self, request: HttpRequest, queryset: models.QuerySet[Schedule]) -> None:
        for schedule in queryset.filter(paused_at=None):
            self._try(request, self._pause, schedule)

    @action(description=_("Resume"), permissions=["change"])
    def resume_selected(self, request: HttpRequest, queryset: models.QuerySet[Schedule]) -> None:
        for schedule in queryset.exclude(paused_at=None):
            self._try(request, self._resume, schedule)

    def _pause(self, request: HttpRequest, schedule: Schedule) -> None:
        schedule.pause(request.user.get_username())
        self._tell(request, schedule, "Paused", _("Paused: %(schedule)s."))

    def _resume(self, request: HttpRequest, schedule: Schedule) -> None:
        schedule.resume(request.user.get_username())
        self._tell(request, schedule, "Resumed", _("Resumed: %(schedule)s."))

    def _tell(self, request: HttpRequest, schedule: Schedule, logged: str, said: Promise) -> None:
        self.log_change(request, schedule, logged)
        self.message_user(request, told(said, schedule=schedule), messages.SUCCESS)

    def _try(self, request: HttpRequest, act: Any, schedule: Schedule) -> None:
        try:
            act(request, schedule)
        except Refusal as refusal:
            self.message_user(request, refusal.message, messages.ERROR)


class GraphStopForm(forms.ModelForm):
    class Meta:
        model = GraphStop
        fields = ("graph", "reason")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "graph" in self.fields:
            self.fields["graph"].widget = _graph_names()

    def clean(self) -> dict[str, Any]:
        """What the verb would refuse, at its field."""
        given = super().clean()
        try:
            GraphStop.objects.refuse_unfit(given.get("graph", ""), given.get("reason", ""))
        except Invalid as refusal:
            raise forms.ValidationError(refusal.fields) from refusal
        return given


@admin.register(QueueLimit)
class QueueLimitAdmin(ModelAdmin):
    fields = ("queue", *NUMBERS)
    list_display = ("queue", *NUMBERS)
    ordering = ("queue",)
    empty_says = _("Queues with a limit appear here; the others take as many runs as there are workers.")

    def get_readonly_fields(self, request: HttpRequest, obj: QueueLimit | None = None) -> tuple[str, ...]:
        return () if obj is None else ("queue",)

    def save_model(self, request: HttpRequest, obj: QueueLimit, form: forms.ModelForm, change: bool) -> None:
        kept = QueueLimit.objects.put(obj.queue, **{name: getattr(obj, name) for name in NUMBERS})
        obj.pk = kept.pk


@admin.register(GraphStop)
class GraphStopAdmin(ModelAdmin):
    """To add one is to stop a graph, to delete it is to let its runs go on."""

    form = GraphStopForm
    fields = ("graph", "reason")
    list_display = ("graph", "stopped_by", "at", "reason")
    ordering = ("graph",)
    empty_says = _("A graph that is stopped appears here; no worker takes its runs until the stop is lifted.")

    @display(description=_("by"), ordering="by")
    def stopped_by(self, stop: GraphStop) -> str:
        return for_operators(stop.by)

    def has_change_permission(self, request: HttpRequest, obj: GraphStop | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: GraphStop, form: forms.ModelForm, change: bool) -> None:
        obj.pk = GraphStop.objects.stop(obj.graph, request.user.get_username(), obj.reason).pk
