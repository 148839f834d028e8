"""What rows hold as plain text: an actor, the first line of an error, a stored value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs import unstorable
from runs.core import codec
from runs.core.errors import CodecError
from runs.naming import full_names
from runs.pages import words
from runs.pages.recorded import of_runs

FIRST_LINE = 160  # letters of an error that fit into a sentence


def actor(name: str) -> str:
    """Workers are named host:boot:pid:started, of which a reader needs host and pid.

    People are `user NAME`, `user NAME (shell of ACCOUNT)`, or of decisions `NAME` and `NAME for NAME`.
    """
    parts = name.split(":")
    if len(parts) == 4:
        return _("worker %(host)s/%(pid)s") % {"host": parts[0], "pid": parts[2]}
    who, _space, rest = name.removeprefix("user ").partition(" ")
    if rest.startswith("for ") and " " not in (whom := rest.removeprefix("for ")):
        who, whom = full_names([who, whom])
        return _("%(who)s for %(whom)s") % {"who": who, "whom": whom}
    if name == "system" or rest and not name.startswith("user "):
        return name
    return f"{full_names([who])[0]} {rest}".rstrip()


def first_line(text: str) -> str:
    """Of an error or a reason; what the engine wrote, in the reader's language."""
    line = retold(text.strip().splitlines()[0]) if text.strip() else ""
    return line if len(line) <= FIRST_LINE else line[: FIRST_LINE - 1] + "…"


def retold(line: str) -> str:
    """A line that the engine wrote into a row, in the reader's language; whatever others wrote stays."""
    told = of_runs.retold(line)
    return told if told != line else unstorable.failures.retold(line)


def clause(text: str) -> str:
    """The first line without its full stop: the sentence it ends has one."""
    return first_line(text).rstrip(".")


def stored(text: str | None) -> Any:
    """A stored value as a plain tree; what cannot be read is shown as its text."""
    if text is None:
        return None
    try:
        return codec.decode(text)
    except CodecError:
        return text


def short(value: Any, most: int = 48) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 3:
        return ngettext("%(many)s item", "%(many)s items", len(value)) % {"many": len(value)}
    text = value if isinstance(value, str) else words.pretty_line(value)
    text = words.printable(" ".join(text.split()))
    return text if len(text) <= most else text[: most - 1] + "…"
