"""The protocols hold in every order of events that the budgets allow, and no rule of them can be left out.

The models are kept in step with runs/engine/claim.py, lease.py, core/effects.py and shift.py: who changes a rule there
changes it here, and sees what breaks.
"""

from __future__ import annotations

import pytest

from tests.protocol.exploring import explore
from tests.protocol.poison import Poison
from tests.protocol.sending import Sending
from tests.protocol.waits import Waits

HOLD = {
    "two questions, with a crash": lambda: Waits(due=2, due_b=3, window=1, crash=1),
    "two questions, with a heartbeat": lambda: Waits(due=2, window=1, beat=1),
    "another branch": lambda: Waits(due=2, window=1, branch=1, crash=1),
    "one question and an operator": lambda: Waits(
        b=False, due=2, window=1, cancel=1, retry=1, back=1, crash=1
    ),
    "a loop of two rounds": lambda: Waits(b=False, due=2, window=1, rounds=1, decide=2, crash=1),
    "a write, reconciled": lambda: Sending(crash=2, beat=1, retry=1),
    "a write, settled by a person": lambda: Sending(asks=True, crash=1, beat=1, cancel=1, retry=1),
    "a write whose key is honoured": lambda: Sending(honoured=True, freeze=2, crash=1, beat=1),
    "a slow write": lambda: Sending(limit=3, crash=1, beat=2),
    "one poison run": lambda: Poison(orders=3),
    "two poison runs": lambda: Poison(poison=2, orders=1),
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
    "a run ends with an open question": (lambda: Waits("leaves_open", cancel=1), "open entry"),
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
        "twice",
    ),
    # what remains, as the docs say: a stop of any length between the last look and the call
    "a worker frozen before its call": (lambda: Sending(crash=0, beat=0, freeze=99), "twice"),
    # poison
    "suspects share a process": (lambda: Poison("shares"), "healthy"),
    "deaths in company count": (lambda: Poison("all_count shares"), "healthy"),
    "a deploy counts as a death": (lambda: Poison("orders_count", orders=6), "healthy"),
}


@pytest.mark.parametrize("name", HOLD)
def test_it_holds_in_every_order_of_events(name):
    found = explore(HOLD[name]())
    assert found.whole, f"{name}: {found}"


@pytest.mark.parametrize("name", CAUGHT)
def test_a_rule_left_out_breaks_a_promise(name):
    build, promise = CAUGHT[name]
    found = explore(build())
    assert promise in found.fault, f"{name}: {found}"
    assert found.trace, "the shortest way to it can be read"
