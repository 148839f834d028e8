"""One run that waits for people: queue, answers, undo, expiry. Its node asks two questions in one gather.

A is a decision with a deadline and an undo window, B one that is effective at once (or is left out), or a call that was
sent and is under way until it is due; after that its outcome can be found out. The claim is one
action, as in runs/engine/claim.py: under the run's lock it expires what is overdue, and unless all that the run waits
for is complete and effective it parks the run again without calling the node.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache

from tests.protocol.exploring import Budgets, ahead, earliest
from tests.protocol.waiting_run import Entry, Run, Worker, World, entry_key, is_ready, next_look

LEASE = 2
RETRY_DELAY = 2
ENDED = ("completed", "cancelled")
WRITES = ("open", "park", "commit")


NO_B = Entry("x", None, 0, True)
Steps = Iterator[tuple[str, World]]


class Waits:
    """`broken` names rules that are left out. Budgets: how often each event may happen (-1: any number)."""

    def __init__(
        self, broken: str = "", *, b: bool = True, due: int | None = 3, due_b: int | None = None, window: int = 2,
        call: bool = False, **budgets: int,
    ) -> None:  # fmt: skip
        self.broken = frozenset(broken.split())
        self.calls, self.asks_b, self.due, self.due_b, self.window = call, b, due, due_b, window
        some = {"decide": 1, "again": 0, "undo": 1, "other": 1, "cancel": 0}
        some |= {"crash": 0, "beat": 0, "retry": 0, "back": 0, "branch": 0, "rounds": 0}
        self.budgets = Budgets(**(some | budgets))
        self._worker_key = cache(self._worker_key)

    def start(self) -> World:
        created = Run("created", None, 0)
        return World(0, created, Entry(), self._no_b(), (Worker(), Worker()), self.budgets.full)

    def key(self, s: World) -> Hashable:
        run, now = s.run, s.now
        workers = [self._worker_key(w, now) for w in s.workers]
        order = sorted((0, 1), key=lambda i: hash(workers[i]))  # the workers are alike
        leased = None if run.leased is None else order.index(run.leased)
        row = (run.status, leased, ahead(run.wake, now), ahead(run.end, now))
        return (
            row,
            entry_key(s.a, now),
            entry_key(s.b, now),
            workers[order[0]],
            workers[order[1]],
            s.left,
            s.bad,
        )

    def show(self, s: World) -> str:
        def entry(e: Entry) -> str:
            words = [
                e.status,
                f"due {e.due}" * (e.due is not None),
                f"effective {e.effective}" * (e.status == "d"),
            ]
            return " ".join(word for word in [*words, "taken" * e.taken] if word)

        return f"t={s.now} {s.run.status} wake={s.run.wake} A[{entry(s.a)}] B[{entry(s.b)}]"

    def fault(self, s: World) -> str:
        run = s.run
        if run.status in ENDED:
            if run.wake is not None:
                return f"{run.status} with a wake_at"
            return f"{run.status} with an open entry" if "o" in (s.a.status, s.b.status) else ""
        if run.status != "waiting":
            if run.wake is None:
                return f"{run.status} without a wake_at"
            robbed = run.leased is not None and run.wake < run.end
            return "a live lease was shortened" if robbed else ""
        moment = next_look(s.a, s.b, s.now)
        if moment is not None and (run.wake is None or run.wake > max(moment, s.now)):
            return f"a lost or late wake: true at {moment}, wake_at {run.wake}"
        return ""

    def steps(self, s: World) -> Steps:
        yield "time passes", s._replace(now=s.now + 1)
        yield from self._people(s)
        for i in (0, 1):
            for label, after in self._worker(s, i):
                yield f"worker {i} {label}", after

    # -- people

    def _people(self, s: World) -> Steps:
        a, now = s.a, s.now
        budget = "again" if a.undone else "decide"
        if a.status == "o" and (left := self.budgets.spend(s.left, budget)):
            effective = now + self.window
            if a.due is None or now < a.due:
                decided = a._replace(status="d", effective=effective)
                yield "A is decided", self._answered(s, effective)._replace(a=decided, left=left)
            elif "clock_before_lock" in self.broken:
                yield "A is decided late", s._replace(bad="a decision after the deadline became the outcome")
        if (
            s.b.status == "o"
            and (s.b.due is None or now < s.b.due)
            and (left := self.budgets.spend(s.left, "other"))
        ):
            decided = s.b._replace(status="d", effective=now)
            yield "B is decided", self._answered(s, now)._replace(b=decided, left=left)
        may_undo = not a.taken or "undo_taken" in self.broken
        if a.status == "d" and may_undo and (left := self.budgets.spend(s.left, "undo")):
            if s.run.status not in ENDED or "undo_ended" in self.broken:
                yield from self._undo(s._replace(left=left))
        if s.run.status not in ENDED and (left := self.budgets.spend(s.left, "cancel")):
            cancelled = self._fence(s, Run("cancelled"))
            yield "it is cancelled", cancelled._replace(a=self._closed(s.a), b=self._closed(s.b), left=left)

    def _undo(self, s: World) -> Steps:
        a = s.a
        bad = "undone after a node had acted on it" if a.seen else ""
        if a.due is not None and s.now >= a.due:
            expired = a._replace(status="x", effective=s.now, undone=a.undone + 1)
            yield "A is undone, too late: it expires", self._answered(s, s.now)._replace(a=expired, bad=bad)
            return
        after = s if "undo_silent" in self.broken else self._answered(s, a.due)
        reopened = a._replace(status="o", effective=None, taken=False, undone=a.undone + 1)
        yield "A is undone", after._replace(a=reopened, bad=bad)

    def _answered(self, s: World, at: int | None) -> World:
        """answers + 1; a run that waits looks at the latest at `at`."""
        workers = tuple(w if w.at == "idle" else w._replace(differs=True) for w in s.workers)
        run = s.run
        if at is not None and (run.status == "waiting" or "wakes_any" in self.broken):
            run = run._replace(wake=earliest(run.wake, at))
        return s._replace(run=run, workers=workers)

    # -- workers

    def _worker(self, s: World, i: int) -> Steps:
        w = s.workers[i]
        if w.at == "idle" or self._is_lost(w):
            if s.run.wake is not None and s.run.wake <= s.now:
                yield from self._claim(s, i)
        elif not w.fresh and w.at in WRITES:
            yield f"{w.at}s without its fence", s._replace(bad="committed by a worker that lost its claim")
        else:
            yield from getattr(self, f"_{w.at}")(s, i, w)
        if w.at != "idle":
            if left := self.budgets.spend(s.left, "crash"):
                yield "crashes", self._idle(s, i)._replace(left=left)
            if w.fresh and not w.beating and (left := self.budgets.spend(s.left, "beat")):
                yield "sends a heartbeat", self._put(s, i, w._replace(beating=1))._replace(left=left)
        if w.beating:
            yield from self._beat(s, i, w)

    def _is_lost(self, w: Worker) -> bool:
        """About to write with an old fence: it changes nothing, and the worker may claim anew."""
        return not w.fresh and w.at in WRITES and "no_fence" not in self.broken

    def _claim(self, s: World, i: int) -> Steps:
        run, now = s.run, s.now
        bad = "a holder with a live lease was robbed" if run.leased is not None and now < run.end else ""
        s = s._replace(bad=bad)
        if run.leased is not None:
            yield "recovers a lost claim", self._fence(s, Run("running", None, now))
            return
        a, b = s.a, s.b
        if run.status == "waiting":
            a, b = self._expired(a, now), self._expired(b, now)
            if not (is_ready(a, now) and is_ready(b, now)) and "goes_on" not in self.broken:
                wake = next_look(a, b, now, self.broken)
                busy = (
                    "parked as due, with nothing to do: a busy loop"
                    if wake is not None and wake <= now
                    else bad
                )
                yield "claims, parks again", s._replace(run=run._replace(wake=wake), a=a, b=b, bad=busy)
                return
        a, b = self._stamped(a, now), self._stamped(b, now)
        status = "waiting" if "keeps_status" in self.broken and run.status == "waiting" else "running"
        held = Run(status, i, now + LEASE, now + LEASE)
        worker = Worker("node", True, view=(a, b), woken=run.status == "waiting")
        yield "claims", self._fence(s, held, i, worker)._replace(a=a, b=b)

    def _node(self, s: World, i: int, w: Worker) -> Steps:
        """The author's code: it goes on with what its claim had taken, and waits for the rest."""
        a, b = w.view
        bad = s.bad
        if a.taken and a.status == "d" and a.step == s.a.step:
            bad = "a node acted on an answer that was undone" if s.a.undone != a.undone else bad
            bad = "a node acted inside the undo window" if a.effective > s.now else bad
            s = s._replace(a=s.a if bad else s.a._replace(seen=True), bad=bad)
        if "-" in (a.status, b.status):
            yield "asks", self._put(s, i, w._replace(at="open"))
        elif a.taken and b.taken:
            yield "has all answers", self._put(s, i, w._replace(at="commit"))
        else:
            bad = "called a node that still has to wait" if w.woken and w.fresh else s.bad
            yield "has to wait", self._put(s, i, w._replace(at="look"))._replace(bad=bad)
            if left := self.budgets.spend(s.left, "branch"):
                yield "takes another branch", self._put(s, i, w._replace(at="commit"))._replace(left=left)
        if w.fresh and (left := self.budgets.spend(s.left, "retry")):
            yield (
                "fails, tries later",
                self._leave(s, i, Run("retrying", None, s.now + RETRY_DELAY))._replace(left=left),
            )
        if w.fresh and (left := self.budgets.spend(s.left, "back")):
            yield "hands back", self._leave(s, i, Run("running", None, s.now))._replace(left=left)

    def _open(self, s: World, i: int, w: Worker) -> Steps:
        """One question a commit; between the two anything may happen."""
        a, b = w.view
        if a.status == "-":
            due = None if self.due is None else s.now + self.due
            asked = Entry("o", due, undone=s.a.undone, step=s.a.step)
            view, after = (asked, b), s._replace(a=asked)
        else:
            asked = Entry("q" if self.calls else "o", None if self.due_b is None else s.now + self.due_b)
            view, after = (a, asked), s._replace(b=asked)
        at = "open" if "-" in (view[0].status, view[1].status) else "look"
        yield "opens an entry", self._put(after, i, w._replace(at=at, view=view))

    def _look(self, s: World, i: int, w: Worker) -> Steps:
        """When to wake though nobody answers: read without a lock, after `answers` was."""
        wake = next_look(s.a, s.b, s.now, self.broken)
        at = "number" if "number_late" in self.broken else "park"
        yield "looks when to wake", self._put(s, i, w._replace(at=at, wake=wake))

    def _number(self, s: World, i: int, w: Worker) -> Steps:
        yield "reads answers, too late", self._put(s, i, w._replace(at="park", differs=False))

    def _park(self, s: World, i: int, w: Worker) -> Steps:
        differs = w.differs and "no_answers" not in self.broken
        yield "parks", self._leave(s, i, Run("waiting", None, s.now if differs else w.wake))

    def _commit(self, s: World, i: int, w: Worker) -> Steps:
        if left := self.budgets.spend(s.left, "rounds"):
            fresh = (Entry(step=s.a.step + 1), self._no_b())
            after = self._put(s, i, w._replace(at="node", view=fresh, woken=False))
            yield "commits the step", after._replace(a=fresh[0], b=fresh[1], left=left)
            return
        after = self._leave(s, i, Run("completed"))
        yield "completes", after._replace(a=self._closed(s.a), b=self._closed(s.b))

    def _beat(self, s: World, i: int, w: Worker) -> Steps:
        run = s.run
        lands = w.beating == 1 and run.leased == i and run.status == "running"
        lands = lands or "beat_bare" in self.broken and run.status not in ENDED
        if lands:
            s = s._replace(run=run._replace(wake=s.now + LEASE, end=s.now + LEASE))
        yield f"heartbeat {'lands' if lands else 'moves nothing'}", self._put(s, i, w._replace(beating=0))

    # -- how the world is changed

    def _no_b(self) -> Entry:
        return Entry() if self.asks_b else NO_B

    def _fence(self, s: World, run: Run, i: int | None = None, worker: Worker | None = None) -> World:
        """Whoever held the run is stale; a heartbeat under way carries the old number."""
        workers = [w._replace(fresh=False, beating=2 if w.beating else 0) for w in s.workers]
        if i is not None and worker is not None:
            workers[i] = worker._replace(beating=workers[i].beating)
        return s._replace(run=run, workers=tuple(workers))

    def _put(self, s: World, i: int, w: Worker) -> World:
        return s._replace(workers=(*s.workers[:i], w, *s.workers[i + 1 :]))

    def _idle(self, s: World, i: int) -> World:
        return self._put(s, i, Worker(beating=s.workers[i].beating))

    def _leave(self, s: World, i: int, run: Run) -> World:
        return self._idle(s._replace(run=run), i)

    def _closed(self, e: Entry) -> Entry:
        return e._replace(status="c") if e.status == "o" and "leaves_open" not in self.broken else e

    def _expired(self, e: Entry, now: int) -> Entry:
        overdue = e.status == "o" and e.due is not None and e.due <= now
        return e._replace(status="x", effective=now) if overdue else e

    def _stamped(self, e: Entry, now: int) -> Entry:
        if e.status == "q":
            return e._replace(status="d", effective=now, taken=True) if is_ready(e, now) else e
        late = e.effective is not None and e.effective > now and "no_effective" not in self.broken
        return e._replace(taken=True) if e.status in "dx" and not late else e

    def _worker_key(self, w: Worker, now: int) -> Hashable:
        if w.at == "idle" or self._is_lost(w):
            return "idle", w.beating
        view = None if w.view is None else tuple(entry_key(e, now) for e in w.view)
        wake = ahead(w.wake, now) if w.at in ("number", "park") else None
        return w.at, w.fresh, w.differs and w.fresh, w.woken and w.at == "node", view, wake, w.beating
