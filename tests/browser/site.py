"""The site as a browser of the tests finds it: its stylesheet in one piece, as collectstatic makes it."""

from __future__ import annotations

from typing import Any

from durableweb import stylesheet
from durableweb.asgi import application as as_it_is
from tests.conftest import ROOT

SHEET = stylesheet.whole(ROOT / "static" / stylesheet.NAME).encode()
HEADERS = [
    (b"content-type", b"text/css; charset=utf-8"),
    (b"content-length", str(len(SHEET)).encode()),
    (b"cache-control", b"max-age=3600, public"),
]


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    if scope["type"] == "http" and scope["path"] == f"/static/{stylesheet.NAME}":
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": SHEET})
    else:
        await as_it_is(scope, receive, send)
