"""POST /tick/: one bounded slice of work in the web process, for installations without worker processes."""

from __future__ import annotations

import threading
from typing import TypeVar

from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from runs.conf import conf
from runs.engine.shift import Shift

SECONDS, MOST_SECONDS = 20.0, 60.0
MOST_STEPS = 10_000

T = TypeVar("T", int, float)
_busy = threading.Lock()  # a process has one claimer


@csrf_exempt  # the token is the proof, and no browser sends it by itself
@login_not_required
@require_POST
def tick(request: HttpRequest) -> JsonResponse:
    """With `Authorization: Bearer <token>`; `seconds` and `steps` as form fields. {"steps": done} or {"error": why}."""
    token = conf.tick_token
    if not token:
        raise Http404
    if not constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}"):
        return _refusal(
            403, "The token is missing or wrong: send Authorization: Bearer <DURABLEWEB_TICK_TOKEN>."
        )
    try:
        seconds = _bounded(request, "seconds", float, SECONDS, MOST_SECONDS)
        steps = _bounded(request, "steps", int, MOST_STEPS, MOST_STEPS)
    except ValueError as error:
        return _refusal(422, str(error))
    if not _busy.acquire(blocking=False):
        return _refusal(409, "Another tick is at work in this process; its runs need no second one.")
    try:
        return JsonResponse({"steps": Shift(seconds=seconds, steps=steps, linger=0).work()})
    finally:
        _busy.release()


def _bounded(request: HttpRequest, name: str, kind: type[T], default: T, most: T) -> T:
    """The field as a number above 0 and at most `most`. Raises ValueError saying which does not fit."""
    given = request.POST.get(name, "")
    try:
        value = kind(given) if given else default
    except ValueError:
        value = kind(0)
    if not 0 < value <= most:
        raise ValueError(f"{name} is {given!r}: send a number above 0 and at most {most:g}.")
    return value


def _refusal(status: int, error: str) -> JsonResponse:
    return JsonResponse({"error": error}, status=status)
