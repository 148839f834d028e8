"""The protocols hold in every order of events that the budgets allow, and no rule of them can be left out.

The models are kept in step with runs/engine/claim.py, waiting.py, lease.py and shift.py, and with runs/core/effects.py
and compensating.py: who changes a rule there changes it here, and sees what breaks.
"""

from __future__ import annotations

import pytest

from tests.protocol.archiving import Archiving
from tests.protocol.erasing import Erasing
from tests.protocol.exploring import explore
from tests.protocol.families import Families
from tests.protocol.leaving import Leaving
from tests.protocol.limits import Limits
from tests.protocol.mailbox import Mailbox
from tests.protocol.migrating import Migrating
from tests.protocol.poison import Poison
from tests.protocol.repairing import Repairing
from tests.protocol.sending import Sending
from tests.protocol.undoing import Undoing
from tests.protocol.waits import Waits

HOLD = {
    "two questions, with a crash": lambda: Waits(due=2, due_b=3, window=1, crash=1),
    "two questions, with a heartbeat": lambda: Waits(due=2, window=1, beat=1),
    "a question and a call": lambda: Waits(due=3, due_b=1, window=1, call=True, crash=1),
    "a question without a deadline and a call": lambda: Waits(
        due=None, due_b=1, window=1, call=True, crash=1
    ),
    "another branch": lambda: Waits(due=2, window=1, branch=1, crash=1),
    "one question and an operator": lambda: Waits(
        b=False, due=2, window=1, cancel=1, retry=1, back=1, crash=1
    ),
    "a loop of two rounds": lambda: Waits(b=False, due=2, window=1, rounds=1, decide=2, crash=1),
    "two signals in two waits": lambda: Mailbox(signal=2, rounds=2, crash=1),
    "signals without a deadline": lambda: Mailbox(due=None, signal=2, rounds=2, crash=1, retry=1),
    "a signal, a heartbeat and a retry": lambda: Mailbox(beat=1, retry=1),
    "a timer": lambda: Mailbox(signal=0, crash=1, beat=1, retry=1),
    "children, one at a time": lambda: Families(total=3, crash=2, cancel=1),
    "children, all at once": lambda: Families(total=3, at_once=3, crash=1, cancel=1),
    "a write, reconciled": lambda: Sending(crash=2, beat=1, retry=1),
    "a write, settled by a person": lambda: Sending(asks=True, crash=1, beat=1, cancel=1, retry=1),
    "a write whose key is honoured": lambda: Sending(honoured=True, freeze=2, crash=1, beat=1),
    "a write whose key is honoured, refused later": lambda: Sending(
        honoured=True, crash=1, beat=0, cancel=1, retry=1
    ),
    "a write, or another in its place": lambda: Leaving(crash=3),
    "a slow write": lambda: Sending(limit=3, crash=1, beat=2),
    "a run that fails, undone": lambda: Undoing(crash=2),
    "a run that is cancelled, undone": lambda: Undoing(fails=False, cancel=1),
    "a run whose undoing is refused": lambda: Undoing(refuse=1, crash=0, cancel=1),
    "one poison run": lambda: Poison(orders=3),
    "two poison runs": lambda: Poison(poison=2, orders=1),
    "a limit of one": lambda: Limits(crash=2),
    "a limit of two, and three claimers": lambda: Limits(most=2, claimers=3, crash=2),
    "a rolling deploy": lambda: Migrating(crash=2, expire=3, deploy=4),
    "an erasure": lambda: Erasing(),
    "an archiving and an erasure": lambda: Archiving(repair=2),
    "repairs": lambda: Repairing(crash=2, cancel=2),
}

CAUGHT = {
    # waits
    "parking ignores the counter of answers": (lambda: Waits("no_answers", due=None), "late wake"),
    "answers are read after the entries": (lambda: Waits("number_late", due=None), "late wake"),
    "a heartbeat names neither fence nor status": (lambda: Waits("beat_bare", beat=1), "late wake"),
    "an answer is taken inside its undo window": (lambda: Waits("no_effective", due=None), "undo window"),
    "a taken answer can be undone": (lambda: Waits("undo_taken", b=False, due=None), "was undone"),
    "an ended run's answer can be undone": (lambda: Waits("undo_ended", b=False, cancel=1), "open entry"),
    "an undo does not wake": (lambda: Waits("undo_silent"), "late wake"),
    "an answer wakes a running run": (lambda: Waits("wakes_any", due=None), "lease was shortened"),
    "a claim leaves the run waiting": (lambda: Waits("keeps_status", due=None), "late wake"),
    "a claim goes on though answers are missing": (lambda: Waits("goes_on"), "still has to wait"),
    "a write without the fence": (lambda: Waits("no_fence", b=False), "lost its claim"),
    "the clock is read before the lock": (lambda: Waits("clock_before_lock", b=False), "after the deadline"),
    "answered deadlines count": (lambda: Waits("any_deadline", due=2, window=3), "busy loop"),
    "a call that is over wakes": (lambda: Waits("over_counts", due=None, due_b=1, call=True), "busy loop"),
    "a run ends with an open question": (lambda: Waits("leaves_open", cancel=1), "open entry"),
    # signals and timers
    "parking ignores the counter of signals": (lambda: Mailbox("no_answers"), "late wake"),
    "a signal wakes a running run": (lambda: Mailbox("wakes_running"), "was shortened"),
    "a signal wakes a retrying run": (lambda: Mailbox("wakes_retrying", retry=1), "was shortened"),
    "a heartbeat moves a timer": (lambda: Mailbox("beat_bare", signal=0, beat=1), "late wake"),
    "a signal after the deadline counts": (lambda: Mailbox("late_counts"), "too late"),
    "the clock is asked before the mailbox": (lambda: Mailbox("clock_first"), "had come in time"),
    "a signal is marked before its wait is answered": (lambda: Mailbox("two_commits", crash=1), "lost"),
    "a look without lock and fence": (lambda: Mailbox("unlocked no_fence"), "read twice"),
    # sending
    "no look at the lease before a call": (lambda: Sending("no_lease_check no_age_check", beat=0), "twice"),
    "an old try may call": (lambda: Sending("no_age_check", limit=3), "twice"),
    "a second try keeps the first one's time": (
        lambda: Sending("no_renewal", limit=3, retry=1, beat=3),
        "twice",
    ),
    "no quarantine": (lambda: Sending("no_quarantine", limit=3, beat=0), "twice"),
    "settled while the call is under way": (
        lambda: Sending("settled_early repaired", crash=0, beat=0, cancel=1, freeze=1),
        "counts as never sent",
    ),
    "a refusal speaks for earlier tries as well": (
        lambda: Sending("forgets", honoured=True, crash=1, beat=0, cancel=1, retry=1),
        "counts as never sent",
    ),
    # one write, or another in its place
    "another is made while nobody knows of the first": (lambda: Leaving("no_look"), "both writes"),
    "the node is not told that the first happened": (lambda: Leaving("goes_on"), "both writes"),
    "what was given up is asked for again": (lambda: Leaving("made_after_all"), "both writes"),
    "what was only intended counts as sent": (lambda: Leaving("keeps_intent"), "never sent"),
    # families
    "parking ignores the counter of children's ends": (lambda: Families("no_answers"), "lost wake"),
    "a child's end leaves no word for its parent": (lambda: Families("leaves_no_word", at_once=2), "lost"),
    "who has ended is read before the lock": (
        lambda: Families("reads_unlocked", at_once=2),
        "counted twice",
    ),
    "a child is made before it is counted": (lambda: Families("counts_apart"), "started twice"),
    "a child that is made waits though there is room": (lambda: Families("held_at_first"), "its turn"),
    "a parent's end forgets its children": (lambda: Families("no_cascade", cancel=1), "outlives"),
    "a parent that lost its run makes a child": (lambda: Families("no_fence", cancel=1), "outlives"),
    # what remains, as the docs say: a stop of any length between the last look and the call
    "a worker frozen before its call": (lambda: Sending(crash=0, beat=0, freeze=99), "twice"),
    # undoing
    "what was under way is not found out first": (lambda: Undoing("no_find_out", cancel=1), "left it done"),
    "a node goes on beside the undoing": (lambda: Undoing("no_fence", cancel=1), "left it done"),
    "the oldest is undone first": (lambda: Undoing("oldest_first", crash=0), "before a later one"),
    "undoing without an intent": (lambda: Undoing("no_intent"), "undone twice"),
    "undoing without a quarantine": (lambda: Undoing("no_quarantine", cancel=1), "left it done"),
    "a run ends with a doubt in its undoing": (lambda: Undoing("leaves_doubt", refuse=1), "left it done"),
    # limits
    "who is driven is counted without the lock": (lambda: Limits("unlocked"), "more are driven"),
    "the driven are a number that is kept": (lambda: Limits("kept_number"), "a place was lost"),
    # migrations
    "a worker takes a version that it does not know": (
        lambda: Migrating("any_version runs_first"),
        "another version's state",
    ),
    "a node runs before the migration": (lambda: Migrating("runs_first"), "another version's state"),
    "a worker without the fence commits after it": (
        lambda: Migrating("no_fence", expire=2, deploy=3),
        "migrated twice",
    ),
    "state and version are migrated apart": (lambda: Migrating("two_commits"), "another version's state"),
    # erasing
    "the run is looked at before its lock": (lambda: Erasing("unlocked"), "has lost rows"),
    "an erased run comes back": (lambda: Erasing("comes_back"), "has lost rows"),
    "what is in doubt is erased": (lambda: Erasing("in_doubt"), "settled no more"),
    "an erased run can be kept": (lambda: Erasing("keeps_erased"), "kept run was erased"),
    "rows go before the tombstone": (lambda: Erasing("no_intent"), "no tombstone says why"),
    "it is sealed without a last look": (lambda: Erasing("seals_unseen"), "still tells"),
    "rows are added after the seal": (lambda: Erasing("late_rows"), "still tells"),
    # archiving
    "a run is looked at before the lock, and archived": (
        lambda: Archiving("unlocked", keep=0),
        "has lost rows",
    ),
    "an archived run comes back": (lambda: Archiving("comes_back"), "has lost rows"),
    "a kept run is begun": (lambda: Archiving("kept"), "kept run was archived"),
    "rows are moved before it is said": (lambda: Archiving("no_intent"), "nothing says why"),
    "a row is inserted and deleted in two transactions": (lambda: Archiving("two_commits"), "a row twice"),
    "a row is deleted before it is inserted": (lambda: Archiving("deletes_first"), "misses a row"),
    "a row is moved as it was before it was emptied": (lambda: Archiving("copies_unlocked"), "still tells"),
    "it is archived without a last look": (lambda: Archiving("closes_unseen"), "a row was left"),
    "an eraser looks at the hot tables alone": (lambda: Archiving("hot_alone"), "still tells"),
    # repairing
    "what failed is not put aside": (lambda: Repairing("nothing_aside"), "stopped by what had failed"),
    "what is done is put aside": (lambda: Repairing("done_aside"), "twice"),
    "what is in doubt is put aside": (lambda: Repairing("doubt_ignored"), "twice"),
    "settled before a repair while the call is under way": (lambda: Repairing("settled_early"), "twice"),
    "neither a cancel nor a repair raises the fence": (lambda: Repairing("no_fence"), "has replaced is sent"),
    "a run goes on from what was undone": (lambda: Repairing("after_undo"), "builds on what was undone"),
    "due first, then put aside": (lambda: Repairing("two_commits"), "stopped by what had failed"),
    # poison
    "suspects share a process": (lambda: Poison("shares"), "healthy"),
    "deaths in company count": (lambda: Poison("all_count shares"), "healthy"),
    "a deploy counts as a death": (lambda: Poison("orders_count", orders=6), "healthy"),
}


@pytest.mark.long_list
@pytest.mark.parametrize("name", HOLD)
def test_it_holds_in_every_order_of_events(name):
    found = explore(HOLD[name]())
    assert found.whole, f"{name}: {found}"


@pytest.mark.long_list
@pytest.mark.parametrize("name", CAUGHT)
def test_a_rule_left_out_breaks_a_promise(name):
    build, promise = CAUGHT[name]
    found = explore(build())
    assert promise in found.fault, f"{name}: {found}"
    assert found.trace, "the shortest way to it can be read"
