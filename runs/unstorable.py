"""What the core has against a value that is to be stored, or was stored and is to be read, in the reader's language.

The core knows no framework, so its reasons are English; here they are said again, as pages do with what stands in rows
(runs/pages/recorded.py). What an author's own validator says stays as it is.
"""

from __future__ import annotations

from operator import eq
from typing import TYPE_CHECKING

from django.utils.functional import lazy
from django.utils.translation import gettext_noop

from runs.core.errors import CodecError
from runs.pages.recorded import Sentences

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


# What pydantic says of one value; `list_all_errors` of pydantic_core has them all.
of_pydantic = (
    gettext_noop("Field required"),
    gettext_noop("Extra inputs are not permitted"),
    gettext_noop("Input should be None"),
    gettext_noop("Input should be an object"),
    gettext_noop("Input should be a valid array"),
    gettext_noop("Input should be a valid list"),
    gettext_noop("Input should be a valid tuple"),
    gettext_noop("Input should be a valid set"),
    gettext_noop("Input should be a valid dictionary"),
    gettext_noop("Input should be a valid dictionary or instance of %(cls)s"),
    gettext_noop("Input should be a valid string"),
    gettext_noop("Input should be a valid boolean"),
    gettext_noop("Input should be a valid boolean, unable to interpret input"),
    gettext_noop("Input should be a valid integer"),
    gettext_noop("Input should be a valid integer, unable to parse string as an integer"),
    gettext_noop("Input should be a valid integer, got a number with a fractional part"),
    gettext_noop("Input should be a valid number"),
    gettext_noop("Input should be a valid number, unable to parse string as a number"),
    gettext_noop("Input should be a finite number"),
    gettext_noop("Input should be a valid decimal"),
    gettext_noop("Decimal input should be an integer, float, string or Decimal object"),
    gettext_noop("Input should be a valid date"),
    gettext_noop("Input should be a valid date in the format YYYY-MM-DD, %(fault)s"),
    gettext_noop("Input should be a valid date or datetime, %(fault)s"),
    gettext_noop("Input should be a valid datetime"),
    gettext_noop("Input should be a valid datetime, %(fault)s"),
    gettext_noop("Input should be a valid datetime or date, %(fault)s"),
    gettext_noop("Input should have timezone info"),
    gettext_noop("Input should be in a valid time format, %(fault)s"),
    gettext_noop("Input should be a valid UUID, %(fault)s"),
    gettext_noop("Input should be greater than %(limit)s"),
    gettext_noop("Input should be greater than or equal to %(limit)s"),
    gettext_noop("Input should be less than %(limit)s"),
    gettext_noop("Input should be less than or equal to %(limit)s"),
    gettext_noop("Input should be a multiple of %(limit)s"),
    gettext_noop("String should have at least %(count)s character"),
    gettext_noop("String should have at least %(count)s characters"),
    gettext_noop("String should have at most %(count)s character"),
    gettext_noop("String should have at most %(count)s characters"),
    gettext_noop("String should match pattern '%(pattern)s'"),
    gettext_noop("%(kind)s should have at least %(count)s item after validation, not %(most)s"),
    gettext_noop("%(kind)s should have at least %(count)s items after validation, not %(most)s"),
    gettext_noop("Input should be %(expected)s"),
    gettext_noop("Value error, %(fault)s"),
)
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
