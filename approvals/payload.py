"""A payload between people and the ledger: as JSON for pages and API, as the typed value that the run gets.

JSON types stay what they are (7 is a whole number, before and after). A value that JSON has no type for (a Decimal, a
date) is shown in its stored form, an object with the mark "$", and is read back from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any  # payloads and schemas are any JSON

from django.utils.translation import gettext_lazy as _

from approvals.forms.paths import ROOT, below, path_text
from approvals.forms.problems import problems
from approvals.forms.schemas import root_of
from approvals.forms.values import visible
from runs.core import codec
from runs.core.codec_tree import MARK
from runs.core.errors import CodecError
from runs.errors import Invalid, told
from runs.registry import check_payload
from runs.unstorable import fault

if TYPE_CHECKING:
    from runs.models import Run

_REFERENCES = ("secret", "blob")
_LEAVES = (str, int, float, bool, type(None))
# where one of these stands beside `properties`, which keys are known is not said by `properties` alone
_OPEN_WORDS = (
    "additionalProperties",
    "unevaluatedProperties",
    "patternProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "$ref",
)


def as_json(value: Any) -> Any:
    """The value as JSON can hold it; `as_value` reads it back."""
    if type(value) in _LEAVES:
        return value
    if type(value) is list:
        return [as_json(item) for item in value]
    if type(value) is dict and MARK not in value and all(type(key) is str for key in value):
        return {key: as_json(item) for key, item in value.items()}
    return codec.flatten(value)


def as_value(tree: Any) -> Any:
    """The value that `as_json` showed, or a plain JSON value as it is. Raises CodecError for a mark without meaning."""
    if type(tree) is list:
        return [as_value(item) for item in tree]
    if type(tree) is not dict:
        return tree
    if MARK in tree:
        return codec.restore(tree)
    return {key: as_value(item) for key, item in tree.items()}


def read(tree: Any) -> tuple[Any, str]:
    """The value that people sent, and its canonical text. Raises Invalid naming the path of what cannot be stored."""
    try:
        value = as_value(tree)
        return value, codec.dumps(value)
    except CodecError as error:
        raise Invalid(
            told(_("The payload cannot be stored: %(fault)s"), fault=fault(error)),
            {error.path: [fault(error.reason)]},
        ) from error
    except (TypeError, RecursionError) as error:
        said = _("The payload cannot be read: it is no JSON value, or nested too deeply.")
        raise Invalid(said, {ROOT: [said]}) from error


def fitting(request: dict[str, Any], run: Run, value: Any) -> Any:
    """The edited value as the run can take it; for a gated call as its tool binds it.

    The schema says what fits, and an object whose keys it names takes no others. Without a schema the proposal's own
    keys are the only ones known, and all of them are needed; a gated call needs all its arguments in any case, for a
    default that nobody saw was not approved. Raises Invalid with what is wrong by path ($.to[0]).
    """
    schema, call, proposed = root_of(request.get("schema")), request.get("call"), request["payload"]
    wrong = problems(value, closed(schema)) if schema else {}
    wrong = {path: said for path, said in wrong.items() if path not in kept_references(proposed, value)}
    if call is not None or not schema:
        wrong = other_keys(proposed, value, deep=call is None) | wrong
    wrong |= other_references(proposed, value)
    if call is None:
        _refuse(wrong)
        return value
    try:
        bound = check_payload(run, request, value)
    except Invalid as also:
        if not wrong:
            raise
        wrong |= {path: said for path, said in also.fields.items() if path not in wrong}
    _refuse(wrong)
    return bound


def fitting_answer(request: dict[str, Any], value: Any) -> Any:
    """An answer in one's own words: any JSON, unless the schema says otherwise."""
    schema = root_of(request.get("schema"))
    _refuse((problems(value, closed(schema)) if schema else {}) | other_references(None, value))
    return value


def closed(schema: Any) -> Any:
    """The schema, in which an object whose keys are named takes no other ones, unless the author said so.

    JSON schema lets unknown keys pass in silence; a misspelt key would then be approved and ignored.
    """
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    shut = {
        word: part if word in ("enum", "const", "default", "examples", "allOf") else _each(word, part)
        for word, part in schema.items()
    }
    if isinstance(schema.get("properties"), dict) and not any(word in schema for word in _OPEN_WORDS):
        shut["additionalProperties"] = False
    return shut


def other_keys(proposed: Any, edited: Any, path: str = ROOT, *, deep: bool = True) -> dict[str, list[str]]:
    """Keys that the proposal does not have, or that the edit has lost, by path; and an object that is none any more."""
    if not isinstance(proposed, dict):
        return {}
    if not isinstance(edited, dict):
        return {
            path: [
                _("This must stay an object with the keys %(keys)s.")
                % {"keys": ", ".join(map(str, proposed))}
            ]
        }
    wrong: dict[str, list[str]] = {}
    for key in edited:
        if key not in proposed:
            known = ", ".join(map(str, proposed))
            said = (
                _("“%(key)s” is not known here; known are: %(known)s.")
                if known
                else _("“%(key)s” is not known here.")
            )
            wrong[below(path, str(key))] = [said % {"key": key, "known": known}]
    for key, part in proposed.items():
        if key not in edited:
            wrong[below(path, str(key))] = [_("“%(key)s” is missing; it is required.") % {"key": key}]
        elif deep:
            wrong |= other_keys(part, edited[key], below(path, str(key)))
    return wrong


def other_references(proposed: Any, edited: Any) -> dict[str, list[str]]:
    """References to secrets and blobs that do not stand in the same place of the proposal, by path.

    Whoever could write one into a payload could have the run send them a secret, or another run's file.
    """
    known = dict(_references(codec.flatten(proposed)))
    wrong = {}
    for steps, reference in _references(codec.flatten(edited)):
        if known.get(steps) != reference:
            said = _("A reference to a secret or a file cannot be written by hand; leave it out.")
            wrong[path_text(steps)] = [str(said)]
    return wrong


def kept_references(proposed: Any, edited: Any) -> set[str]:
    """Paths at which the edit has the very reference that was proposed: a schema speaks of what it stands for."""
    known = dict(_references(codec.flatten(proposed)))
    found = _references(codec.flatten(edited))
    return {path_text(steps) for steps, reference in found if known.get(steps) == reference}


def _references(tree: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Also those in the arguments of a gated call, which hold the stored form as a value: a dict with the mark."""
    if type(tree) is dict and tree.get(MARK) == "dict":
        tree = {key if type(key) is str else codec.encode(key): part for key, part in tree["v"]}
    if type(tree) is dict and tree.get(MARK) in _REFERENCES:
        yield steps, tree
    elif type(tree) in (dict, list):
        for step, part in tree.items() if type(tree) is dict else enumerate(tree):
            yield from _references(part, (*steps, step))


def _each(word: str, part: Any) -> Any:
    """The schemas below a word: those of `properties` and of `$defs` stand under names, not under words."""
    if word in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas") and isinstance(
        part, dict
    ):
        return {name: closed(below_it) for name, below_it in part.items()}
    return closed(part)


def _refuse(wrong: dict[str, list[str]]) -> None:
    """Raises Invalid if anything is wrong; what cannot be sent to a browser is spelled out."""
    if not wrong:
        return
    wrong = {path: [visible(one) for one in said] for path, said in wrong.items()}
    path, said = next(iter(wrong.items()))
    values = {"path": path, "fault": said[0], "more": len(wrong) - 1}
    if len(wrong) > 1:
        raise Invalid(
            told(_("The payload does not fit: %(path)s: %(fault)s (and %(more)s more)"), **values), wrong
        )
    raise Invalid(told(_("The payload does not fit: %(path)s: %(fault)s"), **values), wrong)
