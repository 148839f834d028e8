"""Runs in the admin site: to be found, looked at from outside, kept, archived and erased. No page here changes a row.

What a run was about is shown on its own page, to those who may see it; here only what remains after an erasure.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any  # what the admin site passes on

from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper, OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.paginator import InfinitePaginator

from runs.admin_keeping import Keeping
from runs.engine import keeping
from runs.errors import told
from runs.models import Archival, GraphVersion, Run, Tombstone
from runs.models.statuses import STATUSES
from runs.naming import for_operators
from runs.pages.words import status_word

COLOURS = {
    "completed": "success",
    "failed": "danger",
    "waiting": "info",
    "kept": "info",
    "archived": "info",
    "erased": "warning",
}
FEWEST_DIGITS = 4


class GraphFilter(admin.SimpleListFilter):
    """By the names of all graphs that workers have served, not by a walk through all runs."""

    title, parameter_name = _("graph"), "graph"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, str]]:
        names = GraphVersion.objects.order_by("graph").values_list("graph", flat=True).distinct()
        return [(name, name) for name in names]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        return queryset.filter(graph=self.value()) if self.value() in dict(self.lookup_choices) else queryset


class StatusFilter(admin.SimpleListFilter):
    title, parameter_name = _("status"), "status"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return [(status, status_word(status).word) for status in STATUSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        return queryset.filter(status=self.value()) if self.value() in STATUSES else queryset


class KeptFilter(admin.SimpleListFilter):
    title, parameter_name = _("kept"), "kept"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return [("yes", _("Yes")), ("no", _("No"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        if self.value() == "yes":
            return queryset.filter(root__in=Run.objects.filter(kept=True).values("pk"))  # few: found first
        return queryset.filter(is_held=False) if self.value() == "no" else queryset


class ArchivedFilter(admin.SimpleListFilter):
    title, parameter_name = _("archived"), "archived"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin) -> list[tuple[str, Any]]:
        return [("yes", _("Yes")), ("no", _("No"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        asked = {"yes": False, "no": True}.get(self.value())
        return queryset if asked is None else queryset.filter(archived_at__isnull=asked)


class RunAdmin(Keeping, ModelAdmin):
    list_display = ("short", "graph", "status_in_words", "kept_in_words", "left_in_words", "created_at")
    list_filter = (GraphFilter, StatusFilter, KeptFilter, ArchivedFilter)
    list_select_related = ("tombstone", "archival")
    search_fields = ("id",)
    search_help_text = _("Id, or the last digits of it")
    empty_says = _("Every run appears here as soon as it is started.")
    ordering = ("-id",)
    show_full_result_count = (
        False  # a count of all runs, each time; nor are those counted that a filter leaves
    )
    paginator = InfinitePaginator
    list_disable_select_all = True  # a page holds as many as one may choose
    fields = readonly_fields = (
        "id", "graph", "version", "status_said", "root", "created_at", "finished_at", "hold", "archiving",
        "erasure",
    )  # fmt: skip

    # -- who may

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Run | None = None) -> bool:
        return self.has_erase_permission(request) or super().has_view_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Who may erase runs finds all of them; others the ones that they see elsewhere, too."""
        runs = super().get_queryset(request)
        if not self.has_erase_permission(request):
            runs = runs.visible_to(request.user)
        # A value, for which each row's root is read; the database would answer EXISTS by a walk through all runs.
        kept = Subquery(Run.objects.filter(pk=OuterRef("root"), kept=True).values("pk")[:1])
        return runs.alias(held_with=kept).annotate(
            is_held=ExpressionWrapper(Q(held_with__isnull=False), output_field=BooleanField())
        )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Run | None:
        run = super().get_object(request, object_id, from_field)
        if run is not None:
            run.has_page = Run.objects.visible_to(request.user).filter(pk=run.pk).exists()
        return run

    def get_view_on_site_url(self, obj: Run | None = None) -> str | None:
        """Not for who may erase the run and not see it: its own page is not there for them."""
        return super().get_view_on_site_url(obj) if getattr(obj, "has_page", False) else None

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Run], search_term: str
    ) -> tuple[QuerySet[Run], bool]:
        digits = search_term.replace("-", "").strip().lower()
        if not digits:
            return queryset, False
        if len(digits) > 32 or not set(digits) <= set("0123456789abcdef"):
            return queryset.none(), False
        if len(digits) == 32:
            return queryset.filter(pk=uuid.UUID(digits)), False
        return queryset.filter(pk__endswith=digits) if len(
            digits
        ) >= FEWEST_DIGITS else queryset.none(), False

    # -- what is shown

    @display(description=_("run"), ordering="id")
    def short(self, run: Run) -> str:
        return run.short_id

    @display(description=_("status"), ordering="status", label=COLOURS)
    def status_in_words(self, run: Run) -> tuple[str, Any]:
        return run.status, _status_of(run)

    @display(description=_("status"))
    def status_said(self, run: Run) -> Any:
        return _status_of(run)

    @display(description=_("kept"), label=COLOURS)
    def kept_in_words(self, run: Run) -> tuple[str, Any] | None:
        return ("kept", _("Kept")) if run.is_held else None

    @display(description=_("archived or erased"), label=COLOURS)
    def left_in_words(self, run: Run) -> tuple[str, Any] | None:
        if (stone := _stone(run)) is not None:
            return "erased", _("Erased") if stone.erased_at else _("Being erased")
        archival = _archival(run)
        return archival and ("archived", _("Archived") if archival.archived_at else _("Being archived"))

    @display(description=_("kept"))
    def hold(self, run: Run) -> str:
        remark = keeping.hold(run)
        return _said(remark.worker, remark.at, remark.body) if remark else "-"

    @display(description=_("archived"))
    def archiving(self, run: Run) -> str:
        archival = _archival(run)
        return _said(archival.by, archival.at, archival.reason) if archival else "-"

    @display(description=_("erased"))
    def erasure(self, run: Run) -> str:
        stone = _stone(run)
        return _said(stone.by, stone.at, stone.reason) if stone else "-"

    def get_fields(self, request: HttpRequest, obj: Run | None = None) -> Sequence[str]:
        return self.fields


def _status_of(run: Run) -> Any:
    """In words; of a failed run that an operator has put aside, that too."""
    word = status_word(run.status).word
    return told(_("%(status)s, closed"), status=word) if run.closed_at is not None else word


def _stone(run: Run) -> Tombstone | None:
    return getattr(run, "tombstone", None)


def _archival(run: Run) -> Archival | None:
    return getattr(run, "archival", None)


def _said(who: str, at: Any, reason: str) -> str:
    return f"{date_format(localtime(at), 'DATETIME_FORMAT')}, {for_operators(who)}: {reason}"
