"""What the core has against a value that is to be stored, or was stored and is to be read, in the reader's language.

The core knows no framework, so its reasons are English; here they are said again, as pages do with what stands in rows
(runs/pages/recorded.py). What an author's own validator says stays as it is.
"""

from __future__ import annotations

import re
from operator import eq
from typing import TYPE_CHECKING

from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_noop

from runs.core.errors import CodecError
from runs.pages.recorded import Sentences
from runs.pydantic_words import of_parsers, of_pydantic

if TYPE_CHECKING:
    from runs.core.errors import DurableError

MANY = 20  # faults in one text


class Faults(Sentences):
    """One, or several with semicolons between them, as pydantic finds them."""

    def retold(self, text: str, *, within: bool = False) -> str:
        parts = text.split("; ", MANY)
        if not 1 < len(parts) <= MANY:
            return super().retold(text, within=within)
        told = [super(Faults, self).retold(part, within=within) for part in parts]
        whole = super().retold(text, within=within)
        return whole if whole != text and any(map(eq, told, parts)) else "; ".join(told)

    def _told(self, name: str, value: str, within: bool) -> str:
        match name:
            case "why":
                return of_parsers.retold(value)
            case "expected":
                return _choices(value)
            case _:
                return super()._told(name, value, within)


def _choices(text: str) -> str:
    """'a', 'b' or 3: the word before the last; none of those within quotes."""
    before, between, last = text.rpartition(" or ")
    if not between or before.count("'") % 2 or last.count("'") % 2:
        return text
    return f"{before}{gettext(' or ')}{last}"


of_values = Faults(
    # while it is written
    gettext_noop("is nested too deep to be stored"),
    gettext_noop("is nested deeper than %(count)s levels; flatten it, or keep it in a blob (run.blob)"),
    gettext_noop("contains itself; store an id instead of the object"),
    gettext_noop("is %(value)s: NaN and infinity are not stored; use None or a string"),
    gettext_noop("has a field named %(name)s, which marks typed values; rename it"),
    gettext_noop("has no value for its field %(name)s; set it"),
    gettext_noop("has a time zone of type %(kind)s; use zoneinfo.ZoneInfo or datetime.timezone"),
    gettext_noop(
        "is a %(cls)s, which is not allowed; decorate it with @storable, or name it in an annotation"
    ),
    gettext_noop("is a %(cls)s, which has no stored form; make it plain with %(call)s"),
    gettext_noop("is a %(cls)s, whose type would be lost; make it plain with %(call)s"),
    gettext_noop(
        "is a %(cls)s, which has no stored form; store plain values, or a dataclass decorated with @storable"
    ),
    gettext_noop("a %(kind)s is not plain (%(fault)s); flatten the value first"),
    gettext_noop("is %(size)s bytes, the limit is %(limit)s; keep it in a blob (run.blob)"),
    gettext_noop("signal %(name)s: a name has 1 to %(most)s characters"),
    gettext_noop("signal %(name)s: leave out NUL and lone surrogates, which no database column holds"),
    gettext_noop(
        "an object whose %(mark)s is 'secret' stands for a secret; pass run.secret(name), or give the object "
        "another key"
    ),
    gettext_noop("holds the value of the secret %(name)s; pass run.secret(%(quoted)s) instead"),
    # while it is read
    gettext_noop("is not JSON: %(fault)s"),
    gettext_noop("is a %(kind)s, which no stored tree holds"),
    gettext_noop("is stored as %(mark)s, a form that this version does not know"),
    gettext_noop("is stored as %(mark)s, but is not one: %(fault)s"),
    gettext_noop(
        "names %(given)s, which is not an allowed %(kind)s; if it was moved or renamed, put it back or migrate the "
        "state, else decorate it with @storable"
    ),
    gettext_noop("names the field %(name)s, which %(cls)s does not have; migrate the state"),
    gettext_noop("names %(given)s, which %(cls)s does not have; migrate the state"),
    gettext_noop("lacks the field %(name)s of %(cls)s; migrate the state, or give it a default"),
    gettext_noop("a stored patch does not fit the state before it: %(fault)s"),
    gettext_noop("the patches of run %(run)s do not apply: %(fault)s"),
    gettext_noop("run %(run)s has no snapshot at or before checkpoint %(count)s"),
    # what an author's rule made of it (runs/core/rules.py)
    gettext_noop("the rule %(name)s returned %(given)s; `when` returns True or False"),
    gettext_noop("the rule %(name)s returned %(given)s; a policy returns why not, as a text, or None"),
    # against the state of a graph
    gettext_noop("is no stored state of %(cls)s"),
    gettext_noop("is no field of %(cls)s; put it back, or raise the graph's version and migrate"),
    gettext_noop("%(said)s; a %(cls)s cannot hold it (and %(count)s more)"),
    gettext_noop("%(said)s; a %(cls)s cannot hold it"),
    gettext_noop("graph %(graph)s starts from a dict, not %(kind)s"),
    gettext_noop("the state of graph %(graph)s is a dict, not %(kind)s"),
    gettext_noop("the input does not fit %(cls)s: %(said)s"),
    *of_pydantic,
)


def _fault(error: DurableError | str) -> str:
    if isinstance(error, CodecError):
        return f"{error.path}: {of_values.retold(error.reason)}"
    path, colon, rest = str(error).partition(": ")
    if colon and path.startswith("$"):
        return f"{path}: {of_values.retold(rest)}"
    return of_values.retold(str(error))


# A whole error, or one reason of it, for a sentence that is told (runs.errors.told).
fault = lazy(_fault, str)


# How such an error stands in a run or an entry: after its class, or where the engine met it.
_OF_CLASS = re.compile(r"(?P<before>\w{1,100}: )(?P<fault>.+)")
of_failures = (
    gettext_noop("run %(run)s, state after node '%(node)s': %(fault)s"),
    gettext_noop("node '%(node)s': %(fault)s"),
    gettext_noop("graph '%(graph)s' has no node '%(node)s'"),
)


class Failures(Sentences):
    def retold(self, text: str, *, within: bool = False) -> str:
        """One line of a recorded error. What has neither class nor place is somebody's own words, and stays."""
        if (told := super().retold(text)) != text:
            return told
        found = _OF_CLASS.fullmatch(text)
        return found["before"] + _fault(found["fault"]) if found else text

    def _told(self, name: str, value: str, within: bool) -> str:
        return _fault(value) if name == "fault" else super()._told(name, value, within)


failures = Failures(*of_failures)
