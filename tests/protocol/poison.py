"""Two worker processes; job 0 is healthy and has two long nodes, every other kills the process that calls its node.

As in runs/engine/claim.py and shift.py: a run whose last claim ended without word is a suspect and is claimed only by
a process that holds nothing else, which claims nothing more until the suspect has committed a step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

MOST_DEATHS = 3
MOST_KILLS = 5  # of one poison run: the first in company, then MOST_DEATHS + 1 alone
STEPS = 2


class Job(NamedTuple):
    status: str = "due"
    by: int | None = None
    alone: bool = False  # of the claim, and it stays until the claim's end
    deaths: int = 0
    silent: bool = False
    steps: int = 0
    moved: bool = False  # it has committed a step in this claim


class Shop(NamedTuple):
    jobs: tuple[Job, ...]
    kills: int
    orders: int
    bad: str = ""


Steps = Iterator[tuple[str, Shop]]


class Poison:
    """`orders`: how often a process is ended on purpose (a deploy, the watchdog)."""

    def __init__(self, broken: str = "", *, poison: int = 1, orders: int = 0) -> None:
        self.broken, self.poison, self.orders = frozenset(broken.split()), poison, orders

    def start(self) -> Shop:
        return Shop((Job(),) * (1 + self.poison), 0, self.orders)

    def key(self, s: Shop) -> Hashable:
        return s.jobs[0], tuple(sorted(s.jobs[1:], key=repr)), s.kills, s.orders

    def show(self, s: Shop) -> str:
        def job(j: Job) -> str:
            held = "" if j.by is None else f" by {j.by}"
            return f"{j.status}{held}{' alone' * j.alone} deaths={j.deaths}"

        return "; ".join(job(j) for j in s.jobs)

    def fault(self, s: Shop) -> str:
        if s.jobs[0].status == "failed":
            return "a healthy run was failed as poison"
        return "poison killed too many processes" if s.kills > MOST_KILLS * self.poison else ""

    def steps(self, s: Shop) -> Steps:
        for p in (0, 1):
            held = [job for job in s.jobs if job.by == p]
            for k, job in enumerate(s.jobs):
                name = f"poison {k}" if k else "the healthy one"
                if job.status == "due":
                    yield from self._claim(s, p, k, held, name)
                elif job.by == p and k:
                    killed = self._die(s, p)
                    yield f"process {p} calls {name}, and dies", killed._replace(kills=s.kills + 1)
                elif job.by == p:
                    yield f"process {p} commits a step of {name}", self._step(s, k)
            if held and s.orders:
                ended = self._die(s, p, ordered=True)
                yield f"process {p} is ended on purpose", ended._replace(orders=s.orders - 1)

    def _claim(self, s: Shop, p: int, k: int, held: list[Job], name: str) -> Steps:
        job = s.jobs[k]
        if job.deaths > MOST_DEATHS:
            yield f"process {p} fails {name} as poison", self._put(s, k, job._replace(status="failed"))
            return
        if job.silent and held and "shares" not in self.broken:
            return
        if any(other.alone and not other.moved for other in held) and "shares" not in self.broken:
            return
        held_job = job._replace(status="held", by=p, alone=job.silent, moved=False)
        yield f"process {p} claims {name}{', alone' * job.silent}", self._put(s, k, held_job)

    def _step(self, s: Shop, k: int) -> Shop:
        job = s.jobs[k]
        if job.steps + 1 == STEPS:
            return self._put(s, k, Job("completed", steps=STEPS))
        return self._put(s, k, job._replace(steps=job.steps + 1, deaths=0, silent=False, moved=True))

    def _die(self, s: Shop, p: int, ordered: bool = False) -> Shop:
        """The next claims find what it held; those that the supervisor handed back are no deaths."""
        jobs = list(s.jobs)
        for k, job in enumerate(jobs):
            if job.by != p:
                continue
            handed_back = ordered and "orders_count" not in self.broken
            counts = (job.alone or "all_count" in self.broken) and not handed_back
            silent = job.silent or not handed_back
            jobs[k] = job._replace(
                status="due", by=None, alone=False, deaths=job.deaths + counts, silent=silent, moved=False
            )
        return s._replace(jobs=tuple(jobs))

    def _put(self, s: Shop, k: int, job: Job) -> Shop:
        return s._replace(jobs=(*s.jobs[:k], job, *s.jobs[k + 1 :]))
