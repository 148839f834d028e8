"""A run's life and the ten random moments in it at which something is killed."""

from __future__ import annotations

import os
import random
import secrets
import time
from dataclasses import dataclass, field
from typing import NamedTuple

from runs.models import Run
from runs.models.statuses import ENDED
from tests.acceptance.installation import until
from tests.acceptance.parts import Parts

KILLS = 10
KINDS = (NODE, WORKER, TREE) = ("node", "worker", "tree")
DRAFT, ASKED, DECIDED = "draft", "asked", "decided"
# The parts of an unharmed life of a stretched brief: about how many seconds each takes. In each at most two kills:
# the fifth death in one step would rightly be called poison.
SECONDS = {"vendor 1": 1.2, "vendor 2": 1.2, "vendor 3": 1.2, DRAFT: 3.5, ASKED: 1.5, DECIDED: 1.5}
STEPS_BEFORE = {"vendor 1": 0, "vendor 2": 1, "vendor 3": 2, DRAFT: 4, ASKED: 5, DECIDED: 5}
MOST_IN_ONE_PART = 2
REACHED_SECONDS = 90.0


class Kill(NamedTuple):
    kind: str
    part: str
    after_seconds: float  # since that part of the life began


@dataclass
class Life:
    """The seed is printed; BRIEF_SEED=<it> repeats the moments."""

    parts: Parts
    run: Run
    dice: random.Random = field(init=False)
    plan: list[Kill] = field(init=False)
    done: list[Kill] = field(default_factory=list)

    def __post_init__(self) -> None:
        seed = int(os.environ.get("BRIEF_SEED") or secrets.randbelow(1_000_000))
        self.dice = random.Random(seed)
        self.plan = planned(self.dice)
        self.began = time.monotonic()
        print(f"BRIEF_SEED={seed}, run {self.run.pk}")

    def kill_before_the_question(self) -> None:
        for part in SECONDS:
            if part not in (ASKED, DECIDED):
                self.kill_in(part)

    def kill_in(self, part: str) -> None:
        """Wait until the run is so far, and kill at the moments that were drawn for this part of its life."""
        until(lambda: self._is_at(part), REACHED_SECONDS)
        began = time.monotonic()
        for kill in [kill for kill in self.plan if kill.part == part]:
            if kill.kind == NODE:
                killed = self.parts.kill_driver(self.run, kill.after_seconds)
            else:
                time.sleep(max(began + kill.after_seconds - time.monotonic(), 0))
                one = self.parts.kill_tree if kill.kind == TREE else self.parts.kill_worker
                killed = one(self.run, self.dice)
            self.done.append(kill)
            self._print(f"{part}: killed {killed}")

    def _is_at(self, part: str) -> bool:
        self.run.refresh_from_db()
        assert self.run.status not in ENDED, f"{self.run.status} before {part}: {self.run.error}"
        return self.run.step >= STEPS_BEFORE[part] and (part != ASKED or self.run.status == "waiting")

    def _print(self, what: str) -> None:
        self.run.refresh_from_db()
        place = f"{self.run.status} in {self.run.node}, step {self.run.step}, seq {self.run.seq}"
        print(f"{time.monotonic() - self.began:6.1f} s  {what} ({place})")


def planned(dice: random.Random) -> list[Kill]:
    """Ten moments spread over the whole life, each kind in its turn; nothing executes while a person is asked."""
    places = sorted(
        dice.sample([part for part in SECONDS for _ in range(MOST_IN_ONE_PART)], KILLS), key=place
    )
    kinds = [KINDS[number % len(KINDS)] for number in range(KILLS)]
    plan = []
    for part in places:
        kind = next(kind for kind in kinds if part != ASKED or kind != NODE)
        kinds.remove(kind)
        latest = SECONDS[part] / (
            2 if kind == NODE else 1
        )  # it waits for a process that drives, and then so long
        plan.append(Kill(kind, part, dice.uniform(0, latest)))
    return sorted(plan, key=lambda kill: (place(kill.part), kill.kind == NODE, kill.after_seconds))


def place(part: str) -> int:
    return list(SECONDS).index(part)
