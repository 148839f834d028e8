"""The geometry of graphs and of timelines: pure, so that pictures can be trusted without looking."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runs.core.graph import END
from runs.pages import waterfall
from runs.pages.drawing import Box, Drawing, tall, wide
from runs.pages.story import Step, Story
from tests.amounts import examples

LOOP = (["research", "draft", "email"], [("research", "research"), ("research", "draft"), ("draft", "email"),
        ("email", "draft"), ("email", END)])  # fmt: skip
DIAMOND = (["start", "left", "right", "join"], [("start", "left"), ("start", "right"), ("left", "join"),
           ("right", "join"), ("join", "start"), ("start", END), ("join", END)])  # fmt: skip
T = datetime(2026, 11, 26, 10, 0, tzinfo=UTC)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str]]]:
    """Connected from the first node, as every registered graph is; any edges beside that."""
    names = [f"node_{number}" for number in range(draw(st.integers(1, 9)))]
    edges = [(names[draw(st.integers(0, number - 1))], names[number]) for number in range(1, len(names))]
    more = st.tuples(st.sampled_from(names), st.sampled_from([*names, END]))
    edges += draw(st.lists(more, max_size=12))
    return names, list(dict.fromkeys(edges))


def overlap(a: Box, b: Box) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def numbers(drawing: Drawing) -> list[float]:
    return [float(text) for line in drawing.lines for text in re.findall(r"-?\d+\.?\d*", line.path)]


@pytest.mark.parametrize("view", [wide, tall])
@given(graph=graphs())
@settings(max_examples=examples(60), deadline=None)
def test_no_box_covers_another_and_all_lie_inside(view: object, graph: tuple[list, list]) -> None:
    names, edges = graph
    drawing = view(names, edges, END)
    assert {box.name for box in drawing.boxes} == set(names)
    for a, b in combinations(drawing.boxes, 2):
        assert not overlap(a, b)
    for box in drawing.boxes:
        assert 0 <= box.x and box.x + box.width <= drawing.width
        assert 0 <= box.y and box.y + box.height <= drawing.height


@pytest.mark.parametrize("view", [wide, tall])
@given(graph=graphs())
@settings(max_examples=examples(60), deadline=None)
def test_every_edge_is_drawn_once(view: object, graph: tuple[list, list]) -> None:
    names, edges = graph
    drawing = view(names, edges, END)
    assert sorted((line.source, line.target) for line in drawing.lines) == sorted(set(edges))
    assert (drawing.end is not None) == any(target == END for _, target in edges)


@given(graph=graphs())
@settings(max_examples=examples(20), deadline=None)
def test_the_same_graph_is_drawn_the_same_twice(graph: tuple[list, list]) -> None:
    """A live page morphs: a picture that jumped would be a lie about what changed."""
    assert wide(*graph, END) == wide(*graph, END)


def test_nodes_go_from_left_to_right_in_the_order_of_the_run() -> None:
    boxes = {box.name: box for box in wide(*LOOP, END).boxes}
    assert boxes["research"].x < boxes["draft"].x < boxes["email"].x
    assert boxes["research"].y == boxes["draft"].y == boxes["email"].y


def test_edges_that_lead_back_run_around_the_boxes() -> None:
    drawing = wide(*LOOP, END)
    top = min(box.y for box in drawing.boxes)
    back = next(line for line in drawing.lines if (line.source, line.target) == ("email", "draft"))
    heights = [float(height) for height in re.findall(r"V(-?\d+\.?\d*)", back.path)]
    assert min(heights) < top
    assert min(heights) >= 0


def test_alternatives_stand_beside_each_other() -> None:
    boxes = {box.name: box for box in wide(*DIAMOND, END).boxes}
    assert boxes["left"].x == boxes["right"].x
    assert boxes["left"].y != boxes["right"].y


def test_a_long_name_is_cut_to_what_fits_and_kept_whole_beside() -> None:
    name = "a_very_long_name_of_a_node"
    box = wide([name], [(name, END)], END).boxes[0]
    assert box.name == name
    assert len(box.label) <= 13
    assert box.label.endswith("…")


def test_the_tall_drawing_fits_a_phone() -> None:
    assert tall(*DIAMOND, END).width <= 320


def test_paths_hold_only_numbers_that_svg_understands() -> None:
    for drawing in (wide(*DIAMOND, END), tall(*DIAMOND, END)):
        assert numbers(drawing)
        for line in drawing.lines:
            assert re.fullmatch(r"[MmHVCqcs0-9. \-]+", line.path)


def test_a_node_that_was_visited_twice_tells_how_long_both_took() -> None:
    def step(number: int, node: str, begin: int, end: int | None) -> Step:
        return Step(number, node, T + timedelta(seconds=begin), end and T + timedelta(seconds=end))

    story = Story([step(1, "a", 0, 30), step(2, "b", 30, 31), step(3, "a", 31, None)], [], T, T)
    visit = story.visits["a"]
    assert (visit.times, visit.before, visit.latest.number) == (2, timedelta(seconds=30), 3)


# -- the time axis


def test_a_long_wait_is_folded_and_the_rest_keeps_its_proportions() -> None:
    wait = (T + timedelta(seconds=30), T + timedelta(hours=18))
    axis = waterfall.axis(T, T + timedelta(hours=18, seconds=30), [wait])
    assert [(fold.begin, fold.end) for fold in axis.folds] == [wait]
    assert axis.folds[0].width == waterfall.FOLD_WIDTH
    first, last = axis.segments[0], axis.segments[-1]
    assert first.width == pytest.approx(last.width)
    assert first.width + last.width + waterfall.FOLD_WIDTH == pytest.approx(100)


def test_no_moment_at_the_axis_is_written_over_the_last_one() -> None:
    """A wait that ended shortly before the run did: the end is written to the left of its place."""
    wait = (T + timedelta(seconds=5), T + timedelta(minutes=5))
    axis = waterfall.axis(T, wait[1] + timedelta(seconds=1), [wait])
    assert 100 - 2 * 13 < axis.at(wait[1]) < 100 - 13
    assert [moment for _left, moment in axis.ticks()] == [T]


def test_a_short_wait_is_drawn_to_scale() -> None:
    axis = waterfall.axis(
        T, T + timedelta(seconds=40), [(T + timedelta(seconds=10), T + timedelta(seconds=13))]
    )
    assert axis.folds == []
    assert axis.at(T + timedelta(seconds=10)) == 25


def test_a_run_that_only_waits_has_an_axis_too() -> None:
    axis = waterfall.axis(T, T + timedelta(days=3), [(T, T + timedelta(days=3))])
    assert axis.at(T) == 0
    assert axis.at(T + timedelta(days=3)) == 100


def test_a_run_that_took_no_time_has_an_axis_too() -> None:
    axis = waterfall.axis(T, T, [])
    assert axis.place(T, T).width > 0


@given(
    st.lists(st.tuples(st.integers(0, 90_000), st.integers(0, 90_000)), max_size=12),
    st.lists(st.integers(0, 90_000), min_size=1, max_size=20),
)
@settings(max_examples=examples(100), deadline=None)
def test_later_is_never_left_of_earlier(spans: list[tuple[int, int]], moments: list[int]) -> None:
    idle = [(T + timedelta(seconds=min(pair)), T + timedelta(seconds=max(pair))) for pair in spans]
    axis = waterfall.axis(T, T + timedelta(seconds=90_000), idle)
    places = [axis.at(T + timedelta(seconds=moment)) for moment in sorted(moments)]
    assert places == sorted(places)
    assert all(0 <= place <= 100 for place in places)
    assert sum(segment.width for segment in axis.segments) == pytest.approx(100, abs=0.2)
    for begin, end in idle:
        bar = axis.place(begin, end)
        assert bar.width > 0
        assert 0 <= bar.left <= bar.right <= 100.01
