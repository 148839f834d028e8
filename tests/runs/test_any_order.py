"""Whatever people, signals, time and deaths do to a run, in whatever order: it stays legal, loses nothing that was
said, does nothing twice, and comes to its end."""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from pydantic import BaseModel

from runs import END, Found, Graph, Permanent, Retry, TimedOut, start, tool
from runs.engine import boundaries, clock
from runs.engine.claim import Claimer
from runs.engine.drive import Drive
from runs.engine.verify import first_bad_row
from runs.errors import Conflict
from runs.models import LedgerEntry, Run, Signal, statuses
from runs.testing.process import die, in_child
from tests.amounts import THOROUGH
from tests.runs.driving import answer, pass_call, pass_time, registered, undo

pytestmark = pytest.mark.django_db(transaction=True)

TURNS, MOST_KILLS = 3, 3  # a fourth death in one step would rightly make it poison
UNDO_SECONDS = 5.0

journal = Path()  # what the provider has done; it outlives whoever asked


class Log(BaseModel):
    log: list[tuple[str, str, int, int | None]] = []


def broken() -> Path:
    """While this file is there, nothing can be posted."""
    return journal.with_suffix(".broken")


def posted() -> list[dict[str, str]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def look_up(idempotency_key: str, arguments: dict[str, Any]) -> Found | None:
    there = [line for line in posted() if line["key"] == idempotency_key]
    if not there:
        return None
    return Found("taken down" if "undone" in there[0] else f"posted {arguments['text']}")


@tool(kind="write", reconcile=look_up, limit=timedelta(seconds=60), retry=Retry(attempts=9, first=0))
def take_down(arguments: dict[str, Any], idempotency_key: str) -> str:
    with journal.open("a") as file:
        file.write(json.dumps({"key": idempotency_key, "undone": arguments["text"]}) + "\n")
    return "taken down"


@tool(
    kind="write",
    reconcile=look_up,
    limit=timedelta(seconds=60),
    retry=Retry(attempts=9, first=0),
    compensate=take_down,
)
def post(text: str, *, idempotency_key: str) -> str:
    if broken().exists():
        raise Permanent("no paper")
    with journal.open("a") as file:
        file.write(json.dumps({"key": idempotency_key, "text": text}) + "\n")
    return f"posted {text}"


machine = Graph("any order", state=Log, operators="ops")


@machine.node(then=("turn", END))
def turn(run, state):
    number = len(state.log)
    if number == TURNS:
        return END
    said = run.call(post, key=f"post:{{run_id}}:{number}", text=str(number))
    asked = run.interrupt(f"Go on after {number}?", {"number": number}, name="go on")
    try:
        word = run.wait_for("word", timeout=timedelta(hours=1))
    except TimedOut:
        word = None
    state.log.append((said, asked.verdict, asked.payload["number"], word))
    return "turn"


changed = Graph("any order", version=2, state=Log, operators="ops")
changed.node(turn, then=("turn", END))


@changed.migrate(1)
def as_it_was(state, node):
    return state, node


class AnyOrder(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        journal.write_text("")
        broken().unlink(missing_ok=True)
        self.run = start(machine, {})
        self.said: dict[int, tuple[str, int]] = {}  # by turn: the verdict that stands, and its payload
        self.words: list[int] = []
        self.workers, self.kills = 0, Counter()
        self.cancelled, self.undone, self.kept = False, False, False

    # -- what may happen

    @rule()
    def work(self) -> None:
        self._drive(None)

    @precondition(lambda self: self.kills[self.run.step] < MOST_KILLS)
    @rule(at=st.integers(1, 14))
    def die(self, at: int) -> None:
        """Killed at that boundary, by a clock that says that there is something to do."""
        if self.run.wake_at is not None:
            pass_time(max((self.run.wake_at - clock.now()).total_seconds(), 0) + 0.1)
        self.kills[self.run.step] += self._drive(at)

    def _drive(self, at: int | None) -> bool:
        """A process claims the run and drives it; whether it was killed on the way."""
        self.workers += 1
        name = f"worker {self.workers}"

        def live(tell: Any) -> None:
            left = at

            def bomb(_boundary: str) -> None:
                nonlocal left
                left = None if left is None else left - 1
                if left == 0:
                    die()

            boundaries.on_boundary = bomb
            taken = Claimer(name, [machine, changed]).claim(alone=True, only=self.run.pk)
            if taken is not None:
                Drive(*taken).run()

        killed = in_child(live).killed
        self.run.refresh_from_db()
        return killed

    @precondition(lambda self: self.question() is not None)
    @rule(
        verdict=st.sampled_from(["approve", "edit", "reject"]),
        number=st.integers(10, 99),
        may_undo=st.booleans(),
    )
    def answer(self, verdict: str, number: int, may_undo: bool) -> None:
        at = len(self.state()["log"])
        number = number if verdict == "edit" else at
        answer(
            self.run,
            self.question().key,
            verdict,
            undo=UNDO_SECONDS if may_undo else 0,
            payload={"number": number},
        )
        self.said[at] = verdict, number

    @precondition(lambda self: len(self.state()["log"]) in self.said and not self.run.ended)
    @rule()
    def take_back(self) -> None:
        at = len(self.state()["log"])
        asked = LedgerEntry.objects.filter(run=self.run, step=self.run.step + 1, kind="interrupt")
        entry = asked.filter(status="done").latest("id")
        try:
            undo(self.run, entry)
        except Conflict:
            return  # its time is over, or a worker has taken it: it stands
        del self.said[at]

    @precondition(lambda self: not self.run.ended)
    @rule(word=st.integers(0, 9), again=st.booleans())
    def signal(self, word: int, again: bool) -> None:
        key = f"word {len(self.words)}"
        for _ in range(1 + again):
            self.run.signal("word", word, key=key)
        self.words.append(word)

    @rule(seconds=st.sampled_from([1, 4, 6, 61, 130, 3601]))
    def time_passes(self, seconds: int) -> None:
        pass_time(seconds)

    @precondition(lambda self: not self.run.ended and self.workers > 3)
    @rule(compensate=st.booleans())
    def cancel(self, compensate: bool) -> None:
        if compensate and self.run.ending:
            with pytest.raises(Conflict):
                self.run.cancel("olga", "enough", compensate=True)
            return
        self.run.cancel("olga", "enough", compensate=compensate)
        self.cancelled, self.undone = True, compensate

    @precondition(lambda self: not self.run.ended and not broken().exists())
    @rule()
    def post_in_vain(self) -> None:
        """What is posted from now on is refused for good, and the run fails by it."""
        broken().touch()
        self.work()

    @precondition(lambda self: broken().exists())
    @rule()
    def mend(self) -> None:
        broken().unlink()

    @precondition(lambda self: self.run.status in ("failed", "cancelled"))
    @rule()
    def retry(self) -> None:
        self.repair("retry")

    @precondition(lambda self: self.run.status in ("failed", "cancelled"))
    @rule(way=st.sampled_from(["skip", "move"]))
    def leave_the_node(self, way: str) -> None:
        self.repair(way)

    def repair(self, way: str) -> None:
        """A cancelled run comes back as well, unless it began to undo what it did, or does not know it yet."""
        if self.run.checkpoints.filter(kind="compensate").exists():
            with pytest.raises(Conflict, match="Fork it"):
                self.run.retry("olga", "go on")
            return
        self.settle()
        if way == "retry":
            self.run.retry("olga", "go on")
        else:
            self._forget_the_step()
            leave = {"skip": self.run.skip, "move": self.run.move}[way]
            leave("olga", "go on elsewhere", to="turn")
        self.cancelled = self.undone = False  # there was nothing to undo yet

    def settle(self) -> None:
        """What was under way when the run ended: whoever asks the provider knows."""
        pass_call()
        for entry in LedgerEntry.objects.in_doubt().filter(run=self.run):
            with pytest.raises(Conflict, match="settle it first"):
                self.run.retry("olga", "go on")
            there = look_up(entry.idempotency_key, entry.request_value())
            outcome, result = ("happened", there.result) if there else ("not_happened", None)
            with transaction.atomic():
                locked, now = Run.objects.lock(self.run.pk)
                LedgerEntry.objects.get(pk=entry.pk).settle(locked, "olga", outcome, result, "looked", now)
            self.run.refresh_from_db()

    def _forget_the_step(self) -> None:
        """Whoever leaves a step leaves what was said in it: the next one asks again, and waits for another word."""
        self.said.pop(len(self.state()["log"]), None)
        heard = Signal.objects.filter(run=self.run, consumed_by__step=self.run.step + 1)
        for _word in heard:
            del self.words[sum(line[3] is not None for line in self.state()["log"])]

    @precondition(lambda self: self.run.status == "failed")
    @rule()
    def close(self) -> None:
        if self.run.closed_at is None:
            self.run.close("olga", "later")
        else:
            with pytest.raises(Conflict, match="closed already"):
                self.run.close("olga", "later")

    @rule()
    def fork(self) -> None:
        """It begins as the run stands, and the run does not notice."""
        self.run.refresh_from_db()
        stood = self.run.seq, self.run.fence, self.run.wake_at
        try:
            made = self.run.fork("olga", "look at it")
        except Conflict:
            assert self.run.status == "completed" or self._is_unclear() or self._is_undone()
            return
        assert (made.state_at(), first_bad_row(made)) == (self.run.state_at(), None)
        made.cancel("olga", "seen")
        assert first_bad_row(made) is None
        self.run.refresh_from_db()
        assert (self.run.seq, self.run.fence, self.run.wake_at) == stood

    def _is_unclear(self) -> bool:
        """Whether what became of a call of its step is not known."""
        writes = LedgerEntry.objects.filter(run=self.run, step=self.run.step + 1, write=True)
        return writes.filter(status__in=("open", "in_doubt")).exists()

    def _is_undone(self) -> bool:
        """Whether what it did is undone, or is being."""
        return (
            bool(self.run.ending) or LedgerEntry.objects.filter(run=self.run, status="compensated").exists()
        )

    @precondition(lambda self: not self.run.ended and not self.run.ending and self.run.version == 1)
    @rule()
    def migrate(self) -> None:
        """Whoever drives it; what was asked and answered stays."""
        self.run.migrate("olga", "its code has changed")

    @rule()
    def keep_or_release(self) -> None:
        verb = self.run.release_keep if self.kept else self.run.keep
        verb("a court", "olga")
        self.kept = not self.kept

    # -- what holds at any time

    @invariant()
    def it_is_legal(self) -> None:
        self.run.refresh_from_db()
        seen = list(self.run.checkpoints.order_by("seq").values_list("status", flat=True))
        kinds = list(self.run.checkpoints.order_by("seq").values_list("kind", flat=True))
        for (before, after), kind in zip(pairwise(seen), kinds[1:], strict=True):
            stays = kind in ("settle", "close") and before == after
            assert stays or statuses.may_follow(before, after), (before, after)
        assert (self.run.status, self.run.kept) == (seen[-1], self.kept)
        assert first_bad_row(self.run) is None
        open_ones = LedgerEntry.objects.filter(run=self.run, status="open")
        assert not (self.run.ended and open_ones.exists())
        assert open_ones.exclude(step=self.run.step + 1).count() == 0

    @invariant()
    def nothing_is_done_twice(self) -> None:
        keys = [line["key"] for line in posted()]
        assert len(keys) == len(set(keys))
        texts = [line["text"] for line in posted() if "text" in line]
        assert len(texts) == len(set(texts)), "also under the keys that a repair gives"

    @invariant()
    def nothing_that_was_said_is_lost(self) -> None:
        log = self.state()["log"]
        assert [line[:3] for line in log] == [[f"posted {at}", *self.said[at]] for at in range(len(log))]
        heard = [line[3] for line in log if line[3] is not None]
        assert heard == self.words[: len(heard)], "in the order in which they came, each once"

    def teardown(self) -> None:
        """Nobody dies any more, nothing is broken, and everybody answers: it ends."""
        broken().unlink(missing_ok=True)
        for _ in range(60):
            self.it_is_legal()
            if self.run.status == "failed" and not self.cancelled:
                self.repair("retry")
            if self.run.ended:
                break
            if self.question() is not None:
                self.answer("approve", 0, False)
            pass_call()
            self.work()
            if self.question() is None:
                pass_time(3601)
        else:
            raise AssertionError(f"it never ends: {self.run.status} in {self.run.node}")
        assert self.run.status == ("cancelled" if self.cancelled else "completed"), self.run.error
        self.nothing_is_done_twice()
        self.nothing_that_was_said_is_lost()
        if not self.cancelled:
            assert len(self.state()["log"]) == len(posted()) == TURNS
        if self.undone:
            made = [line["text"] for line in posted() if "text" in line]
            assert [line["undone"] for line in posted() if "undone" in line] == made[::-1]
        self.archive_and_erase()

    def archive_and_erase(self) -> None:
        """As its last: a run that ended in whatever way, and is not kept."""
        if self.kept:
            for verb in (self.run.archive, self.run.erase):
                with pytest.raises(Conflict):
                    verb("asked for", "olga")
            self.keep_or_release()
        assert self.run.archive("long over", "olga").archived_at is not None
        self.it_is_legal()
        self.nothing_that_was_said_is_lost()
        assert self.run.erase("asked for", "olga").erased_at is not None
        assert first_bad_row(self.run) is None
        assert not self.run.checkpoints.exclude(body="").exists()

    # -- how it stands

    def state(self) -> dict[str, Any]:
        log = self.run.state_at()["log"]
        return {"log": [line["v"] if isinstance(line, dict) else line for line in log]}

    def question(self) -> LedgerEntry | None:
        asked = LedgerEntry.objects.filter(run=self.run, kind="interrupt", status="open")
        return asked.filter(key__startswith="go on").first()


def test_any_order_of_verbs_and_deaths_is_survived(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "journal", tmp_path / "journal.jsonl")
    with registered(machine, changed):
        run_state_machine_as_test(
            AnyOrder,
            settings=settings(
                max_examples=int(os.environ.get("ANY_ORDERS", "8" if THOROUGH else "3")),
                stateful_step_count=25,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.generate],
                database=None,
            ),
        )
