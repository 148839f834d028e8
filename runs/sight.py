"""Who may see a run. `Run.objects.visible_to(user)` is the only door; everything below a run follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.db.models import Q

from runs import registry

if TYPE_CHECKING:
    from runs.models.run import RunQuerySet

_more: list[Callable] = []


def also(condition: Callable) -> None:
    """Widen the door: condition(user) -> Q over Run. Approvals lets in who may decide, or has decided."""
    if condition not in _more:
        _more.append(condition)


def visible(runs: RunQuerySet, user) -> RunQuerySet:
    if not user.is_authenticated or not user.is_active:
        return runs.none()
    if user.has_perm("runs.view_all") or user.has_perm("runs.repair") or user.has_perm("runs.audit"):
        return runs
    groups = set(user.groups.values_list("name", flat=True))
    seen = Q(created_by=user) | Q(on_behalf_of=user) | Q(graph__in=registry.watched_by(groups))
    for condition in _more:
        seen |= condition(user)
    return runs.filter(seen)
