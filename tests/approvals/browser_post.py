"""What a browser would post: the successful controls of a page's form, as HTML's rules say."""

from __future__ import annotations

from html.parser import HTMLParser

from django.http import QueryDict


class FormReader(HTMLParser):
    """Collects the controls of the form with the given id; radio buttons, checkboxes, selects and text areas too."""

    def __init__(self, form_id: str):
        super().__init__(convert_charrefs=True)
        self.form_id, self.inside = form_id, False
        self.pairs: list[tuple[str, str]] = []
        self.area: tuple[str, list[str]] | None = None
        self.select: str | None = None
        self.options: list[tuple[str, bool]] = []
        self.templates = 0

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        if tag == "template":
            self.templates += 1
        if tag == "form":
            self.inside = given.get("id") == self.form_id
        mine = (given["form"] == self.form_id) if "form" in given else self.inside
        if self.templates or not mine or "disabled" in given:
            return
        name = given.get("name", "")
        if tag == "input" and name:
            kind = given.get("type", "text")
            if kind in ("radio", "checkbox"):
                if "checked" in given:
                    self.pairs.append((name, given.get("value", "on")))
            elif kind == "hidden":
                self.pairs.append((name, given.get("value", "")))
            elif kind != "submit":
                self.pairs.append((name, given.get("value", "").replace("\n", "").replace("\r", "")))
        elif tag == "textarea":
            self.area = (name, [])
        elif tag == "select":
            self.select, self.options = name, []
        elif tag == "option":
            self.options.append((given.get("value", ""), "selected" in given))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)

    def handle_data(self, data):
        if self.area:
            self.area[1].append(data)

    def handle_endtag(self, tag):
        if tag == "template":
            self.templates -= 1
        if tag == "form":
            self.inside = False
        if tag == "textarea" and self.area:
            name, parts = self.area
            text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n")
            self.pairs.append((name, text.removeprefix("\n").replace("\n", "\r\n")))
            self.area = None
        if tag == "select" and self.select is not None:
            chosen = [value for value, selected in self.options if selected] or [
                v for v, _s in self.options[:1]
            ]
            self.pairs.extend((self.select, value) for value in chosen[-1:])
            self.select = None


def posted_by(html: str, form_id: str = "decision", **changed: str) -> QueryDict:
    """What pressing a button of that form would send; `changed` names fields (with _dot_ for $.) typed over."""
    reader = FormReader(form_id)
    reader.feed(html)
    reader.close()
    entries = QueryDict(mutable=True)
    for name, value in reader.pairs:
        entries.appendlist(name, value)
    for name, value in changed.items():
        entries[name] = value
    return entries
