"""One run that waits for a signal, round after round, each time with a deadline; and the mailbox that it reads.

As in runs/engine/waiting.py and claim.py: whoever looks holds the run's lock, so a look is one action. It reads the
oldest unread signal that came before the deadline, or else lets the wait time out once the deadline has passed. A
timer is the same wait without signals (budget 0).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from tests.protocol.exploring import Budgets, ahead, earliest
from tests.protocol.waiting_run import Run

LEASE = 2
RETRY_DELAY = 2


class Mail(NamedTuple):
    at: int
    read: int = 0  # how often


class Wait(NamedTuple):
    """- not open, o open, r a signal was read, t timed out."""

    status: str = "-"
    due: int | None = None


class Worker(NamedTuple):
    at: str = "idle"
    fresh: bool = False  # its fence is the run's
    differs: bool = False  # the run's answers are not the number that it read
    view: Wait = Wait()
    wake: int | None = None  # what it is about to park with
    found: int | None = None  # which signal it is about to read, where a rule is left out
    beating: int = 0  # 1: a heartbeat with the present fence is under way, 2: with an older one


class World(NamedTuple):
    now: int
    run: Run
    wait: Wait
    mail: tuple[Mail, ...]
    answered: int  # waits that a signal ended
    round: int
    workers: tuple[Worker, Worker]
    left: tuple[int, ...]
    bad: str = ""


Steps = Iterator[tuple[str, World]]


class Mailbox:
    """`broken` names rules that are left out; `due` is the deadline of each wait."""

    def __init__(self, broken: str = "", *, due: int | None = 2, rounds: int = 1, **budgets: int) -> None:
        self.broken, self.due, self.rounds = frozenset(broken.split()), due, rounds
        self.budgets = Budgets(**({"signal": 1, "crash": 0, "beat": 0, "retry": 0} | budgets))

    def start(self) -> World:
        return World(0, Run("created", None, 0), Wait(), (), 0, 1, (Worker(), Worker()), self.budgets.full)

    def key(self, s: World) -> Hashable:
        run, now = s.run, s.now
        workers = [self._worker_key(w, now) for w in s.workers]
        order = sorted((0, 1), key=lambda i: hash(workers[i]))
        leased = None if run.leased is None else order.index(run.leased)
        row = (run.status, leased, ahead(run.wake, now), ahead(run.end, now))
        mail = tuple((one.read, s.wait.due is None or one.at < s.wait.due) for one in s.mail)
        wait = self._wait_key(s.wait, now)
        return row, wait, mail, s.answered, s.round, workers[order[0]], workers[order[1]], s.left, s.bad

    def _wait_key(self, wait: Wait, now: int) -> Hashable:
        return wait.status, ahead(wait.due, now) if wait.status == "o" else None

    def _worker_key(self, w: Worker, now: int) -> Hashable:
        wake = ahead(w.wake, now) if w.at == "park" else None
        view = self._wait_key(w.view, now) if w.at != "idle" else None
        return w.at, w.fresh, w.differs and w.fresh, view, wake, w.found, w.beating

    def show(self, s: World) -> str:
        mail = " ".join(f"{one.at}:{'read' if one.read else 'unread'}" for one in s.mail)
        wait = f"{s.wait.status} due {s.wait.due}"
        return f"t={s.now} {s.run.status} wake={s.run.wake} round {s.round} wait[{wait}] mail[{mail}]"

    def fault(self, s: World) -> str:
        run, wait = s.run, s.wait
        if any(one.read > 1 for one in s.mail):
            return "a signal was read twice"
        if sum(one.read for one in s.mail) != s.answered and "two_commits" not in self.broken:
            return "a signal was read, and no wait has it"
        if run.status == "completed":
            lost = sum(one.read for one in s.mail) != s.answered
            return "a signal was lost" if lost else ""
        if run.status != "waiting":
            if run.status in ("running", "retrying") and run.wake is not None and run.wake < run.end:
                return "a lease or a back-off was shortened"
            return "" if run.wake is not None else f"{run.status} without a wake_at"
        if wait.status != "o":
            return "" if run.wake is not None else "a lost wake: the wait is over"
        there = any(not one.read and (wait.due is None or one.at < wait.due) for one in s.mail)
        moment = s.now if there else wait.due
        late = moment is not None and (run.wake is None or run.wake > max(moment, s.now))
        return f"a lost or late wake: true at {moment}, wake_at {run.wake}" if late else ""

    def steps(self, s: World) -> Steps:
        yield "time passes", s._replace(now=s.now + 1)
        if s.run.status != "completed" and (left := self.budgets.spend(s.left, "signal")):
            yield "a signal comes", self._signalled(s)._replace(left=left)
        for i in (0, 1):
            for label, after in self._worker(s, i):
                yield f"worker {i} {label}", after

    def _signalled(self, s: World) -> World:
        """Only a row, answers + 1, and a run that waits looks now."""
        wakes = {"waiting"}
        wakes |= {"running"} if "wakes_running" in self.broken else set()
        wakes |= {"retrying"} if "wakes_retrying" in self.broken else set()
        run = s.run._replace(wake=earliest(s.run.wake, s.now)) if s.run.status in wakes else s.run
        workers = tuple(w if w.at == "idle" else w._replace(differs=True) for w in s.workers)
        return s._replace(mail=(*s.mail, Mail(s.now)), run=run, workers=workers)

    # -- the look

    def _found(self, s: World, wait: Wait) -> int | None:
        """The oldest unread signal that ends the wait."""
        for place, one in enumerate(s.mail):
            in_time = wait.due is None or one.at < wait.due or "late_counts" in self.broken
            if not one.read and in_time:
                return place
        return None

    def _looked(self, s: World, wait: Wait) -> World:
        over = wait.due is not None and wait.due <= s.now
        if over and "clock_first" in self.broken:
            return self._timed_out(s, wait)
        if (place := self._found(s, wait)) is not None:
            return self._read(s, wait, place)
        return self._timed_out(s, wait) if over else s._replace(wait=wait)

    def _read(self, s: World, wait: Wait, place: int) -> World:
        one = s.mail[place]
        late = wait.due is not None and one.at >= wait.due
        mail = (*s.mail[:place], one._replace(read=one.read + 1), *s.mail[place + 1 :])
        bad = "a signal that came too late ended the wait" if late else s.bad
        return s._replace(mail=mail, wait=wait._replace(status="r"), answered=s.answered + 1, bad=bad)

    def _timed_out(self, s: World, wait: Wait) -> World:
        in_time = any(not one.read and one.at < wait.due for one in s.mail)
        bad = "it timed out, and a signal had come in time" if in_time else s.bad
        return s._replace(wait=wait._replace(status="t"), bad=bad)

    # -- workers

    def _worker(self, s: World, i: int) -> Steps:
        w = s.workers[i]
        if w.at == "idle":
            if s.run.wake is not None and s.run.wake <= s.now:
                yield from self._claim(s, i)
        elif not w.fresh and "no_fence" not in self.broken:
            yield "finds that it lost its claim", self._put(s, i, Worker(beating=w.beating))
        else:
            yield from getattr(self, f"_{w.at}")(s, i, w)
        if w.at != "idle" and (left := self.budgets.spend(s.left, "crash")):
            yield "crashes", self._put(s, i, Worker(beating=w.beating))._replace(left=left)
        if w.fresh and not w.beating and (left := self.budgets.spend(s.left, "beat")):
            yield "sends a heartbeat", self._put(s, i, w._replace(beating=1))._replace(left=left)
        if w.beating:
            yield from self._beat(s, i, w)

    def _claim(self, s: World, i: int) -> Steps:
        if s.run.leased is not None:
            yield "recovers a lost claim", self._fence(s, Run("running", None, s.now, s.now))
            return
        if s.run.status == "waiting" and s.wait.status == "o":
            s = self._looked(s, s.wait)
            if s.wait.status == "o":
                bad = "a busy loop" if s.wait.due is not None and s.wait.due <= s.now else s.bad
                parked = s.run._replace(wake=s.wait.due)
                yield "claims, parks again", s._replace(run=parked, bad=bad)
                return
        end = s.now + LEASE
        yield "claims", self._fence(s, Run("running", i, end, end), i, Worker("ask", True, view=s.wait))

    def _ask(self, s: World, i: int, w: Worker) -> Steps:
        """`wait_for`: opened if need be, and looked at, in one transaction."""
        if w.view.status in ("r", "t"):
            yield "has its answer", self._put(s, i, w._replace(at="commit"))
            return
        due = None if self.due is None else s.now + self.due
        wait = s.wait if s.wait.status != "-" else Wait("o", due)
        if wait.status == "o" and "unlocked" in self.broken and (place := self._found(s, wait)) is not None:
            yield "finds a signal", self._put(s._replace(wait=wait), i, w._replace(at="take", found=place))
            return
        if (
            wait.status == "o"
            and "two_commits" in self.broken
            and (place := self._found(s, wait)) is not None
        ):
            marked = self._read(s, wait, place)._replace(wait=wait, answered=s.answered)
            yield "marks a signal as read", self._put(marked, i, w._replace(at="answer"))
            return
        after = self._looked(s, wait) if wait.status == "o" else s
        at = "commit" if after.wait.status in ("r", "t") else "wake"
        yield "looks", self._put(after, i, w._replace(at=at, view=after.wait))
        if left := self.budgets.spend(s.left, "retry"):
            later = s.now + RETRY_DELAY
            yield (
                "fails, tries later",
                self._leave(s, i, Run("retrying", None, later, later))._replace(left=left),
            )

    def _take(self, s: World, i: int, w: Worker) -> Steps:
        taken = self._read(s, s.wait, w.found)
        yield "reads what it had found", self._put(taken, i, w._replace(at="commit", view=taken.wait))

    def _answer(self, s: World, i: int, w: Worker) -> Steps:
        wait = s.wait._replace(status="r")
        after = s._replace(wait=wait, answered=s.answered + 1)
        yield "answers the wait", self._put(after, i, w._replace(at="commit", view=wait))

    def _wake(self, s: World, i: int, w: Worker) -> Steps:
        yield "looks when to wake", self._put(s, i, w._replace(at="park", wake=w.view.due))

    def _park(self, s: World, i: int, w: Worker) -> Steps:
        differs = w.differs and "no_answers" not in self.broken
        yield "parks", self._leave(s, i, Run("waiting", None, s.now if differs else w.wake))

    def _commit(self, s: World, i: int, w: Worker) -> Steps:
        if s.round < self.rounds:
            after = s._replace(wait=Wait(), round=s.round + 1)
            yield "commits the step", self._put(after, i, w._replace(at="ask", view=Wait()))
        else:
            yield "completes", self._leave(s, i, Run("completed"))

    def _beat(self, s: World, i: int, w: Worker) -> Steps:
        run = s.run
        lands = w.beating == 1 and run.leased == i and run.status == "running"
        lands = lands or "beat_bare" in self.broken and run.status != "completed"
        if lands:
            s = s._replace(run=run._replace(wake=s.now + LEASE, end=s.now + LEASE))
        yield f"heartbeat {'lands' if lands else 'moves nothing'}", self._put(s, i, w._replace(beating=0))

    # -- how the world is changed

    def _fence(self, s: World, run: Run, i: int | None = None, worker: Worker | None = None) -> World:
        workers = [w._replace(fresh=False, beating=2 if w.beating else 0) for w in s.workers]
        if i is not None and worker is not None:
            workers[i] = worker._replace(beating=workers[i].beating)
        return s._replace(run=run, workers=tuple(workers))

    def _put(self, s: World, i: int, w: Worker) -> World:
        return s._replace(workers=(*s.workers[:i], w, *s.workers[i + 1 :]))

    def _leave(self, s: World, i: int, run: Run) -> World:
        return self._put(s._replace(run=run), i, Worker(beating=s.workers[i].beating))
