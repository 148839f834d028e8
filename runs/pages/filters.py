"""What the list of runs can be narrowed by; the URL carries all of it."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from runs import sight
from runs.models import GraphVersion, Run
from runs.models.statuses import LIVE, STATUSES

PAGE = 50
STILL = {
    "10m": (timedelta(minutes=10), gettext_lazy("10 minutes")),
    "1h": (timedelta(hours=1), gettext_lazy("1 hour")),
    "1d": (timedelta(days=1), gettext_lazy("1 day")),
    "7d": (timedelta(days=7), gettext_lazy("7 days")),
}
TRIES = ("2", "3", "5", "10")


@dataclass(frozen=True)
class RunFilter:
    """`still`: a live run without progress for at least that long. `family`: the id of the run at the top of one.

    `before`: the id above which a page begins.
    """

    status: str = ""
    graph: str = ""
    text: str = ""
    still: str = ""
    tries: str = ""
    label: str = ""
    family: str = ""
    before: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> Self:
        """From a URL; what is not a known word is left out."""
        return cls(
            status=_among(query.get("status"), STATUSES),
            graph=_written(query, "graph")[:100],
            text=_written(query, "q")[:200],
            still=_among(query.get("still"), STILL),
            tries=_among(query.get("tries"), TRIES),
            label=_written(query, "label")[:200],
            family=query.get("family", "") if is_id(query.get("family", "")) else "",
            before=query.get("before", "") if is_id(query.get("before", "")) else "",
        )

    @property
    def query(self) -> dict[str, str]:
        named = {
            "q": self.text,
            "graph": self.graph,
            "still": self.still,
            "tries": self.tries,
            "label": self.label,
            "family": self.family,
        }
        return {name: value for name, value in {"status": self.status, **named}.items() if value}

    @property
    def address(self) -> str:
        return f"?{urlencode(self.query)}"

    @property
    def narrowed(self) -> bool:
        return bool(self.query)

    def without(self, *names: str) -> str:
        """The address with these parts taken away."""
        return replace(self, **dict.fromkeys(names, "")).address

    def narrow(self, runs: QuerySet[Run], now: datetime, *, status: bool = True) -> QuerySet[Run]:
        """`status=False` leaves the status out, so that each status can be counted under the same filter."""
        if self.status and status:
            runs = runs.filter(status=self.status)
        if self.graph:
            runs = runs.filter(graph=self.graph)
        if self.tries:
            runs = runs.filter(attempt__gte=int(self.tries))
        if self.still:
            length, _words = STILL[self.still]
            moved = Q(checkpoints__at__gt=now - length)
            runs = runs.filter(status__in=LIVE).exclude(pk__in=Run.objects.filter(moved).values("pk"))
        if self.label:
            name, _, value = self.label.partition(":")
            pair = f"{json.dumps(name.strip(), ensure_ascii=False)}:{json.dumps(value.strip(), ensure_ascii=False)}"
            runs = runs.filter(labels__contains=pair)
        if self.family:
            runs = runs.filter(root=self.family)
        if self.text:
            runs = runs.filter(_about(self.text))
        return runs

    @property
    def chips(self) -> list[tuple[str, str]]:
        """What narrows the list, in words, each with the address without it."""
        words = []
        if self.graph:
            words.append((_("graph %(name)s") % {"name": self.graph}, self.without("graph")))
        if self.still:
            words.append(
                (_("no progress for %(length)s") % {"length": STILL[self.still][1]}, self.without("still"))
            )
        if self.tries:
            words.append((_("%(count)s tries or more") % {"count": self.tries}, self.without("tries")))
        if self.label:
            words.append((_("label %(label)s") % {"label": self.label}, self.without("label")))
        if self.family:
            top = uuid.UUID(self.family).hex[-6:]
            words.append((_("family of %(run)s") % {"run": top}, self.without("family")))
        return words


def counted(runs: QuerySet[Run]) -> dict[str, int]:
    """How many of each status, in one query; under "" all of them."""
    counts = dict(runs.order_by().values_list("status").annotate(many=Count("pk")))
    return {"": sum(counts.values()), **{status: counts.get(status, 0) for status in STATUSES}}


def graphs_of(user: User, runs: QuerySet[Run]) -> list[str]:
    """The names of their graphs, to choose among.

    Who sees all sees those of all versions. Others' runs are counted by two columns that no index has together: the
    database then asks of each row once whose it is. For one column alone it walks an index, which takes four times as
    long.
    """
    if sight.sees_all(user):
        return list(GraphVersion.objects.order_by("graph").values_list("graph", flat=True).distinct())
    counts = runs.order_by().values_list("graph", "status").annotate(many=Count("pk"))
    return sorted({graph for graph, _status, _many in counts})


def _about(text: str) -> Q:
    found = (
        Q(error__icontains=text)
        | Q(key__icontains=text)
        | Q(labels__icontains=text)
        | Q(graph__icontains=text)
    )
    hexadecimal = text.replace("-", "").lower()
    if is_id(text):
        found |= Q(pk=text)
    elif len(hexadecimal) >= 4 and all(letter in "0123456789abcdef" for letter in hexadecimal):
        found |= Q(pk__endswith=text.lower())
    return found


def _written(query: QueryDict, name: str) -> str:
    """Without NUL, which no column holds, and PostgreSQL does not even look for."""
    return query.get(name, "").replace("\0", "").strip()


def _among(word: str | None, known: object) -> str:
    return word if word and word in known else ""


def is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
