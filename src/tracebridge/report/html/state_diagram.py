"""The transition graph of a chain as a drawing."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from tracebridge.report.html.edge_routing import (
    COLUMN_GAP,
    MARGIN,
    NODE_HEIGHT,
    NODE_WIDTH,
    free_place,
    node_box,
    node_heights,
    pair,
    routes,
    smooth_path,
)
from tracebridge.report.html.layered_layout import first_visit_steps, layered_layout, layers_by_step
from tracebridge.report.html.svg import drawing, element, fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.report.html.edge_routing import Box
    from tracebridge.report.html.flow_graph import FlowEdge, FlowGraph, FlowNode
    from tracebridge.report.html.layered_layout import Layout
    from tracebridge.report.html.svg import Point

_NAME_COLUMNS = 16
_LINE = 13.0
_START = 22.0
_WORD_ENDS = re.compile(r"[\W_]+")
_PAGE_WIDTH = 980.0
_EDGE_SPACE, _GAP = 7.0, 11.0
_WIDEST, _THINNEST = 7.0, 0.8

#: A probability whose posterior deviation is larger than this share of it is drawn dashed.
IMPRECISE = 0.25

#: Probabilities below are not written beside a transition.
LEAST_WRITTEN = 0.01

#: The least share of runs that start in a state for that to be drawn.
LEAST_START = 0.01


def state_diagram(graph: FlowGraph) -> Markup:
    """The drawing: states by the expected step of their first visit, ends of runs at the right."""
    layers = node_layers(graph)
    drawn = [graph.edges[k] for k in graph.drawn]
    names = [name_lines(node.name, _NAME_COLUMNS) for node in graph.nodes]
    starts = [k for k, node in enumerate(graph.nodes) if node.start >= LEAST_START]
    heights = node_heights([NODE_HEIGHT + _LINE * (len(lines) - 1) for lines in names], drawn, layers, starts)
    layout = layered_layout(
        layers,
        [(edge.source, edge.target, math.sqrt(edge.flow)) for edge in drawn],
        node_heights=heights,
        edge_height=_EDGE_SPACE,
        gap=_GAP,
    )
    paths, begins = routes(drawn, layout, heights, starts)
    largest = max((edge.flow for edge in drawn), default=1.0)
    places = [node_box(layout, node, heights[node]) for node in range(len(graph.nodes))]
    boxes = [*places, *((x - _START, y - 5, x, y + 5) for x, y in begins.values())]
    degrees = Counter(node for edge in drawn for node in (edge.source, edge.target))
    edges, labels = [], []
    for edge, path in zip(drawn, paths, strict=True):
        width = max(_THINNEST, _WIDEST * edge.flow / largest)
        edges.append(_edge(graph, layout, edge, path, width))
        from_source = degrees[edge.source] <= degrees[edge.target]  # where fewer edges are near
        if edge.probability >= LEAST_WRITTEN:
            place = free_place(path if from_source else path[::-1], boxes)
            if place is not None:
                boxes.append(place)
                labels.append(_label(edge, place))
    most = max((node.visits for node in graph.nodes if node.kind == "step" and not node.folded), default=1.0)
    texts = [_second_line(node, graph.folded_share) for node in graph.nodes]
    nodes = [_node(node, [*names[k], texts[k]], places[k], most) for k, node in enumerate(graph.nodes)]
    width = 2 * MARGIN + (max(layout.layers, default=0) + 1) * (NODE_WIDTH + COLUMN_GAP) - COLUMN_GAP
    ends = ", ".join(f"{node.name} {node.visits:.3g}" for node in graph.nodes if node.kind != "step")
    return drawing(
        width,
        layout.span + 2 * MARGIN,
        *reversed(edges),  # the most frequent on top
        *nodes,
        *map(_start, begins.values()),
        *labels,
        key="state-diagram",
        title="Transition graph of the chain",
        description=(
            f"{len(graph.nodes)} states from left to right by the expected step of their first visit, "
            f"{len(graph.drawn)} of {len(graph.edges)} transitions drawn, as wide as they are frequent. Where runs "
            f"end: {ends}. The table of transitions below has the same numbers."
        ),
        wide=width > _PAGE_WIDTH,
    )


def node_layers(graph: FlowGraph) -> list[int]:
    """Of each node; the ends of runs share the last one."""
    steps = first_visits(graph)
    passing = [k for k, node in enumerate(graph.nodes) if node.kind == "step"]
    found = layers_by_step([float(steps[k]) for k in passing])
    return found + [max(found, default=-1) + 1] * (len(graph.nodes) - len(passing))


def first_visits(graph: FlowGraph) -> NDArray[np.float64]:
    """The expected step of the first visit to each node, given that it is visited; shape (n,)."""
    n = len(graph.nodes)
    P = np.zeros((n, n))
    for edge in graph.edges:
        P[edge.source, edge.target] = edge.probability
    for k, node in enumerate(graph.nodes):
        P[k, k] = node.stays if node.kind == "step" else 0.0
    return first_visit_steps(P, np.array([node.start for node in graph.nodes]))


# ---------------------------------------------------------------- edges


def _edge(graph: FlowGraph, layout: Layout, edge: FlowEdge, path: list[Point], width: float) -> Markup:
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    backward = layout.layers[edge.target] < layout.layers[edge.source]
    kind = target.kind if target.kind != "step" else "back" if backward else "on"
    imprecise = edge.deviation is not None and edge.deviation > IMPRECISE * edge.probability
    arrow = 5 + 0.7 * width
    x, y = path[-1]
    outward = 1.0 if x > path[-2][0] else -1.0  # into the left side of a node, or into its right
    tip = [*path[:-1], (x - outward * arrow * 0.8, y)]
    if path[0][0] == x:
        tip = [path[0], (x, y)]
    head = f"M{pair((x, y))}L{pair((x - outward * arrow, y - arrow / 2))}L{pair((x - outward * arrow, y + arrow / 2))}Z"
    return element(
        "g",
        element("title", edge_title(source, target, edge)),
        element(
            "path",
            d=smooth_path(tip),
            stroke_width=width,
            class_=f"edge {kind}{' imprecise' if imprecise else ''}",
        ),
        element("path", d=head, class_=f"arrow {kind}"),
    )


def edge_title(source: FlowNode, target: FlowNode, edge: FlowEdge) -> str:
    """The transition in words."""
    spread = "" if edge.deviation is None else f", posterior standard deviation {edge.deviation:.2g}"
    seen = "" if edge.observed is None else f", observed {edge.observed} times"
    return (
        f"{source.name[:200]} → {target.name[:200]}: probability {edge.probability:.4g}{spread}; {edge.flow:.4g} times "
        f"a run on the average{seen}"
    )


def _label(edge: FlowEdge, box: Box) -> Markup:
    return element(
        "text",
        share_text(edge.probability),
        x=(box[0] + box[2]) / 2,
        y=box[3] - 2.2,
        text_anchor="middle",
        class_="share",
        aria_hidden="true",
    )


def share_text(share: float) -> str:
    """A probability in few digits: whole per cents."""
    return "<1%" if 0 < share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


# ---------------------------------------------------------------- nodes


def name_lines(name: str, columns: int) -> list[str]:
    """A name in one line of so many columns, or in two: parted after a sign between its words; longer ones are cut."""
    shown = fitted(name, 2 * columns - 2)
    if len(shown) <= columns and fitted(shown, columns) == shown:
        return [shown]
    for ends in ([found.end() for found in _WORD_ENDS.finditer(shown)], [len(shown) // 2]):
        parts = [[shown[:end].strip(), shown[end:].strip()] for end in ends]
        fits = [each for each in parts if all(line and fitted(line, columns) == line for line in each)]
        if fits:
            return min(fits, key=lambda each: abs(len(each[0]) - len(each[1])))
    return [fitted(name, columns)]


def _start(place: Point) -> Markup:
    """The sign of a start, which ends here."""
    x, y = place
    line = element("path", d=f"M{pair((x - 14, y))}L{pair((x - 1, y))}", class_="start-line")
    return element("g", line, element("circle", cx=x - 17, cy=y, r=4, class_="start"), class_="begin")


def _node(node: FlowNode, lines: Sequence[str], box: Box, most: float) -> Markup:
    """The last line is about the visits, the others are the name."""
    left, top, right, bottom = box
    middle = (top + bottom) / 2
    first = middle + 2.5 - _LINE / 2 * (len(lines) - 1)
    last = first + _LINE * (len(lines) - 1)
    parts = [
        element("title", node_title(node)),
        element("rect", x=left, y=top, width=NODE_WIDTH, height=bottom - top, rx=5, class_="node"),
        *(element("text", line, x=left + 9, y=first + _LINE * k, class_="name") for k, line in enumerate(lines[:-1])),
        element("text", lines[-1], x=left + 9, y=last, class_="detail"),
    ]
    if node.kind == "step":
        length = (NODE_WIDTH - 18) * min(node.visits / most, 1.0)
        parts.append(element("rect", x=left + 9, y=last + 4, width=max(1.0, length), height=2, class_="visits"))
    else:
        mark = "✓" if node.kind == "success" else "✗"
        parts.append(element("text", mark, x=right - 9, y=middle + 5, text_anchor="end", class_="outcome"))
    return element("g", *parts, class_=f"state {node.kind}{' folded' if node.folded else ''}")


def _second_line(node: FlowNode, folded_share: float) -> str:
    if node.kind != "step":
        return f"{100 * node.visits:.3g} % of runs"
    if node.folded:
        return f"{100 * folded_share:.2g} % of visits"
    again = f"  ↻ {share_text(node.stays)}" if node.stays >= LEAST_WRITTEN else ""
    return f"{node.visits:.3g} {'visit' if f'{node.visits:.3g}' == '1' else 'visits'}{again}"


def node_title(node: FlowNode) -> str:
    """The state in words."""
    several = f" ({node.members} states)" if node.members > max(1, node.folded) else ""
    name = f"{node.name[:300]}{several}"
    if node.kind != "step":
        return f"{name}: {100 * node.visits:.4g} % of runs end here"
    start = f"; {100 * node.start:.3g} % of runs start here" if node.start else ""
    failing = "" if node.failing is None else f"; {100 * node.failing:.3g} % do not succeed from here"
    return f"{name}: {node.visits:.4g} visits a run; repeats with probability {node.stays:.3g}{start}{failing}"
