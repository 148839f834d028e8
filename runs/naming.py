"""People in sentences: on pages and in mails by their full name, where there is one; in trail and log by the user name.

Operators, in the admin site and in what commands print, read both: Ada Lovelace (ada).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from unicodedata import bidirectional

from django.contrib.auth import get_user_model
from django.utils.functional import lazy

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponseBase

FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"
# On a page: the full names that were looked up for it, "" for who has none; None elsewhere.
_known: ContextVar[dict[str, str] | None] = ContextVar("known_names", default=None)


@contextmanager
def _knowing(names: dict[str, str] | None) -> Iterator[None]:
    before = _known.set(names)
    try:
        yield
    finally:
        _known.reset(before)


def by_user_name() -> AbstractContextManager[None]:
    """What is written meanwhile names people by their user names, also on a page."""
    return _knowing(None)


class FullNamesMiddleware:
    """A page looks each person up once."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        with _knowing({}):
            return self.get_response(request)


def full_names(names: Sequence[str]) -> list[str]:
    """How a page calls those who have these user names; a group, or who is gone, by that name."""
    known = _known.get()
    if known is None:
        return list(names)
    if unknown := [name for name in names if name not in known]:
        people = get_user_model().objects.filter(username__in=unknown)
        known.update(dict.fromkeys(unknown, ""))
        known.update({one.get_username(): one.get_full_name() for one in people})
    return [known[name] or name for name in names]


def apart(text: str) -> str:
    """A name, or somebody's words, as a part of a sentence: where they run from the right they turn nothing around."""
    runs_from_the_right = any(bidirectional(sign) in ("R", "AL") for sign in text)
    return f"{FIRST_STRONG_ISOLATE}{text}{POP_ISOLATE}" if runs_from_the_right else text


def for_operators(one: User | str) -> str:
    """Of a user, or of a name as rows write it: ada, user ada, user ada (shell of root)."""
    if not isinstance(one, str):
        name, full, rest = one.get_username(), one.get_full_name(), ""
    else:
        name, _space, rest = one.removeprefix("user ").partition(" ")
        full = full_names([name])[0]
    return f"{full} ({name}) {rest}".rstrip() if full and full != name else f"{name} {rest}".rstrip()


def _called(one: User) -> str:
    return one.get_username() if _known.get() is None else apart(one.get_full_name() or one.get_username())


def _all_called(names: Sequence[str]) -> list[str]:
    return list(names) if _known.get() is None else [apart(name) for name in full_names(names)]


# As parts of a sentence, when it is read.
someone = lazy(_called, str)
everyone = lazy(_all_called, list)
