"""`manage.py work` with real kills, on both databases."""

from __future__ import annotations

import re
from pathlib import Path

import psutil
import pytest

from runs.engine.shift import Shift
from runs.engine.verify import first_bad_row
from runs.models import Worker
from runs.work.process_tree import is_alive, wait_until_gone
from runs.work.supervisor import RESTART_GRACE_SECONDS, UNANSWERED_SECONDS
from tests.acceptance.graphs import deadly, patient, stuck
from tests.acceptance.installation import Work, begin, diary, driver_of, ended, kill, let_go, until, working
from tests.amounts import IN_FULL
from tests.runs.driving import registered

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.acceptance]

SHORT_LEASE = {"lease_seconds": 5, "workers": 3}
DEFAULT_LEASE = {"lease_seconds": 60, "workers": 3}
GOOD_RUNS = 100
SECONDS = 5.0 if IN_FULL else 0.1  # that each of their three nodes takes


def test_the_process_that_executes_a_node_is_killed_and_so_is_the_one_that_recovers(
    process_environment, tmp_path
):
    """E6, E7: another one goes on each time, by the end of the lease alone; no row of a worker is needed."""
    with working(process_environment, tmp_path, by_exec=True, **SHORT_LEASE) as work:
        run = begin(patient, tmp_path, held=1, rounds=2)
        first = driver_of(run)
        until(lambda: diary(tmp_path, run.pk) == 1)
        kill(first)
        Worker.objects.all().delete()
        second = driver_of(run)
        assert second.pid != first.pid
        until(lambda: diary(tmp_path, run.pk) == 2)
        kill(second)
        let_go(tmp_path, 1)
        run = ended(run)
        assert (run.status, run.state_at(run.seq)["done"], run.deaths, run.silent) == ("completed", 2, 0, 0)
        assert diary(tmp_path, run.pk) == 4, "two executions were cut off, two committed"
        lost = run.checkpoints.filter(kind="lost").order_by("seq")
        assert [str(end.pid) in link.reason for end, link in zip((first, second), lost, strict=True)] == [
            True,
            True,
        ]
        assert "Watchdog" not in work.log
        (tmp_path / "repaired").mkdir()
        one_is_cancelled_inside_its_node_and_repaired(tmp_path / "repaired")
        (tmp_path / "cluster").mkdir()
        the_whole_cluster_is_killed_and_then_the_supervisor(work, tmp_path / "cluster")


def one_is_cancelled_inside_its_node_and_repaired(folder: Path) -> None:
    """R1: the node runs again while its first execution still hangs, and of that nothing lands."""
    run = begin(patient, folder, held=1)
    until(lambda: diary(folder, run.pk) == 1)
    run.cancel("ada", "stop")
    run.retry("olga", "go on")
    until(lambda: diary(folder, run.pk) == 2)
    let_go(folder, 1)
    run = ended(run)
    assert (run.status, run.state_at()["done"], run.deaths, run.silent) == ("completed", 1, 0, 0)
    assert [link.kind for link in run.checkpoints.order_by("seq")] == [
        "start", "claim", "cancel", "repair", "claim", "complete",
    ]  # fmt: skip
    assert first_bad_row(run) is None


def the_whole_cluster_is_killed_and_then_the_supervisor(work: Work, folder: Path) -> None:
    """SIGKILL of qcluster's main process takes its sentinel, workers, monitor and pusher with it; all comes again."""
    cluster, bell = work.cluster, work.bell
    before = {cluster, *cluster.children(recursive=True)}
    assert len(before) == 7
    run = begin(patient, folder, held=1)
    until(lambda: diary(folder, run.pk) == 1)
    kill(cluster)
    assert wait_until_gone(before, 60)
    kill(bell)
    let_go(folder, 1)
    run = ended(run)
    assert (run.status, run.deaths, diary(folder, run.pk)) == ("completed", 0, 2)
    assert "The cluster ended (killed by SIGKILL)" in work.log
    assert "The bell ended (killed by SIGKILL)" in work.log
    family = work.family
    assert len(family) == 9
    kill(psutil.Process(work.supervisor.pid))
    assert wait_until_gone(family, 60)


def test_a_poison_run_is_failed_and_its_neighbours_complete(process_environment, tmp_path):
    """R3, R4: it is driven alone, its claims are spaced out, and the operator sees node, worker and time.

    With CASES_IN_FULL=1 each node of the hundred takes the case's 5 s; else 0.1 s stand for them, and the poison meets
    as many neighbours. A node over its limit costs its worker process, and none of the neighbours either (E4). Deploys
    are in tests/acceptance/test_deploys.py, restarts by the watchdog below.
    """
    with working(process_environment, tmp_path, **SHORT_LEASE) as work:
        good = [begin(patient, tmp_path, seconds=SECONDS, rounds=3) for _ in range(GOOD_RUNS // 2)]
        poison, over_limit = begin(deadly, tmp_path), begin(stuck, tmp_path)
        good += [begin(patient, tmp_path, seconds=SECONDS, rounds=3) for _ in range(GOOD_RUNS // 2)]
        poison = ended(poison)
        assert (poison.status, poison.error_kind, poison.step, poison.node) == ("failed", "poison", 1, "die")
        last = poison.checkpoints.filter(kind="claim").order_by("-seq").first()
        assert "'die'" in poison.error and last.actor in poison.error
        assert re.search(r"\d\d:\d\d:\d\d", poison.error)
        begun = list(poison.checkpoints.filter(kind="claim").order_by("seq").values_list("at", flat=True))
        assert diary(tmp_path, "death") == len(begun) == 5, "once with others, four times alone"
        pauses = [(after - before).total_seconds() for before, after in zip(begun, begun[1:], strict=False)]
        assert all(pause >= least for pause, least in zip(pauses, (2, 3, 4, 6), strict=True)), pauses
        for run in good:
            run = ended(run)
            assert (run.status, run.state_at(run.seq)["done"], run.deaths) == ("completed", 3, 0)
        over_limit = ended(over_limit)
        assert (over_limit.error_kind, over_limit.deaths) == ("exhausted", 0)
        claims = over_limit.checkpoints.filter(kind="claim").count()
        assert 1 <= diary(tmp_path, "stuck") <= claims <= 2, (
            "perhaps once beside the poison, which cut it off"
        )
        assert "for a thread of it is lost" in work.log
        (tmp_path / "mended").touch()
        poison.retry("olga", "What killed its workers is mended.")
        poison = ended(poison)
        assert (poison.status, poison.deaths, poison.silent) == ("completed", 0, 0), (
            "and it killed nobody (A13)"
        )
        assert "Watchdog" not in work.log


def test_a_killed_idle_worker_that_holds_the_lock_of_the_queue_stops_nothing(process_environment, tmp_path):
    """E12, on the default lease: it waits on the queue and holds its lock for sure, is killed, and never lets it go.

    R4: the watchdog then starts the cluster anew while another worker is inside a node. That is no death: its run is
    handed back, and goes on once. The watchdog's own times leave room in the case's 15 s. Only CASES_IN_FULL=1
    measures them: where other tests run beside it, a new worker may take longer for reasons that are not the lock's.
    """
    held_by, inside_place = tmp_path / "held by", tmp_path / "inside"
    inside_place.mkdir()
    environment = process_environment | {"LOCK_HELD_BY": str(held_by)}
    both = "tests.acceptance,tests.acceptance.watched"
    with working(environment, tmp_path, **DEFAULT_LEASE, shift_runs=1, apps=both) as work:
        until(lambda: len(work.pool) == DEFAULT_LEASE["workers"], work=work)
        inside = begin(patient, inside_place, held=1)
        until(lambda: diary(inside_place, inside.pk), work=work)
        driver = driver_of(inside)
        holder = until(lambda: stopped_while_it_holds(held_by), work=work)
        assert holder in work.pool and holder != driver and Worker.objects.count() == 1, "it is idle"
        kill(holder)
        run = ended(begin(patient, tmp_path))
        assert (run.status, run.deaths, run.silent, diary(tmp_path, run.pk)) == ("completed", 0, 0, 1)
        assert "lost" not in set(run.checkpoints.values_list("kind", flat=True)), "no lease had to run out"
        assert "Watchdog: no worker has answered a bell for " in work.log, "nobody could take a task"
        assert UNANSWERED_SECONDS + RESTART_GRACE_SECONDS < 15
        assert not IN_FULL or (run.finished_at - run.created_at).total_seconds() < 15
        until(lambda: diary(inside_place, inside.pk) > 1, work=work)
        assert not is_alive(driver), "it was inside the node, and was ended there"
        let_go(inside_place, 1)
        inside = ended(inside)
        assert (inside.status, inside.state_at()["done"]) == ("completed", 1)
        links = list(inside.checkpoints.order_by("seq").values_list("kind", "reason"))
        back = [("claim", ""), ("hand_back", "the watchdog started the cluster anew")]
        assert links[1:-2] == back * ((len(links) - 3) // 2) and len(links) > 3, links
        assert [kind for kind, _reason in (links[0], *links[-2:])] == ["start", "claim", "complete"]
        assert (inside.deaths, inside.silent) == (0, 0)
        work.terminate()
        assert f"restarted the cluster {work.log.count('Watchdog: ')} times" in work.log


def stopped_while_it_holds(held_by: Path) -> psutil.Process | None:
    """The process that waits on the queue, stopped before it can let go of the lock."""
    said = held_by.read_text() if held_by.exists() else ""
    if not said.endswith(" "):
        return None
    process = psutil.Process(int(said))
    process.suspend()
    until(lambda: process.status() == psutil.STATUS_STOPPED)
    if held_by.read_text() == said:
        return process
    process.resume()
    return None


def test_long_nodes_leave_the_watchdog_asleep_and_a_stop_hands_them_back(process_environment, tmp_path):
    """R4: two long nodes fill the shifts, a third run waits for them, and nothing is restarted. At the stop a node
    within the grace commits; one that takes longer is killed. Both runs are handed back: that is no death."""
    with working(process_environment, tmp_path, **DEFAULT_LEASE, shift_runs=1, grace_seconds=8) as work:
        slow_place, quick_place = tmp_path / "slow", tmp_path / "quick"
        slow_place.mkdir(), quick_place.mkdir()
        long, slow = begin(patient, tmp_path, seconds=11.5), begin(patient, slow_place, held=1)
        assert driver_of(long) != driver_of(slow)
        quick = begin(patient, quick_place, held=2, rounds=3)
        assert Worker.objects.count() == 2, "one worker process stays free"
        until(lambda: diary(quick_place, quick.pk), work=work)
        assert ended(long, 0).status == "completed"
        assert "Watchdog" not in work.log
        family = work.family
        assert work.terminate(lambda: let_go(quick_place, 1)) > 7.5, "the slow one had its grace"
        assert not [process for process in family if is_alive(process)]
    assert not Worker.objects.exists()
    for run, steps in ((quick, 1), (slow, 0)):
        run.refresh_from_db()
        assert (run.status, run.step, run.leased_by) == ("running", steps, None)
        assert (run.deaths, run.silent) == (0, 0)
        assert run.checkpoints.order_by("seq").last().kind == "hand_back"
    assert diary(tmp_path, long.pk) == diary(slow_place, slow.pk) == 1
    assert diary(quick_place, quick.pk) in (1, 2), "its second node may begin before the stop is heard"
    let_go(quick_place, 2)
    with registered(patient):
        Shift(linger=0, only=quick.pk).work()
    assert ended(quick, 0).status == "completed"
