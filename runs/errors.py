"""What a verb says to a person who asked for something that cannot be: one sentence, and an HTTP status."""

from __future__ import annotations


class Refusal(Exception):
    """The request was refused."""

    status = 400

    def __init__(self, message: str = "") -> None:
        self.message = message or type(self).__doc__ or "Refused."
        super().__init__(self.message)


class Invalid(Refusal):
    """The input does not fit."""

    status = 422

    def __init__(self, message: str = "", fields: dict[str, list[str]] | None = None) -> None:
        """`fields`: path of the value, such as $.to[0] -> what is wrong with it."""
        super().__init__(message)
        self.fields = fields or {}


class Conflict(Refusal):
    """It has changed in the meantime."""

    status = 409


class TooEarly(Conflict):
    """It cannot be settled yet: an earlier call may still be under way."""


class NotAllowed(Refusal):
    """You may not do this."""

    status = 403


class Missing(Refusal):
    """There is no such thing."""

    status = 404
