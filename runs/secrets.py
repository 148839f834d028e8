"""Secrets, looked up where the installation keeps them (runs/secret_places.py). Rows hold references, never values."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from runs import secret_places
from runs.core.codec_tree import Plain
from runs.core.errors import Permanent
from runs.core.secrets import Guard
from runs.errors import Invalid, told

log = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0  # where values may change while a process lives


@dataclass(frozen=True, slots=True)
class _Known:
    """`ever`: (name, value) of all that this process has known; what was replaced is still refused and redacted."""

    values: dict[str, str]
    ever: frozenset[tuple[str, str]]
    guard: Guard
    looked_at: float


_known: _Known | None = None
_looking = threading.Lock()
_state = threading.local()


def known() -> dict[str, str]:
    return _current().values


def guard() -> Guard:
    return _current().guard


def refuse(text: str, field: str) -> None:
    """Raises Invalid naming the field in which a known secret's value stands; never the value."""
    if (name := guard().find(text)) is not None:
        raise _holds(name, field)


def refuse_in(tree: Plain) -> None:
    """The same of a tree, naming the path."""
    if (found := guard().locate(tree)) is not None:
        path, name = found
        raise _holds(name, path)


def _holds(name: str, where: str) -> Invalid:
    fault = told(_("This holds the value of the secret %(name)s; take it out."), name=name)
    return Invalid(told("%(where)s: %(fault)s", where=where, fault=fault), {where: [fault]})


def reveal(name: str) -> str:
    """The value, for the moment of a call. Raises Permanent naming the places where it could be."""
    values = known()
    if name not in values and secret_places.may_change():
        values = look().values  # it may have been put there a moment ago
    try:
        return values[name]
    except KeyError:
        raise Permanent(f"secret {name!r} is not set; {secret_places.hint(name)}") from None


def look() -> _Known:
    """Look all of them up now. Raises SecretsUnreadable, and what is known stays."""
    global _known
    _state.looking = True
    try:
        values = secret_places.all_values()
    finally:
        _state.looking = False
    before = _known
    ever = frozenset(values.items()) | (before.ever if before is not None else frozenset())
    watch = before.guard if before is not None and before.ever == ever else Guard(ever)
    looked_at = time.monotonic() if secret_places.may_change() else float("inf")
    _known = _Known(values, ever, watch, looked_at)
    return _known


def forget() -> None:
    """As in a new process: also what was replaced is forgotten."""
    global _known
    _known = None


def _current() -> _Known:
    found = _known
    if found is None:
        return look()
    if time.monotonic() - found.looked_at >= AGAIN_SECONDS and _looking.acquire(blocking=False):
        threading.Thread(target=_look_aside, args=(found,), name="secrets", daemon=True).start()
    return found


def _look_aside(before: _Known) -> None:
    """Beside the work: nobody waits for a place that answers slowly, and one that is away changes nothing."""
    global _known
    try:
        look()
    except Exception as error:
        log.warning("Secrets cannot be looked up again, and stay as they were: %s", error)
        kept = _known or before
        _known = _Known(kept.values, kept.ever, kept.guard, time.monotonic())
    finally:
        _looking.release()


class LogFormatter(logging.Formatter):
    """Writes the log without the values of secrets, whoever put them into a message or an exception."""

    def format(self, record: logging.LogRecord) -> str:
        return _guard_of_logs().redact(super().format(record))


def _guard_of_logs() -> Guard:
    """What is known, or can be told while it is being looked up, or cannot be."""
    if _known is None and not getattr(_state, "looking", False):
        try:
            return guard()
        except Exception:  # whoever needs a secret is told; the log goes on
            pass
    return Guard(secret_places.in_environment()) if _known is None else _known.guard
