"""One write effect, and the calls that are made for it. A call that was sent lands within the tool's limit or never.

`freeze` is the longest stop between a worker's last look at its lease and the call itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import cache
from typing import NamedTuple

from tests.protocol.exploring import Budgets, ahead

LEASE, MARGIN = 2, 1
FENCED = ("intend", "doubt", "record", "let_go", "wait")


class Caller(NamedTuple):
    at: str = "idle"
    fresh: bool = False
    lease: int = 0  # until when, as it knows
    born: int = 0  # when its own try was committed
    checked: int = 0  # when it last looked, or called
    unsure: bool = False  # an earlier try may have happened, and the key is honoured


class World(NamedTuple):
    now: int
    status: str
    leased: int | None
    wake: int | None
    entry: str  # - not tried, open, in doubt, done
    tried: int
    workers: tuple[Caller, Caller]
    under_way: tuple[int, ...]  # until when each call may land
    landed: int
    left: tuple[int, ...]
    bad: str = ""


Steps = Iterator[tuple[str, World]]


class Sending:
    """`broken` names rules that are left out; `honoured`: the provider knows the key; `asks`: there is no reconcile."""

    def __init__(
        self, broken: str = "", *, honoured: bool = False, asks: bool = False, limit: int = 2, freeze: int = 0,
        **budgets: int,
    ) -> None:  # fmt: skip
        self.broken = frozenset(broken.split())
        self.honoured, self.asks, self.limit, self.freeze = honoured, asks, limit, freeze
        self.budgets = Budgets(**({"crash": 1, "beat": 2, "cancel": 0, "retry": 0} | budgets))
        self._caller_key = cache(self._caller_key)  # the same few are asked for in nearly every state

    def start(self) -> World:
        return World(0, "running", None, 0, "-", 0, (Caller(), Caller()), (), 0, self.budgets.full)

    def key(self, s: World) -> Hashable:
        """Relative times, and only those that a worker's place still reads."""
        workers = [self._caller_key(w, s.now) for w in s.workers]
        tried = ahead(s.tried, s.now, -self.limit - LEASE - 1) if s.entry in ("open", "in doubt") else 0
        order = sorted((0, 1), key=lambda i: workers[i])
        leased = None if s.leased is None else order.index(s.leased)
        calls = tuple(until - s.now for until in s.under_way)
        row = (s.status, leased, ahead(s.wake, s.now), s.entry, tried)
        return row, workers[order[0]], workers[order[1]], calls, s.landed, s.left

    def _caller_key(self, w: Caller, now: int) -> Hashable:
        reads_lease = w.at in ("read", "resolve", "intend", "check", "call")
        lease = ahead(w.lease, now) if reads_lease else 0
        born = ahead(w.born, now, -LEASE) if w.at in ("check", "call") else 0
        floor = -max(self.limit, min(self.freeze, 9) + 1)
        checked = ahead(w.checked, now, floor) if w.at in ("call", "sent") else 0
        return w.at, w.fresh, lease, born, checked, w.unsure

    def show(self, s: World) -> str:
        calls = f"{len(s.under_way)} under way, {s.landed} landed"
        return f"t={s.now} {s.status} wake={s.wake} entry {s.entry} tried {s.tried}, {calls}"

    def fault(self, s: World) -> str:
        if s.entry == "-" and s.landed and s.status in ("failed", "cancelled"):
            return "it has happened, and counts as never sent"
        return "the provider had the effect twice, silently" if s.landed > 1 else ""

    def steps(self, s: World) -> Steps:
        yield "time passes", s._replace(now=s.now + 1, under_way=tuple(c for c in s.under_way if c > s.now))
        for place, _ in enumerate(s.under_way):
            rest = s.under_way[:place] + s.under_way[place + 1 :]
            yield "a call lands", s._replace(under_way=rest, landed=1 if self.honoured else s.landed + 1)
        if s.status not in ("cancelled", "completed") and (left := self.budgets.spend(s.left, "cancel")):
            entry = "in doubt" if s.entry == "open" else s.entry
            ended = s._replace(status="cancelled", wake=None, leased=None, entry=entry, left=left)
            yield "it is cancelled", ended._replace(workers=_stale(s))
        if s.entry == "in doubt" and (self._quiet(s) or "settled_early" in self.broken):
            wake = s.now if s.status == "waiting" else s.wake
            if s.landed:
                yield "a person settles: it happened", s._replace(entry="done", wake=wake)
            else:
                yield "a person settles: it did not", s._replace(entry="-", wake=wake)
        if s.status == "cancelled" and s.entry == "-" and "repaired" in self.broken:
            yield "it is repaired", s._replace(status="running", wake=s.now)
        for i in (0, 1):
            for label, after in self._worker(s, i):
                yield f"worker {i} {label}", after

    def _quiet(self, s: World) -> bool:
        """An earlier call cannot be under way any more."""
        return s.now >= s.tried + self.limit + LEASE or "no_quarantine" in self.broken

    def _worker(self, s: World, i: int) -> Steps:
        w = s.workers[i]
        if w.at == "idle":
            if s.wake is not None and s.wake <= s.now:
                workers = list(_stale(s))
                workers[i] = Caller("read", True, s.now + LEASE)
                held = s._replace(status="running", leased=i, wake=s.now + LEASE, workers=tuple(workers))
                yield "claims", held
            return
        if left := self.budgets.spend(s.left, "crash"):
            yield "crashes", _idle(s, i)._replace(left=left)
        if w.fresh and (left := self.budgets.spend(s.left, "beat")):
            beaten = _put(s, i, w._replace(lease=s.now + LEASE))
            yield "sends a heartbeat", beaten._replace(wake=s.now + LEASE, left=left)
        if w.at in FENCED and not w.fresh:
            yield f"may not {w.at}: its result is evidence", _idle(s, i)
        else:
            yield from getattr(self, f"_{w.at}")(s, i, w)

    def _read(self, s: World, i: int, w: Caller) -> Steps:
        at = {"-": "intend", "open": "resolve", "done": "record", "in doubt": "wait"}[s.entry]
        yield f"reads the ledger, will {at}", _put(s, i, w._replace(at=at))

    def _resolve(self, s: World, i: int, w: Caller) -> Steps:
        """It is found tried: what became of that try?"""
        if self.honoured:
            unsure = "forgets" not in self.broken
            yield "will call with the same key", _put(s, i, w._replace(at="intend", unsure=unsure))
        elif not self._quiet(s):
            yield "is too early", _put(s, i, w._replace(at="wait"))
        elif self.asks:
            yield "cannot know", _put(s, i, w._replace(at="doubt"))
        else:
            at = "record" if s.landed else "intend"
            yield f"asks the provider, will {at}", _put(s, i, w._replace(at=at))

    def _intend(self, s: World, i: int, w: Caller) -> Steps:
        after = _put(s, i, w._replace(at="check", born=s.now))
        yield "commits the try", after._replace(entry="open", tried=s.now)

    def _check(self, s: World, i: int, w: Caller) -> Steps:
        alive = w.lease - s.now >= MARGIN or "no_lease_check" in self.broken
        young = s.now - w.born <= LEASE - MARGIN or "no_age_check" in self.broken
        at = "call" if alive and young else "let_go"
        yield f"looks at its lease, will {at}", _put(s, i, w._replace(at=at, checked=s.now))

    def _call(self, s: World, i: int, w: Caller) -> Steps:
        if s.now - w.checked > self.freeze:
            return
        sent = _put(s, i, w._replace(at="sent", checked=s.now))
        yield "calls", sent._replace(under_way=tuple(sorted((*s.under_way, s.now + self.limit))))
        if left := self.budgets.spend(s.left, "retry"):
            if "no_renewal" in self.broken:
                yield (
                    "is refused, tries again",
                    _put(s, i, w._replace(at="check", born=s.now))._replace(left=left),
                )
            elif w.fresh:
                again = _put(s, i, w._replace(at="intend"))
                entry = "open" if w.unsure else "-"
                yield "is refused, and says so", again._replace(entry=entry, left=left)

    def _sent(self, s: World, i: int, w: Caller) -> Steps:
        if s.landed:
            yield "gets the result", _put(s, i, w._replace(at="record"))
        if s.now >= w.checked + self.limit:
            yield "gets no answer in time", _put(s, i, w._replace(at="wait"))

    def _record(self, s: World, i: int, w: Caller) -> Steps:
        yield (
            "records the result",
            _idle(s, i)._replace(entry="done", status="completed", wake=None, leased=None),
        )

    def _let_go(self, s: World, i: int, w: Caller) -> Steps:
        """Nothing was sent: the try is taken back, and another claim goes on."""
        entry = "open" if w.unsure else "-"
        yield "lets the run go", _idle(s, i)._replace(entry=entry, status="running", wake=s.now, leased=None)

    def _wait(self, s: World, i: int, w: Caller) -> Steps:
        wake = None if s.entry == "in doubt" else max(s.now, s.tried + self.limit + LEASE)
        wake = s.now if self.honoured else wake
        yield "parks", _idle(s, i)._replace(status="waiting", wake=wake, leased=None)

    def _doubt(self, s: World, i: int, w: Caller) -> Steps:
        yield (
            "puts it in doubt, parks",
            _idle(s, i)._replace(entry="in doubt", status="waiting", wake=None, leased=None),
        )


def _put(s: World, i: int, w: Caller) -> World:
    return s._replace(workers=(*s.workers[:i], w, *s.workers[i + 1 :]))


def _idle(s: World, i: int) -> World:
    return _put(s, i, Caller())


def _stale(s: World) -> tuple[Caller, ...]:
    return tuple(w._replace(fresh=False) for w in s.workers)
