"""Who may see a run. `Run.objects.visible_to(user)` is the only door; everything below a run follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from django.db.models import Q

from runs import registry

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser, AnonymousUser

    from runs.models.run import Run, RunQuerySet

_more: list[Callable] = []


def also(condition: Callable) -> None:
    """Widen the door: condition(user) -> Q over Run. Approvals lets in who may decide, or has decided."""
    if condition not in _more:
        _more.append(condition)


def visible(runs: RunQuerySet, user: AbstractBaseUser | AnonymousUser) -> RunQuerySet:
    if not user.is_authenticated or not user.is_active:
        return runs.none()
    if sees_all(user):
        return runs
    seen = own(user)
    for condition in _more:
        seen |= condition(user)
    return runs.filter(seen)


def sees_all(user: AbstractBaseUser) -> bool:
    return user.has_perm("runs.view_all") or user.has_perm("runs.repair") or user.has_perm("runs.audit")


def may_operate(user: AbstractBaseUser, run: Run) -> bool:
    """Whether the person may cancel and repair runs of the run's graph."""
    return user.has_perm("runs.repair") or run.graph in registry.operated_by(set(group_names(user)))


def own(user: AbstractBaseUser, run: str = "") -> Q:
    """What the engine itself lets a person see, over Run, or over rows that lead to one (`run="run__"`)."""
    conditions = {"created_by": user, "on_behalf_of": user, "graph__in": _watched_by(user)}
    return Q(*((f"{run}{name}", value) for name, value in conditions.items()), _connector=Q.OR)


def own_in_sql(user: AbstractBaseUser, run: str) -> tuple[str, list[object]]:
    """The same for a statement that calls the run's row `run`: the condition, and its values."""
    watched = _watched_by(user)
    among = f" OR {run}.graph IN ({', '.join(['%s'] * len(watched))})" if watched else ""
    return f"({run}.created_by_id = %s OR {run}.on_behalf_of_id = %s{among})", [user.pk, user.pk, *watched]


def group_names(user: AbstractBaseUser) -> list[str]:
    """Kept on the user object, as Django keeps permissions: it lives for one request."""
    if not hasattr(user, "_group_names"):
        user._group_names = list(user.groups.values_list("name", flat=True))
    return user._group_names


def _watched_by(user: AbstractBaseUser) -> list[str]:
    """Graphs that the person's groups view or operate: as the code says, or the rows where the code is gone.

    Kept on the user object, too.
    """
    from runs.models.worker import GraphVersion

    if not hasattr(user, "_watched_graphs"):
        groups = set(group_names(user))
        known = {graph.name for graph in registry.served()}
        theirs = Q(viewers__in=groups) | Q(operators__in=groups)
        gone = (
            GraphVersion.objects.filter(theirs).exclude(graph__in=known)
            if groups
            else GraphVersion.objects.none()
        )
        user._watched_graphs = registry.watched_by(groups) + list(gone.values_list("graph", flat=True))
    return user._watched_graphs
