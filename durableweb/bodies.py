"""Too large a request ends with 413 before it is read: Django reads a whole body, of any size, first of all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest, parse_cookie
from django.template.loader import render_to_string
from django.utils import translation
from django.utils.translation import gettext as _

from approvals.files import LARGEST, MOST_AT_ONCE
from runs.pages.words import size as in_words

if TYPE_CHECKING:
    from asgiref.typing import (
        ASGI3Application,
        ASGIReceiveCallable,
        ASGIReceiveEvent,
        ASGISendCallable,
        Scope,
    )

BETWEEN = 512 * 1024  # bytes of a form's boundaries and headers
WITH_FILES = re.compile(r"/approvals/[^/]+/comments/\Z")  # also below a prefix of the installation


def most(path: str) -> int:
    """Bytes that a request to this path may have in all."""
    fields = settings.DATA_UPLOAD_MAX_MEMORY_SIZE + BETWEEN
    return fields + MOST_AT_ONCE * LARGEST if WITH_FILES.search(path) else fields


class LimitedBodies:
    """Around an application that reads a body before it answers, as Django's does."""

    def __init__(self, application: ASGI3Application) -> None:
        self.application = application

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        limit, come, over = most(scope["path"]), 0, False

        async def counted() -> ASGIReceiveEvent:
            """Over the limit the application is told that the client has gone: it lets go of what it has read."""
            nonlocal come, over
            event = await receive()
            if event["type"] == "http.request":
                come += len(event.get("body", b""))
                over = come > limit
            return {"type": "http.disconnect"} if over else event

        if _announced(scope) > limit:
            await _refuse(scope, send, limit)
            return
        await self.application(scope, counted, send)
        if over:
            await _refuse(scope, send, limit)


def _announced(scope: Scope) -> int:
    """The Content-Length; 0 where there is none, as of a body in chunks."""
    length = dict(scope["headers"]).get(b"content-length", b"")
    return int(length[:20]) if length.isdigit() else 0  # of more digits, too many in any case


async def _refuse(scope: Scope, send: ASGISendCallable, limit: int) -> None:
    """A page for browsers, a sentence for others; before all middleware, so in the language found here."""
    asked = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    is_page = "text/html" in asked.get("accept", "")
    with translation.override(_language(asked)):
        if is_page:
            text = render_to_string("413.html", {"most": in_words(limit)}).encode()
        else:
            said = _("This is too much at once: at most %(most)s can be sent here.")
            text = (said % {"most": in_words(limit)}).encode()
    headers = [
        (b"content-type", b"text/html; charset=utf-8" if is_page else b"text/plain; charset=utf-8"),
        (b"content-length", str(len(text)).encode()),
        (b"content-security-policy", b"default-src 'none'; style-src 'self'; base-uri 'none'"),
        (b"x-content-type-options", b"nosniff"),
        (b"cache-control", b"no-store"),
        (b"connection", b"close"),  # the rest of the body is not read
    ]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": text})


def _language(asked: dict[str, str]) -> str:
    request = HttpRequest()
    request.META["HTTP_ACCEPT_LANGUAGE"] = asked.get("accept-language", "")
    request.COOKIES = parse_cookie(asked.get("cookie", ""))
    return translation.get_language_from_request(request)
