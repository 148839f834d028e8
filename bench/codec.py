"""What a step's data costs: flatten, diff and encode of a state that grew by one, in microseconds.

python -m bench.codec [--json]
"""

from __future__ import annotations

import gc
import json
import sys
import timeit
from collections.abc import Callable

from runs.core import codec, patch

TEXTS = [f"message {n}" for n in range(1000)]
MESSAGES = [{"role": "user", "content": f"message {n}", "n": n} for n in range(1000)]


def main() -> None:
    found = {}
    for name, old, new in (
        ("1,000 texts and one more", TEXTS, [*TEXTS, "new"]),
        (
            "1,000 small dicts and one more",
            MESSAGES,
            [*MESSAGES, {"role": "assistant", "content": "new", "n": 0}],
        ),
    ):
        before = codec.flatten(old)
        after = codec.flatten(new, before)
        found[name] = {
            "flatten": best(lambda new=new, before=before: codec.flatten(new, before)),
            "diff": best(lambda before=before, after=after: patch.diff(before, after)),
            "encode the patch": best(lambda b=before, a=after: codec.encode(patch.diff(b, a))),
            "encode the whole": best(lambda after=after: codec.encode(after)),
        }
    print(json.dumps(found, indent=None if "--json" in sys.argv else 2))


def best(call: Callable[[], object], number: int = 20) -> float:
    """The best of seven, in microseconds."""
    gc.disable()
    try:
        return round(min(timeit.repeat(call, number=number, repeat=7)) / number * 1e6, 1)
    finally:
        gc.enable()


if __name__ == "__main__":
    main()
