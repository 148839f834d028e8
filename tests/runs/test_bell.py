"""When the bell rings, and when it had better not."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django_q.models import OrmQ

from runs import END, Graph, start
from runs.conf import conf
from runs.core import codec
from runs.engine import clock
from runs.engine.announce import announce
from runs.engine.host import boot_id
from runs.models import Run, Worker
from runs.work import tasks
from runs.work.bell import HELD, Bell
from runs.work.bell_line import BellLine
from runs.work.presence import prune
from runs.work.shift_slots import ShiftSlots, most_shifts
from tests.runs.driving import claim, kinds, pass_lease, pass_time, registered

pytestmark = pytest.mark.django_db(transaction=True)

ringing = Graph("ringing")


@ringing.node(then=END)
def only(run, state):
    state["done"] = True


slow = Graph("slow")


@slow.node
def sleep(run, state):
    time.sleep(conf.lease_seconds * 1.3)


@pytest.fixture(autouse=True)
def known():
    with registered(ringing, slow):
        yield


@pytest.fixture
def bell():
    return Bell()


@pytest.fixture
def still(monkeypatch):
    """Time passes only where the test lets it pass."""
    monkeypatch.setattr(clock, "elapsed", lambda: 1_000 + clock.AHEAD / timedelta(seconds=1))


def rung() -> int:
    return OrmQ.objects.count()


def worker(name="w1", serves=((ringing.name, 1),), **row):
    """A worker of another machine, whose process cannot be looked up."""
    now = clock.now()
    given = {"host": "elsewhere", "boot_id": "b", "pid": 1, "started_at": now, "seen_at": now}
    return Worker.objects.create(name=name, serves=codec.dumps([*map(list, serves)]), **{**given, **row})


def worker_here(name="w1", pid=None, **row):
    """One that takes a place of the cluster for which the test's bell rings."""
    given = {"host": platform.node()[:100], "boot_id": boot_id(), "bell": f"{Bell().queue}.{name}"}
    return worker(name, pid=pid or os.getpid(), **{**given, **row})


def test_shifts_of_another_cluster_on_this_machine_take_no_place_of_ours(bell):
    """Two releases beside each other, each with workers and a queue of its own."""
    start(ringing)
    for number in range(most_shifts()):
        worker_here(f"of the other release {number}", bell=f"durableweb-0123.{number}")
    bell.look()
    assert rung() == 1


def test_bells_in_the_queue_of_a_cluster_that_is_gone_are_taken_away(bell):
    start(ringing)
    Bell("durableweb-gone").look()
    OrmQ.objects.update(lock=clock.now() - timedelta(minutes=11))
    Bell("durableweb-busy").look()
    pass_time(2)
    bell.look()
    assert set(OrmQ.objects.values_list("key", flat=True)) == {"durableweb-busy", bell.queue}


def test_a_due_run_rings_once_until_the_bell_is_answered(bell):
    start(ringing)
    for _ in range(3):
        bell.look()
    assert rung() == 1
    pass_time(1)
    assert bell.unanswered_seconds >= 1
    worker(bell=bell.rung)
    bell.look()
    assert (bell.unanswered_seconds, rung()) == (0, 1)
    pass_time(0.4)
    bell.look()
    assert rung() == 2, "the run is due all the same, and another shift may live"


def test_nothing_due_nothing_rung(bell):
    run = start(ringing)
    Run.objects.filter(pk=run.pk).update(wake_at=clock.now() + timedelta(hours=1))
    bell.look()
    assert rung() == 0


def test_a_bell_that_is_lost_is_rung_again_and_its_silence_is_counted(still, bell):
    """S3: nothing needs the message."""
    start(ringing)
    bell.look()
    OrmQ.objects.all().delete()
    pass_time(1)
    bell.look()
    assert rung() == 0
    pass_time(1.5)
    bell.look()
    assert rung() == 1
    pass_time(2.5)
    bell.look()
    assert rung() == 1, "the pause doubles"
    assert bell.unanswered_seconds == 5


def test_a_run_that_somebody_drove_meanwhile_needs_no_answer(bell):
    run = start(ringing)
    bell.look()
    pass_time(9)
    claim(run).run()
    bell.look()
    assert bell.unanswered_seconds == 0


def test_no_ring_and_no_silence_while_as_many_shifts_live_here_as_may(bell):
    """With long nodes alive the watchdog must not fire."""
    start(ringing)
    bell.look()
    pass_time(5)
    for number in range(most_shifts()):
        worker_here(f"busy {number}")
    bell.look()
    assert rung() == 1
    assert bell.unanswered_seconds == 0


def test_shifts_of_another_machine_leave_this_one_free(bell):
    start(ringing)
    for number in range(most_shifts()):
        worker(f"busy {number}")
    bell.look()
    assert rung() == 1


def test_a_worker_that_has_not_been_seen_lately_does_not_live(bell):
    start(ringing)
    for number in range(most_shifts()):
        worker_here(f"dead {number}", seen_at=clock.now() - timedelta(seconds=10 * conf.heartbeat_seconds))
    bell.look()
    assert rung() == 1


def test_a_worker_whose_process_is_gone_does_not_live_whatever_its_row_says(bell):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    start(ringing)
    for number in range(most_shifts()):
        worker_here(f"killed {number}", pid=gone.pid)
    bell.look()
    assert rung() == 1


def test_a_run_that_nobody_serves_is_held_and_looked_at_again_in_a_minute(bell):
    """R5, R7: the status is unchanged, it is not tried in a loop, and others go on."""
    run = start(ringing)
    Run.objects.filter(pk=run.pk).update(version=7)
    bell.look()
    assert rung() == 0
    pass_time(6)
    bell.look()
    held = Run.objects.get(pk=run.pk)
    assert held.status == "created" and held.seq == run.seq
    assert timedelta(0) < held.wake_at - clock.now() <= HELD
    start(ringing)
    bell.look()
    assert rung() == 1


def test_a_run_that_this_code_only_migrates_rings_once_its_own_workers_had_time_to_come(bell):
    """R8"""
    newer = Graph("ringing", version=3)
    newer.node(only)
    newer.migrate(2)(lambda state, node: (state, node))
    run = start(ringing)
    Run.objects.filter(pk=run.pk).update(version=2)
    with registered(newer):
        bell.look()
        assert rung() == 0
        pass_time(60)
        worker(serves=((ringing.name, 2),))
        Run.objects.filter(pk=run.pk).update(wake_at=clock.now() - timedelta(seconds=30))
        bell.look()
        assert rung() == 1, "for the worker that serves it"
        Worker.objects.all().delete()
        bell.forget()
        pass_time(1)
        bell.look()
        assert rung() == 2
        assert Run.objects.get(pk=run.pk).wake_at < clock.now(), "it is not held"


def test_a_run_that_only_another_machine_serves_is_left_to_it(bell):
    run = start(ringing)
    Run.objects.filter(pk=run.pk).update(version=7)
    pass_time(6)
    worker(serves=((ringing.name, 7),))
    bell.look()
    assert Run.objects.get(pk=run.pk).wake_at == run.wake_at


def test_a_graph_with_another_shape_than_is_stored_is_not_rung_for(bell):
    from runs.models import GraphVersion

    start(ringing)
    GraphVersion.objects.filter(graph=ringing.name).update(fingerprint="another")
    bell.look()
    assert rung() == 0


def test_a_run_that_a_dead_worker_left_rings_though_nobody_serves_its_version(bell):
    """E6: there is no row of its worker; the lease's end is enough."""
    run = start(ringing)
    claim(run, "gone")
    Run.objects.filter(pk=run.pk).update(version=7)
    bell.look()
    assert rung() == 0, "the lease runs"
    pass_lease()
    bell.look()
    assert rung() == 1


def test_rows_of_killed_workers_go_when_nothing_waits_for_their_leases():
    run = start(ringing)
    claim(run, "holding")
    for name in ("idle", "holding"):
        worker(name)
    pass_time(conf.lease_seconds * 11)
    worker("alive")
    assert prune(clock.now()) == 1
    assert sorted(Worker.objects.values_list("name", flat=True)) == ["alive", "holding"]


def test_a_database_that_is_away_is_waited_for_and_its_time_is_not_silence(still, bell, monkeypatch):
    """E13"""

    class Enough(Exception):
        pass

    def fail():
        raise OperationalError("the server is gone")

    told = []

    def report(seconds):
        told.append(seconds)
        if len(told) == 3:
            raise Enough
        monkeypatch.setattr(bell, "look", look if len(told) == 2 else fail)

    look = bell.look
    monkeypatch.setattr("runs.work.bell.FAULT_PAUSE_SECONDS", 0)
    start(ringing)
    with pytest.raises(Enough):
        bell.watch(report)
    bell.line.close()
    assert told[1:] == [0, 0]
    assert rung() == 2


@pytest.mark.postgres_only
def test_an_announced_run_ends_the_wait_at_once():
    line = BellLine()
    line.wait(0.01)
    caller = threading.Timer(0.1, lambda: (announce(), connection.close()))
    caller.start()
    began = time.monotonic()
    line.wait(60)
    assert time.monotonic() - began < 30
    caller.join()
    line.close()


def test_the_task_of_a_bell_drives_what_is_due_and_says_how_many_steps():
    run = start(ringing)
    assert tasks.shift("a bell") == 1
    run.refresh_from_db()
    assert run.status == "completed"
    assert not Worker.objects.exists()


def test_twenty_bells_at_once_beside_a_busy_worker_drive_no_run_twice(settings):
    """E3: the lease begins at the claim, not when a bell is read; a node may take longer than it."""
    settings.DURABLEWEB = settings.DURABLEWEB | {"lease_seconds": 3, "heartbeat_seconds": 0.5}
    runs = [start(slow), *(start(ringing) for _ in range(5))]

    def ring(name):
        try:
            return tasks.shift(name)
        finally:
            connection.close()

    with ThreadPoolExecutor(21) as bells:
        busy = bells.submit(ring, "the busy one")
        assert sum(bells.map(ring, map(str, range(20)))) + busy.result() == 6
    for run in runs:
        run.refresh_from_db()
        assert run.status == "completed"
        assert kinds(run) == ["start", "claim", "complete"]


def test_a_place_for_a_shift_is_free_again_when_its_process_was_killed():
    slots = ShiftSlots(1)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with slots.take(0) as free:
            os.write(writer, b"y" if free else b"n")
            signal.pause()
    assert os.read(reader, 1) == b"y"
    with slots.take(0) as free:
        assert not free
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with slots.take(0) as free:
        assert free
    slots.file.close()
