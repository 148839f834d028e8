"""A graph that puts a secret wherever a careless author could: one place a run."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from runs import END, Ambiguous, Ask, Graph, Permanent, Retry, Transient, tool
from tests.security.canary import CANARY

called: list[tuple[str, Any]] = []


class Form(BaseModel):
    amount: int


@tool
def look(text: str, headers: dict[str, str] | None = None) -> str:
    called.append(("look", text))
    return "seen"


@tool(kind="write")
def send(text: str, token: str = "", more: dict[str, str] = {}) -> str:  # noqa: B006
    """A letter goes out."""
    called.append(("send", (text, token, more)))
    return "sent"


@tool
def answer(form: str) -> Any:
    """What a provider that repeats what it was told would return."""
    return {
        "plain": f"your key is {CANARY}",
        "bytes": b"key=" + CANARY.encode(),
        "nested": {"list": [CANARY, {CANARY: 1}]},
        "long": f"{'x' * 40_000} {CANARY}",
        "url": f"https://example.com/?key={quote(CANARY, safe='')}",
        "base64": base64.b64encode(f"user:{CANARY}".encode()).decode(),
    }[form]


@tool(kind="write", retry=Retry(attempts=2, first=0.001))
def fail(how: str) -> str:
    kinds = {"permanent": Permanent, "transient": Transient, "ambiguous": Ambiguous, "other": RuntimeError}
    raise kinds[how](f"GET https://user:{quote(CANARY, safe='')}@example.com/?key={CANARY} failed")


leaking = Graph("leaking", viewers="pm", operators="ops")


@leaking.node(then=("leak", END), retry=Retry(attempts=2, first=0.001))
def leak(run: Any, state: dict[str, Any]) -> Any:
    where = state["where"]
    place, _, detail = where.partition(" ")
    found = PLACES[place](run, state, detail)
    if place == "result":
        state["kept"] = found
    return found if place == "target" else END


def _raise(run: Any, state: Any, detail: str) -> None:
    if detail == "late":  # so that a cut of the text would fall into the middle of it
        raise ValueError("x" * 7_980 + CANARY)
    if detail == "later":
        raise ValueError("x" * 15_985 + CANARY)
    if detail == "model":
        Form(amount=CANARY)  # pydantic shows what it was given, shortened in the middle
    if detail == "transient":
        raise Transient(f"https://example.com/?key={quote(CANARY)}")
    raise ValueError(f"no answer from https://example.com/?key={CANARY}")


def _ask_again(run: Any, state: Any, detail: str) -> Any:
    """The second execution words its call anew."""
    text = CANARY if state.setdefault("asked", []) or called else "hello"
    run.call(send, key="letter:{run_id}", text=text)
    return run.interrupt("Go on?", payload={"amount": 1}, reviewers="pm")


PLACES = {
    "state": lambda run, state, detail: state.update(
        {
            "plain": {"deep": [f"key {CANARY}"]},
            "key": {"keys": {CANARY: 1}},
            "bytes": {"raw": CANARY.encode()},
            "long": {"text": f"{'x' * 40_000} {CANARY}"},
            "json": {"text": json.dumps({"auth": CANARY})},  # a provider's answer, kept as it came
        }[detail]
    ),
    "argument": lambda run, state, detail: {
        "read": lambda: run.call(look, text="a", headers={"auth": f"Bearer {CANARY}"}),
        "write": lambda: run.call(send, text=f"Bearer {CANARY}"),
        "gated": lambda: run.call(send, text=CANARY, key="g:{run_id}", approve=Ask("Send?", reviewers="pm")),
        "gathered": lambda: run.gather(look.bind(text="fine"), look.bind(text=CANARY)),
        "long": lambda: run.call(look, text=f"{'x' * 40_000} {CANARY}"),
        "key": lambda: run.call(send, text="a", key=f"letter:{CANARY}"),
    }[detail](),
    "result": lambda run, state, detail: run.call(answer, form=detail),
    "tool": lambda run, state, detail: run.call(fail, how=detail),
    "node": _raise,
    "note": lambda run, state, detail: run.note(f"the key is {CANARY}"),
    "blob": lambda run, state, detail: {
        "content": lambda: run.blob(b"key=" + CANARY.encode(), "text/plain"),
        "type": lambda: run.blob(b"fine", f"text/{CANARY}"),
    }[detail](),
    "once": lambda run, state, detail: {
        "value": lambda: run.once("token", lambda: CANARY),
        "name": lambda: run.once(CANARY, lambda: 1),
    }[detail](),
    "spend": lambda run, state, detail: run.spend(usd=CANARY),
    "question": lambda run, state, detail: {
        "text": lambda: run.interrupt(f"Use {CANARY}?", reviewers="pm"),
        "why": lambda: run.interrupt("Go?", reviewers="pm", why=CANARY),
        "payload": lambda: run.interrupt("Go?", payload={"a": [CANARY]}, reviewers="pm"),
        "name": lambda: run.interrupt("Go?", name=CANARY, reviewers="pm"),
        "reviewers": lambda: run.interrupt("Go?", reviewers=CANARY),
    }[detail](),
    "target": lambda run, state, detail: CANARY,
    "reworded": _ask_again,
    "used": lambda run, state, detail: run.call(send, text="hello", token=run.secret("CANARY")),
    "asked": lambda run, state, detail: run.call(
        send,
        text="hello",
        token=run.secret("CANARY"),
        key="asked:{run_id}",
        approve=Ask("Send it?", reviewers="pm"),
    ),
    "outside": lambda run, state, detail: run.call(send, text="hello", more=state["more"]),
    "people": lambda run, state, detail: run.interrupt(
        "Go on?", payload={"to": "helen", "amount": 7}, reviewers="pm", reasons=("Too much",)
    ),
}
