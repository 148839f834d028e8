"""One control's text -> the value it means, by the kind of its field. A ValueError says what to write instead."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any  # Any: whatever JSON can hold

from django.utils.translation import gettext as _

from approvals.forms import fields as kind
from approvals.forms.fields import Field
from approvals.forms.values import ABSENT, parse_json

_WHOLE = re.compile(r"[+-]?[0-9]+\Z")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\Z")


def read_control(field: Field, typed: str) -> Any:
    """The value that was typed; ABSENT where an optional one was emptied."""
    return _READ[field.kind](field, typed)


def says(field: Field, text: str) -> Any:
    """What a control's text means for telling whether it was touched: browsers drop a moment's idle seconds."""
    if field.kind == kind.MOMENT and text:
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return text
    return bool(text) if field.kind == kind.BOOLEAN else text


def _read_text(field: Field, typed: str) -> Any:
    if field.wrap is not None:
        return {**field.wrap, "v": typed.strip()}
    if not typed and (field.nullable or not field.required and field.value is ABSENT):
        return None if field.nullable else ABSENT
    kept = field.value if isinstance(field.value, str) else ""
    return typed.replace("\n", "\r\n") if "\r\n" in kept else typed


def _read_number(field: Field, typed: str) -> Any:
    text = typed.strip()
    if not text:
        return _nothing(field, _("Write a number."))
    if field.kind == kind.INTEGER:
        if not _WHOLE.match(text):
            raise ValueError(_("Write a whole number, such as 7."))
    elif not _NUMBER.match(text):
        comma = re.match(r"[+-]?\d+,\d+\Z", text)
        raise ValueError(
            _("Write the number with a point: %(number)s.") % {"number": text.replace(",", ".")}
            if comma
            else _("Write a number.")
        )
    if _WHOLE.match(text) and not isinstance(field.value, float):
        return parse_json(_canonical(text))
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(_("The number %(number)s is too large.") % {"number": text[:40]})
    return number


def _canonical(text: str) -> str:
    digits = text.lstrip("+-").lstrip("0") or "0"
    return f"-{digits}" if text.startswith("-") and digits != "0" else digits


def _read_boolean(field: Field, typed: str) -> Any:
    return bool(typed)


def _read_choice(field: Field, typed: str) -> Any:
    for choice in field.choices:
        if choice.token == typed:
            return choice.value if typed else _nothing(field, _("Choose one."))
    offered = ", ".join(choice.label for choice in field.choices if choice.token)
    raise ValueError(_("Choose one of: %(values)s.") % {"values": offered})


def _read_date(field: Field, typed: str) -> Any:
    if not typed:
        return _nothing(field, _("Choose a day."))
    try:
        return date.fromisoformat(typed).isoformat()
    except ValueError:
        raise ValueError(_("Write the day as year-month-day, such as 2026-11-27.")) from None


def _read_moment(field: Field, typed: str) -> Any:
    if not typed:
        return _nothing(field, _("Choose a day and a time."))
    try:
        moment = datetime.fromisoformat(typed)
    except ValueError:
        raise ValueError(_("Write day and time as 2026-11-27T07:30.")) from None
    if moment.tzinfo is not None:
        return moment.isoformat()
    was = field.value if isinstance(field.value, str) else "Z"
    zone = re.search(r"(Z|[+-]\d\d:\d\d)?\Z", was)
    return moment.isoformat() + ((zone[1] or "") if zone else "")


def _read_json(field: Field, typed: str) -> Any:
    if not typed.strip():
        return _nothing(
            field, _("Write a JSON value: a text in double quotes, a number, a list, an object, null.")
        )
    return parse_json(typed)


def _nothing(field: Field, asked: str) -> Any:
    if field.nullable:
        return None
    if field.required:
        raise ValueError(asked)
    return ABSENT


_READ = {
    kind.TEXT: _read_text,
    kind.LONG: _read_text,
    kind.INTEGER: _read_number,
    kind.NUMBER: _read_number,
    kind.BOOLEAN: _read_boolean,
    kind.CHOICE: _read_choice,
    kind.DATE: _read_date,
    kind.MOMENT: _read_moment,
    kind.JSON: _read_json,
}
