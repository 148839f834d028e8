"""A graph as geometry: nodes and edges in, boxes and paths out. No row, no clock, no colour.

Two drawings of one graph: `wide` goes from left to right in layers (igraph's Sugiyama layout), `tall` is one column for
a narrow screen. Edges that lead back run around the boxes, each in a lane of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import igraph

BOX_WIDTH, BOX_HEIGHT = 132, 46
TALL_WIDTH, TALL_HEIGHT = 196, 44
LAYER_GAP, ROW_GAP = 46, 26
TALL_GAP = 24
LANE = 15
LOOP = 12
END_RADIUS = 7
BEND = 6
LETTERS = 13  # of a node's name that fit into a box

Edge = tuple[str, str]


@dataclass(frozen=True)
class Box:
    """One node: its name, as much of it as fits, and where it stands."""

    name: str
    label: str
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def text_x(self) -> float:
        return self.x + 34

    @property
    def name_y(self) -> float:
        return self.middle - 3

    @property
    def detail_y(self) -> float:
        return self.middle + 12

    @property
    def icon_y(self) -> float:
        return self.middle - 8


@dataclass(frozen=True)
class Line:
    """One edge: the path of its line and of its head, both as SVG path data."""

    source: str
    target: str
    path: str
    head: str


@dataclass(frozen=True)
class Drawing:
    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    end: tuple[float, float] | None


def wide(nodes: Sequence[str], edges: Sequence[Edge], end: str) -> Drawing:
    """Layers from left to right. `nodes` as declared, the first is the start; `end` names the end in `edges`."""
    forward, back = _by_direction(nodes, edges, end)
    places, bends = _layers(nodes, forward, end)
    back = sorted(back, key=lambda edge: abs(_column(places, edge[0]) - _column(places, edge[1])))
    lowest = max((row for way in ([*places.values()], *bends.values()) for _, row in way), default=0)
    loops = [edge for edge in back if edge[0] == edge[1]]
    # An edge leads back above the boxes, or below them when it leaves from the lower half.
    above = [edge for edge in back if edge not in loops and places[edge[0]][1] * 2 <= lowest]
    below = [edge for edge in back if edge not in loops and edge not in above]
    lanes_above, lanes_below = _lanes(above, places), _lanes(below, places)
    top = max([2 + (LOOP if loops else 0), *((lane + 1) * LANE + LOOP for lane in lanes_above.values())])
    bottom = top + lowest * (BOX_HEIGHT + ROW_GAP) + BOX_HEIGHT

    boxes = {
        name: Box(name, _fit(name), 1 + places[name][0] * (BOX_WIDTH + LAYER_GAP), _row_y(top, places[name][1]),
                  BOX_WIDTH, BOX_HEIGHT)
        for name in nodes
    }  # fmt: skip
    end_at = None
    if end in places:
        column, row = places[end]
        end_at = (1 + column * (BOX_WIDTH + LAYER_GAP) + END_RADIUS, _row_y(top, row) + BOX_HEIGHT / 2)
    lines = []
    for source, target in forward:
        start = (boxes[source].x + BOX_WIDTH, boxes[source].middle)
        stop = (end_at[0] - END_RADIUS, end_at[1]) if target == end and end_at else None
        stop = stop or (boxes[target].x, boxes[target].middle)
        via = [
            (1 + column * (BOX_WIDTH + LAYER_GAP), _row_y(top, row) + BOX_HEIGHT / 2)
            for column, row in bends.get((source, target), ())
        ]
        lines.append(Line(source, target, _curve(start, via, stop), _head_right(*stop)))
    for edge in back:
        source = boxes[edge[0]]
        if edge in loops:
            lines.append(_around(edge, source, source, source.y - LOOP, over=True))
            continue
        over = edge in lanes_above
        lane = lanes_above[edge] if over else lanes_below[edge]
        y = top - LOOP - (lane + 0.5) * LANE if over else bottom + LOOP + (lane + 0.5) * LANE
        lines.append(_around(edge, source, boxes[edge[1]], y, over))
    right = max([box.x + box.width for box in boxes.values()] + ([end_at[0] + END_RADIUS] if end_at else [0]))
    height = max([bottom + 2, *(bottom + LOOP + (lane + 1) * LANE for lane in lanes_below.values())])
    return Drawing(right + 1, height, tuple(boxes.values()), tuple(lines), end_at)


def tall(nodes: Sequence[str], edges: Sequence[Edge], end: str) -> Drawing:
    """One column from top to bottom; what does not lead to the next box runs in a lane at the right."""
    forward, _ = _by_direction(nodes, edges, end)
    places, _ = _layers(nodes, forward, end)
    order = sorted(nodes, key=lambda name: (*places[name], nodes.index(name)))
    boxes = {
        name: Box(name, _fit(name, 22), 1, 2 + index * (TALL_HEIGHT + TALL_GAP), TALL_WIDTH, TALL_HEIGHT)
        for index, name in enumerate(order)
    }
    rows = {name: index for index, name in enumerate(order)}
    below = 2 + len(order) * (TALL_HEIGHT + TALL_GAP)
    end_at = (29.0, float(below + END_RADIUS)) if any(target == end for _, target in edges) else None
    if end_at:
        rows[end] = len(order)
    straight = [(source, target) for source, target in edges if rows[target] == rows[source] + 1]
    around = sorted(
        (edge for edge in edges if edge not in straight), key=lambda edge: abs(rows[edge[0]] - rows[edge[1]])
    )
    lanes = _lanes(around, {name: (row, 0) for name, row in rows.items()})
    lines = []
    for source, target in straight:
        y = end_at[1] - END_RADIUS if target == end and end_at else boxes[target].y
        from_y = boxes[source].y + TALL_HEIGHT
        lines.append(Line(source, target, f"M29 {from_y:g}V{y:g}", f"m25 {y - 5:g} 4 5 4-5"))
    for edge in around:
        x = 1 + TALL_WIDTH + 10 + (lanes[edge] + 0.5) * LANE
        lines.append(_beside(edge, boxes, end, end_at, x))
    right = 1 + TALL_WIDTH + (10 + (max(lanes.values()) + 1) * LANE if lanes else 1)
    height = end_at[1] + END_RADIUS + 1 if end_at else below - TALL_GAP + 2
    return Drawing(right, height, tuple(boxes.values()), tuple(lines), end_at)


def _by_direction(nodes: Sequence[str], edges: Sequence[Edge], end: str) -> tuple[list[Edge], list[Edge]]:
    """The edges that lead on and those that lead back, by a walk from the start in the order of declaration."""
    following: dict[str, list[str]] = {name: [] for name in nodes}
    for source, target in dict.fromkeys(edges):
        following[source].append(target)
    back: list[Edge] = []
    state: dict[str, str] = {}
    for start in nodes:
        if start in state:
            continue
        state[start] = "open"
        ahead = [(start, iter(following[start]))]
        while ahead:
            source, rest = ahead[-1]
            target = next(rest, None)
            if target is None:
                state[source] = "closed"
                ahead.pop()
            elif state.get(target) == "open":
                back.append((source, target))
            elif target != end and target not in state:
                state[target] = "open"
                ahead.append((target, iter(following[target])))
    return [edge for edge in dict.fromkeys(edges) if edge not in back], back


def _layers(
    nodes: Sequence[str], forward: Sequence[Edge], end: str
) -> tuple[dict[str, tuple[int, float]], dict[Edge, list[tuple[int, float]]]]:
    """(layer, row) of each node and of the end, and where long edges bend. Rows start at 0."""
    names = [*nodes, *([end] if any(target == end for _, target in forward) else [])]
    index = {name: number for number, name in enumerate(names)}
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for source, target in forward:
            depth[target] = max(depth[target], depth[source] + 1)
    if end in depth:
        depth[end] = max(depth.values())
    drawn = igraph.Graph(len(names), [(index[a], index[b]) for a, b in forward], directed=True)
    layout = drawn.layout_sugiyama(layers=[depth[name] for name in names], hgap=1, vgap=1)
    rows = _rows([point[0] for point in layout.coords], _layer_numbers(layout, depth, names))
    places = {name: (depth[name], rows[index[name]]) for name in names}
    bends: dict[Edge, list[tuple[int, float]]] = {}
    for source, target in forward:
        for layer in range(depth[source] + 1, depth[target]):
            share = (layer - depth[source]) / (depth[target] - depth[source])
            row = places[source][1] + (places[target][1] - places[source][1]) * share
            taken = {places[name][1] for name in names if depth[name] == layer}
            if any(abs(row - other) < 0.75 for other in taken):
                row = max(taken) + 0.62
            bends.setdefault((source, target), []).append((layer, row))
    return places, bends


def _layer_numbers(layout: igraph.Layout, depth: dict[str, int], names: Sequence[str]) -> list[int]:
    dummies = [round(point[1]) for point in layout.coords[len(names) :]]
    return [*(depth[name] for name in names), *dummies]


def _rows(positions: Sequence[float], layers: Sequence[int]) -> list[float]:
    """Sugiyama's positions across a layer, moved so that the uppermost is 0 and the nearest two are one row apart."""
    gaps = []
    for layer in set(layers):
        inside = sorted(position for position, at in zip(positions, layers, strict=True) if at == layer)
        gaps += [b - a for a, b in zip(inside, inside[1:], strict=False) if b - a > 0.01]
    unit = min(gaps, default=1.0)
    least = min(positions, default=0.0)
    return [round((position - least) / unit, 2) for position in positions]


def _lanes(edges: Sequence[Edge], places: dict[str, tuple[int, float]]) -> dict[Edge, int]:
    """A lane for each edge, the lowest in which it overlaps no other."""
    lanes: dict[Edge, int] = {}
    for edge in edges:
        low, high = sorted((places[edge[0]][0], places[edge[1]][0]))
        taken = {
            lanes[other]
            for other in lanes
            if not (
                max(places[other[0]][0], places[other[1]][0]) < low
                or min(places[other[0]][0], places[other[1]][0]) > high
            )
        }
        lanes[edge] = next(lane for lane in range(len(edges)) if lane not in taken)
    return lanes


def _column(places: dict[str, tuple[int, float]], name: str) -> int:
    return places[name][0]


def _row_y(top: float, row: float) -> float:
    return top + row * (BOX_HEIGHT + ROW_GAP)


def _fit(name: str, letters: int = LETTERS) -> str:
    return name if len(name) <= letters else name[: letters - 1] + "…"


def _curve(start: tuple[float, float], via: Sequence[tuple[float, float]], stop: tuple[float, float]) -> str:
    path, (x, y) = f"M{start[0]:g} {start[1]:g}", start
    for bend_x, bend_y in via:
        half = (x + bend_x) / 2
        path += f"C{half:g} {y:g} {half:g} {bend_y:g} {bend_x:g} {bend_y:g}H{bend_x + BOX_WIDTH:g}"
        x, y = bend_x + BOX_WIDTH, bend_y
    if y == stop[1]:
        return f"{path}H{stop[0]:g}"
    half = (x + stop[0]) / 2
    return f"{path}C{half:g} {y:g} {half:g} {stop[1]:g} {stop[0]:g} {stop[1]:g}"


def _head_right(x: float, y: float) -> str:
    return f"m{x - 5:g} {y - 4:g} 5 4-5 4"


def _around(edge: Edge, source: Box, target: Box, y: float, over: bool) -> Line:
    """A line back, above or below all boxes; one that leads to its own box leaves right of where it comes in."""
    from_x, to_x = source.x + source.width / 2 + 22, target.x + target.width / 2 - 22
    from_y = source.y if over else source.y + source.height
    to_y = target.y - 1 if over else target.y + target.height + 1
    turn = BEND if over else -BEND
    path = (
        f"M{from_x:g} {from_y:g}V{y + turn:g}q0 {-turn:g}-{BEND} {-turn:g}"
        f"H{to_x + BEND:g}q-{BEND} 0-{BEND} {turn:g}V{to_y:g}"
    )
    tip = 5 if over else -5
    return Line(*edge, path, f"m{to_x - 4:g} {to_y - tip:g} 4 {tip:g} 4 {-tip:g}")


def _beside(
    edge: Edge, boxes: dict[str, Box], end: str, end_at: tuple[float, float] | None, x: float
) -> Line:
    source = boxes[edge[0]]
    from_y, edge_x = source.middle + 8, source.x + source.width
    if edge[1] == end and end_at:
        to_y, to_x = end_at[1], end_at[0] + END_RADIUS
    else:
        to_y, to_x = boxes[edge[1]].middle - 8, edge_x
    down = BEND if to_y > from_y else -BEND
    path = (
        f"M{edge_x:g} {from_y:g}H{x - BEND:g}q{BEND} 0 {BEND} {down:g}"
        f"V{to_y - down:g}q0 {down:g}-{BEND} {down:g}H{to_x + 1:g}"
    )
    return Line(*edge, path, f"m{to_x + 6:g} {to_y - 4:g}-5 4 5 4")
