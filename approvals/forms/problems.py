"""Where a payload does not fit its schema, in plain words, by path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any  # payloads and schemas are whatever JSON can hold

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from approvals.forms.paths import below, path_text
from approvals.forms.schemas import root_of, validator
from approvals.forms.values import visible

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_KINDS = {
    "string": gettext_lazy("a text"),
    "integer": gettext_lazy("a whole number"),
    "number": gettext_lazy("a number"),
    "boolean": gettext_lazy("yes or no (true or false)"),
    "null": gettext_lazy("nothing (null)"),
    "array": gettext_lazy("a list"),
    "object": gettext_lazy("an object"),
}
_FORMS = {
    "date": gettext_lazy("a day, such as 2026-12-31"),
    "email": gettext_lazy("an e-mail address"),
    "idn-email": gettext_lazy("an e-mail address"),
    "idn-hostname": gettext_lazy("a host name"),
    "ipv4": gettext_lazy("an IPv4 address"),
    "ipv6": gettext_lazy("an IPv6 address"),
    "json-pointer": gettext_lazy("a JSON pointer, such as /to/0"),
    "regex": gettext_lazy("a regular expression"),
    "relative-json-pointer": gettext_lazy("a relative JSON pointer, such as 1/to"),
    "uuid": gettext_lazy("a UUID"),
}
_MOST = 50


def problems(payload: Any, schema: Any) -> dict[str, list[str]]:
    """{"$.to": ["..."]}; empty when the payload fits, or when there is no schema that can be used."""
    told = root_of(schema)
    if not told:
        return {}
    found: dict[str, list[str]] = {}
    try:
        for number, error in enumerate(validator(told).iter_errors(payload)):
            if number >= _MOST:
                break
            for path, text in _told(error):
                if text not in found.setdefault(path, []):
                    found[path].append(text)
    except Exception as error:  # noqa: BLE001  a reference that leads nowhere is found only on the way
        said = _("The question’s own schema cannot be used, so no edit can be checked: %(fault)s")
        return {"$": [(said % {"fault": error})[:300]]}
    return found


def _told(error: ValidationError) -> Iterator[tuple[str, str]]:
    path, limit = path_text(error.absolute_path), error.validator_value
    match error.validator:
        case "required":
            for name in limit:
                if name not in error.instance:
                    yield (
                        below(path, name),
                        _("%(name)s is missing; it is required.") % {"name": _quoted(name)},
                    )
        case "dependentRequired":
            for name in (each for given, names in limit.items() if given in error.instance for each in names):
                if name not in error.instance:
                    yield (
                        below(path, name),
                        _("%(name)s is missing; what else is given needs it.") % {"name": _quoted(name)},
                    )
        case "additionalProperties" | "unevaluatedProperties":
            known = sorted(error.schema.get("properties", {}))
            for name in error.instance:
                if name not in known:
                    said = _("%(name)s is not known here; known are: %(known)s.")
                    listed = ", ".join(known) or _("none")
                    yield below(path, name), said % {"name": _quoted(name), "known": listed}
        case "anyOf" | "oneOf" if error.context:
            kinds = [each for each in error.context if each.validator == "type" and not each.path]
            if len(kinds) == len(error.context):
                wanted = list(dict.fromkeys(each.validator_value for each in kinds))
                yield path, _wrong_kind(wanted, error.instance)
            else:
                from jsonschema.exceptions import best_match  # as in approvals/forms/schemas.py

                yield from _told(best_match(error.context) or error.context[0])
        case _:
            yield path, _words(error)


def _words(error: ValidationError) -> str:
    limit, value = error.validator_value, error.instance
    match error.validator:
        case "type":
            wanted = [limit] if isinstance(limit, str) else limit
            return _wrong_kind(wanted, value)
        case "maxLength":
            said = _("This is too long: %(count)s characters, %(limit)s are the most.")
            return said % {"count": len(value), "limit": limit}
        case "minLength":
            if limit == 1:
                return _("This must not be empty.")
            return _("This is too short: at least %(limit)s characters.") % {"limit": limit}
        case "minimum":
            return _("This must be %(limit)s or more.") % {"limit": limit}
        case "maximum":
            return _("This must be %(limit)s or less.") % {"limit": limit}
        case "exclusiveMinimum":
            return _("This must be more than %(limit)s.") % {"limit": limit}
        case "exclusiveMaximum":
            return _("This must be less than %(limit)s.") % {"limit": limit}
        case "multipleOf":
            return _("This must be a multiple of %(limit)s.") % {"limit": limit}
        case "enum":
            return _("This must be one of: %(values)s.") % {"values": ", ".join(map(_quoted, limit))}
        case "const":
            return _("This must stay %(value)s.") % {"value": _quoted(limit)}
        case "minItems":
            said = ngettext(
                "This needs at least %(limit)s entry.", "This needs at least %(limit)s entries.", limit
            )
            return said % {"limit": limit}
        case "maxItems":
            said = ngettext(
                "These are too many: %(limit)s entry is the most.",
                "These are too many: %(limit)s entries are the most.",
                limit,
            )
            return said % {"limit": limit}
        case "minProperties":
            said = ngettext(
                "This needs at least %(limit)s value.", "This needs at least %(limit)s values.", limit
            )
            return said % {"limit": limit}
        case "maxProperties":
            said = ngettext("%(limit)s value is the most here.", "%(limit)s values are the most here.", limit)
            return said % {"limit": limit}
        case "contains":
            return _("None of these is of the kind that has to be among them.")
        case "oneOf":
            return _("This fits several of the kinds that it may be of; it has to fit one alone.")
        case "uniqueItems":
            return _("An entry is there twice.")
        case "pattern":
            return _("This does not have the form it must have (%(pattern)s).") % {"pattern": limit}
        case "format":
            return _("This must be %(form)s.") % {"form": _FORMS.get(limit, limit)}
        case _:
            said = _("This does not fit the rule “%(rule)s” of the question’s schema.")
            return said % {"rule": visible(str(error.validator or "false"))[:80]}


def _wrong_kind(wanted: list[str], value: Any) -> str:
    kinds = _(" or ").join(str(_KINDS.get(kind, kind)) for kind in wanted)
    return _("This must be %(kinds)s, not %(kind)s.") % {"kinds": kinds, "kind": _kind_of(value)}


def _kind_of(value: Any) -> str:
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return str(_KINDS[kinds.get(type(value), "null")])


def _quoted(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False))[:80]
