"""What differs between two plain trees, path by path, in the order of the newer one. For reading, not for applying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runs.core.codec_tree import MARK

Plain = Any  # a plain tree: see runs.core.codec_tree
ABSENT = object()


@dataclass(frozen=True)
class Difference:
    """`old` or `new` is ABSENT where the path did not exist. `path` is a JSON pointer without its first slash."""

    path: str
    old: Plain
    new: Plain

    @property
    def added(self) -> bool:
        return self.old is ABSENT

    @property
    def removed(self) -> bool:
        return self.new is ABSENT


def differences(old: Plain, new: Plain) -> list[Difference]:
    return list(_between(old, new, ""))


def _between(old: Plain, new: Plain, path: str) -> Iterator[Difference]:
    if type(old) is type(new) is dict and MARK not in old and MARK not in new:
        for key in [*new, *(key for key in old if key not in new)]:
            step = key.replace("~", "~0").replace("/", "~1")
            yield from _between(old.get(key, ABSENT), new.get(key, ABSENT), f"{path}/{step}")
    elif type(old) is type(new) is list:
        for index in range(max(len(old), len(new))):
            pair = [side[index] if index < len(side) else ABSENT for side in (old, new)]
            yield from _between(*pair, f"{path}/{index}")
    elif old is not new and (type(old) is not type(new) or old != new):
        yield Difference(path[1:], old, new)
