"""Repairing, closing and forking what has failed, among the verbs of faulty_verbs.py."""

from __future__ import annotations

from runs.core.graph import END
from runs.engine.ledger import RowLedger
from runs.engine.telling import tell_all
from runs.models import Run
from tests.runs.driving import pass_call
from tests.runs.faulty_compensation import posted, run_of
from tests.runs.faulty_rows import asking, claim, claimed, effect, lone, parked, post, sending
from tests.runs.faulty_verbs import Made, of


def failed() -> Run:
    """Its one call has failed for good."""
    held = claimed(sending)
    rows = RowLedger(held.lease, held.rows)
    entry = effect(held.lease)
    rows.open(entry, tried=post.limit)
    rows.fail(entry, "permanent", "no paper")
    held.lease.fail("permanent", "no paper")
    return Run.objects.get(pk=held.lease.run_id)


def cancelled() -> Run:
    """Both its questions were open, and are closed."""
    run = parked(asking)
    run.cancel("ada", "too early")
    return run


@of("repair")
def retry_a_failed_call() -> Made:
    run = failed()
    return str(run.pk), lambda: run.retry("olga", "there is paper")


@of("repair")
def retry_with_another_state() -> Made:
    run = failed()
    return str(run.pk), lambda: run.retry("olga", "there is paper", state={"log": ["by hand"]})


@of("repair")
def retry_what_was_cancelled() -> Made:
    run = cancelled()
    return str(run.pk), lambda: run.retry("olga", "it is time")


@of("repair")
def settle_what_an_ended_run_has_in_doubt() -> Made:
    held = claimed(sending)
    rows = RowLedger(held.lease, held.rows)
    rows.open(entry := effect(held.lease), tried=post.limit)
    run = run_of(held)
    run.cancel("ada", "too early")
    pass_call(post.limit.total_seconds())
    run.refresh_from_db()
    return str(run.pk), lambda: run.settle("olga", entry.key, "happened", "it is in their list", "sent")


@of("repair")
def retry_a_child() -> Made:
    held = claimed(lone)
    held.run()
    parent = run_of(held)
    child = parent.children.get()
    claim(child).lease.fail("permanent", "no")
    tell_all(parent.pk)
    return str(parent.pk), lambda: Run.objects.get(pk=child.pk).retry("olga", "it is mended")


@of("repair")
def skip_to_the_next_node() -> Made:
    run = cancelled()
    return str(run.pk), lambda: run.skip("olga", "asked by phone", state={"log": ["by phone"]})


@of("repair")
def skip_to_the_end() -> Made:
    run = failed()
    return str(run.pk), lambda: run.skip("olga", "posted by hand", to=END)


@of("repair")
def move_a_run() -> Made:
    run = cancelled()
    return str(run.pk), lambda: run.move("olga", "asked by phone", to="after")


@of("repair")
def close_a_failed_run() -> Made:
    run = failed()
    return str(run.pk), lambda: run.close("olga", "nobody reads it")


@of("repair")
def cancel_a_failed_run() -> Made:
    run = failed()
    return str(run.pk), lambda: run.cancel("ada", "nobody reads it")


@of("repair")
def cancel_a_failed_run_and_undo() -> Made:
    held = posted()
    held.lease.fail("diverged", "no")  # what keeps what it did
    run = run_of(held)
    return str(run.pk), lambda: run.cancel("ada", "undo it", compensate=True)


@of("repair")
def fork_a_run() -> Made:
    run = failed()
    return str(run.pk), lambda: run.fork("olga", "once more")


@of("repair")
def fork_from_the_beginning() -> Made:
    run = parked(asking)
    return str(run.pk), lambda: run.fork("olga", "once more", seq=0)
