"""A graph whose one letter people approve; what the post took is in `posted`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from runs import END, Ask, Expired, Graph, Rejected, start, tool
from runs.models import Run
from tests.runs.driving import drive

posted: list[dict[str, Any]] = []


@tool(kind="write", honours_key=True)
def post_letter(to: str, copies: int, note: str = "as agreed", *, idempotency_key: str) -> str:
    """Post a letter."""
    posted.append({"to": to, "copies": copies, "note": note})
    return "posted"


letters = Graph("letters", viewers="pm", operators="ops")


@letters.node(then=END)
def letter(run: Any, state: dict[str, Any]) -> str:
    state["slip"] = run.blob(b"<script>alert(1)</script>", state.get("media_type", "text/html"))
    try:
        run.call(
            post_letter,
            key="letter:{run_id}",
            to="helen@example.com",
            copies=7,
            approve=Ask(
                "Post the letter?",
                reviewers="pm",
                due=timedelta(hours=1),
                why=state.get("why", "She **asked** for it."),
                reasons=("Wrong address",),
            ),
        )
    except Rejected as no:
        state["rejected"] = [no.reason, no.by]
    except Expired:
        state["expired"] = True
    return END


def waiting_letter(**state: Any) -> Run:
    """A run that waits for its letter to be approved."""
    run = start("letters", state)
    drive(run)
    assert run.status == "waiting", run.error
    return run
