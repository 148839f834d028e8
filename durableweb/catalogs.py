"""The catalogs of translations: what the code says, what a language has for it, and the compiled files.

The admin site's pages are Unfold's, which brings no languages: its texts are ours, but those that Django translates.
For developers, by bin/translations and a test; Babel is installed for them alone. Django reads the compiled files.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from gettext import GNUTranslations
from pathlib import Path
from typing import IO, Any  # Any: what Babel hands over

import django
import unfold
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract, extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
SOURCES = tuple(ROOT / name for name in ("approvals", "durableweb", "runs", "templates"))
UNFOLD = Path(unfold.__file__).parent
DJANGO = [
    Path(django.__file__).parent / part / "locale"
    for part in ("conf", "contrib/admin", "contrib/auth", "contrib/contenttypes", "contrib/sessions")
]
KEYWORDS = DEFAULT_KEYWORDS | {
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext_lazy": (1, 2),
    "pgettext_lazy": ((1, "c"), 2),
}
_PLACE = re.compile(r"%\((\w+)\)s|%%s")


def update(language: str) -> None:
    """Take in what is new, drop what nobody says any more, keep what is translated, and compile."""
    catalog = _read(language)
    catalog.update(_said(language), no_fuzzy_matching=True)
    catalog.obsolete.clear()
    with _path(language, "po").open("wb") as file:
        write_po(file, catalog, width=110, sort_output=True, omit_header=False, include_lineno=False)
    _path(language, "mo").write_bytes(_compiled(catalog))


def faults(language: str) -> list[str]:
    """What keeps a language from being complete: a sentence each, with the text that it is about."""
    catalog, found = _read(language), []
    for message in _said(language):
        if message.id:
            found += _faults_of(message, catalog.get(message.id, message.context))
    if _path(language, "mo").read_bytes() != _compiled(catalog):
        found.append("The compiled catalog is not of these texts; run bin/translations.")
    return found


def _faults_of(said: Message, has: Message | None) -> Iterator[str]:
    forms = _forms(has.string) if has is not None else []
    if not forms or not all(forms):
        yield f"Not translated: {_forms(said.id)[0]!r}"
    elif has.fuzzy:
        yield f"Not looked at since it changed: {_forms(said.id)[0]!r}"
    else:
        wanted = set(_PLACE.findall(_forms(said.id)[-1]))
        for form in forms:
            there = set(_PLACE.findall(form))
            # One thing may go without its number: "a step", "ein Schritt".
            if there != wanted and not (len(forms) > 1 and form is forms[0] and there < wanted):
                yield f"Its places differ: {_forms(said.id)[0]!r} has {sorted(wanted)}, {form!r} {sorted(there)}"


def _forms(text: str | Sequence[str]) -> list[str]:
    return [text] if isinstance(text, str) else list(text)


def _said(language: str) -> Catalog:
    """Everything that code and templates mark."""
    catalog = Catalog(charset="utf-8", fuzzy=False)
    for source in SOURCES:
        for text, context, path in _marked(source):
            catalog.add(text, locations=[(str(path.relative_to(ROOT)), 0)], context=context)
    has = _of_django(language)
    for text, context, path in _marked(UNFOLD):
        is_used = "contrib" not in path.relative_to(UNFOLD).parts  # its parts that are not installed here
        if is_used and _key(text, context) not in has:
            catalog.add(text, locations=[(str(path.relative_to(UNFOLD.parent)), 0)], context=context)
    return catalog


@cache
def _marked(source: Path) -> list[tuple[Any, str | None, Path]]:
    """Each text that is marked below a folder, with its context, and where."""
    found: list[tuple[Any, str | None, Path]] = []
    for path in sorted(source.rglob("*")):
        if path.suffix in (".py", ".html", ".txt") and path.is_file():
            method = extract_python if path.suffix == ".py" else _extract_template
            with path.open("rb") as file:
                for _line, text, _comments, context in extract(method, file, keywords=KEYWORDS):
                    found.append((text, context, path))
    return found


@cache
def _of_django(language: str) -> frozenset[str]:
    """The keys of what Django itself translates."""
    found: set[str] = set()
    for path in (folder / language / "LC_MESSAGES" / "django.mo" for folder in DJANGO):
        with path.open("rb") as file:
            catalog = GNUTranslations(file)._catalog  # type: ignore[attr-defined]  # it shows them nowhere else
        found |= {key if isinstance(key, str) else key[0] for key in catalog}
    return frozenset(found)


def _key(text: str | Sequence[str], context: str | None) -> str:
    return f"{context}\x04{_forms(text)[0]}" if context else _forms(text)[0]


def _extract_template(
    file: IO[bytes], keywords: Mapping[str, Any], comment_tags: Sequence[str], options: Mapping[str, Any]
) -> Iterator[Any]:
    """What Django finds in a template, as Python that Babel can read."""
    lines = templatize(file.read().decode(), origin=getattr(file, "name", "")).split("\n")
    yield from extract_python(
        io.BytesIO("\n".join(line.strip() for line in lines).encode()), keywords, comment_tags, options
    )


def _read(language: str) -> Catalog:
    with _path(language, "po").open("rb") as file:
        return read_po(file, locale=language)


def _compiled(catalog: Catalog) -> bytes:
    file = io.BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def _path(language: str, suffix: str) -> Path:
    return ROOT / "locale" / language / "LC_MESSAGES" / f"django.{suffix}"
