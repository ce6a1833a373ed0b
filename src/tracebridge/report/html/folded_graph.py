"""A smaller graph of the same chain, for a drawing that can be read: its rarely visited states as one node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.report.html.flow_graph import FlowEdge, FlowGraph, FlowNode, drawn_edges, name_of_rest

if TYPE_CHECKING:
    from collections.abc import Sequence


#: A drawing of arrows can be read with so many states; one of more shows the most visited ones and one for the others.
MOST_DRAWN, DRAWN_OF_MORE = 24, 20


def read_graph(graph: FlowGraph) -> FlowGraph:
    """What of a graph a drawing of arrows shows."""
    few = sum(node.kind == "step" for node in graph.nodes) <= MOST_DRAWN
    return graph if few else folded(graph, DRAWN_OF_MORE)


def folded(graph: FlowGraph, most: int) -> FlowGraph:
    """The same with so many nodes at most, ends of runs not counted: the rarely visited ones are together."""
    passing = [k for k, node in enumerate(graph.nodes) if node.kind == "step"]
    if len(passing) <= most:
        return graph
    by_visits = sorted(passing, key=lambda k: (graph.nodes[k].folded == 0, graph.nodes[k].visits, -k))
    gone = {*by_visits[: len(passing) - most + 1]}
    first = min(gone)
    kept = [k for k in range(len(graph.nodes)) if k not in gone or k == first]
    place = {k: kept.index(first if k in gone else k) for k in range(len(graph.nodes))}
    merged: dict[tuple[int, int], list[FlowEdge]] = {}
    for edge in graph.edges:
        merged.setdefault((place[edge.source], place[edge.target]), []).append(edge)
    nodes = [graph.nodes[k] for k in kept]
    here = place[first]
    nodes[here] = _together([graph.nodes[k] for k in sorted(gone)], merged.pop((here, here), []))
    edges = [_parallel(nodes[i], i, j, parts) for (i, j), parts in merged.items()]
    edges.sort(key=lambda edge: (-edge.flow, edge.source, edge.target))
    return FlowGraph(
        nodes=tuple(nodes), edges=tuple(edges), drawn=drawn_edges(edges, len(nodes)), unreachable=graph.unreachable
    )


def _together(nodes: Sequence[FlowNode], between: Sequence[FlowEdge]) -> FlowNode:
    """Rarely visited nodes as one; what runs from one to another of them stays."""
    number = sum(node.folded or 1 for node in nodes)
    visits = sum(node.visits for node in nodes)
    again = sum(node.visits * node.stays for node in nodes) + sum(edge.flow for edge in between)
    return FlowNode(
        name=name_of_rest(number),
        kind="step",
        members=sum(node.members for node in nodes),
        folded=number,
        start=sum(node.start for node in nodes),
        visits=visits,
        failing=sum(node.visits * (node.failing or 0.0) for node in nodes) / visits,
        stays=again / visits,
    )


def _parallel(source: FlowNode, i: int, j: int, edges: Sequence[FlowEdge]) -> FlowEdge:
    """Transitions between the same two nodes as one; the only one of a node that was not folded is as it was."""
    flow = sum(edge.flow for edge in edges)
    seen = [edge.observed for edge in edges if edge.observed is not None]
    return FlowEdge(
        source=i,
        target=j,
        flow=flow,
        probability=flow / source.visits,
        deviation=edges[0].deviation if len(edges) == 1 and not source.folded else None,
        observed=sum(seen) if len(seen) == len(edges) else None,
    )
