"""Who sees any of some runs, found the other way round: from the runs to the people, for many people at once.

`runs.sight` asks the rows for one person; an open page of each of hundreds would ask so at every change. Here the rows
are read once, and each person is compared in memory. A test holds the two ways against each other.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from runs import registry, sight

if TYPE_CHECKING:
    from django.contrib.auth.models import User


@dataclass(frozen=True, slots=True)
class Audience:
    """What makes somebody see one of the runs: their id, a group of theirs, or a name that may be either's."""

    people: frozenset[int] = frozenset()
    groups: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    everyone: bool = False

    def __or__(self, other: Audience) -> Audience:
        return Audience(
            self.people | other.people,
            self.groups | other.groups,
            self.names | other.names,
            self.everyone or other.everyone,
        )


EVERYONE = Audience(everyone=True)


@dataclass(frozen=True, slots=True)
class Onlooker:
    """What of a person decides which runs they see; read once, and good for as long as rights are taken to stay."""

    pk: int
    username: str
    groups: frozenset[str]
    sees_all: bool

    @classmethod
    def of(cls, user: User) -> Onlooker:
        groups = frozenset(user.groups.values_list("name", flat=True))
        return cls(user.pk, user.get_username(), groups, sight.sees_all(user))

    def is_in(self, audience: Audience) -> bool:
        return (
            self.sees_all
            or audience.everyone
            or self.pk in audience.people
            or self.username in audience.names
            or not self.groups.isdisjoint(audience.groups)
            or not self.groups.isdisjoint(audience.names)
        )


Widens = Callable[[Collection[uuid.UUID]], Audience]

_more: list[Widens] = []


def also(more: Widens) -> None:
    """What `runs.sight.also` lets in, told of runs: more(run ids) -> Audience."""
    if more not in _more:
        _more.append(more)


def of_runs(run_ids: Collection[uuid.UUID]) -> Audience:
    from runs.models import Run

    found = Run.objects.filter(pk__in=run_ids).values_list("created_by", "on_behalf_of", "graph")
    rows = list(found.distinct())
    people = frozenset(key for row in rows for key in row[:2] if key is not None)
    audience = Audience(people, _watchers({graph for *_people, graph in rows}))
    for more in _more:
        audience |= more(run_ids)
    return audience


def declared_groups() -> set[str]:
    """Groups that some graph names as its viewers or operators, whether or not anybody has made them: of the graphs
    that are served here, and of those that any process ever served."""
    from runs.models.worker import GraphVersion

    pairs = [(graph.viewers, graph.operators) for graph in registry.served()]
    pairs += GraphVersion.objects.values_list("viewers", "operators").distinct()
    return {group for pair in pairs for group in pair if group}


def _watchers(graphs: set[str]) -> frozenset[str]:
    """Groups that view or operate them: as the code says, or the rows where the code is gone."""
    from runs.models.worker import GraphVersion

    served = [graph for graph in registry.served() if graph.name in graphs]
    groups = {group for graph in served for group in (graph.viewers, graph.operators)}
    if gone := graphs - {graph.name for graph in served}:
        for pair in GraphVersion.objects.filter(Q(graph__in=gone)).values_list("viewers", "operators"):
            groups.update(pair)
    return frozenset(group for group in groups if group)
