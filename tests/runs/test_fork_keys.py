"""What was done or failed under an author's key, for a fork and for later steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runs import EffectFailed, Graph, start
from runs.engine.forking import would_send
from tests.runs.driving import are_sound, drive, registered
from tests.runs.families import drive_all
from tests.runs.states import Log
from tests.runs.till import ONCE, declined, done, pay, wire

pytestmark = pytest.mark.django_db(transaction=True)


later_key = Graph("stands-later-key", state=Log)


@later_key.node(then="pay_it")
def say_hello(run, state): ...


@later_key.node
def pay_it(run, state):
    run.call(pay, by="stamps", key="stamps:{run_id}")


@pytest.fixture(autouse=True)
def known(empty_till) -> Iterator[None]:
    with registered(later_key):
        yield


def test_what_its_origin_did_under_an_authors_key_in_a_later_step_a_fork_does_by_itself():
    """It goes another way perhaps; only what was done up to where they part is done for both."""
    drive_all(run := start(later_key, {}))
    fork = run.fork("olga", "from the beginning", seq=0)
    drive_all(fork)
    assert (run.status, fork.status, done) == ("completed", "completed", ["stamps", "stamps"])
    again = run.fork("olga", "from its second step", seq=run.checkpoints.filter(kind="step").first().seq)
    assert would_send(again) == []
    drive_all(again)
    assert done == ["stamps", "stamps"], "the step that it enters had done it"
    are_sound(run, fork, again)


@pytest.mark.parametrize("how", ["as it is", "retry", "fork", "fork of a fork", "fork later"])
def test_a_failure_under_an_authors_key_that_was_caught_stands_in_later_steps(how):
    """The next node asks under the same key what became of it, and nothing is charged beside the other way."""
    twice = Graph("stands-twice", state=Log)

    @twice.node(then="second", retry=ONCE)
    def first(run, state):
        try:
            run.call(pay, by="card", key="pay:{run_id}")
        except EffectFailed:
            run.call(wire, amount=5)
        run.call(pay, by="receipt")

    @twice.node(retry=ONCE)
    def second(run, state):
        try:
            state.log.append(run.call(pay, by="card", key="pay:{run_id}"))
        except EffectFailed:
            state.log.append("wired")
        run.call(pay, by="stamps")

    with registered(twice):
        declined.update(
            {"card"}
            if how == "as it is"
            else {"card", "stamps"}
            if how == "fork later"
            else {"card", "receipt"}
        )
        drive(run := start(twice, {}))
        declined.difference_update({"receipt", "stamps"} if how != "fork of a fork" else set())
        declined.discard("card")
        match how:
            case "retry":
                run.retry("olga", "the printer is mended")
            case "fork" | "fork later":
                run = run.fork("olga", "the printer is mended")
            case "fork of a fork":
                drive(between := run.fork("olga", "once more"))
                declined.clear()
                run = between.fork("olga", "and once more")
        drive(run)
        assert (run.status, run.state_at()["log"], done) == (
            "completed",
            ["wired"],
            ["wire", "receipt", "stamps"],
        )
        are_sound(run)
