"""Tools whose effects a test can count: what went out is in `sent`, which the fixture `nothing_sent` empties."""

from __future__ import annotations

from runs import tool

sent: list[object] = []


@tool(kind="write", honours_key=True)
def send(text: str, idempotency_key: str) -> str:
    sent.append(text)
    return f"sent {text}"


@tool(kind="write", honours_key=True)
def post(text: str, idempotency_key: str) -> str:
    sent.append(f"by post: {text}")
    return f"posted {text}"


@tool(kind="write")
def send_blindly(text: str) -> str:
    sent.append(text)
    if text == "lost":
        raise ConnectionResetError("no answer")
    return f"sent {text}"


@tool(kind="write", honours_key=True)
async def send_async(text: str, idempotency_key: str) -> str:
    sent.append(text)
    return text.upper()
