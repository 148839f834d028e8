"""From a payload, and its JSON schema where there is one, to a tree of fields.

What has no control of its own (a union of kinds, something very deep or very long, a value that its schema does not
describe) becomes a field that holds that part as JSON: so every payload can be seen and answered.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Any  # payloads and schemas are whatever JSON can hold

from django.utils.translation import gettext_lazy as _

from approvals.forms import fields as kind
from approvals.forms.fields import FRESH_ROW, Choice, Field
from approvals.forms.order import in_order
from approvals.forms.paths import ROOT, below, label_of, title_of
from approvals.forms.schemas import described, root_of
from approvals.forms.values import ABSENT, json_text, lines, same, shows_whole, visible
from runs.core.codec_tree import MARK

MAX_DEPTH = 6
MAX_ITEMS = 60
MAX_FIELDS = 250
LONG_TEXT = 80  # what is longer gets several lines,
LONG_LIMIT = 1000  # and so does what may become longer than this

_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?)(Z|[+-]\d\d:\d\d)?\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
_MARKED = {
    "decimal": _("decimal number"),
    "date": _("date, as 2026-11-27"),
    "time": _("time, as 07:30:00"),
    "datetime": _("date and time, as 2026-11-27T07:30:00"),
    "uuid": "UUID",
}
_KEYBOARDS = {"email": "email", "idn-email": "email", "uri": "url", "url": "url", "phone": "tel"}


def form_of(payload: Any, schema: Any = None, *, before: Any = None, proposed: bool = True) -> Field:
    """The form of `payload`.

    before: what was proposed, where `payload` is already an edit of it (then proposed=False).
    """
    return _Builder(schema).root(payload, payload if proposed else before)


class _Builder:
    def __init__(self, schema: Any) -> None:
        self.schema = root_of(schema)
        self.count = 0

    def root(self, payload: Any, before: Any) -> Field:
        spot = {"name": ROOT, "key": "", "label": "", "before": before, "required": True, "depth": 0}
        form = self.field(payload, self.schema, **spot)
        if self.count > MAX_FIELDS:
            form = self.as_json(payload, {}, **spot)
        return form

    def field(self, value: Any, schema: Any, **spot: Any) -> Field:
        self.count += 1
        told = described(schema, self.schema, value)
        make = {
            "object": self.as_object,
            "array": self.as_list,
            "string": self.as_text,
            "integer": self.as_number,
            "number": self.as_number,
            "boolean": self.as_boolean,
        }.get(told.type, self.as_json)
        if "const" in told.schema:
            make = self.as_fixed
        elif "enum" in told.schema:
            make = self.as_choice
        made = make(value, told.schema, nullable=told.nullable, **spot)
        return made or self.as_json(value, told.schema, nullable=told.nullable, **spot)

    def as_object(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        if isinstance(value, dict) and MARK in value:
            return self.as_marked(value, schema, **spot)
        if (not isinstance(value, dict) and not self.is_blank_row(value, spot)) or spot["depth"] >= MAX_DEPTH:
            return None
        held = value if isinstance(value, dict) else {}
        known = schema.get("properties") or {}
        others = schema.get("additionalProperties", {})
        required = set(schema.get("required") or ())
        names = in_order([*held, *(name for name in known if name not in held)], list(known), held)
        if not names and spot["depth"]:
            return None
        before = spot["before"]
        below_it = tuple(
            self.field(
                held.get(name, ABSENT),
                known.get(name, others if isinstance(others, dict) else {}),
                name=below(spot["name"], name),
                key=name,
                label=label_of(name, title_of(known, name)),
                before=before.get(name, ABSENT) if isinstance(before, dict) else ABSENT,
                required=name in required or (name in held and name not in known),
                depth=spot["depth"] + 1,
            )
            for name in names
        )
        return self.made(kind.OBJECT, value, schema, fields=below_it, **spot)

    def as_marked(self, value: dict[str, Any], schema: dict[str, Any], **spot: Any) -> Field | None:
        """A decimal, a moment, a UUID: its text is edited, its kind stays."""
        text = value.get("v")
        is_known = isinstance(value[MARK], str) and value[MARK] in _MARKED  # any shape may come
        if not is_known or not isinstance(text, str) or not shows_whole(text):
            return None
        zone = value.get("zone") or ("UTC" if value.get("utc") else "")
        spot["hint"] = " · ".join(str(part) for part in (_MARKED[value[MARK]], zone) if part)
        return self.made(kind.TEXT, value, {}, text=text, wrap=value, **spot)

    def as_list(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        items = [] if self.is_blank_row(value, spot) else value
        if not isinstance(items, list) or len(items) > MAX_ITEMS or spot["depth"] >= MAX_DEPTH:
            return None
        each = schema.get("items") if isinstance(schema.get("items"), dict) else {}
        if "prefixItems" in schema or (not items and not each):
            return None
        before = spot["before"] if isinstance(spot["before"], list) else []

        def item(held: Any, row: str, was: Any) -> Field:
            name = f"{spot['name']}[{row}]"
            label = f"{spot['label']} {row.isdigit() and int(row) + 1 or ''}".strip()
            seat = {"name": name, "key": 0, "label": label, "before": was, "required": True, "row": row}
            return self.field(held, each, depth=spot["depth"] + 1, **seat)

        rows = tuple(
            item(held, str(index), before[index] if index < len(before) else ABSENT)
            for index, held in enumerate(items)
        )
        fresh = item(ABSENT, f"{FRESH_ROW}{spot['depth']}", ABSENT)
        return self.made(kind.LIST, value, schema, fields=rows, fresh=fresh, **spot)

    def as_text(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        if value is ABSENT or (value is None and spot["nullable"]):
            text = ""
        elif isinstance(value, str) and shows_whole(value):
            text = lines(value)
        else:
            return None
        form = schema.get("format")
        if form == "date" and (not text or _is_date(text)):
            return self.made(kind.DATE, value, schema, text=text, **spot)
        if form == "date-time" and (not text or _is_moment(text)):
            found = _MOMENT.match(text)
            zone = (found[2] or "") if found else ""
            spot["hint"] = f"UTC{zone.strip('Z')}" if zone or not found else ""
            return self.made(kind.MOMENT, value, schema, text=found[1] if found else "", **spot)
        is_long = (
            "\n" in text
            or len(text) > LONG_TEXT
            or form in ("textarea", "markdown")
            or (schema.get("maxLength") or 0) > LONG_LIMIT
        )
        mode = _KEYBOARDS.get(form, "") if isinstance(form, str) else ""
        return self.made(kind.LONG if is_long else kind.TEXT, value, schema, text=text, mode=mode, **spot)

    def as_number(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        if value is ABSENT or (value is None and spot["nullable"]):
            text = ""
        elif isinstance(value, int | float) and not isinstance(value, bool):
            text = json_text(value)
        else:
            return None
        whole = schema.get("type") == "integer" and not isinstance(value, float)
        mode = "numeric" if whole else "decimal"
        return self.made(kind.INTEGER if whole else kind.NUMBER, value, schema, text=text, mode=mode, **spot)

    def as_boolean(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        if isinstance(value, bool) and not spot["nullable"]:
            return self.made(kind.BOOLEAN, value, schema, text="on" if value else "", **spot)
        return self.as_choice(value, {**schema, "enum": [True, False]}, **spot)

    def as_choice(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        values = [each for each in schema["enum"] if each is not None]
        empty = spot["nullable"] or None in schema["enum"]
        if value is not ABSENT and value is not None and not any(same(value, each) for each in values):
            values = [value, *values]
        if (value is None and not empty) or len(values) > MAX_ITEMS * 4:
            return None
        plain = all(
            isinstance(each, str) and each and shows_whole(each) and "\n" not in each for each in values
        )

        def token(each: Any) -> str:
            return each if plain else json_text(each, indent=None)

        choices = [Choice(token(each), _choice_label(each), each) for each in values]
        unset = value is ABSENT or value is None
        if empty or not spot["required"] or unset:
            choices.insert(0, Choice("", "", None if empty else ABSENT))
        spot["nullable"] = empty
        text = "" if unset else token(value)
        return self.made(kind.CHOICE, value, schema, choices=tuple(choices), text=text, **spot)

    def as_fixed(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field | None:
        if value is not ABSENT and not same(value, schema["const"]):
            return None
        kept = schema["const"] if spot["required"] else value
        return self.made(kind.FIXED, kept, schema, text=_choice_label(schema["const"]), **spot)

    def as_json(self, value: Any, schema: dict[str, Any], **spot: Any) -> Field:
        return self.made(kind.JSON, value, schema, text=json_text(value), **spot)

    def made(self, of: str, value: Any, schema: dict[str, Any], **said: Any) -> Field:
        said.pop("depth")
        hint = said.pop("hint", "")
        told = schema.get("description")
        name = said.pop("name")
        hint = " · ".join(visible(part) for part in (hint, told) if isinstance(part, str) and part)
        said["label"] = visible(said["label"])
        return Field(name=name, path=name, kind=of, value=value, hint=hint, **said)

    def is_blank_row(self, value: Any, spot: dict[str, Any]) -> bool:
        """An item that is being added, or a part that must be there: shown open; an optional part is not."""
        return value is ABSENT and spot["required"] and spot["depth"] < MAX_DEPTH - 2


def _choice_label(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return visible(value) if isinstance(value, str) else json_text(value, indent=None)


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.match(text)) and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    try:
        return bool(_MOMENT.match(text)) and bool(datetime.fromisoformat(text))
    except ValueError:
        return False
