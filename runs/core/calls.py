"""Calls of tools: what makes two the same, what may not be substituted, and what people approve first."""

from __future__ import annotations

from functools import partial
from typing import Any  # arguments are the author's

from runs.core import codec, effects
from runs.core.ask import Ask
from runs.core.asking import Asking
from runs.core.codec_tree import MARK
from runs.core.commands import Invoke, Work
from runs.core.errors import Diverged, Permanent
from runs.core.keys import AGAIN, following, resolve
from runs.core.ledger import (
    CANCELLED,
    DONE,
    EFFECT,
    FAILED,
    IN_DOUBT,
    INTERRUPT,
    OPEN,
    Entry,
    effect,
    question,
)
from runs.core.outcomes import Fails, Stop, Waits
from runs.core.people import refuse
from runs.core.tool import Call, Tool

ADVICE = "give the call an explicit key if it is the same thing in other words"


class Calls(Asking):
    """The part of a node's questions that change or read the world."""

    def call(self, tool: Tool, key: str | None, approve: Ask | None, arguments: dict[str, Any]) -> Work:
        bound = tool.bind(**arguments)
        base = self.keys.of_call(bound, key)
        name = self._current(base)
        self.asked.add(name)
        self.tools[tool.name] = tool
        if tool.write or approve is not None:
            yield from self.before_more(name)
        if approve is None:
            return (yield from self._effect(bound, name, explicit=key is not None))
        self.asked.add(f"{base}?")
        return (yield from self._gated(bound, base, name, approve, explicit=key is not None))

    def _current(self, base: str) -> str:
        """The key under which this step asks the call now: `:r2` after what a repair has put aside, then `:r3`."""
        name = self.repeats.get(base, base)
        there = self.ledger.entries.get(name)
        anew = there is not None and there.kind == EFFECT and self.is_over(there)
        return following(name, base) if anew else name

    def _effect(
        self,
        call: Call,
        key: str,
        explicit: bool,
        decided_by: str | None = None,
        proposal: Call | None = None,
    ) -> Work:
        entry = self.ledger.entries.get(key)
        if entry is None and explicit:
            key, entry = yield from self._earlier(call, key)
            self.asked.add(key)
        if entry is None:
            self._refuse_divergence(call, key)
            if decided_by is not None:
                self._refuse_unapproved(call, decided_by)
            entry = effect(call, key, self._idempotency_key(key, explicit), decided_by)
            entry.proposal_digest = proposal.digest if proposal is not None else ""
            self.ledger.admit(entry)
        elif entry.request_digest != call.digest or entry.name != call.tool.name:
            yield from self._recorded_wins(entry, call)
        self.stands(entry)
        self.left.discard(entry.key)
        try:
            return (yield from effects.perform(self.ledger, call.tool, entry))
        except Stop:
            raise
        except BaseException:
            self.left.add(entry.key)  # if it has no outcome, and the node goes on
            raise

    def _idempotency_key(self, key: str, explicit: bool) -> str:
        """Unique over all runs: an author's key as written, a derived one below its run and step."""
        return (
            resolve(key, self.ledger.run_id) if explicit else f"{self.ledger.run_id}:{self.ledger.step}:{key}"
        )

    def _earlier(self, call: Call, key: str) -> Work:
        """An explicit key holds in the whole run, and without {run_id} over all runs: (the key, what it holds)."""
        key, held = yield from self._held(key)
        if held is None:
            return key, None
        run_id, entry = held
        if run_id != self.ledger.run_id:
            raise Permanent(
                f"key {key!r} belongs to run {run_id}; put {{run_id}} into the key, or use another"
            )
        if entry.name != call.tool.name or entry.request_digest != call.digest:
            raise Permanent(
                f"key {key!r} was used in step {entry.step} for {entry.name} with other arguments; use another key"
            )
        return key, entry

    def _held(self, key: str) -> Work:
        """(the key under which the run asks it now, who holds that: a run's id and the entry, or None)."""
        base = key
        while (held := (yield partial(self.ledger.holder, resolve(key, self.ledger.run_id)))) is not None:
            run_id, entry = held
            if run_id != self.ledger.run_id or not (entry.past and entry.kind == EFFECT):
                break
            key = following(key, base)
        return key, held

    def _recorded_wins(self, entry: Entry, call: Call) -> Work:
        """An explicit key is the author's word that it is the same thing: what was recorded is what goes out."""
        if entry.name != call.tool.name:
            raise Permanent(
                f"key {entry.key!r} was used for {entry.name}, now for {call.tool.name}; use another key"
            )
        if entry.decided_by is None:
            yield partial(self.ledger.remark, entry, "other_request", call.request)

    def _refuse_divergence(self, call: Call, key: str) -> None:
        """A write is never substituted silently (DESIGN section 4, Keys)."""
        if not call.tool.write or self._is_asked_anew(key):
            return
        for entry in self.ledger.entries.values():
            if not entry.write or entry.name != call.tool.name or entry.key in self.asked or entry.aside:
                continue
            if entry.kind == EFFECT and entry.status in (DONE, OPEN, IN_DOUBT):
                self._diverge(call.request, entry)
            if entry.kind == INTERRUPT and entry.status in (DONE, OPEN):
                self._diverge(call.request, entry)

    def _is_asked_anew(self, key: str) -> bool:
        """Whether a repair has put the same call of this step aside: then it takes the place of that, of no other."""
        found = AGAIN.fullmatch(key)
        before = self.ledger.entries.get(found[1] if found else f"{key.rpartition('?')[0]}?")
        return before is not None and before.past and before.key != key

    def _diverge(self, asked: str, entry: Entry) -> None:
        error = Diverged(asked, f"{entry.key} {entry.request}", ADVICE)
        raise Stop(Fails("diverged", str(error)))

    # -- gated calls

    def _gated(self, call: Call, base: str, key: str, ask: Ask, explicit: bool) -> Work:
        if explicit:
            key, done = yield from self._gated_earlier(call, base, key)
            self.asked.add(key)
            if done is not None:
                return (yield from effects.perform(self.ledger, call.tool, done))
        sent = self.ledger.entries.get(key)
        if (
            sent is not None and sent.decided_by is None and sent.status in (DONE, FAILED)
        ):  # a fork has copied it
            return (yield from self._effect(call, key, explicit))
        unfit: set[str] = set()  # what was decided before a repair, and speaks of something that has changed
        while True:
            asked = yield from self._proposal(call, base, key, ask, unfit)
            approved = self._approved(call.tool, asked)
            if ask.bind is None or self.ledger.entries.get(key) is not None:
                break
            bound = yield Invoke(ask.bind, positional=(call.tool.unpack(approved.request),))
            if codec.dumps(bound) == codec.dumps(asked_about(asked).get("bound")):
                break
            if asked.aside:
                unfit.add(asked.key)
            else:
                yield partial(self.ledger.supersede, asked)
        return (yield from self._effect(approved, key, explicit, decided_by=asked.key, proposal=call))

    def _gated_earlier(self, call: Call, base: str, key: str) -> Work:
        """(the key under which the run asks it now, what an earlier step did under it)."""
        if self.ledger.entries.get(key) is not None or self.ledger.entries.get(f"{base}?") is not None:
            return key, None
        key, held = yield from self._held(key)
        if held is None:
            return key, None
        run_id, entry = held
        proposal = entry.proposal_digest or entry.request_digest
        if run_id == self.ledger.run_id and entry.name == call.tool.name and proposal == call.digest:
            return key, entry
        return (yield from self._earlier(call, key))

    def _proposal(self, call: Call, key: str, effect_key: str, ask: Ask, unfit: set[str]) -> Work:
        """The question `<key>?` of this step, opened if need be; superseded ones are passed over.

        One that was decided before a repair stands if the same is proposed now. Where the call was opened, it is the
        one that the call carries out, whatever is proposed now.
        """
        sent, asked = self.ledger.entries.get(effect_key), None
        name, number = f"{key}?", 1
        if sent is not None and sent.decided_by is not None:
            name = sent.decided_by
            asked = self.ledger.entries[name]
        else:
            while (there := self.ledger.entries.get(name)) is not None:
                asked, number = there, number + 1
                name = f"{key}?{number}"
            if asked is not None and (
                asked.status == CANCELLED or self._is_settled(asked, call) or asked.key in unfit
            ):
                asked = None
            name = name if asked is None else asked.key
        self.asked.add(name)
        if asked is not None and asked.name != call.tool.name:
            raise Permanent(
                f"key {key!r} was proposed for {asked.name}, now for {call.tool.name}; use another key"
            )
        if asked is not None and codec.loads(asked.request)["payload"] != call.arguments:
            yield partial(self.ledger.remark, asked, "other_request", call.request)
        if asked is None:
            self._refuse_divergence(call, name)
            more = {"key": key}
            if ask.bind is not None:
                more["bound"] = yield Invoke(ask.bind, positional=(call.tool.unpack(call.request),))
            schema = ask.schema if ask.schema is not None else call.tool.schema
            if codec.dumps(call.arguments) != call.request:
                raise Permanent(
                    f"{call.tool.name}: an argument holds an object with the key {MARK!r}, which cannot be proposed "
                    "to people; give it another key"
                )
            judged = yield from self.judge(ask, call.request)
            asked = question(ask, name, call.arguments, call, judged, **more)
            request = codec.loads(asked.request)
            request["schema"] = schema
            asked.request = codec.dumps(request)
            asked.request_digest = codec.digest(asked.request)
            asked.name, asked.write = call.tool.name, call.tool.write
            yield partial(self.ledger.ask, asked, ask.due)
        if not (asked.status == DONE and asked.taken):
            raise Stop(Waits((name,)))
        return asked

    def _is_settled(self, asked: Entry, call: Call) -> bool:
        """Whether a repair has put it aside, and what is proposed now is another call, or it got no answer."""
        if not self.is_over(asked):
            return False
        return codec.loads(asked.request)["payload"] != call.arguments or asked.value["outcome"] == "expired"

    def _approved(self, tool: Tool, asked: Entry) -> Call:
        """Exactly what people approved, or what they said instead."""
        answer = asked.value
        refuse(answer, codec.loads(asked.request)["question"])
        call = tool.rebind(answer["payload"])
        if call.digest != asked.approved_digest:
            raise Permanent(f"{tool.name}: what was approved is not what would run; nothing was sent")
        return call

    def _refuse_unapproved(self, call: Call, decided_by: str) -> None:
        if call.digest != self.ledger.entries[decided_by].approved_digest:
            raise Permanent(f"{call.tool.name}: what was approved is not what would run; nothing was sent")


def asked_about(asked: Entry) -> dict[str, Any]:
    return codec.loads(asked.request)["call"] or {}
