"""What flattening a state saw of the long lists of texts in its fields, so that the rest of a step need not look again.

It names the very lists it speaks of, so it is never wrong: what it does not know, or no longer, is looked at.
"""

from __future__ import annotations

from runs.core.codec_tree import Plain


class Lists:
    """Kept beside a state's tree, from one step to the next."""

    __slots__ = ("_before", "_texts", "_begins")

    def __init__(self) -> None:
        self._before: dict[int, list[Plain]] = {}
        self._texts: dict[int, list[Plain]] = {}
        self._begins: dict[int, tuple[list[Plain], list[Plain]]] = {}

    def turn(self) -> None:
        """A new tree is begun: what was known is known of the tree before."""
        self._before, self._texts, self._begins = self._texts, {}, {}

    def add(self, tree: list[Plain]) -> None:
        """A list of the new tree that holds texts only."""
        self._texts[id(tree)] = tree

    def add_grown(self, tree: list[Plain], before: list[Plain]) -> None:
        """The same, and it begins with all the items of a list of the tree before."""
        self.add(tree)
        self._begins[id(tree)] = tree, before

    def were_texts(self, tree: Plain) -> bool:
        return self._before.get(id(tree), self) is tree

    def are_texts(self, tree: Plain) -> bool:
        return self._texts.get(id(tree), self) is tree

    def begins_with(self, tree: Plain, before: Plain) -> bool:
        known = self._begins.get(id(tree))
        return known is not None and known[0] is tree and known[1] is before


NOTHING = Lists()
