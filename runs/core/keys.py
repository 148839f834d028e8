"""Ledger keys: what makes a question the same question in the next execution (DESIGN section 4, Keys)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from runs.core.errors import Permanent
from runs.core.tool import Call
from runs.core.words import is_storable

COMPENSATES = "compensate:"  # begins the key of a compensation: compensate:<step>:<key>
KEY_LENGTH = 160  # leaves room for what is added: "?", "!", "~2", ":r2"
AGAIN = re.compile(r"(.+):r([2-9]|[1-9][0-9]{1,8})", re.DOTALL)  # a call that is asked again after a repair
ANEW = re.compile(
    r"(.+)(?::r|~|\?)([2-9]|[1-9][0-9]{1,8})", re.DOTALL
)  # whatever is asked again: its first key


class Keys:
    """The keys asked for in one execution."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.explicit: set[str] = set()
        self.bases: set[str] = (
            set()
        )  # keys that must not be asked for beside those, which end in :r2, ~2 or ?2

    def of_call(self, call: Call, key: str | None) -> str:
        """Name, eight hex digits of the arguments' digest, count among equals; or the author's own key."""
        if key is not None:
            return self.named(key, "key")
        return self.counted(f"{call.tool.name}:{call.digest[:8]}")

    def named(self, key: str, what: str) -> str:
        _check(key, what)
        if key in self.explicit:
            raise Permanent(f"{what} {key!r} was asked twice in one execution; each needs its own")
        found = ANEW.fullmatch(key)
        if found and found[1] in self.explicit or key in self.bases:
            raise Permanent(f"{what} {key!r}: what is asked again ends like this (:r2, ~2, ?2); use another")
        self.explicit.add(key)
        if found:
            self.bases.add(found[1])
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


def again(key: str, other: str) -> int:
    """How many times `other` says that the call `key` is asked: 2 of key:r2; 0 where it is no such key."""
    found = AGAIN.fullmatch(other)
    return int(found[2]) if found and found[1] == key else 0


def following(key: str, base: str) -> str:
    """The key under which the call is asked anew once that of `key` was put aside; `base` is the first one."""
    return f"{base}:r{max(again(base, key), 1) + 1}"


def follows(key: str, other: str) -> bool:
    """Whether the call of `key` was asked anew as `other`: `a:r3` follows `a` and `a:r2`."""
    found = AGAIN.fullmatch(key)
    base, number = (found[1], int(found[2])) if found and again(found[1], other) else (key, 0)
    return again(base, other) > number


def repeats(keys: Iterable[str]) -> dict[str, str]:
    """Of the calls that were asked again: their first key -> the latest one among these."""
    found: dict[str, str] = {}
    for key in keys:
        if ":r" in key and (parts := AGAIN.fullmatch(key)):
            base = parts[1]
            if again(base, key) > again(base, found.get(base, base)):
                found[base] = key
    return found


def resolve(key: str, run_id: str) -> str:
    """An explicit key as the provider sees it; `{run_id}` is the one thing filled in."""
    return key.replace("{run_id}", run_id)
