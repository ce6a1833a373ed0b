"""Where the edges of a layered drawing run, from which point of a node to which of another, in user units."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

from tracebridge.report.html.svg import decimal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.report.html.flow_graph import FlowEdge
    from tracebridge.report.html.layered_layout import Layout
    from tracebridge.report.html.svg import Point

    Box = tuple[float, float, float, float]  # left, top, right, bottom

NODE_WIDTH, NODE_HEIGHT = 138.0, 40.0
COLUMN_GAP, MARGIN = 54.0, 24.0
_PORTS_APART, _LEAST_APART = 7.0, 5.5
_BULGE = 30.0
_LABEL_HEIGHT, _DIGIT_WIDTH = 12.0, 6.0


def column_left(layer: int) -> float:
    """Where the nodes of a layer begin."""
    return MARGIN + layer * (NODE_WIDTH + COLUMN_GAP)


def node_box(layout: Layout, node: int, height: float) -> Box:
    """What a node of this height covers."""
    left, middle = column_left(layout.layers[node]), layout.heights[node] + MARGIN
    return left, middle - height / 2, left + NODE_WIDTH, middle + height / 2


def _sides(edge: FlowEdge, layers: Sequence[int]) -> tuple[bool, bool]:
    """Whether an edge leaves its source, and enters its target, on the right."""
    return layers[edge.target] >= layers[edge.source], layers[edge.target] <= layers[edge.source]


def node_heights(
    texts: Sequence[float], edges: Sequence[FlowEdge], layers: Sequence[int], starts: Sequence[int]
) -> list[float]:
    """Of each node: its text takes some, and so do the edges that meet on one side of it; starts are on the left."""
    meeting: Counter[tuple[int, bool]] = Counter((node, False) for node in starts)
    for edge in edges:
        leaving, entering = _sides(edge, layers)
        meeting.update([(edge.source, leaving), (edge.target, entering)])
    return [
        max(text, 10 + _LEAST_APART * (max(meeting[node, False], meeting[node, True]) - 1))
        for node, text in enumerate(texts)
    ]


def routes(
    edges: Sequence[FlowEdge], layout: Layout, heights_of_nodes: Sequence[float], starts: Sequence[int]
) -> tuple[list[list[Point]], dict[int, Point]]:
    """The points that each edge passes, from its source to its target, and where runs enter the nodes they start in.

    Ends on the same side of a node are spread.
    """
    # Of each node and side: the height aimed at, the edge or, for a start, none, and whether the node is its source.
    ports: dict[tuple[int, bool], list[tuple[float, int, bool]]] = {}
    for node in starts:
        ports[node, False] = [(-inf, -1, False)]
    for k, edge in enumerate(edges):
        leaving, entering = _sides(edge, layout.layers)
        way = layout.waypoints[k] if leaving else layout.waypoints[k][::-1]
        heights = [layout.heights[edge.source], *way, layout.heights[edge.target]]
        ports.setdefault((edge.source, leaving), []).append((heights[1], k, True))
        ports.setdefault((edge.target, entering), []).append((heights[-2], k, False))
    ends: dict[tuple[int, bool], float] = {}
    begins: dict[int, Point] = {}
    for (node, _), wanted in ports.items():
        apart = min(_PORTS_APART, (heights_of_nodes[node] - 10) / max(1, len(wanted) - 1))
        for place, (_, k, is_source) in enumerate(sorted(wanted)):
            height = layout.heights[node] + MARGIN + (place - (len(wanted) - 1) / 2) * apart
            if k < 0:
                begins[node] = column_left(layout.layers[node]), height
            else:
                ends[k, is_source] = height
    paths = [_route(layout, edge, layout.waypoints[k], ends[k, True], ends[k, False]) for k, edge in enumerate(edges)]
    return paths, begins


def _route(layout: Layout, edge: FlowEdge, waypoints: Sequence[float], first: float, last: float) -> list[Point]:
    a, b = layout.layers[edge.source], layout.layers[edge.target]
    if a == b:
        return [(column_left(a) + NODE_WIDTH, first), (column_left(a) + NODE_WIDTH, last)]
    between: list[Point] = []
    for layer, height in zip(range(min(a, b) + 1, max(a, b)), waypoints, strict=True):
        between += [(column_left(layer), height + MARGIN), (column_left(layer) + NODE_WIDTH, height + MARGIN)]
    if a < b:
        return [(column_left(a) + NODE_WIDTH, first), *between, (column_left(b), last)]
    return [(column_left(a), first), *reversed(between), (column_left(b) + NODE_WIDTH, last)]


def smooth_path(path: Sequence[Point]) -> str:
    """Smooth through the points, level at each of them; from a column to itself an arc to the right."""
    parts = [f"M{pair(path[0])}"]
    for (x, y), (x2, y2) in pairwise(path):
        if x == x2:
            parts.append(f"C{pair((x + _BULGE, y))} {pair((x + _BULGE, y2))} {pair((x2, y2))}")
        elif y == y2:
            parts.append(f"L{pair((x2, y2))}")
        else:
            middle = (x + x2) / 2
            parts.append(f"C{pair((middle, y))} {pair((middle, y2))} {pair((x2, y2))}")
    return "".join(parts)


def pair(point: Point) -> str:
    """A point in path data."""
    return f"{decimal(point[0])} {decimal(point[1])}"


def free_place(path: Sequence[Point], taken: Sequence[Box]) -> Box | None:
    """A free place on a path for a few digits, near its first point at best; None if all are taken."""
    length, half_width, half_height = len(path) - 1, 2.1 * _DIGIT_WIDTH, _LABEL_HEIGHT / 2
    for number in [0, *range(2, length, 2)] if length > 1 else [0]:
        (x, y), (x2, y2) = path[number], path[number + 1]
        for t in (0.35, 0.5, 0.65, 0.25, 0.75, 0.15, 0.85):
            if x == x2:
                cx, cy = x + 0.75 * _BULGE * 4 * t * (1 - t), y + (3 * t**2 - 2 * t**3) * (y2 - y)
            else:
                cx = (1 - t) ** 3 * x + 3 * t * (1 - t) * (x + x2) / 2 + t**3 * x2
                cy = y + (3 * t**2 - 2 * t**3) * (y2 - y)
            box = (cx - half_width, cy - half_height, cx + half_width, cy + half_height)
            if not any(_overlap(box, other) for other in taken):
                return box
    return None


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
