"""What a developer's run of bin/test leaves out of long lists, and that nothing else does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from tests import amounts
from tests.conftest import not_drawn_of_lists


@dataclass(frozen=True)
class Item:
    nodeid: str
    mark: str

    def get_closest_marker(self, name: str) -> Any:
        return name if name == self.mark else None


LONG = [Item(f"tests/x.py::test_long[{number}]", "long_list") for number in range(10)]
OTHER = [Item(f"tests/x.py::test_other[{number}]", "once") for number in range(10)]
ALONE = [Item("tests/x.py::test_alone", "long_list")]


def left(monkeypatch: pytest.MonkeyPatch, seed: int) -> list[Item]:
    monkeypatch.setattr(amounts, "SEED", str(seed))
    out = not_drawn_of_lists([*LONG, *OTHER, *ALONE])
    return [item for item in [*LONG, *OTHER, *ALONE] if item not in out]


def test_a_developers_run_takes_a_quarter_of_a_long_list_and_all_of_it_in_time(monkeypatch):
    monkeypatch.setattr(amounts, "DRAWN", True)
    runs = [left(monkeypatch, seed) for seed in range(40)]
    for taken in runs:
        assert len([item for item in taken if item in LONG]) == 3
        assert [item for item in taken if item not in LONG] == [*OTHER, *ALONE]
    assert {item for taken in runs for item in taken} >= set(LONG)
    assert left(monkeypatch, 7) == left(monkeypatch, 7), "the seed draws the same again"


def test_every_other_run_takes_all_of_it(monkeypatch):
    monkeypatch.setattr(amounts, "DRAWN", False)
    assert left(monkeypatch, 7) == [*LONG, *OTHER, *ALONE]
