"""What a form is made of: a tree of fields, each one control or a group of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any  # Any: whatever JSON can hold

from approvals.forms.values import ABSENT

if TYPE_CHECKING:
    from approvals.forms.difference import Change

TEXT, LONG, INTEGER, NUMBER, BOOLEAN = "text", "long", "integer", "number", "boolean"
CHOICE, DATE, MOMENT, OBJECT, LIST, JSON, FIXED = (
    "choice",
    "date",
    "moment",
    "object",
    "list",
    "json",
    "fixed",
)

FRESH_ROW = "@"  # stands for the row in the names of an item that is not there yet; a depth follows


@dataclass(frozen=True, slots=True)
class Choice:
    token: str  # what the form posts
    label: str
    value: Any


@dataclass(frozen=True, slots=True)
class Field:
    """One value of the payload as a control; an object or a list holds more in `fields`.

    `name` is what the form posts it under, `path` where the value stands in the payload now (they part when items
    of a list are removed). `value` is what the form was made from: while the control still says `text`, that very
    value is kept, type and all. `before` is what was proposed, for marking what differs.
    """

    name: str
    kind: str
    label: str = ""
    value: Any = ABSENT
    before: Any = ABSENT
    text: str = ""
    hint: str = ""
    required: bool = True
    nullable: bool = False
    mode: str = ""  # the keyboard a phone shows
    choices: tuple[Choice, ...] = ()
    fields: tuple[Field, ...] = ()
    fresh: Field | None = None
    key: str | int = ""
    row: str = ""
    wrap: dict[str, Any] | None = (
        None  # the stored form of a value that JSON has no type for; its "v" is what is shown
    )
    path: str = ""
    errors: tuple[str, ...] = ()
    change: Change | None = None

    @property
    def id(self) -> str:
        """A dom id: the name, with what an id may not hold spelled out."""
        return "f" + "".join(
            sign if sign.isalnum() or sign in "-_" else f".{ord(sign):x}" for sign in self.name
        )

    @property
    def key_json(self) -> str:
        return json.dumps(self.key)

    @property
    def wrap_json(self) -> str:
        return json.dumps(self.wrap) if self.wrap else ""

    @property
    def value_json(self) -> str:
        return "" if self.value is ABSENT else json.dumps(self.value)

    @property
    def tokens_are_json(self) -> bool:
        return any(choice.token != choice.value for choice in self.choices if choice.token)

    @property
    def is_group(self) -> bool:
        return self.kind in (OBJECT, LIST)

    @property
    def has_seconds(self) -> bool:
        return self.kind == MOMENT and not self.text.endswith(":00") and self.text.count(":") == 2

    @property
    def is_long_json(self) -> bool:
        return "\n" in self.text or len(self.text) > 80

    @property
    def list_name(self) -> str:
        """Of an item: the name of its list."""
        return self.name.removesuffix(f"[{self.row}]")

    @property
    def rows_name(self) -> str:
        return f"{self.name}[]"

    def leaves(self) -> Iterator[Field]:
        """Every control below, itself included, in order."""
        if self.is_group:
            for field in self.fields:
                yield from field.leaves()
        else:
            yield self

    def renamed(self, old: str, new: str) -> Field:
        """The same field whose name begins with `new` instead of `old`; all below it too."""
        return replace(
            self,
            name=new + self.name.removeprefix(old),
            fields=tuple(field.renamed(old, new) for field in self.fields),
            fresh=self.fresh.renamed(old, new) if self.fresh else None,
        )
