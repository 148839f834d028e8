"""What moves a family to the archive, with the rows it needs; killed and failed in test_archive_faults.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runs import Graph, start
from runs.engine import archive_rounds, clock
from runs.models import Archival, ArchiveRound, Remark, Run
from runs.models.archived import COLD
from runs.testing import go_on
from tests.runs.states import Log

Made = tuple[Any, Callable[[], Any]]
VERBS: dict[str, Callable[[], Made]] = {}

small = Graph("fault-archive", state=Log, operators="ops")


@small.node(then="second")
def first(run: Any, state: Log) -> None:
    state.log.append(str(run.wait_for("go")))
    state.log.append(run.once("kept", lambda: "a value"))


@small.node
def second(run: Any, state: Log) -> None:
    state.log.append("done")


def verb(make: Callable[[], Made]) -> Callable[[], Made]:
    VERBS[make.__name__] = make
    return make


def ended(many: int = 1) -> list[Run]:
    """With rows in all four tables, and with newer ones of one run more: a table's newest row stays where it is."""
    runs = [start(small, {"log": ["a"]}) for _ in range(many + 1)]
    for run in runs:
        go_on(run, small, {"go#1": {"payload": "went"}})
        late = {"kind": "late_result", "worker": "w1", "fence": 1, "body": "late"}
        Remark.objects.create(run=run, entry=run.hot_entries.first(), at=clock.now(), **late)
    return runs[:many]


def ended_family() -> Run:
    child, top = ended(2)
    Run.objects.filter(pk=child.pk).update(parent=top, root=top.pk, depth=1)
    return top


def where(run: Run) -> list[dict[int, str]]:
    """Of each table the ids of the family's rows, and on which side each of them is. A row on both is a fault."""
    found = []
    for hot, cold in COLD.items():
        sides = {"hot": hot, "cold": cold}
        ids = {
            side: list(rows.objects.filter(run__root=run.root).values_list("pk", flat=True))
            for side, rows in sides.items()
        }
        assert not set(ids["hot"]) & set(ids["cold"]), f"a row of {hot.__name__} is in both tables"
        found.append({pk: side for side, some in ids.items() for pk in some})
    return found


def is_whole(run: Run) -> bool:
    """It is in the archive, all of it."""
    sides = {side for rows in where(run) for side in rows.values()}
    begun = Archival.objects.filter(run__root=run.root)
    return sides == {"cold"} and not begun.under_way().exists() and begun.exists()


@verb
def archive_a_family() -> Made:
    top = ended_family()
    return str(top.pk), lambda: top.archive("long over", "olga")


@verb
def archive_by_age() -> Made:
    """What a worker does of itself; the family that it finds is begun, and another chore goes on with it."""
    ArchiveRound.objects.all().delete()
    archive_rounds.prepare()
    Run.objects.filter(archived_at=None).update(finished_at=clock.now())
    (run,) = ended()
    Run.objects.filter(pk=run.pk).update(finished_at=run.finished_at.replace(year=2020))
    return str(run.pk), lambda: archive_rounds.walk(ArchiveRound.objects.get().pk)
