"""One picture of the gallery: who looks, where, and what they do before it is taken."""

from __future__ import annotations

from typing import NamedTuple

Act = tuple[str, ...]


class Shown(NamedTuple):
    """`does` are acts of tests/gallery/walk.py, such as ("press", ".button"); `after` puts the rows back."""

    person: str  # "" for who is not signed in
    address: str
    does: tuple[Act, ...] = ()
    after: tuple[Act, ...] = ()


Pages = dict[str, Shown]
