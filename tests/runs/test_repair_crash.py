"""Kills at every durable boundary of a run that fails and is repaired in the middle: each effect once."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from runs import Ask, Graph, Permanent, Retry, registry, start, tool
from runs.core.ledger import Entry, effect
from runs.core.outcomes import Lost, Stop
from runs.engine import boundaries, mending
from runs.engine.ledger import RowLedger
from runs.engine.transition import move
from runs.engine.verify import first_bad_row
from runs.models import LedgerEntry, Run
from runs.testing import Unanswered, go_on, moved_clock
from runs.testing.crash import _Bomb
from runs.testing.process import Tell, in_child
from runs.testing.warm import warm_up
from tests.amounts import KILLS
from tests.runs.driving import claim, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

MOST = 200
LIMIT = timedelta(seconds=5)
shop = Path()  # what was done outside stands in files: it outlives whoever did it


@tool(kind="write", limit=LIMIT, retry=Retry(attempts=1))
def cut(what: str, idempotency_key: str) -> str:
    if what == "chair" and not (shop / "mended").exists():
        raise Permanent("the saw is broken")
    with (shop / "cut").open("a") as file:
        file.write(json.dumps({"what": what, "key": idempotency_key}) + "\n")
    return f"cut {what}"


cutting = Graph("repair-crash", state=Log, operators="ops")


@cutting.node(then="sweep")
def saw(run, state):
    state.log.append(run.call(cut, what="wood"))
    approve = Ask("Cut it?", reviewers="pm")
    state.log.append(run.call(cut, what="chair", key="chair:{run_id}", approve=approve))
    state.log.append(run.call(cut, what="stool"))


@cutting.node
def sweep(run, state):
    state.log.append(run.once("swept", lambda: "swept"))


part = Graph("repair-crash-part", operators="ops")


@part.node
def cut_and_wait(run, state):
    run.call(cut, what=state["what"])
    run.wait_for("dry")


several = Graph("repair-crash-several", state=Log, operators="ops")


@several.node
def cut_all(run, state):
    parts = [{"what": what} for what in ("leg", "arm", "back")]
    state.log += [end.status for end in run.map(part, parts, at_once=2)]


def done() -> list[dict[str, str]]:
    there = shop / "cut"
    return [json.loads(line) for line in there.read_text().splitlines()] if there.exists() else []


def said(entry: LedgerEntry, request: dict[str, Any]) -> dict[str, Any]:
    """People approve; and whoever is asked what became of a call looks at what was done."""
    if not request.get("settles"):
        return {"verdict": "approve"}
    key = request["settles"]["idempotency_key"]
    made = [one for one in done() if one["key"] == key]
    result = f"cut {made[0]['what']}" if made else None
    outcome = "happened" if made else "not_happened"
    return {"verdict": "respond", "payload": {"outcome": outcome, "result": result}}


def to_the_end(run: Run) -> None:
    """It fails, somebody mends what was broken and has it go on; whoever comes later finds where that stands."""
    go_on(run, cutting, said)
    if run.status == "failed" and not run.checkpoints.filter(kind="repair").exists():
        (shop / "mended").touch()
        boundaries.boundary("repair")
        run.retry("olga", "the saw is mended")
        boundaries.boundary("repaired")
        go_on(run, cutting, said)


def through_a_cancel(run: Run) -> None:
    """It is cancelled while two of its three children wait, and goes on; they too, and the third one has its turn."""
    _as_far_as_it_goes(run)
    run.refresh_from_db()
    if not run.checkpoints.filter(kind="repair").exists():
        if not run.ended:
            run.cancel("ada", "too early")
        boundaries.boundary("repair")
        _as_far_as_it_goes(run)  # its children are cancelled
        Run.objects.get(pk=run.pk).retry("olga", "it is time")
        boundaries.boundary("repaired")
    while not Run.objects.get(pk=run.pk).ended:
        _as_far_as_it_goes(run)
        for child in run.children.filter(status="waiting"):
            child.signal("dry", key="dry")


def _as_far_as_it_goes(run: Run) -> None:
    with suppress(Unanswered):
        go_on(run, several, lambda entry, request: None if entry.kind == "signal" else said(entry, request))


def end_of(
    at: int | None, folder: Path, graph: Graph = cutting, drive: Callable[[Run], None] = to_the_end
) -> dict[str, Any]:
    """How such a run ends when its process is killed at that boundary, and another one takes over."""
    global shop
    shop = folder
    folder.mkdir()
    run = start(graph, {})

    def live(tell: Tell) -> list[str]:
        with moved_clock():
            bomb = boundaries.on_boundary = _Bomb(at, tell)
            drive(Run.objects.get(pk=run.pk))
            return bomb.names

    child = in_child(live)
    if child.killed:
        with moved_clock() as moved:
            moved.move(child.told[-1]["ahead"])
            drive(run)
    run.refresh_from_db()
    return {
        "names": [] if child.killed else child.returned,
        "killed": child.told[0]["boundary"] if child.killed else "",
        "status": run.status,
        "step": run.step,
        "log": run.state_at()["log"],
        "trail": [bad for one in Run.objects.filter(root=run.pk) if (bad := first_bad_row(one)) is not None],
        "children": run.children.count(),
        "done": sorted(one["what"] for one in done()),
        "keys": len({one["key"] for one in done()}),
        "questions": LedgerEntry.objects.filter(run=run, key__startswith="chair:{run_id}?").count(),
    }


def kill_everywhere(tmp_path: Path, kills: int | range | None = KILLS) -> None:
    with registered(cutting):
        wanted = end_of(None, tmp_path / "0")
        assert wanted["status"] == "completed", "without any kill"
        assert (wanted["done"], wanted["keys"], wanted["trail"]) == (["chair", "stool", "wood"], 3, [])
        assert wanted["names"].count("repaired") == wanted["questions"] == 1
        _kill(wanted, tmp_path, kills)


def kill_everywhere_with_children(tmp_path: Path, kills: int | range | None = KILLS) -> None:
    with registered(part, several):
        wanted = end_of(None, tmp_path / "0", several, through_a_cancel)
        assert (wanted["status"], wanted["log"], wanted["trail"]) == ("completed", ["completed"] * 3, [])
        assert (wanted["done"], wanted["keys"], wanted["children"]) == (["arm", "back", "leg"], 3, 3)
        assert wanted["names"].count("take up child done") > 0
        _kill(wanted, tmp_path, kills, several, through_a_cancel)


def _kill(wanted: dict[str, Any], tmp_path: Path, kills: int | range | None, *what: Any) -> None:
    warm_up()
    among = range(1, len(wanted["names"]) + 1)
    if isinstance(kills, range):
        among = range(kills.start, among.stop, kills.step)
    elif kills is not None:
        among = among[:: max(len(among) // kills, 1)]
    for number in among:
        end = end_of(number, tmp_path / str(number), *what)
        where = f"killed at boundary {number} ({end['killed']!r})"
        assert {**end, "names": [], "killed": ""} == {**wanted, "names": [], "killed": ""}, where


def test_no_kill_around_a_repair_does_anything_twice(tmp_path):
    """E15, R1, with the clock of the kit: each effect once, the decision taken once, and the trail holds."""
    kill_everywhere(tmp_path)


def test_no_kill_around_the_repair_of_a_parent_starts_a_child_twice(tmp_path):
    """R10, P3: a map that is cancelled in its middle and goes on; each of its items once."""
    kill_everywhere_with_children(tmp_path)


@pytest.mark.once  # a proof
def test_children_that_are_not_taken_up_are_found_to_be_done_twice(monkeypatch, tmp_path):
    monkeypatch.setattr(Entry, "past", property(lambda entry: entry.aside or entry.status == "cancelled"))
    with pytest.raises(AssertionError, match="'arm', 'arm'"):
        kill_everywhere_with_children(tmp_path, kills=1)


@pytest.mark.once  # a proof
def test_without_putting_aside_a_repair_is_found_to_lead_nowhere(monkeypatch, tmp_path):
    monkeypatch.setattr(mending, "_put_aside", lambda run, entries: None)
    with pytest.raises(AssertionError, match="without any kill"):
        kill_everywhere(tmp_path, kills=1)


@pytest.mark.once  # a proof
def test_what_is_done_put_aside_as_well_is_found_to_happen_twice(monkeypatch, tmp_path):
    def all_of_them(run: Run, entries: list[LedgerEntry]) -> None:
        LedgerEntry.objects.filter(pk__in=[one.pk for one in entries]).update(aside=True)

    monkeypatch.setattr(mending, "_put_aside", all_of_them)
    with pytest.raises(AssertionError, match="'wood', 'wood'"):
        kill_everywhere(tmp_path, kills=1)


def late_call(run: Run, held: Any) -> Any:
    """What the drive that was there before the repair still wants to send."""
    rows = RowLedger(held.lease, [])
    return rows.open(effect(cut.bind(what="late"), "late#1", f"{run.pk}:late"), tried=LIMIT)


def failed_under_a_worker() -> tuple[Run, Any]:
    held = claim(start(cutting, {}))
    held.lease.fail("permanent", "no")
    return Run.objects.get(pk=held.lease.run_id), held


def test_nothing_of_whoever_drove_it_before_lands_after_the_repair(monkeypatch):
    """R1: the fence is raised; and without that, as a proof, such a call would be sent."""
    with registered(cutting):
        run, held = failed_under_a_worker()
        run.retry("olga", "go on")
        with pytest.raises(Stop) as stopped:
            late_call(run, held)
        assert isinstance(stopped.value.outcome, Lost)
        assert not LedgerEntry.objects.filter(run=run).exists()

        def unfenced(run: Run, *words: Any, **changes: Any) -> Any:
            return move(run, *words, **{**changes, "fence": run.fence})

        monkeypatch.setattr(mending, "move", unfenced)
        run, held = failed_under_a_worker()
        run.retry("olga", "go on")
        assert late_call(run, held).id is not None
    assert registry.find("repair-crash", 1) is None
