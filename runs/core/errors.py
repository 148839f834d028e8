"""The one small family of errors that the engine raises and that authors raise to it.

The docstring of a class is its default message. `error_kind` is the word under which a run that fails with the error
is filed (Run.error_kind); None where the error alone does not end a run.
"""

from __future__ import annotations

import inspect


class DurableError(Exception):
    """A durable run could not go on."""

    error_kind: str | None = None

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message or inspect.getdoc(type(self)) or type(self).__name__

    def __str__(self) -> str:
        return self.message


# What an author's tool or node says about its own failure.


class Transient(DurableError):
    """It surely did not happen; trying again may help."""

    error_kind = "exhausted"

    def __init__(self, message: str = "", retry_after: float | None = None) -> None:
        """`retry_after`: seconds that the other side asked us to wait."""
        super().__init__(message)
        self.args = (message, retry_after)
        self.retry_after = retry_after


class Permanent(DurableError):
    """It failed, and trying again will not help."""

    error_kind = "permanent"


class Ambiguous(DurableError):
    """It was sent, and nobody knows whether it happened."""


# What people and the clock answer.


class Rejected(DurableError):
    """The question was rejected."""

    error_kind = "rejected"

    def __init__(self, reason: str = "", by: str | None = None) -> None:
        super().__init__(f"Rejected{f' by {by}' if by else ''}{f': {reason}' if reason else '.'}")
        self.args = (reason, by)
        self.reason = reason
        self.by = by


class Expired(DurableError):
    """The question expired without an answer."""

    error_kind = "expired"

    def __init__(self, question: str = "") -> None:
        super().__init__(f"The question “{question}” expired without an answer." if question else "")
        self.args = (question,)
        self.question = question


class TimedOut(Expired):
    """No signal of that name came in time."""

    def __init__(self, name: str = "") -> None:
        super().__init__()
        if name:
            self.message = f"No signal “{name}” came in time."
        self.args = (name,)
        self.name = name


# What the engine refuses.


class GraphError(DurableError):
    """The graph is not well formed."""

    error_kind = "permanent"


class CodecError(DurableError):
    """A value cannot be stored, or a stored value cannot be read."""

    error_kind = "bad_state"

    def __init__(self, path: str, reason: str) -> None:
        """`path`: where in the value, as `$.findings['a b'][3]`."""
        super().__init__(f"{path}: {reason}")
        self.args = (path, reason)
        self.path = path
        self.reason = reason


class TooLarge(CodecError):
    """A value is over the size limit."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        """`path`: a path or a ledger key; `size` and `limit` in bytes."""
        super().__init__(path, f"is {size:,} bytes, the limit is {limit:,}; keep it in a blob (run.blob)")
        self.args = (path, size, limit)
        self.size = size
        self.limit = limit


class SecretFound(DurableError):
    """A value holds a secret; the message names the place and the secret, never its value."""

    error_kind = "permanent"

    def __init__(self, path: str, name: str) -> None:
        super().__init__(f"{path}: holds the value of the secret {name}; pass run.secret({name!r}) instead")
        self.args = (path, name)
        self.path = path
        self.name = name


class Diverged(DurableError):
    """A re-execution asked for other writes than the execution before it."""

    error_kind = "diverged"

    def __init__(self, asked: str, recorded: str, advice: str = "") -> None:
        """`asked`, `recorded`: both requests as people should read them; `asked` may say that nothing was asked."""
        advice = advice or "Give the call an explicit key if both are the same thing."
        super().__init__(f"The step asked for {asked}, but it had recorded {recorded}. {advice}")
        self.args = (asked, recorded, advice)
        self.asked = asked
        self.recorded = recorded
        self.advice = advice


class EffectFailed(DurableError):
    """A tool's tries are used up, or it failed for good."""

    def __init__(self, key: str, message: str, error_kind: str = "exhausted") -> None:
        """`error_kind`: "exhausted" (its tries are used up) or "permanent" (it failed for good)."""
        super().__init__(f"{key}: {message}")
        self.args = (key, message, error_kind)
        self.key = key
        self.error_kind = error_kind
