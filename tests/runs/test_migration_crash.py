"""Kills at every durable boundary while new code takes over an old run: one migration, nothing lost or doubled."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from runs import start
from runs.engine import boundaries
from runs.engine.lease import Lease
from runs.engine.migrating import bring_over
from runs.engine.verify import first_bad_row
from runs.models import LedgerEntry, Run
from runs.testing import go_on, moved_clock
from runs.testing.crash import _Bomb
from runs.testing.process import Tell, in_child
from runs.testing.provider import Provider
from runs.testing.warm import warm_up
from tests.amounts import KILLS, THOROUGH, some_of
from tests.runs.test_versions import parked
from tests.runs.versioned import first, second

pytestmark = pytest.mark.django_db(transaction=True)

YES = {"ok": {"verdict": "approve"}, "wrap": {"verdict": "approve"}}
NOT_SENT = {"box:{run_id}!": {"verdict": "respond", "payload": {"outcome": "not_happened"}}}
MOST = 200


def old_run(to: str) -> Run:
    """One that waits for answers; or, if it goes to another node, one that nobody has taken yet."""
    return start(first, {"to": to}) if to else parked()


@pytest.mark.parametrize("to", ["", "box"])
def test_no_kill_migrates_twice_or_in_part(to, tmp_path):
    """E15, P6: with the clock of the kit, so that leases and suspicions pass at once."""
    numbers = KILLS if isinstance(KILLS, range) else sorted({1, 2, *some_of(to, range(1, MOST), 1 / 4)})
    kill_everywhere(to, tmp_path, numbers)


def test_a_version_that_is_written_before_its_state_is_found(monkeypatch, tmp_path):
    """Proof that a kill would show it, if a migration were two commits."""

    def torn(lease: Lease, rows: list[LedgerEntry]) -> list[LedgerEntry]:
        changes = {"version": lease.graph.version, "queue": lease.graph.queue}
        Run.objects.filter(pk=lease.run_id).update(**changes)
        boundaries.boundary("torn")
        return bring_over(lease, rows)

    monkeypatch.setattr("runs.engine.drive.bring_over", torn)
    with pytest.raises(AssertionError, match="'torn'"):
        kill_everywhere("box", tmp_path)


def kill_everywhere(to: str, tmp_path: Path, numbers: Iterable[int] = range(1, MOST)) -> None:
    warm_up()
    wanted, kills = end_of(to, None, tmp_path / "0"), 0
    assert wanted["names"].count("migrate") == wanted["names"].count("committed migrate") == 1
    for number in numbers:
        end = end_of(to, number, tmp_path / str(number))
        where = f"killed at boundary {number} ({end['killed']!r})"
        assert {**end, "names": [], "killed": ""} == {**wanted, "names": [], "killed": ""}, where
        if not end["killed"]:
            break
        kills += 1
    assert kills > (6 if THOROUGH else 1)


def end_of(to: str, at: int | None, journal: Path) -> dict[str, Any]:
    """How a run of the first version ends when the process with the second one is killed at that boundary."""
    run, provider = old_run(to), Provider(journal, {})

    def live(tell: Tell, at: int | None = at) -> dict[str, Any]:
        with moved_clock(), provider.in_place():
            bomb = boundaries.on_boundary = _Bomb(at, tell)
            go_on(Run.objects.get(pk=run.pk), second, YES | NOT_SENT)
            return {"names": bomb.names}

    child = in_child(live)
    if child.killed:
        with moved_clock() as moved:
            moved.move(child.told[-1]["ahead"])
            with provider.in_place():
                go_on(
                    run, second, lambda entry, request: YES.get(entry.key) or provider.truth(entry, request)
                )
    run.refresh_from_db()
    migrations = run.checkpoints.filter(kind="migrate")
    return {
        "names": [] if child.killed else child.returned["names"],
        "killed": child.told[0]["boundary"] if child.killed else "",
        "status": run.status,
        "version": run.version,
        "step": run.step,
        "state": run.state_at(),
        "trail": first_bad_row(run),
        "migrations": list(migrations.values_list("step", "node", "reason")),
        "effects": len([call for call in provider.happenings() if call.write]),
    }
