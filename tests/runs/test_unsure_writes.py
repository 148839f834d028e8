"""A write that may have happened stays in doubt, whatever its later tries come to: what is done is not done again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from runs import Ambiguous, EffectFailed, Graph, Permanent, Retry, Transient, start, tool
from runs.engine.verify import first_bad_row
from runs.errors import Conflict, TooEarly
from runs.models import LedgerEntry, Run
from tests.runs.driving import drive, killed_at, pass_call, pass_time, registered
from tests.runs.states import Log

pytestmark = pytest.mark.django_db(transaction=True)

comes: list[Callable[[str], str] | Exception] = []  # what the provider does at each call
paid: list[str] = []  # under which keys it has paid


@tool(kind="write", honours_key=True, retry=Retry(attempts=3, first=0), limit=timedelta(seconds=5))
def pay(amount: int, idempotency_key: str) -> str:
    now = comes.pop(0)
    if isinstance(now, Exception):
        raise now
    return now(idempotency_key)


def pays(key: str) -> str:
    if key not in paid:
        paid.append(key)
    return f"paid under {key[-3:]}"


def pays_and_is_not_heard(key: str) -> str:
    pays(key)
    raise Ambiguous("no answer came")


paying = Graph("paying when unsure", state=Log, operators="ops")


@paying.node(retry=Retry(attempts=1))
def only(run, state):
    try:
        state.log.append(run.call(pay, amount=30))
    except EffectFailed:
        state.log.append("went another way")
        raise


@pytest.fixture(autouse=True)
def known() -> Iterator[None]:
    comes.clear()
    paid.clear()
    with registered(paying):
        yield


def effect(run: Run) -> LedgerEntry:
    return run.entries.get(kind="effect")


@pytest.mark.parametrize(
    "later",
    [
        [Transient("connection refused"), Transient("connection refused")],
        [Permanent("the card has expired meanwhile")],
        [Transient("busy", retry_after=60), Permanent("401")],  # with a parking in between
    ],
    ids=["transient", "permanent", "after a pause"],
)
def test_what_may_have_happened_is_in_doubt_however_its_later_tries_fail(later):
    """A6, P3: the run asks its operators, a repair is refused until they have said, and then nothing is paid twice."""
    comes[:] = [pays_and_is_not_heard, *later]
    drive(run := start(paying, {}))
    if run.status == "retrying":
        assert effect(run).tried_at is not None, "it is known to be unsure"
        pass_time(61)
        drive(run)
    assert (run.status, effect(run).status, comes) == ("waiting", "in_doubt", [])
    run.cancel("olga", "enough")
    with pytest.raises(Conflict, match="settle it first"):
        run.retry("olga", "once more")
    with pytest.raises(TooEarly, match="may be under way until"):
        run.settle("olga", effect(run).key, "happened", "I have asked them")
    pass_call(5)
    run.settle("olga", effect(run).key, "happened", "I have asked them", result="it stands in their list")
    run.retry("olga", "it has happened")
    drive(run)
    assert (run.status, run.state_at(), len(paid)) == ("completed", {"log": ["it stands in their list"]}, 1)


def test_a_worker_that_was_killed_in_its_call_leaves_a_write_unsure_and_a_cancel_in_doubt():
    comes[:] = [pays_and_is_not_heard]
    run = start(paying, {})
    killed_at(run, "opened effect")  # the intent is committed, and the call might have been made
    comes[:] = [Transient("connection refused", retry_after=60)]
    drive(run)
    assert (run.status, effect(run).status) == ("retrying", "open")
    run.cancel("olga", "enough")
    assert effect(run).status == "in_doubt", "and not closed as never sent"


def in_doubt() -> Run:
    """A live one, which asks its operators."""
    comes[:] = [pays_and_is_not_heard, Permanent("the card has expired meanwhile")]
    drive(run := start(paying, {}))
    assert (run.status, effect(run).status) == ("waiting", "in_doubt")
    return run


def test_from_the_shell_an_operator_says_what_became_of_it_and_a_repair_goes_on_from_there(person):
    person("olga", "ops"), person("paul", "pm")
    run = in_doubt()
    key, words = effect(run).key, {"outcome": "not_happened", "reason": "their list is empty"}
    with pytest.raises(CommandError, match=f"Run {run.short_id} is live, and asks its operators"):
        call_command("settle", run.short_id, key, by="olga", **words)
    run.cancel("olga", "enough")
    pass_call(5)
    for more, refusal in (
        ({"by": "paul"}, "paul may not repair runs of"),
        ({"by": "olga", "step": 7}, f"has no effect {key} in doubt; in doubt is: {key}"),
        ({"by": "olga", "reason": " "}, "Say how you know"),
        ({"by": "olga", "result": "NaN"}, "--result"),
    ):
        with pytest.raises(CommandError, match=refusal):
            call_command("settle", run.short_id, key, **words | more)
    assert effect(run).status == "in_doubt"
    out = StringIO()
    call_command("settle", run.short_id, key, by="olga", json=True, stdout=out, **words)
    told = json.loads(out.getvalue())
    assert (told["key"], told["step"], told["status"]) == (key, 1, "cancelled")
    last = run.checkpoints.latest("seq")
    assert (last.kind, last.reason) == ("settle", "their list is empty") and last.actor.startswith(
        "user olga"
    )
    with pytest.raises(CommandError, match="in doubt is: nothing"):
        call_command("settle", run.short_id, key, by="olga", **words)
    comes[:], _ = [pays], paid.clear()
    run.retry("olga", "it did not happen")
    drive(run)
    assert (run.status, len(paid), first_bad_row(run)) == ("completed", 1, None)


def test_a_later_try_that_is_answered_gives_the_result():
    comes[:] = [pays_and_is_not_heard, Transient("busy"), pays]
    drive(run := start(paying, {}))
    assert (run.status, effect(run).status, len(paid)) == ("completed", "done", 1)


def test_what_surely_never_happened_fails_as_before():
    comes[:] = [Transient("busy"), Transient("busy"), Transient("busy")]
    drive(run := start(paying, {}))
    assert (run.status, run.error_kind, effect(run).status) == ("failed", "exhausted", "failed")
    comes[:] = [pays]
    run.retry("olga", "once more")
    drive(run)
    assert run.status == "completed" and [key.rpartition(":")[2] for key in paid] == ["r2"]
