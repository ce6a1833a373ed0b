"""Where the edges of a layered drawing run, from which point of a node to which of another, in user units.

Every end of an edge has a slot of its own on the side of its node, and where the edge leaves it the number beside it is
in that slot. The gap between two columns is wider than two numbers, one of each. So no number can stand on a node or on
another number.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from tracebridge.report.html.svg import decimal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracebridge.report.html.layered_layout import Layout
    from tracebridge.report.html.svg import Point

    Box = tuple[float, float, float, float]  # left, top, right, bottom

NODE_WIDTH, COLUMN_GAP, MARGIN = 124.0, 84.0, 7.0

#: Digits of 12 pixels take less than this, whatever the font: four of them and a sign, over their line.
LABEL_WIDTH, LABEL_HEIGHT = 38.0, 12.0

_STUB = LABEL_WIDTH + 2  # the straight beginning, as long as the number over it
_PADDING = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """An edge as it is drawn.

    Attributes:
        source, target: two different nodes. width: of the stroke. text: a few digits beside its beginning, or nothing.
    """

    source: int
    target: int
    width: float
    text: str

    @property
    def arrow(self) -> float:
        """The length and width of its arrowhead."""
        return 5 + 0.7 * self.width

    def above(self, *, leaving: bool) -> float:
        """What it takes of the side of its node above its own middle."""
        return self.width / 2 + LABEL_HEIGHT if leaving and self.text else self.below(leaving=leaving)

    def below(self, *, leaving: bool) -> float:
        """What it takes below."""
        return max(3.5, (self.width if leaving else self.arrow) / 2 + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The points that an edge passes, from its source to its target, and the place of its text."""

    points: tuple[Point, ...]
    label: Box


def column_left(layer: int) -> float:
    """Where the nodes of a layer begin."""
    return MARGIN + layer * (NODE_WIDTH + COLUMN_GAP)


def node_box(layout: Layout, node: int, height: float) -> Box:
    """What a node of this height covers."""
    left, middle = column_left(layout.layers[node]), layout.heights[node] + MARGIN
    return left, middle - height / 2, left + NODE_WIDTH, middle + height / 2


def _ends(lines: Sequence[Line], layers: Sequence[int]) -> Iterator[tuple[int, bool, int, bool]]:
    """Both ends of each: the node, whether on its right side, which line, and whether it leaves there."""
    for k, line in enumerate(lines):
        yield line.source, layers[line.target] >= layers[line.source], k, True
        yield line.target, layers[line.target] <= layers[line.source], k, False


def node_heights(texts: Sequence[float], lines: Sequence[Line], layers: Sequence[int]) -> list[float]:
    """Of each node: its text takes some, and so do the ends of edges on one side of it."""
    taken: dict[tuple[int, bool], float] = {}
    for node, right, k, leaving in _ends(lines, layers):
        slot = lines[k].above(leaving=leaving) + lines[k].below(leaving=leaving)
        taken[node, right] = taken.get((node, right), _PADDING) + slot
    return [max(text, taken.get((node, False), 0.0), taken.get((node, True), 0.0)) for node, text in enumerate(texts)]


def routes(lines: Sequence[Line], layout: Layout) -> list[Route]:
    """Where each edge runs. Ends on the same side of a node are in the order of the heights that they aim at."""
    ends: dict[tuple[int, bool], list[tuple[float, int, bool]]] = {}
    for node, right, k, leaving in _ends(lines, layout.layers):
        line = lines[k]
        way = (layout.heights[line.source], *_onward(layout, line, k), layout.heights[line.target])
        ends.setdefault((node, right), []).append((way[1] if leaving else way[-2], k, leaving))
    heights: dict[tuple[int, bool], float] = {}
    for (node, _), wanted in ends.items():
        taken = sum(lines[k].above(leaving=out) + lines[k].below(leaving=out) for _, k, out in wanted)
        height = layout.heights[node] + MARGIN - taken / 2
        for _, k, leaving in sorted(wanted):
            height += lines[k].above(leaving=leaving)
            heights[k, leaving] = height
            height += lines[k].below(leaving=leaving)
    return [_route(layout, line, k, heights[k, True], heights[k, False]) for k, line in enumerate(lines)]


def _onward(layout: Layout, line: Line, k: int) -> Sequence[float]:
    """The heights at which it passes the layers between, from its source on."""
    forward = layout.layers[line.target] >= layout.layers[line.source]
    return layout.waypoints[k] if forward else layout.waypoints[k][::-1]


def _route(layout: Layout, line: Line, k: int, first: float, last: float) -> Route:
    a, b = layout.layers[line.source], layout.layers[line.target]
    direction = 1 if b >= a else -1  # of the side on which it leaves
    begins = column_left(a) + (NODE_WIDTH if b >= a else 0.0)
    ends = column_left(b) + (NODE_WIDTH if b <= a else 0.0)
    points = [(begins, first), (begins + direction * _STUB, first)]
    if a == b:
        points.append((begins + _STUB, last))
    for layer, height in zip(range(a + direction, b, direction), _onward(layout, line, k), strict=True):
        sides = (column_left(layer), column_left(layer) + NODE_WIDTH)[::direction]
        points += [(side, height + MARGIN) for side in sides]
    points.append((ends, last))
    near, far = sorted((begins + 3 * direction, begins + direction * LABEL_WIDTH))
    bottom = first - line.width / 2 - 1
    return Route(points=tuple(points), label=(near, bottom - LABEL_HEIGHT + 1, far, bottom))


def smooth_path(path: Sequence[Point]) -> str:
    """Smooth through the points, level at each of them; from a column to itself an arc to the right."""
    parts = [f"M{pair(path[0])}"]
    for (x, y), (x2, y2) in pairwise(path):
        if x == x2:
            bulge = min(42.0, 16 + abs(y2 - y) / 12)
            parts.append(f"C{pair((x + bulge, y))} {pair((x + bulge, y2))} {pair((x2, y2))}")
        elif y == y2:
            parts.append(f"L{pair((x2, y2))}")
        else:
            middle = (x + x2) / 2
            parts.append(f"C{pair((middle, y))} {pair((middle, y2))} {pair((x2, y2))}")
    return "".join(parts)


def pair(point: Point) -> str:
    """A point in path data."""
    return f"{decimal(point[0])} {decimal(point[1])}"
