"""`crash_everywhere`: kill the worker of a graph at each durable boundary in turn, and compare how it ends."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any  # inputs, answers and states are the author's

from runs.core import codec
from runs.core.graph import Graph
from runs.engine import boundaries, clock
from runs.engine.starting import start
from runs.engine.verify import first_bad_row
from runs.models.entry import LedgerEntry
from runs.models.run import Run
from runs.testing.clock import moved_clock
from runs.testing.driving import Answers, Script, go_on, scripted
from runs.testing.process import Child, Tell, die, in_child
from runs.testing.provider import Happened, Provider
from runs.testing.warm import warm_up

MOST_BOUNDARIES = 5_000
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}")
DIGEST = re.compile(r"(?<=:)[0-9a-f]{8}(?=#\d)")
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


class CrashFound(AssertionError):
    """A kill changed what the run did; the message says at which boundary, and what is different.

    `duplicates`: how often something was done once too often; `report` is what was tried until then.
    """

    def __init__(self, message: str, duplicates: int = 0) -> None:
        super().__init__(message)
        self.duplicates, self.report = duplicates, Report()


@dataclass
class Report:
    """What `crash_everywhere` tried and saw."""

    status: str = ""
    boundaries: list[str] = field(default_factory=list)  # of the run that nobody killed, in order
    kills: int = 0
    effects: dict[str, int] = field(default_factory=dict)  # tool -> calls that changed something, of one run
    repeated: int = 0  # calls that a provider which honours the key was given once more
    in_doubt: int = 0  # questions `<key>!` that had to be answered
    outside: int = 0  # acts of nodes outside of tools, if they are watched, of one run

    def __str__(self) -> str:
        done = ", ".join(f"{tool} x {times}" for tool, times in sorted(self.effects.items())) or "no effect"
        return f"{self.status}: {self.kills} kills at {len(self.boundaries)} boundaries; {done}, each time"


def crash_everywhere(
    graph: Graph,
    input: Any = None,
    answers: Answers | Script | None = None,
    effects: Mapping[str, Callable[..., Any]] | None = None,
    *,
    by: Any = None,
    deaths: int = 1,
    kills: int | range | None = None,
    outside: bool = False,
) -> Report:
    """Run `graph` once unharmed, then once for each boundary at which its process is killed there.

    `input`, `answers` and `by` are those of `drive`; an answer's function must depend on the request alone, for it is
    asked in several processes. `effects` maps names of tools to functions that stand in for theirs. With `deaths` = 2
    the process that recovers is killed as well, as many boundaries later, before a third one ends it. `kills` are
    the most that are made, spread over the boundaries, or the numbers of those to die at, from 1 on; None is one at
    each. With `outside` it watches also what nodes do outside of tools (files, sockets, processes, rows of their own),
    which nothing keeps from being done again.

    Raises CrashFound when a killed run ends otherwise (status, error kind, state; ids and times aside), when a write
    was called twice under one idempotency key (unless its provider honours the key), or when the writes are not those
    of the unharmed run. An explicit key needs `{run_id}`, for every try is a run of its own.
    """
    graph.check()
    warm_up()
    report = Report()
    try:
        _kill_everywhere(report, graph, input, answers, effects or {}, by, deaths, kills, outside)
    except CrashFound as found:
        found.report = report
        raise
    return report


def _kill_everywhere(
    report: Report,
    graph: Graph,
    input: Any,
    answers: Answers | None,
    effects: Mapping[str, Callable[..., Any]],
    by: Any,
    deaths: int,
    kills: int | range | None,
    outside: bool,
) -> None:
    token = os.urandom(4).hex()
    with tempfile.TemporaryDirectory(prefix="crash-everywhere-") as folder:
        tried = _Try(
            graph,
            input,
            answers if callable(answers) else scripted(answers or {}),
            by,
            f"{token}:0",
            Provider(Path(folder, "0"), effects, outside),
        )
        unharmed = tried.live(None).returned
        report.status, report.boundaries = unharmed["status"], unharmed["boundaries"]
        wanted = tried.check_effects("without any kill")
        report.effects = dict(Counter(tool for tool, _ in wanted.elements()))
        acts = tried.provider.acts_outside()
        report.outside = sum(acts.values())
        for number in _spread(len(report.boundaries), kills):
            tried = tried.another(f"{token}:{number}", Path(folder, str(number)))
            child = tried.live(number)
            if not child.killed:
                if kills is None:
                    return
                continue  # this one had fewer boundaries than the unharmed run
            where = f"killed at boundary {number} ({child.told[0]['boundary']!r})"
            for _ in range(deaths - 1):
                child = tried.live(number, child) if child.killed else child
            end = (tried.live(None, child) if child.killed else child).returned
            _compare(unharmed, end, where)
            if (effected := tried.check_effects(where)) != wanted:
                raise CrashFound(
                    f"{where}: the writes are {dict(effected)}, unharmed they are {dict(wanted)}",
                    (effected - wanted).total(),
                )
            if more := tried.provider.acts_outside() - acts:
                raise CrashFound(f"{where}: {_done_again(more, acts)}", more.total())
            report.kills += 1
            report.in_doubt += end["in_doubt"]
            report.repeated += sum(call.again for call in tried.provider.happenings())
    if kills is None:
        raise CrashFound(f"the run has more than {MOST_BOUNDARIES} boundaries; give it a smaller input")


def _spread(boundaries: int, kills: int | range | None) -> Iterable[int]:
    """The numbers of the boundaries to die at: all and one past the last; or so many, the first and last among them."""
    if kills is None:
        return range(1, MOST_BOUNDARIES)
    if isinstance(kills, range):
        return [number for number in kills if 1 <= number <= boundaries]
    kills = min(kills, boundaries)
    if kills == 1:
        return [boundaries // 2 + 1]
    return [1 + round(place * (boundaries - 1) / (kills - 1)) for place in range(kills)]


def _done_again(more: Counter[tuple[str, str]], before: Counter[tuple[str, str]]) -> str:
    """What a node did once more, outside of any tool."""
    (node, act), times = more.most_common(1)[0]
    unharmed = before[node, act]
    return (
        f"node {node!r} did {act} {unharmed + times} times, unharmed {unharmed}. What a node does outside of a tool is"
        " done again when it is executed again; make it a tool, which run.call calls once"
    )


@dataclass
class _Try:
    """One run and its processes."""

    graph: Graph
    input: Any
    script: Script
    by: Any
    key: str
    provider: Provider

    def another(self, key: str, journal: Path) -> _Try:
        provider = Provider(journal, self.provider.stand_ins, self.provider.watches_outside)
        return _Try(self.graph, self.input, self.script, self.by, key, provider)

    def live(self, at: int | None, before: Child | None = None) -> Child:
        """A process that drives the run on, and dies at its boundary number `at`; it inherits the time of `before`."""
        ahead = before.told[-1]["ahead"] if before is not None else 0.0

        def work(tell: Tell) -> dict[str, Any]:
            with moved_clock() as moved, self.provider.in_place(self.graph):
                moved.move(ahead)
                bomb = boundaries.on_boundary = _Bomb(at, tell)
                # the one who started it got no answer, so asks again with the same key
                run = start(self.graph, self.input, key=f"crash:{self.key}", by=self.by)
                return _end(go_on(run, self.graph, self._answer)) | {"boundaries": bomb.names}

        return in_child(work)

    def check_effects(self, where: str) -> Counter[tuple[str, str]]:
        """(tool, request) of every write that did something. Raises CrashFound if one did it twice."""
        performed = [call for call in self.provider.happenings() if call.write and not call.again]
        for key, times in Counter(call.key for call in performed).items():
            if times > 1:
                said = f"{where}: {key!r} was called {times} times; a write happens once"
                raise CrashFound(said, times - 1)
        return Counter((call.tool, _masked(call)) for call in performed)

    def _answer(self, entry: LedgerEntry, request: dict[str, Any]) -> dict[str, Any] | None:
        return self.script(entry, request) or self.provider.truth(entry, request)


class _Bomb:
    """Counts the boundaries of its process, from all threads, and kills it at the one it is set to."""

    def __init__(self, at: int | None, tell: Tell) -> None:
        self.at, self.tell = at, tell
        self.names: list[str] = []
        self.counting = threading.Lock()

    def __call__(self, name: str) -> None:
        with self.counting:
            self.names.append(name)
            if len(self.names) == self.at:
                self.tell({"boundary": name, "ahead": clock.AHEAD / timedelta(seconds=1)})
                die()


def _end(run: Run) -> dict[str, Any]:
    """What must be the same, and whether the trail holds."""
    """Of all its family: a child's trail, and what is in doubt there, count as the run's own."""
    members = Run.objects.filter(root=run.root).order_by("pk")
    asked = LedgerEntry.objects.filter(run__in=members, settles__isnull=False).count()
    broken = ((member, first_bad_row(member)) for member in members)
    state = codec.encode(run.state_at(), sort=True)
    return {
        "status": run.status,
        "error_kind": run.error_kind,
        "node": run.node,
        "step": run.step,
        "state": MOMENT.sub("{time}", UUID.sub("{id}", state)),
        "trail": next((f"{row} (run {member.short_id})" for member, row in broken if row), None),
        "in_doubt": asked,
        "error": run.error,
    }


def _compare(unharmed: dict[str, Any], end: dict[str, Any], where: str) -> None:
    if end["trail"] is not None:
        raise CrashFound(f"{where}: the run's trail does not hold: {end['trail']}")
    for name in ("status", "error_kind", "node", "step", "state"):
        if end[name] != unharmed[name]:
            error = f"\n{end['error']}" if end["error"] else ""
            raise CrashFound(f"{where}: {name} is {end[name]!r}, unharmed it is {unharmed[name]!r}{error}")


def _masked(call: Happened) -> str:
    """Also without the digests in the keys that a compensation names: they are of arguments that may hold an id."""
    return DIGEST.sub("{digest}", MOMENT.sub("{time}", UUID.sub("{id}", call.request)))
