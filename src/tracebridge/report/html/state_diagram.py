"""The transition graph of a chain as a drawing."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from tracebridge.report.html.edge_routing import (
    COLUMN_GAP,
    MARGIN,
    NODE_WIDTH,
    Line,
    node_box,
    node_heights,
    pair,
    routes,
    smooth_path,
)
from tracebridge.report.html.layered_layout import first_visit_steps, layered_layout, layers_by_step
from tracebridge.report.html.svg import decimal, drawing, element, fitted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.report.html.edge_routing import Box, Route
    from tracebridge.report.html.flow_graph import FlowEdge, FlowGraph, FlowNode
    from tracebridge.report.html.layered_layout import Layout

_NAME_COLUMNS, _NAME_LINES = 13, 4
_LINE, _TAB = 14.0, 17.0
_WORD_ENDS = re.compile(r"[\W_]+")
_EDGE_SPACE, _GAP = 8.0, 12.0
_WIDEST, _THINNEST = 7.0, 1.0

#: Columns of a drawing, that of the ends of runs left out: so many are not wider than the page.
MOST_LAYERS = 4

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
    largest = max((edge.flow for edge in drawn), default=1.0)
    lines = [
        Line(
            source=edge.source,
            target=edge.target,
            width=max(_THINNEST, _WIDEST * edge.flow / largest),
            text=share_text(edge.probability) if edge.probability >= LEAST_WRITTEN else "",
        )
        for edge in drawn
    ]
    texts = [_texts(graph, node) for node in graph.nodes]
    tabs = [_TAB if node.start >= LEAST_START else 0.0 for node in graph.nodes]
    heights = node_heights([tab + 12 + _LINE * len(each) for tab, each in zip(tabs, texts, strict=True)], lines, layers)
    layout = layered_layout(
        layers,
        [(edge.source, edge.target, math.sqrt(edge.flow)) for edge in drawn],
        node_heights=heights,
        edge_height=_EDGE_SPACE,
        gap=_GAP,
    )
    found = routes(lines, layout)
    edges = [_edge(graph, layout, *each) for each in zip(drawn, lines, found, strict=True)]
    most = max((node.visits for node in graph.nodes if node.kind == "step" and not node.folded), default=1.0)
    nodes = [
        _node(node, texts[k], node_box(layout, k, heights[k]), tabs[k], most) for k, node in enumerate(graph.nodes)
    ]
    ends = ", ".join(f"{node.name} {node.visits:.3g}" for node in graph.nodes if node.kind != "step")
    return drawing(
        2 * MARGIN + (max(layout.layers, default=0) + 1) * (NODE_WIDTH + COLUMN_GAP) - COLUMN_GAP,
        layout.span + 2 * MARGIN,
        *reversed(edges),  # the most frequent on top
        *nodes,
        *(_label(line, route) for line, route in zip(lines, found, strict=True) if line.text),
        key="state-diagram",
        title="Transition graph of the chain",
        description=(
            f"{len(graph.nodes)} states from left to right by the expected step of their first visit, "
            f"{len(graph.drawn)} of {len(graph.edges)} transitions drawn, as wide as they are frequent. Where runs "
            f"end: {ends}. The table of transitions below has the same numbers."
        ),
    )


def node_layers(graph: FlowGraph) -> list[int]:
    """Of each node; the ends of runs share the last one."""
    steps = first_visits(graph)
    passing = [k for k, node in enumerate(graph.nodes) if node.kind == "step"]
    found = layers_by_step([float(steps[k]) for k in passing], MOST_LAYERS)
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


def _edge(graph: FlowGraph, layout: Layout, edge: FlowEdge, line: Line, route: Route) -> Markup:
    source, target = graph.nodes[edge.source], graph.nodes[edge.target]
    backward = layout.layers[edge.target] < layout.layers[edge.source]
    kind = target.kind if target.kind != "step" else "back" if backward else "on"
    imprecise = edge.deviation is not None and edge.deviation > IMPRECISE * edge.probability
    arrow, (x, y) = line.arrow, route.points[-1]
    outward = 1.0 if x > route.points[-2][0] else -1.0  # into the left side of a node, or into its right
    tip = [*route.points[:-1], (x - outward * arrow * 0.8, y)]
    head = f"M{pair((x, y))}L{pair((x - outward * arrow, y - arrow / 2))}L{pair((x - outward * arrow, y + arrow / 2))}Z"
    return element(
        "g",
        element("title", edge_title(source, target, edge)),
        element(
            "path",
            d=smooth_path(tip),
            stroke_width=line.width,
            **({"stroke_dasharray": f"{decimal(4 + line.width)} {decimal(3 + line.width / 2)}"} if imprecise else {}),
            class_=f"edge {kind}",
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


def _label(line: Line, route: Route) -> Markup:
    """Beside the node that the edge leaves."""
    left, _, right, bottom = route.label
    to_right = route.points[1][0] > route.points[0][0]
    return element(
        "text",
        line.text,
        x=left if to_right else right,
        y=bottom - 1,
        text_anchor="start" if to_right else "end",
        class_="share",
        aria_hidden="true",
    )


def share_text(share: float) -> str:
    """A probability in few digits: whole per cents."""
    return "<1%" if 0 < share < 0.005 else ">99%" if 0.995 <= share < 1 else f"{100 * share:.0f}%"


# ---------------------------------------------------------------- nodes


def name_lines(name: str, columns: int, most: int) -> list[str]:
    """A name in so many lines of so many columns at most: parted after signs between its words; longer ones are cut."""
    shown = fitted(name, columns * most)
    lines = [""]
    for word in _words(shown):
        if fitted(joined := lines[-1] + word, columns) == joined:
            lines[-1] = joined
        elif fitted(word, columns) == word and len(lines) < most:
            lines.append(word)
        else:
            return _cut_lines(shown, columns, most)
    return [line.strip() for line in lines if line.strip()]


def _words(name: str) -> list[str]:
    """Its words, each with the sign behind it."""
    ends = [0, *(found.end() for found in _WORD_ENDS.finditer(name)), len(name)]
    return [name[start:end] for start, end in pairwise(ends) if start < end]


def _cut_lines(name: str, columns: int, most: int) -> list[str]:
    """A name whose words do not fit, by columns alone."""
    lines = [""]
    for char in name:
        if fitted(lines[-1] + char, columns) != lines[-1] + char:
            lines.append("")
        lines[-1] += char
    return lines if len(lines) <= most else [*lines[: most - 1], fitted("".join(lines[most - 1 :]), columns)]


def _node(node: FlowNode, lines: Sequence[tuple[str, str]], box: Box, tab: float, most: float) -> Markup:
    """Lines of text with their classes. Where runs start a tab above them says so."""
    left, top, right, bottom = box
    inner, outer = left + 7, right - 7
    first = top + tab + 15 if tab else (top + bottom) / 2 + 3 - _LINE / 2 * (len(lines) - 1)
    last = first + _LINE * (len(lines) - 1)
    parts = [
        element("title", node_title(node)),
        element("rect", x=left, y=top, width=NODE_WIDTH, height=bottom - top, rx=5, class_="node"),
        *(element("text", text, x=inner, y=first + _LINE * k, class_=of) for k, (text, of) in enumerate(lines)),
    ]
    if tab:
        rounded = (
            f"M{pair((left, top + tab))}v{decimal(5 - tab)}a5 5 0 0 1 5 -5h{decimal(NODE_WIDTH - 10)}a5 5 0 0 1 5 5"
        )
        parts.append(element("path", d=f"{rounded}v{decimal(tab - 5)}Z", class_="start"))
        parts.append(element("text", f"start {share_text(node.start)}", x=inner, y=top + tab - 5, class_="starts"))
    if node.kind == "step":
        length = max(1.0, (NODE_WIDTH - 14) * min(node.visits / most, 1.0))
        parts.append(element("rect", x=inner, y=last + 4, width=length, height=3, class_="visits"))
    else:
        mark = "✓" if node.kind == "success" else "✗"
        parts.append(element("text", mark, x=outer, y=first + 1, text_anchor="end", class_="outcome"))
    return element("g", *parts, class_=f"state {node.kind}{' folded' if node.folded else ''}")


def _texts(graph: FlowGraph, node: FlowNode) -> list[tuple[str, str]]:
    """The lines of its name, and of what is said of it, with their classes."""
    details = [f"{100 * graph.folded_share:.2g} % of visits" if node.folded else _visits(node.visits)]
    if node.kind != "step":
        details = [f"{100 * node.visits:.3g} % of runs"]
    elif node.stays >= LEAST_WRITTEN:
        details.append(f"↻ stays {share_text(node.stays)}")
    names = name_lines(node.name, _NAME_COLUMNS, _NAME_LINES)
    return [*((line, "name") for line in names), *((line, "detail") for line in details)]


def _visits(number: float) -> str:
    if number < 0.005:
        return "<0.01 visits"
    shown = f"{number:,.0f}" if number >= 10 else f"{number:.{1 if number >= 1 else 2}f}".removesuffix(".0")
    return f"{shown} {'visit' if shown == '1' else 'visits'}"


def node_title(node: FlowNode) -> str:
    """The state in words."""
    several = f" ({node.members} states)" if node.members > max(1, node.folded) else ""
    name = f"{node.name[:300]}{several}"
    if node.kind != "step":
        return f"{name}: {100 * node.visits:.4g} % of runs end here"
    start = f"; {100 * node.start:.3g} % of runs start here" if node.start else ""
    failing = "" if node.failing is None else f"; {100 * node.failing:.3g} % do not succeed from here"
    return f"{name}: {node.visits:.4g} visits a run; repeats with probability {node.stays:.3g}{start}{failing}"
