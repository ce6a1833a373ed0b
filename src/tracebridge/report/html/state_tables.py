"""Tables of what a drawing of the chain shows, and of what it folds away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.report.html.data_table import Cell, Column, DataTable
from tracebridge.report.html.recorded_numbers import percent
from tracebridge.report.table import NOTHING

if TYPE_CHECKING:
    from tracebridge.report.html.flow_graph import FlowEdge, FlowGraph

#: So many transitions are listed, the most frequent first, beside those that are drawn.
MOST_LISTED = 300


def state_table(graph: FlowGraph) -> DataTable:
    """Expected visits of each state, and how many failures leave from it."""
    passing = [k for k, node in enumerate(graph.nodes) if node.kind == "step"]
    lost: dict[int, float] = dict.fromkeys(passing, 0.0)
    for edge in graph.edges:
        if graph.nodes[edge.target].kind == "failure":
            lost[edge.source] += edge.flow
    all_lost, most = sum(lost.values()), max((graph.nodes[k].visits for k in passing), default=1.0)
    rows = []
    for k in sorted(passing, key=lambda k: (-graph.nodes[k].visits, k)):
        node = graph.nodes[k]
        contribution = lost[k] / all_lost if all_lost else None
        name = node.name if node.members == 1 else f"{node.name} ({node.members} states)"
        rows.append(
            [
                Cell(name),
                Cell(f"{node.visits:.4g}", sort=node.visits, share=node.visits / most if most else 0.0),
                Cell(percent(node.start) if node.start else NOTHING, sort=node.start),
                Cell(f"{node.stays:.3g}", sort=node.stays),
                Cell(NOTHING if node.failing is None else f"{node.failing:.4g}", sort=node.failing),
                Cell(percent(contribution), sort=contribution, share=contribution),
            ]
        )
    columns = [
        Column("state"),
        Column("visits a run", numeric=True, meaning="expected number of steps of a run in this state"),
        Column("starts", numeric=True, meaning="share of runs whose first step is here"),
        Column("repeats", numeric=True, meaning="probability that the next step is in the same state"),
        Column("fails from here", numeric=True, meaning="probability that a run that is here does not succeed"),
        Column("of all failures", numeric=True, meaning="share of failures whose last step is here; sums to 100 %"),
    ]
    return DataTable(caption="Expected visits and failures by state", columns=columns, rows=rows, sortable=True)


def edge_table(graph: FlowGraph) -> DataTable:
    """The transitions between different states that were observed or are drawn, by how often a run takes them."""
    known = any(edge.deviation is not None for edge in graph.edges)
    columns = [
        Column("from"),
        Column("to"),
        Column("probability", numeric=True),
        *([Column("deviation", numeric=True, meaning="posterior standard deviation")] if known else []),
        Column("times a run", numeric=True, meaning="expected number of times that a run takes it"),
        *([Column("observed", numeric=True, meaning="times that the runs took it")] if known else []),
        Column("drawn"),
    ]
    drawn = set(graph.drawn)
    seen = [k for k, edge in enumerate(graph.edges) if edge.observed != 0]
    listed = sorted({*seen[:MOST_LISTED], *drawn})
    rows = [_edge_row(graph, graph.edges[k], known=known, drawn=k in drawn) for k in listed]
    more = len(graph.edges) - len(listed)
    unseen = " that no run took" if len(seen) <= MOST_LISTED else ""
    rest = f"; {more} more{unseen} are in chain.json" if more else ""
    return DataTable(
        caption=f"Transitions between states, the most frequent first{rest}", columns=columns, rows=rows, sortable=True
    )


def _edge_row(graph: FlowGraph, edge: FlowEdge, *, known: bool, drawn: bool) -> list[Cell]:
    deviation = Cell(NOTHING if edge.deviation is None else f"{edge.deviation:.2g}", sort=edge.deviation)
    observed = Cell(NOTHING if edge.observed is None else str(edge.observed), sort=edge.observed)
    return [
        Cell(graph.nodes[edge.source].name),
        Cell(graph.nodes[edge.target].name),
        Cell(f"{edge.probability:.4g}", sort=edge.probability),
        *([deviation] if known else []),
        Cell(f"{edge.flow:.4g}", sort=edge.flow),
        *([observed] if known else []),
        Cell("yes" if drawn else "no"),
    ]
