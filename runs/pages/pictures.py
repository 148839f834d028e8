"""The picture of a run's graph: the drawing, and on each node what happened there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from runs.core import codec
from runs.core.graph import END
from runs.pages import words
from runs.pages.drawing import Box, Drawing, Line, tall, wide
from runs.pages.story import Story, Visit
from runs.templatetags.look import drawn_at

if TYPE_CHECKING:
    from runs.models import Run

WIDEST = 1320  # a wider drawing would shrink its words below reading size: the tall one is shown instead


@dataclass(frozen=True)
class Node:
    """A box with its look: `status` is not_reached, completed, or the run's while it stands here."""

    box: Box
    icon: SafeString
    status: str
    word: str
    detail: str
    checkpoint: int | None
    current: bool


@dataclass(frozen=True)
class Edge:
    line: Line
    taken: bool


@dataclass(frozen=True)
class View:
    drawing: Drawing
    nodes: list[Node]
    edges: list[Edge]


@dataclass(frozen=True)
class Told:
    """One line of the text twin: the node, its fate, and where it may lead."""

    node: Node
    then: list[str]


@dataclass(frozen=True)
class Picture:
    wide: View | None
    tall: View
    words: list[Told]


def draw(shape: str, run: Run, story: Story, now: datetime) -> Picture:
    """`shape` is a GraphVersion's: first node, nodes and where each may lead."""
    listed = codec.decode(shape)["nodes"]
    names = [name for name, _targets in listed]
    edges = [(name, target) for name, targets in listed for target in targets]
    views = []
    for drawing in (wide(names, edges, END), tall(names, edges, END)):
        taken = story.taken
        views.append(
            View(
                drawing,
                [_node(box, run, story.visits.get(box.name), now) for box in drawing.boxes],
                # strong lines last, so that they lie on top
                sorted(
                    (Edge(line, (line.source, line.target) in taken) for line in drawing.lines), key=_strength
                ),
            )
        )
    by_name = {node.box.name: node for node in views[1].nodes}
    told = [
        Told(by_name[name], [_("the end") if to == END else to for to in targets]) for name, targets in listed
    ]
    return Picture(views[0] if views[0].drawing.width <= WIDEST else None, views[1], told)


def _strength(edge: Edge) -> bool:
    return edge.taken


def _node(box: Box, run: Run, visit: Visit | None, now: datetime) -> Node:
    if visit is None:
        look = words.status_word("not_reached")
        return Node(
            box, drawn_at(look.icon, box.x + 10, box.icon_y), "", str(look.word), str(look.word), None, False
        )
    step = visit.latest
    current = step.status != "completed"
    look = words.status_word(step.status)
    took = words.span(visit.before + (step.end or now) - step.begin)
    times = ngettext("%(many)s time", "%(many)s times", visit.times) % {"many": visit.times}
    detail = f"{times}, {took}" if visit.times > 1 else took
    icon = drawn_at(look.icon, box.x + 10, box.icon_y)
    return Node(box, icon, look.slug, str(look.word), detail, step.checkpoint, current)
