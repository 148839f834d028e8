"""A parent that makes children, a commit each, some of them alive at a time, and waits until all have ended.

As in runs/engine/children.py, family.py and telling.py: whoever makes a child, tells the parent of ends, or cancels it
holds the parent's lock, so each is one action. A child's end is an action of its own, and leaves word: the child is
"ended" until its parent is told, by the worker that ended it or by a chore. Time is left out: a worker that crashes
leaves its run due.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets

LIVING = ("turn", "due", "running")


class Parent(NamedTuple):
    status: str = "created"
    due: bool = True


class Worker(NamedTuple):
    at: str = "idle"  # spread, look, park, commit: of the parent; work, tell, write: of a child; cancel: of a cascade
    child: int = -1
    fresh: bool = True  # its fence is the run's
    differs: bool = False  # the parent's answers are not the number that it read
    untold: tuple[int, ...] = ()  # what it read before the lock, where a rule is left out


class World(NamedTuple):
    parent: Parent
    children: tuple[str, ...]  # turn, due, running, ended, told
    started: int  # as the fan-out counts
    counted: int  # ends
    answered: bool
    cascade: bool
    workers: tuple[Worker, Worker]
    left: tuple[int, ...]
    bad: str = ""


Steps = Iterator[tuple[str, World]]


class Families:
    """`broken` names rules that are left out."""

    def __init__(self, broken: str = "", *, total: int = 2, at_once: int = 1, **budgets: int) -> None:
        self.broken, self.total, self.at_once = frozenset(broken.split()), total, at_once
        self.budgets = Budgets(**({"crash": 1, "cancel": 0} | budgets))

    def start(self) -> World:
        return World(Parent(), (), 0, 0, False, False, (Worker(), Worker()), self.budgets.full)

    def key(self, s: World) -> Hashable:
        return s._replace(workers=tuple(sorted(s.workers)))

    def show(self, s: World) -> str:
        return f"{s.parent.status}{'!' if s.parent.due else ''} {' '.join(s.children)} counted {s.counted}"

    def fault(self, s: World) -> str:
        living = [child for child in s.children if child in LIVING]
        if len(s.children) > self.total:
            return "a child was started twice"
        if s.parent.status in ("completed", "cancelled"):
            return "" if s.cascade or not living else "a child outlives its parent"
        if s.parent.status == "waiting" and s.answered and not s.parent.due:
            return "a lost wake: all children have ended"
        if s.counted > s.children.count("told"):
            return "an end was counted twice"
        untold = "ended" in s.children or any(worker.at == "tell" for worker in s.workers)
        if len(s.children) == self.total and not living and not s.answered and not untold:
            return "the end of a child was lost"
        waits = s.parent.status == "waiting" and "turn" in living and not untold
        return "a child never gets its turn" if waits and set(living) == {"turn"} else ""

    def steps(self, s: World) -> Steps:
        if s.parent.status in ("running", "waiting") and (left := self.budgets.spend(s.left, "cancel")):
            cascade = "no_cascade" not in self.broken and any(child in LIVING for child in s.children)
            ended = s._replace(parent=Parent("cancelled", False), cascade=cascade, left=left)
            yield (
                "the parent is cancelled",
                self._unseat(ended, lambda w: w.at in ("spread", "look", "park", "commit")),
            )
        for i, w in enumerate(s.workers):
            for label, after in self._worker(s, i, w):
                yield f"worker {i} {label}", after

    def _worker(self, s: World, i: int, w: Worker) -> Steps:
        if w.at == "idle":
            yield from self._claims(s, i)
            return
        if not w.fresh and "no_fence" not in self.broken:
            yield "finds that it lost its claim", self._put(s, i, Worker())
            return
        yield from getattr(self, f"_{w.at}")(s, i, w)
        if left := self.budgets.spend(s.left, "crash"):
            yield "crashes", self._crashed(s, i, w)._replace(left=left)

    def _crashed(self, s: World, i: int, w: Worker) -> World:
        s = self._put(s, i, Worker())
        if w.at in ("tell", "write"):
            return s
        if w.child >= 0:
            return self._child(s, w.child, "due")
        return s._replace(parent=Parent("running", True))

    # -- what idle workers take

    def _claims(self, s: World, i: int) -> Steps:
        if s.parent.due:
            if s.parent.status == "waiting" and not s.answered:
                yield "looks at the parent, parks again", s._replace(parent=Parent("waiting", False))
            else:
                yield (
                    "claims the parent",
                    self._put(s._replace(parent=Parent("running", False)), i, Worker("spread")),
                )
        for place, child in enumerate(s.children):
            if child == "due":
                worked = self._put(self._child(s, place, "running"), i, Worker("work", place))
                yield f"claims child {place}", worked
        if "ended" in s.children:
            yield "does the chore of telling", self._put(s, i, Worker("tell"))
        if s.cascade:
            over = tuple("ended" if child in LIVING else child for child in s.children)
            cancelled = s._replace(children=over, cascade=False)
            yield "cancels what is left", self._unseat(cancelled, lambda w: w.at == "work")

    # -- the parent's worker

    def _spread(self, s: World, i: int, w: Worker) -> Steps:
        """One child a commit, due if there is room; counted in the same commit."""
        if s.started >= self.total:
            yield "has all its children", self._put(s, i, w._replace(at="look"))
            return
        taken = sum(child in ("due", "running", "ended") for child in s.children)  # as the counts have it
        room = taken < self.at_once
        made = s._replace(children=(*s.children, "due" if room else "turn"))
        if "counts_apart" in self.broken:
            yield "makes a child", self._put(made, i, w._replace(at="count"))
            return
        if "held_at_first" in self.broken and s.children:
            made = s._replace(children=(*s.children, "turn"))
        yield "makes a child", made._replace(started=s.started + 1)

    def _count(self, s: World, i: int, w: Worker) -> Steps:
        yield "counts it", self._put(s._replace(started=s.started + 1), i, w._replace(at="spread"))

    def _look(self, s: World, i: int, w: Worker) -> Steps:
        yield "looks", self._put(s, i, w._replace(at="commit" if s.answered else "park", differs=False))

    def _park(self, s: World, i: int, w: Worker) -> Steps:
        due = w.differs and "no_answers" not in self.broken
        yield "parks", self._put(s._replace(parent=Parent("waiting", due)), i, Worker())

    def _commit(self, s: World, i: int, w: Worker) -> Steps:
        yield "completes", self._put(s._replace(parent=Parent("completed", False)), i, Worker())

    # -- a child's worker

    def _work(self, s: World, i: int, w: Worker) -> Steps:
        ended = self._child(s, w.child, "gone" if "leaves_no_word" in self.broken else "ended")
        yield f"ends child {w.child}", self._put(ended, i, w._replace(at="tell"))

    def _tell(self, s: World, i: int, w: Worker) -> Steps:
        """Of all that have ended, whoever ended them; there may be none left to tell."""
        new = tuple(place for place, child in enumerate(s.children) if child in ("ended", "gone"))
        if "reads_unlocked" in self.broken:
            yield "reads who has ended", self._put(s, i, w._replace(at="write", untold=new))
        else:
            yield "tells the parent", self._put(self._told(s, new), i, Worker())

    def _write(self, s: World, i: int, w: Worker) -> Steps:
        yield "tells the parent", self._put(self._told(s, w.untold), i, Worker())

    def _told(self, s: World, new: tuple[int, ...]) -> World:
        """Counted; the next ones' turn; the last one answers, which counts as an answer and wakes."""
        counted = s.counted + len(new)
        children = ["told" if place in new else child for place, child in enumerate(s.children)]
        ended = s.parent.status in ("completed", "cancelled")
        for _ in new:
            if "turn" in children and not ended:
                children[children.index("turn")] = "due"
        s = s._replace(counted=counted, children=tuple(children))
        if not new or counted < self.total or ended:
            return s
        parent = Parent("waiting", True) if s.parent.status == "waiting" else s.parent
        workers = tuple(
            one._replace(differs=True) if one.at in ("look", "park") else one for one in s.workers
        )
        return s._replace(answered=True, parent=parent, workers=workers)

    # -- how the world is changed

    def _child(self, s: World, place: int, status: str) -> World:
        return s._replace(children=(*s.children[:place], status, *s.children[place + 1 :]))

    def _put(self, s: World, i: int, w: Worker) -> World:
        return s._replace(workers=(*s.workers[:i], w, *s.workers[i + 1 :]))

    def _unseat(self, s: World, which: object) -> World:
        return s._replace(workers=tuple(w._replace(fresh=False) if which(w) else w for w in s.workers))
