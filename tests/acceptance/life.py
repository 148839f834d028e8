"""A run's life, and ten random moments (six for a developer) spread over it at which something is killed."""

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
from tests.amounts import THOROUGH

KILLS = 10 if THOROUGH else 6
KINDS = (WORKER, TREE, NODE) = ("worker", "tree", "node")
ASKED, DECIDED = "asked", "decided"
STRETCHED = {"look_up": 1.2, "think": 1.2, "send": 3.0, "undo": 2.0, "script": "429,ok"}
# The parts of an unharmed life that is so stretched, with about how many seconds each takes.
SECONDS = {"vendor 1": 1.2, "vendor 2": 1.2, "vendor 3": 1.2, "draft": 3.4, ASKED: 1.2, DECIDED: 1.2}
STEPS_BEFORE = {"vendor 1": 0, "vendor 2": 1, "vendor 3": 2, "draft": 4, ASKED: 5, DECIDED: 5}
BEFORE_THE_QUESTION = [part for part in SECONDS if part not in (ASKED, DECIDED)]
MOST_IN_ONE_PART = 2  # the fifth death in one step would rightly be called poison
REACHED_SECONDS = 180.0


class Kill(NamedTuple):
    kind: str
    part: str
    after_seconds: float


@dataclass
class Life:
    """The seed is printed; with BRIEF_SEED=<it> in the environment the same moments are drawn."""

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
        for part in BEFORE_THE_QUESTION:
            self.kill_in(part)

    def kill_in(self, part: str) -> None:
        """Once the run is so far, kill at the moments that were drawn for this part of its life."""
        until(lambda: self._is_at(part), REACHED_SECONDS)
        began = time.monotonic()
        for kill in [kill for kill in self.plan if kill.part == part]:
            killed = self._kill(kill, began)
            self.done.append(kill)
            self.run.refresh_from_db()
            place = f"{self.run.status} in {self.run.node}, step {self.run.step}, seq {self.run.seq}"
            print(f"{time.monotonic() - self.began:6.1f} s  {part}: killed {killed} ({place})")

    def _is_at(self, part: str) -> bool:
        self.run.refresh_from_db()
        assert self.run.status not in ENDED, f"{self.run.status} before {part}: {self.run.error}"
        is_asked = self.run.status == "waiting"
        return self.run.step >= STEPS_BEFORE[part] and self.run.seq > 0 and (is_asked or part != ASKED)

    def _kill(self, kill: Kill, began: float) -> str:
        if kill.kind == NODE and (killed := self.parts.kill_driver(self.run, kill.after_seconds)):
            return killed
        time.sleep(max(began + kill.after_seconds - time.monotonic(), 0))
        if kill.kind == TREE:
            return self.parts.kill_tree(self.run)
        return self.parts.kill_worker(self.run, self.dice)


def planned(dice: random.Random) -> list[Kill]:
    """All kills, each kind in its turn. Nothing executes while a person is asked, so no executing process is killed."""
    while_asked = dice.randint(1, MOST_IN_ONE_PART)
    before = dice.sample(BEFORE_THE_QUESTION * MOST_IN_ONE_PART, KILLS - MOST_IN_ONE_PART - while_asked)
    parts = sorted(before, key=place) + [ASKED] * while_asked + [DECIDED] * MOST_IN_ONE_PART
    kinds = [KINDS[number % len(KINDS)] for number in range(KILLS)]
    plan = []
    for part in parts:
        kind = next(kind for kind in kinds if part != ASKED or kind != NODE)
        kinds.remove(kind)
        latest = SECONDS[part] / (2 if kind == NODE else 1)  # of a node: since it was seen to execute
        plan.append(Kill(kind, part, dice.uniform(0, latest)))
    return sorted(plan, key=lambda kill: (place(kill.part), kill.kind == NODE, kill.after_seconds))


def place(part: str) -> int:
    return list(SECONDS).index(part)
