"""Tools that pay. What was paid by which way is in `done`; nothing can be paid by those in `declined`.

The fixture `empty_till` empties both.
"""

from __future__ import annotations

from runs import Permanent, Retry, tool

ONCE = Retry(attempts=1)
done: list[str] = []
declined: set[str] = set()


@tool(kind="write", retry=ONCE)
def pay(by: str) -> str:
    if by in declined:
        raise Permanent(f"{by} is declined")
    done.append(by)
    return by


@tool(kind="write", retry=ONCE)
def wire(amount: int) -> str:
    done.append("wire")
    return "wire"
