"""The transition matrix of a chain of many states as a picture: where a drawing of arrows could not be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tracebridge.report.html.state_diagram import first_visits
from tracebridge.report.html.svg import drawing, element, fitted, polyline

if TYPE_CHECKING:
    from markupsafe import Markup

    from tracebridge.report.html.flow_graph import FlowGraph

#: So many states have a row of their own; the others share one.
MOST_ROWS = 60

#: The least probabilities of the shades; cells below the first are empty.
SHADES = (0.01, 0.05, 0.2, 0.5)

_CELL, _NAMES, _HEADS, _MARGIN = 12.0, 142.0, 128.0, 6.0
_NAME_COLUMNS = 21
_GUIDE = 5  # a line every so many rows and columns


def transition_matrix(graph: FlowGraph) -> Markup:
    """A row for each state in the order of the first visit, a column for each successor, shaded by probability."""
    steps = first_visits(graph)
    rows = sorted((k for k, node in enumerate(graph.nodes) if node.kind == "step"), key=lambda k: (steps[k], k))
    columns = rows + [k for k, node in enumerate(graph.nodes) if node.kind != "step"]
    shares = {(edge.source, edge.target): edge.probability for edge in graph.edges}
    shares |= {(k, k): graph.nodes[k].stays for k in rows}
    width, height = _CELL * len(columns), _CELL * len(rows)
    parts = [*_guides(len(rows), len(columns))]
    for i, source in enumerate(rows):
        middle = _HEADS + _CELL * i + _CELL / 2
        name = fitted(graph.nodes[source].name, _NAME_COLUMNS)
        parts.append(element("text", name, x=_NAMES - 5, y=middle + 3.5, text_anchor="end", class_="tick"))
        cells = (_cell(graph, shares, source, target, (i, j)) for j, target in enumerate(columns))
        parts += [cell for cell in cells if cell is not None]
    for j, target in enumerate(columns):
        x, y = _NAMES + _CELL * j + _CELL / 2, _HEADS - 5
        name = fitted(graph.nodes[target].name, _NAME_COLUMNS)
        turned = f"rotate(-60 {x:.1f} {y:.1f})"
        parts.append(element("text", name, x=x, y=y, transform=turned, class_="tick"))
    return drawing(
        _NAMES + width + _HEADS / 2,
        _HEADS + height + _MARGIN,
        *parts,
        key="transition-matrix",
        title="Transition matrix of the chain",
        description=(
            f"{len(rows)} states by the expected step of their first visit, as rows; what follows them as columns, the "
            "ends of runs last. The table of transitions below has the numbers."
        ),
    )


def _cell(
    graph: FlowGraph, shares: Mapping[tuple[int, int], float], source: int, target: int, place: tuple[int, int]
) -> Markup | None:
    share = shares.get((source, target), 0.0)
    shade = sum(share >= least for least in SHADES)
    if not shade:
        return None
    said = f"{graph.nodes[source].name[:100]} → {graph.nodes[target].name[:100]}: {share:.3g}"
    return element(
        "rect",
        element("title", said),
        x=_NAMES + _CELL * place[1] + 0.5,
        y=_HEADS + _CELL * place[0] + 0.5,
        width=_CELL - 1,
        height=_CELL - 1,
        class_=f"shade{shade} {graph.nodes[target].kind}",
    )


def _guides(rows: int, columns: int) -> list[Markup]:
    """Thin lines for the eye, and the frame."""
    right, bottom = _NAMES + _CELL * columns, _HEADS + _CELL * rows
    heights = [_HEADS + _CELL * i for i in (*range(0, rows, _GUIDE), rows)]
    places = [_NAMES + _CELL * j for j in (*range(0, rows, _GUIDE), rows, columns)]
    return [
        *(element("path", d=polyline([(_NAMES, y), (right, y)]), class_="grid") for y in heights),
        *(element("path", d=polyline([(x, _HEADS), (x, bottom)]), class_="grid") for x in places),
    ]


def shade_words() -> list[str]:
    """What the shades mean, the lightest first."""
    ends = [*SHADES[1:], None]
    return [
        f"{100 * least:g} % or more" if end is None else f"{100 * least:g} to {100 * end:g} %"
        for least, end in zip(SHADES, ends, strict=True)
    ]
