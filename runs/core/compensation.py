"""What undoes a call: a tool that gets what the call was given and what it returned."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any  # arguments and results are the author's

from runs.core import codec
from runs.core.keys import COMPENSATES
from runs.core.ledger import EFFECT, Entry
from runs.core.tool import COMPENSATION_TAKES, Tool


@dataclass(frozen=True, eq=False)
class Compensation(Tool):
    """Takes what it names of `arguments` (a dict, as the tool it undoes took them) and `result`."""

    undoes: Tool | None = None

    @classmethod
    def of(cls, made: Tool) -> Compensation:
        """That of a tool which declares one."""
        own = {each.name: getattr(made.compensate, each.name) for each in fields(Tool)}
        return cls(**own, undoes=made)

    def unpack(self, request: str) -> dict[str, Any]:
        """The stored request as the function takes it."""
        assert self.undoes is not None, "made by `of`"
        stored = codec.decode(request)
        given = {
            "arguments": self.undoes.unpack(codec.encode(stored["arguments"])),
            "result": codec.restore(stored["result"]),
        }
        return {name: given[name] for name in COMPENSATION_TAKES if name in self.arguments.model_fields}


def entry_of_compensation(done: Entry, run_id: str) -> Entry:
    """The entry of what undoes a done write, not opened yet: an effect with a key of its own.

    Its request holds all that the call was given and returned, so that people see what is undone.
    """
    key = f"{COMPENSATES}{done.step}:{done.key}"
    request = codec.encode(
        {
            "undoes": {"step": done.step, "key": done.key, "tool": done.name},
            "arguments": codec.decode(done.request),
            "result": codec.decode(done.result) if done.result is not None else None,
        },
        sort=True,
    )
    return Entry(
        key,
        EFFECT,
        done.compensation,
        request,
        codec.digest(request),
        write=True,
        idempotency_key=f"{run_id}:{key}",
        compensates=done.id,
    )
