"""What a start is refused for, and that one key is one run."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from runs import Graph, start
from runs.errors import Conflict, Invalid, Missing
from runs.models import Run
from tests.runs.driving import registered

pytestmark = pytest.mark.django_db(transaction=True)


class Counted(BaseModel):
    n: int = 0


loop = Graph("loop", state=Counted)


@loop.node
def count(run, state): ...


def test_starting_twice_under_one_key_gives_one_run():
    """R11"""
    with registered(loop):
        first = start("loop", {"n": 1}, key="monday")
        assert start("loop", {"n": 1}, key="monday").pk == first.pk
        with pytest.raises(Conflict, match="another input"):
            start("loop", {"n": 2}, key="monday")
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    "key", ["", " ", "\t\n", "\u00a0", "\u2003", "\u3000", "\u2028", "\x1c", "\x85", "x" * 201, "a\x00b"]
)
def test_a_blank_or_impossible_key_is_refused(key):
    """E9"""
    with registered(loop), pytest.raises(Invalid):
        start("loop", {}, key=key)
    assert not Run.objects.exists()


def test_a_key_that_nobody_can_read_is_refused_unless_it_is_there_already(monkeypatch):
    with registered(loop):
        for key in ["\u200b", "\u3164 ", "\u2800", "a\nb", "a\x01b", "\u202ea", "\ufe0f"]:
            with pytest.raises(Invalid, match="people can read it") as refused:
                start("loop", {}, key=key)
            assert list(refused.value.fields) == ["key"]
        with monkeypatch.context() as before:
            before.setattr("runs.engine.starting.is_legible", lambda key: True)
            first = start("loop", {"n": 1}, key="a\nb")
        assert start("loop", {"n": 1}, key="a\nb").pk == first.pk
        start("loop", {}, key="Großauftrag 7: 日本 é")
    assert Run.objects.count() == 2


def test_what_does_not_fit_is_refused_at_the_start_and_nothing_is_kept():
    with registered(loop):
        with pytest.raises(Missing, match="no graph 'lop'"):
            start("lop", {})
        with pytest.raises(Invalid, match="n: "):
            start("loop", {"n": "many"})
        with pytest.raises(Invalid):
            start("loop", [1])
        with pytest.raises(Invalid, match="priority"):
            start("loop", {}, priority=9)
    assert not Run.objects.exists()
