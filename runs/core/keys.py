"""Ledger keys: what makes a question the same question in the next execution (DESIGN section 4, Keys)."""

from __future__ import annotations

from runs.core.errors import Permanent
from runs.core.tool import Call
from runs.core.words import is_storable

COMPENSATES = "compensate:"  # begins the key of a compensation: compensate:<step>:<key>
KEY_LENGTH = 160  # leaves room for what is added: "?", "!", "~2", ":r2"


class Keys:
    """The keys asked for in one execution."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.explicit: set[str] = set()

    def of_call(self, call: Call, key: str | None) -> str:
        """Name, eight hex digits of the arguments' digest, count among equals; or the author's own key."""
        if key is not None:
            return self.named(key, "key")
        return self.counted(f"{call.tool.name}:{call.digest[:8]}")

    def named(self, key: str, what: str) -> str:
        _check(key, what)
        if key in self.explicit:
            raise Permanent(f"{what} {key!r} was asked twice in one execution; each needs its own")
        self.explicit.add(key)
        return key

    def counted(self, stem: str) -> str:
        _check(stem, "name")
        self.counts[stem] = self.counts.get(stem, 0) + 1
        return f"{stem}#{self.counts[stem]}"


def _check(key: str, what: str) -> None:
    if not key.strip() or len(key) > KEY_LENGTH:
        raise Permanent(f"{what} {key[:KEY_LENGTH]!r}: give 1 to {KEY_LENGTH} characters")
    if key.startswith(COMPENSATES):
        raise Permanent(f"{what} {key!r}: what begins with {COMPENSATES!r} is the engine's own; use another")
    if not is_storable(key):
        raise Permanent(f"{what} {key!r}: leave out NUL and lone surrogates, which no database column holds")


def resolve(key: str, run_id: str) -> str:
    """An explicit key as the provider sees it; `{run_id}` is the one thing filled in."""
    return key.replace("{run_id}", run_id)
