"""Every verb that writes, each with the rows it needs: what test_faults.py kills and fails at each statement."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction

from runs import Ask, Graph, start
from runs.core import ledger
from runs.core.graph import END
from runs.core.ledger import Entry
from runs.engine import clock
from runs.engine.claim import MOST_DEATHS, Claimer
from runs.engine.lease import Lease
from runs.engine.ledger import RowLedger
from runs.engine.reclaim import hand_back_for, take_from_stuck
from runs.models import LedgerEntry, Run
from runs.testing.driving import answer
from tests.runs.faulty_rows import (
    asking,
    claim,
    claimed,
    effect,
    in_doubt,
    look,
    lost,
    parked,
    pass_lease,
    plain,
    post,
    reply,
    sending,
)

Made = tuple[Any, Callable[[], Any]]
VERBS: dict[str, Callable[[], Made]] = {}


def of(family: str) -> Callable[[Callable[[], Made]], Callable[[], Made]]:
    """Enter it among the verbs; those of one family are next to each other and share a test."""

    def enter(make: Callable[[], Made]) -> Callable[[], Made]:
        make.family = family
        VERBS[make.__name__] = make
        return make

    return enter


# -- starting and claiming


@of("claims")
def start_a_run() -> Made:
    key = f"fault:{Run.objects.count()}:{clock.now().timestamp()}"
    return key, lambda: start(plain, {}, key=key)


@of("claims")
def claim_created() -> Made:
    run = start(plain, {})
    return str(run.pk), lambda: claim(run)


@of("claims")
def claim_that_wakes() -> Made:
    run = parked()
    reply(run, "one")
    reply(run, "two")
    return str(run.pk), lambda: claim(run)


@of("claims")
def claim_that_parks_again() -> Made:
    run = parked()
    reply(run, "one")
    return str(run.pk), lambda: claim(run)


@of("claims")
def claim_that_expires() -> Made:
    run = parked()
    clock.AHEAD += timedelta(hours=4)
    return str(run.pk), lambda: claim(run)


@of("claims")
def claim_retrying() -> Made:
    drive = claimed()
    drive.lease.put_off(10, "busy", counts=True)
    clock.AHEAD += timedelta(seconds=11)
    return str(drive.lease.run_id), lambda: claim(Run(pk=drive.lease.run_id))


@of("claims")
def claim_lost() -> Made:
    run = lost()
    return str(run.pk), lambda: claim(run, "w2")


@of("claims")
def fail_what_cannot_be_read() -> Made:
    run = Run.objects.get(pk=claimed().lease.run_id)
    return str(run.pk), lambda: Claimer("w1", [])._spoilt(run, "CodecError: $.log: it is spoilt")


@of("claims")
def claim_poison() -> Made:
    drive = claimed()
    Run.objects.filter(pk=drive.lease.run_id).update(deaths=MOST_DEATHS, silent=MOST_DEATHS, alone=True)
    pass_lease()
    return str(drive.lease.run_id), lambda: claim(Run(pk=drive.lease.run_id), "w2")


# -- what a worker commits


def of_lease(act: Callable[[Lease], Any], graph: Graph = plain) -> Made:
    lease = claimed(graph).lease
    return str(lease.run_id), lambda: act(lease)


@of("commits")
def commit_step() -> Made:
    return of_lease(lambda lease: lease.commit_step("second", {"log": ["first"]}))


@of("commits")
def complete() -> Made:
    drive = claimed()
    drive.lease.commit_step("second", {"log": ["first"]})
    return str(drive.lease.run_id), lambda: drive.lease.commit_step(END, {"log": ["first", "second"]})


@of("commits")
def leave_a_step_with_open_questions() -> Made:
    run = parked()
    reply(run, "one")
    reply(run, "two")
    drive = claim(run)
    ask_again = ledger.question(Ask("Three?", name="three"), "three", None)
    RowLedger(drive.lease, drive.rows).ask(ask_again, None)
    return str(run.pk), lambda: drive.lease.commit_step("after", {"log": ["approve"]})


@of("commits")
def park() -> Made:
    drive = claimed(asking)
    rows = RowLedger(drive.lease, drive.rows)
    rows.ask(ledger.question(Ask("One?", name="one"), "one", None), timedelta(hours=2))
    return str(drive.lease.run_id), lambda: drive.lease.park(("one",), clock.now() + timedelta(hours=2))


@of("commits")
def put_off() -> Made:
    return of_lease(lambda lease: lease.put_off(10, "busy", counts=True))


@of("commits")
def fail_with_an_open_write() -> Made:
    drive = claimed(sending)
    RowLedger(drive.lease, drive.rows).open(effect(drive.lease), tried=post.limit)
    return str(drive.lease.run_id), lambda: drive.lease.fail("permanent", "no")


@of("commits")
def hand_back() -> Made:
    return of_lease(lambda lease: lease.hand_back("stopping"))


# -- the ledger


def of_ledger(act: Callable[[RowLedger, Entry], Any], opened: bool = True) -> Made:
    """On a run whose worker has opened a write (or is about to)."""
    drive = claimed(sending)
    rows = RowLedger(drive.lease, drive.rows)
    entry = effect(drive.lease)
    if opened:
        rows.open(entry, tried=post.limit)
    return str(drive.lease.run_id), lambda: act(rows, entry)


@of("entries")
def open_a_write() -> Made:
    return of_ledger(lambda rows, entry: rows.open(entry, tried=post.limit), opened=False)


@of("entries")
def record_a_result() -> Made:
    return of_ledger(lambda rows, entry: rows.record(entry, "posted a"))


@of("entries")
def record_a_read() -> Made:
    drive = claimed(sending)
    rows = RowLedger(drive.lease, drive.rows)
    entry = ledger.effect(look.bind(text="a"), "look#1", f"{drive.lease.run_id}:1:look#1")
    return str(drive.lease.run_id), lambda: rows.record(entry, "a")


@of("entries")
def fail_an_entry() -> Made:
    return of_ledger(lambda rows, entry: rows.fail(entry, "permanent", "refused"))


@of("entries")
def try_again() -> Made:
    return of_ledger(lambda rows, entry: rows.try_again(entry, post.limit))


@of("entries")
def note_a_failed_try() -> Made:
    return of_ledger(lambda rows, entry: rows.failed_try(entry, "busy"))


@of("entries")
def doubt() -> Made:
    return of_ledger(lambda rows, entry: rows.doubt(entry, "no answer came"))


@of("entries")
def ask_people() -> Made:
    drive = claimed(asking)
    entry = ledger.question(Ask("One?", name="one", reviewers=("pm", "ada")), "one", None)
    rows = RowLedger(drive.lease, drive.rows)
    return str(drive.lease.run_id), lambda: rows.ask(entry, timedelta(hours=2))


@of("entries")
def supersede() -> Made:
    drive = claimed(asking)
    entry = ledger.question(Ask("Other?", name="other"), "other", None)
    rows = RowLedger(drive.lease, drive.rows)
    rows.ask(entry, None)
    return str(drive.lease.run_id), lambda: rows.supersede(entry)


# -- what people and supervisors do


@of("people")
def answer_a_question() -> Made:
    run = parked()
    entry = LedgerEntry.objects.get(run=run, key="one")
    return str(run.pk), lambda: answer(run, entry, entry.request_value(), {"verdict": "approve"})


def reopening(run: Run) -> Callable[[], Any]:
    def reopen() -> None:
        with transaction.atomic():
            locked, now = Run.objects.lock(run.pk)
            LedgerEntry.objects.get(run=run, key="one").reopen(locked, now)

    return reopen


@of("people")
def reopen() -> Made:
    run = parked()
    reply(run, "one", undo=3600)
    return str(run.pk), reopening(run)


@of("people")
def reopen_past_the_deadline() -> Made:
    run = parked()
    reply(run, "one", undo=36_000)
    clock.AHEAD += timedelta(hours=2, minutes=1)
    return str(run.pk), reopening(run)


@of("people")
def settle_by_answer() -> Made:
    run = in_doubt()
    entry = LedgerEntry.objects.get(run=run, kind="interrupt")
    clock.AHEAD += timedelta(seconds=60)
    said = {"verdict": "respond", "payload": {"outcome": "happened", "result": "posted a"}}
    return str(run.pk), lambda: answer(run, entry, entry.request_value(), said)


@of("people")
def cancel_a_waiting_run() -> Made:
    run = parked()
    return str(run.pk), lambda: run.cancel("ada", "not needed")


@of("people")
def cancel_a_running_write() -> Made:
    drive = claimed(sending)
    RowLedger(drive.lease, drive.rows).open(effect(drive.lease), tried=post.limit)
    run = Run.objects.get(pk=drive.lease.run_id)
    return str(run.pk), lambda: run.cancel("ada", "not needed")


@of("people")
def take_from_a_stuck_thread() -> Made:
    return of_lease(lambda lease: take_from_stuck(lease, "over its limit"))


@of("people")
def take_the_last_try_from_a_stuck_thread() -> Made:
    lease = claimed().lease
    Run.objects.filter(pk=lease.run_id).update(attempt=1)
    lease.attempt = 1
    return str(lease.run_id), lambda: take_from_stuck(lease, "over its limit")


@of("people")
def hand_back_for_an_ended_worker() -> Made:
    name = f"ended at {clock.now().timestamp()}"
    drive = claimed(worker=name)
    return str(drive.lease.run_id), lambda: hand_back_for(name, "deploy")


# -- approvals


def ada() -> User:
    user, new = User.objects.get_or_create(username="ada")
    if new:
        user.groups.add(Group.objects.get_or_create(name="pm")[0])
    return user


def approval_of(run: Run) -> Any:
    from approvals.models import Approval

    return Approval.objects.get(entry__run=run, entry__key="one")


@of("approvals")
def decide() -> Made:
    run, by = parked(), ada()
    approval = approval_of(run)
    return str(run.pk), lambda: approval.decide(by=by, verdict="approve", operation_id=f"decide:{run.pk}")


@of("approvals")
def undo() -> Made:
    run, by = parked(), ada()
    approval_of(run).decide(by=by, verdict="approve")
    approval = approval_of(run)
    return str(run.pk), lambda: approval.undo(by)


@of("parts")
def delegate() -> Made:
    run, by = parked(), ada()
    approval, to = approval_of(run), User.objects.get_or_create(username="eve")[0]
    return str(run.pk), lambda: approval.delegate(by, to=to)


@of("parts")
def recall() -> Made:
    run, by = parked(), ada()
    approval_of(run).delegate(by, to=User.objects.get_or_create(username="eve")[0])
    approval = approval_of(run)
    return str(run.pk), lambda: approval.recall(by)


@of("parts")
def supersede_what_was_approved() -> Made:
    run, by = parked(), ada()
    approval_of(run).decide(by=by, verdict="approve")
    reply(run, "two")
    clock.AHEAD += timedelta(minutes=1)
    drive = claim(run)
    rows = RowLedger(drive.lease, drive.rows)
    return str(run.pk), lambda: rows.supersede(rows.entries["one"])


@of("times")
def extend() -> Made:
    run, by = parked(), ada()
    approval = approval_of(run)
    return str(run.pk), lambda: approval.extend(by, approval.due_at + timedelta(hours=1))


@of("times")
def remind() -> Made:
    run = parked()
    approval = approval_of(run)
    return str(run.pk), approval.remind


@of("times")
def escalate() -> Made:
    run = parked()
    approval = approval_of(run)
    return str(run.pk), approval.escalate


@of("stages")
def end_a_stage() -> Made:
    run, by = staged(), ada()
    approval = approval_of(run)
    return str(run.pk), lambda: approval.decide(by=by, verdict="approve", operation_id=f"decide:{run.pk}")


@of("stages")
def go_back_a_stage() -> Made:
    run, by = staged(), ada()
    approval_of(run).decide(by=by, verdict="approve")
    approval = approval_of(run)
    return str(run.pk), lambda: approval.take_back(by)


def staged() -> Run:
    """Its question has a second stage; the script of these tests answers in its place."""
    run = parked()
    approval = approval_of(run)
    approval.stages = [{"name": name, "quorum": 1, "needed": True} for name in ("pm", "ops")]
    approval.save(update_fields=["stages"])
    return run
