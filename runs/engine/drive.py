"""Driving a claimed run: node after node, a checkpoint after each, until it parks, ends or is lost."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any  # states are the author's

from runs.core.commands import Command, carry_out, carry_out_async
from runs.core.context import AsyncRun
from runs.core.context import Run as NodeRun
from runs.core.errors import CodecError, DurableError, TooLarge
from runs.core.executor import conclude, excuse, left_open, timed_out
from runs.core.graph import END, Node
from runs.core.outcomes import (
    Compensated,
    Fails,
    LetsGo,
    LinesUp,
    Lost,
    Outcome,
    PutsOff,
    Stepped,
    Stop,
    Waits,
)
from runs.core.questions import Questions
from runs.engine.awaited import next_look
from runs.engine.boundaries import boundary
from runs.engine.carrying import do_async, do_now
from runs.engine.compensating import Compensating
from runs.engine.durably import durably_or_lost
from runs.engine.lease import Lease
from runs.engine.ledger import RowLedger
from runs.engine.migrating import bring_over, node_of_migration
from runs.engine.row_threads import Threads
from runs.models.entry import LedgerEntry

PASSED_OVER = (
    "It is done and stands, but its node did not ask for it when it left the step: look whether what it did instead is "
    "done beside it."
)


@dataclass
class Drive:
    """One claimed run on its way. `most_steps` bounds it (None: as far as it goes); `stop` asks it to hand back."""

    lease: Lease
    rows: list[LedgerEntry]
    most_steps: int | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    inside_node: bool = False
    node_since: float = 0.0
    compensating: Compensating | None = None
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)  # in which the node asks what it asks

    def run(self) -> Outcome | None:
        """Drive in this thread. Returns the outcome that ended the drive, None if the run was handed back."""
        if self.lease.graph.is_async:
            threads = Threads(rows=1)
            try:
                return asyncio.run(self.run_async(threads))
            finally:
                threads.close()
        try:
            while (outcome := self._next(self._execute)) is None:
                if self._enough():
                    self.lease.hand_back("stopping" if self.stop.is_set() else "enough steps")
                    return None
            return outcome
        except Stop as stop:
            return stop.outcome

    async def run_async(self, threads: Threads) -> Outcome | None:
        """The same on an event loop; what waits for the database waits in one of these threads."""
        in_thread = threads.in_row_thread
        try:
            while True:
                if self.lease.ending:
                    questions, outcome = None, await self._compensate_async(threads)
                else:
                    self.tasks.clear()
                    questions, node_run = await in_thread(
                        partial(self._begin, AsyncRun, partial(self._do_async, threads))
                    )
                    outcome = await self._execute_async(questions, node_run, threads)
                if (ended := await in_thread(partial(self._settle, outcome, questions))) is not None:
                    return ended
                if self._enough():
                    await in_thread(partial(self.lease.hand_back, "stopping"))
                    return None
        except Stop as stop:
            return stop.outcome

    def _enough(self) -> bool:
        return self.stop.is_set() or (self.most_steps is not None and self.steps_done >= self.most_steps)

    steps_done: int = 0

    # -- one execution

    def _next(self, execute: Callable[[Questions, NodeRun], Outcome]) -> Outcome | None:
        if self.lease.ending:
            return self._settle(self._compensate())
        questions, node_run = self._begin(NodeRun, do_now)
        return self._settle(execute(questions, node_run), questions)

    def _begin(self, face: type[NodeRun], do: Callable[[Command], Any]) -> tuple[Questions, NodeRun]:
        if self.lease.version != self.lease.graph.version:
            self._migrate()
        questions = Questions(RowLedger(self.lease, self.rows))
        graph, kept = self.lease.graph, self.lease.state
        self.state = graph.renew(kept.tree, kept.lists) if self.steps_done else graph.restore(kept.tree)
        self.node = self.lease.graph.nodes.get(self.lease.node)
        if self.node is None:
            self.lease.fail("bad_state", f"graph {self.lease.graph.name!r} has no node {self.lease.node!r}")
            raise Stop(Fails("bad_state", "no such node"))
        return questions, face(questions, do)

    def _migrate(self) -> None:
        """No node is called before the run has come to the graph's version; it is bounded like one."""
        self.node = node_of_migration(self.lease)
        self._enter()
        try:
            self.rows = bring_over(self.lease, self.rows)
        except Stop as stop:
            self._settle(stop.outcome)
            raise
        finally:
            self._exit()

    def _execute(self, questions: Questions, node_run: NodeRun) -> Outcome:
        node = self.node
        boundary("node")
        self._enter()
        try:
            returned = node.fn(node_run, self.state)
            if (work := left_open(questions)) is not None:
                carry_out(work, do_now)
        except BaseException as error:
            return self._excused(questions, error)
        finally:
            self._exit()
        return conclude(self.lease.graph, node, questions, self.state, returned)

    async def _execute_async(self, questions: Questions, face: NodeRun, threads: Threads) -> Outcome:
        node = self.node
        self._enter()
        try:
            if node.is_async:
                returned = await asyncio.wait_for(self.in_node(face), self._seconds)
            else:
                plain = NodeRun(questions, do_now)
                returned = await threads.in_call_thread(self._seconds, partial(node.fn, plain, self.state))
            if (work := left_open(questions)) is not None:
                finding = carry_out_async(work, partial(do_async, threads, self._seconds))
                await asyncio.wait_for(finding, self._seconds)
        except BaseException as error:
            return self._excused(questions, error)
        finally:
            self._exit()
        return conclude(self.lease.graph, node, questions, self.state, returned)

    async def in_node(self, face: NodeRun) -> Any:
        """Who cancels a task need not wait for it: it ends at the loop's next turn, or after a commit under way."""
        returned = await self.node.fn(face, self.state)
        while ending := [task for task in self.tasks if task.cancelling() and not task.done()]:
            await asyncio.wait(ending)
        return returned

    async def _do_async(self, threads: Threads, command: Command) -> Any:
        self.tasks.add(asyncio.current_task())
        return await do_async(threads, self._seconds, command)

    # -- or, in place of nodes, what undoes the run's writes

    def _compensate(self) -> Outcome:
        part = self._begin_compensation()
        try:
            return Compensated(all=not carry_out(part.next(), do_now))
        except BaseException as error:
            return self._compensation_excused(part, error)
        finally:
            self._exit()

    async def _compensate_async(self, threads: Threads) -> Outcome:
        part = self._begin_compensation()
        try:
            do = partial(do_async, threads, self._seconds)
            return Compensated(all=not await carry_out_async(part.next(), do))
        except BaseException as error:
            return self._compensation_excused(part, error)
        finally:
            self._exit()

    def _begin_compensation(self) -> Compensating:
        boundary("compensate")
        if self.compensating is None:
            self.compensating = Compensating(self.lease, RowLedger(self.lease, self.rows))
        self._enter()
        return self.compensating

    def _compensation_excused(self, part: Compensating, error: BaseException) -> Outcome:
        if isinstance(error, (KeyboardInterrupt, asyncio.CancelledError)):
            raise error  # of this process
        return part.excused(error)

    @property
    def bounds(self) -> Node:
        """What bounds in time what is under way."""
        return self.node if self.compensating is None else self.compensating.node

    @property
    def _seconds(self) -> float:
        return self.bounds.limit.total_seconds()

    def _enter(self) -> None:
        self.node_since, self.inside_node = time.monotonic(), True

    def _exit(self) -> None:
        self.inside_node = False

    def _excused(self, questions: Questions, error: BaseException) -> Outcome:
        if isinstance(error, (KeyboardInterrupt, asyncio.CancelledError)):
            raise error  # of this process, not of the node
        if isinstance(error, TimeoutError) and self.node.is_async and questions.stopped is None:
            error = timed_out(self.node)
        return excuse(self.node, questions, self.lease.attempt + 1, error, questions.ledger.chance())

    # -- its outcome, committed

    def _settle(self, outcome: Outcome, questions: Questions | None = None) -> Outcome | None:
        """Commit an outcome. None: the run is still ours and goes on with its next node."""
        lease = self.lease
        match outcome:
            case Stepped(target, state):
                for entry in questions.passed_over() if questions is not None else ():
                    questions.ledger.remark(entry, "passed_over", PASSED_OVER)
                return self._step(target, state)
            case Waits(keys):
                lease.park(keys, self._wake_at(keys))
            case PutsOff(delay, error, counts):
                lease.put_off(delay, error, counts)
            case LinesUp(delay, reason):
                lease.line_up(delay, reason)
            case Fails(kind, error):
                lease.fail(kind, error)
            case Compensated(all=True):
                lease.compensated()
            case Compensated():
                self.steps_done += 1
                return None
            case LetsGo(reason):
                lease.hand_back(reason)
            case Lost():
                pass
        return outcome

    def _step(self, target: str, state: Any) -> Outcome | None:
        lease = self.lease
        if target != END and lease.step + 1 >= lease.graph.max_steps:
            return self._settle(
                Fails("loop_limit", f"{lease.step + 1} steps; the last node was {lease.node!r}")
            )
        try:
            tree = lease.graph.flatten(state, lease.state.tree, lease.state.lists)
            lease.commit_step(target, tree)
        except TooLarge as error:
            return self._settle(
                Fails("bad_state", f"run {lease.run_id}, state after node {lease.node!r}: {error}")
            )
        except CodecError as error:
            return self._settle(Fails("bad_state", f"node {lease.node!r}: {error}"))
        except DurableError as error:
            return self._settle(Fails(error.error_kind or "permanent", f"node {lease.node!r}: {error}"))
        self.steps_done += 1
        self.rows = []
        return Stepped(END, None) if target == END else None

    def _wake_at(self, keys: tuple[str, ...]) -> Any:
        """When a worker should look though nobody answers: as the rows say now, read after `answers` was."""
        rows = LedgerEntry.objects.filter(run_id=self.lease.run_id, step=self.lease.step + 1, key__in=keys)
        return next_look(durably_or_lost(lambda: list(rows)), self.lease.now())
