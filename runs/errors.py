"""What a verb says to a person who asked for something that cannot be: one sentence, and an HTTP status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any  # what is put into a sentence

from django.utils.functional import Promise, lazy
from django.utils.translation import gettext, gettext_lazy, override

from runs.naming import by_user_name


def told(message: str | Promise, **values: Any) -> Promise:
    """A sentence of gettext_lazy with its `values` in it, in the language in which it will be read."""
    return _filled(message, values)


# Parts of a sentence: ada, pm or legal; one thing; another thing.
either = lazy(lambda names: _either([str(name) for name in names]), str)
in_turn = lazy(lambda said: "; ".join(map(str, said)), str)
joined = lazy(lambda said: " ".join(map(str, said)), str)
lowered = lazy(lambda word: str(word).lower(), str)


def status(word: str) -> Promise:
    """Of a run or an entry, as pages call it, within a sentence."""
    return lowered(gettext_lazy(word.replace("_", " ").capitalize()))  # its words: runs/pages/words.py


_filled = lazy(lambda message, values: str(message) % values, str)


def _either(names: list[str]) -> str:
    return gettext(" or ").join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])


# Of names and keys (runs.core.words.is_legible); what is there already, from before this was asked, is kept.
ILLEGIBLE = gettext_lazy(
    "Write it so that people can read it: something is seen, and no line ends or control characters."
)


class Refusal(Exception):
    """The request was refused.

    `message` is for the person who asked, in their language; as a text the error is English and has user names, for
    trail, log and commands.
    """

    status = 400
    nothing_said = gettext_lazy("The request was refused.")

    def __init__(self, message: str | Promise = "") -> None:
        said = message or self.nothing_said
        self.message = str(said)
        with override("en"), by_user_name():
            super().__init__(str(said))


class Invalid(Refusal):
    """The input does not fit."""

    status = 422
    nothing_said = gettext_lazy("The input does not fit.")

    def __init__(
        self, message: str | Promise = "", fields: Mapping[str, Sequence[str | Promise]] | None = None
    ) -> None:
        """`fields`: path of the value, such as $.to[0] -> what is wrong with it."""
        super().__init__(message)
        self.fields = {path: [str(each) for each in said] for path, said in (fields or {}).items()}


class Conflict(Refusal):
    """It has changed in the meantime."""

    status = 409
    nothing_said = gettext_lazy("It has changed in the meantime.")


class TooEarly(Conflict):
    """It cannot be settled yet: an earlier call may still be under way."""

    nothing_said = gettext_lazy("It cannot be settled yet: an earlier call may still be under way.")


class NotAllowed(Refusal):
    """You may not do this."""

    status = 403
    nothing_said = gettext_lazy("You may not do this.")


class Missing(Refusal):
    """There is no such thing."""

    status = 404
    nothing_said = gettext_lazy("There is no such thing.")
