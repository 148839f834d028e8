"""From what a browser posted back to a payload, with every type kept.

A control that still says what it was given keeps the very value it was made from: so 7 stays 7, 1.0 stays 1.0, a text
keeps its line ends, and a payload that nobody touched comes back equal. Only what was changed is read anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol  # Any: whatever JSON can hold

from django.utils.translation import gettext as _

from approvals.forms import fields as kind
from approvals.forms.difference import Change, change_of, changes
from approvals.forms.fields import Field
from approvals.forms.paths import ROOT, below
from approvals.forms.readers import read_control, says
from approvals.forms.schema_form import form_of
from approvals.forms.values import ABSENT, NotJson, json_text, lines, parse_json, same

FORM, JSON_VIEW = "form", "json"
_ROW = re.compile(r"n?[0-9]{1,5}\Z")


class Entries(Protocol):
    """The names and values that were posted, as a QueryDict holds them."""

    def get(self, key: str) -> str | None: ...
    def getlist(self, key: str) -> list[str]: ...
    def setlist(self, key: str, list_: list[str]) -> None: ...
    def keys(self) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody typed: `payload` is what it means (only without errors), `form` shows it again as it was typed."""

    payload: Any
    form: Field
    json: str
    view: str = FORM
    errors: dict[str, list[str]] = field(default_factory=dict)
    base: str = ""  # the JSON that the form was made from, where that is not the proposed payload

    @property
    def changes(self) -> list[Change]:
        """What differs from the proposed payload; of a draft with errors, only what could be read."""
        return changes(self.form.before, self.payload)

    @property
    def is_edited(self) -> bool:
        return bool(self.errors) or not same(self.payload, self.form.before)

    def without_errors(self) -> Draft:
        """The same draft before anybody says that something is missing: while rows are added and removed."""
        return replace(self, errors={}, form=_forgiven(self.form))

    def with_errors(self, errors: Mapping[str, Sequence[str]]) -> Draft:
        """The same draft with the errors of a verb beside its own, each at its field."""
        together = {
            path: [*self.errors.get(path, ()), *errors.get(path, ())] for path in {*self.errors, *errors}
        }
        return replace(self, errors=together, form=_marked(self.form, errors))

    @property
    def faulty(self) -> list[Field]:
        """The fields of the form that have an error, in its order."""
        return [each for each in _all_fields(self.form) if each.errors and each.path != ROOT]

    @property
    def loose_errors(self) -> list[tuple[str, str]]:
        """Errors that belong to no field of the form: (path, message), for the head of the form."""
        held = {each.path for each in _all_fields(self.form) if each.path != ROOT or each.kind != kind.OBJECT}
        return [(path, text) for path, texts in self.errors.items() if path not in held for text in texts]


def proposed(payload: Any, schema: Any = None) -> Draft:
    """The draft of somebody who has not typed anything."""
    return Draft(payload=payload, form=form_of(payload, schema), json=json_text(payload))


def read_draft(entries: Entries, payload: Any, schema: Any = None) -> Draft:
    """What was posted, against the payload that was proposed. Without a `view` nothing was edited."""
    view = entries.get("view")
    if view == JSON_VIEW:
        return _from_json(entries.get("json") or "", payload, schema)
    if view != FORM:
        return proposed(payload, schema)
    base, base_text = _base(entries, payload)
    form = form_of(base, schema, before=payload, proposed=not base_text)
    reader = _Reader(entries)
    value, form = reader.read(form, ROOT)
    reader.refuse_unknown()
    if value is ABSENT:
        value = None
    text = json_text(payload) if same(value, payload) else json_text(value)
    return Draft(payload=value, form=form, json=text, view=FORM, errors=reader.errors, base=base_text)


def resumed(text: str, payload: Any, schema: Any = None) -> Draft:
    """The draft that was kept as this JSON, as a form where it can be one.

    A text where a number was proposed is what somebody had typed there when they left: it is shown, and no number yet.
    """
    try:
        value, unread = _set_aside(parse_json(text), payload, ROOT)
    except NotJson:
        return _from_json(text, payload, schema)
    draft = replace(_from_json(json_text(value) if unread else text, payload, schema), view=FORM)
    if not unread:
        return draft
    errors = {path: [_("Write a number.")] for path in unread}
    return replace(draft, form=_typed_again(draft.form, unread), errors=errors)


def _set_aside(value: Any, proposed: Any, path: str) -> tuple[Any, dict[str, str]]:
    """The value with the proposed numbers back in the place of such texts; and these, by path."""
    if isinstance(value, str) and isinstance(proposed, int | float) and not isinstance(proposed, bool):
        return proposed, {path: value}
    unread: dict[str, str] = {}

    def inner(key: Any, held: Any, was: Any) -> Any:
        kept, typed = _set_aside(held, was, below(path, key))
        unread.update(typed)
        return kept

    if isinstance(value, dict) and isinstance(proposed, dict):
        value = {key: inner(key, held, proposed.get(key, ABSENT)) for key, held in value.items()}
    elif isinstance(value, list) and isinstance(proposed, list):
        beside = [*proposed, *[ABSENT] * len(value)]
        value = [inner(place, held, beside[place]) for place, held in enumerate(value)]
    return value, unread


def _typed_again(form: Field, texts: Mapping[str, str]) -> Field:
    inner = tuple(_typed_again(each, texts) for each in form.fields)
    if form.path not in texts or form.kind not in (kind.NUMBER, kind.INTEGER):
        return replace(form, fields=inner)
    return replace(form, text=texts[form.path], errors=(_("Write a number."),))


def _from_json(text: str, payload: Any, schema: Any) -> Draft:
    try:
        # Untouched text is the proposed payload itself, whatever the browser did to its line ends.
        value = payload if lines(text).strip() == json_text(payload).strip() else parse_json(text)
    except NotJson as error:
        form = form_of(payload, schema)
        return Draft(payload=payload, form=form, json=text, view=JSON_VIEW, errors={"json": [str(error)]})
    unedited = same(value, payload)
    form = _compared(form_of(value, schema, before=payload, proposed=unedited))
    base = "" if unedited else json_text(value)
    return Draft(payload=value, form=form, json=text, view=JSON_VIEW, base=base)


def _base(entries: Entries, payload: Any) -> tuple[Any, str]:
    text = entries.get("base") or ""
    try:
        base = parse_json(text) if text.strip() else payload
    except NotJson:
        return payload, ""
    return (payload, "") if same(base, payload) else (base, json_text(base))


class _Reader:
    def __init__(self, entries: Entries) -> None:
        self.entries = entries
        self.errors: dict[str, list[str]] = {}
        self.known: set[str] = set()

    def read(self, field: Field, path: str) -> tuple[Any, Field]:
        """The value of one field (ABSENT where there is none) and the field as it was typed."""
        field = replace(field, path=path)
        if field.kind == kind.OBJECT:
            return self.read_object(field, path)
        if field.kind == kind.LIST:
            return self.read_list(field, path)
        if field.kind == kind.FIXED:
            return field.value, field
        self.known.add(field.name)
        typed = self.entries.get(field.name)
        if typed is None:
            if field.kind == kind.BOOLEAN:
                typed = ""
            elif field.value is ABSENT and field.before is ABSENT:
                return self.untouched(field)  # of an item that was added without a script
            else:
                return field.value, self.wrong(field, _("This field was not sent. Load the page again."))
        typed = lines(typed)
        if says(field, typed) == says(field, field.text):
            return self.untouched(replace(field, text=typed))
        try:
            value = read_control(field, typed)
        except ValueError as error:
            return field.value, self.wrong(replace(field, text=typed), str(error))
        return value, self.compared(replace(field, text=typed), value)

    def untouched(self, field: Field) -> tuple[Any, Field]:
        if field.value is not ABSENT or not field.required:
            return field.value, self.compared(field, field.value)
        if field.kind in (kind.TEXT, kind.LONG):
            return "", self.compared(field, "")
        return ABSENT, self.wrong(field, _("This is required."))

    def read_object(self, field: Field, path: str) -> tuple[Any, Field]:
        held: dict[str, Any] = {}
        typed = []
        for each in field.fields:
            value, read = self.read(each, below(path, each.key))
            typed.append(read)
            if value is not ABSENT:
                held[str(each.key)] = value
        return held, replace(field, fields=tuple(typed))

    def read_list(self, field: Field, path: str) -> tuple[Any, Field]:
        self.known.add(field.rows_name)
        posted = self.entries.getlist(field.rows_name)
        if not posted and field.value is ABSENT:
            posted = [""]
        if not posted:
            return field.value, self.wrong(field, _("This list was not sent. Load the page again."))
        held, typed = [], []
        for row in dict.fromkeys(row for row in posted if _ROW.match(row)):
            each = self.row(field, row)
            value, read = self.read(each, below(path, len(held)))
            typed.append(read)
            held.append(None if value is ABSENT else value)
        read = replace(field, fields=tuple(typed))
        before = [] if field.before is ABSENT else field.before
        if not same(held, before):
            read = replace(read, change=change_of(path, field.label, field.before, held))
        return held, read

    def row(self, field: Field, row: str) -> Field:
        """An item that was there, or a new one made like it."""
        if row.isdigit() and int(row) < len(field.fields):
            return field.fields[int(row)]
        fresh = field.fresh or Field(name="", kind=kind.JSON)
        name = f"{field.name}[{row}]"
        return replace(fresh.renamed(fresh.name, name), row=row, label=field.label)

    def compared(self, field: Field, value: Any) -> Field:
        if same(value, field.before):
            return field
        return replace(field, change=change_of(field.path, field.label, field.before, value))

    def wrong(self, field: Field, message: str) -> Field:
        self.errors.setdefault(field.path, []).append(message)
        return replace(field, errors=(*field.errors, message))

    def refuse_unknown(self) -> None:
        for name in self.entries.keys():
            if name.startswith(ROOT) and name not in self.known and self.entries.getlist(name):
                self.errors.setdefault(name, []).append(_("This form has no such field."))


def _compared(form: Field) -> Field:
    """A form made from an edited payload, with what differs from the proposed one marked."""
    change = None
    if form.kind != kind.OBJECT and not same(form.value, form.before):
        change = change_of(form.path, form.label, form.before, form.value)
    return replace(form, change=change, fields=tuple(_compared(each) for each in form.fields))


def _marked(form: Field, errors: Mapping[str, Sequence[str]]) -> Field:
    found = tuple(errors.get(form.path, ()))
    return replace(
        form, errors=(*form.errors, *found), fields=tuple(_marked(each, errors) for each in form.fields)
    )


def _all_fields(form: Field) -> list[Field]:
    return [form, *(below_it for each in form.fields for below_it in _all_fields(each))]


def _forgiven(form: Field) -> Field:
    return replace(form, errors=(), fields=tuple(_forgiven(each) for each in form.fields))


# -- rows of a list, for browsers without scripts -----------------------------------------------------------


def add_row(entries: Entries, list_name: str) -> None:
    """Say that one more, empty item stands at the end of the list of that name."""
    rows = entries.getlist(f"{list_name}[]")
    taken = [int(row[1:]) for row in rows if _ROW.match(row) and row.startswith("n")]
    entries.setlist(f"{list_name}[]", [*rows, f"n{max(taken, default=0) + 1}"])


def remove_row(entries: Entries, row_name: str) -> None:
    """Take one item, such as $.to[0], and all that was posted below it, out of its list."""
    list_name, _bracket, row = row_name.rpartition("[")
    rows = entries.getlist(f"{list_name}[]")
    entries.setlist(f"{list_name}[]", [each for each in rows if each != row.removesuffix("]")])
    for name in [name for name in entries.keys() if name.startswith(row_name)]:
        entries.setlist(name, [])
