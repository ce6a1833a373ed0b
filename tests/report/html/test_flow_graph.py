"""Flows are conserved, and are those of the chain however its states are drawn together."""

from __future__ import annotations

from dataclasses import asdict
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report.html.pages import write_runs

from tracebridge import fit_chain, read_traces
from tracebridge.closedform import long_run_reliability
from tracebridge.inference.expanded.modelling import fit_named
from tracebridge.report.html.flow_graph import (
    DRAWN_PER_NODE,
    DRAWN_SHARE,
    FlowEdge,
    FlowGraph,
    FlowNode,
    drawn_edges,
    flow_graph,
)
from tracebridge.report.html.folded_graph import folded, read_graph
from tracebridge.report.html.state_diagram import LEAST_START, LEAST_WRITTEN, name_lines, state_diagram
from tracebridge.report.html.state_tables import edge_table, state_table

RUNS = [
    (["plan", "search", "search", "plan", "answer"], "success"),
    (["plan", "answer"], "failure"),
    (["search", "plan"], "censored"),
    (["plan", "search", "check", "answer"], "success"),
] * 5


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    path = write_runs(tmp_path_factory.mktemp("runs"), RUNS)
    traces = read_traces([path])
    base = fit_chain(traces)
    richer = {model: fit_named(base, traces, model, replicates=0).fit for model in ("order2", "clock:0,2")}
    return {"first-order": base, **richer}


@pytest.mark.parametrize("model", ["first-order", "order2", "clock:0,2"])
@pytest.mark.parametrize("most", [60, 3])
def test_flows_are_conserved(fits, model, most):
    fit = fits[model]
    graph = flow_graph(fit, most_nodes=most)
    again = folded(flow_graph(fit), most)
    for one, other in zip(again.nodes, graph.nodes, strict=True):
        assert asdict(one) == pytest.approx(asdict(other))
    assert [(e.source, e.target) for e in again.edges] == [(e.source, e.target) for e in graph.edges]
    assert [e.flow for e in again.edges] == pytest.approx([e.flow for e in graph.edges])
    nodes = graph.nodes
    assert sum(node.members for node in nodes) == fit.chain.n_states
    assert len([node for node in nodes if node.kind == "step"]) == min(most, 4)
    for k, node in enumerate(nodes):
        entering = sum(edge.flow for edge in graph.edges if edge.target == k)
        assert node.visits == pytest.approx(node.start + entering + node.stays * node.visits * (node.kind == "step"))
        if node.kind == "step":
            leaving = sum(edge.probability for edge in graph.edges if edge.source == k)
            assert leaving + node.stays == pytest.approx(1)
    ends = {node.kind: node.visits for node in nodes if node.kind != "step"}
    assert ends["success"] == pytest.approx(float(long_run_reliability(fit.chain)))
    assert sum(ends.values()) == pytest.approx(1)
    flows = [edge.flow for edge in graph.edges]
    assert flows == sorted(flows, reverse=True)
    assert graph.drawn_share >= DRAWN_SHARE or len(graph.drawn) >= DRAWN_PER_NODE * len(nodes)
    assert all(edge.flow <= graph.least_drawn for k, edge in enumerate(graph.edges) if k not in graph.drawn)
    assert str(state_diagram(graph)).startswith("<svg")


def test_numbers_of_a_chain_that_remembers_nothing(fits):
    """Against the fundamental matrix, the counts of the runs, and the Dirichlet posterior, written out."""
    fit = fits["first-order"]
    P, m = fit.chain.transitions.toarray(), 4
    N = np.linalg.inv(np.eye(m) - P[:m, :m])
    graph = flow_graph(fit)
    np.testing.assert_allclose([node.visits for node in graph.nodes[:m]], fit.chain.initial[:m] @ N)
    np.testing.assert_allclose([node.failing for node in graph.nodes[:m]], N @ P[:m, m + 1])
    names = [node.name for node in graph.nodes]
    edge = next(e for e in graph.edges if (names[e.source], names[e.target]) == ("plan", "search"))
    assert edge.observed == 10
    total = 10 + 5 + 5 + 1  # out of plan: search, answer twice; nothing follows a censored end; the prior is one
    assert edge.probability == pytest.approx((10 + 1 / 6) / total)
    a, b = 10 + 1 / 6, total - 10 - 1 / 6
    assert edge.deviation == pytest.approx(np.sqrt(a * b / (total**2 * (total + 1))))
    shares = [row[5].sort for row in state_table(graph).rows]
    assert sum(shares) == pytest.approx(1)
    listed = {(row[0].text, row[1].text) for row in edge_table(graph).rows}
    assert listed >= {(names[e.source], names[e.target]) for e in graph.edges if e.observed}


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=90))
def test_names_take_few_lines_and_are_cut_only_if_they_must(name):
    lines = name_lines(name, 13, 4)
    assert len(lines) <= 4
    assert all(0 < len(line) <= 13 for line in lines)
    assert "…" in "".join(lines) or "".join(lines) == name
    assert len(name) > 13 * 4 or "…" not in "".join(lines)
    if len(name) <= 13:
        assert lines == [name]


def random_graph(n: int, density: float, seed: int) -> FlowGraph:
    """Of a chain of so many states before its two ends, with random names, starts and transitions."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(n + 2, density), size=n)
    P[:, n:] += 0.02
    P /= P.sum(axis=1, keepdims=True)
    start = rng.dirichlet(np.full(n, 0.1))
    visits = np.linalg.solve(np.eye(n) - P[:, :n].T, start)
    names = ["_".join(["call", *map(str, rng.integers(1e4, size=1 + k % 6))])[: 2 + k * 7 % 50] for k in range(n)]
    nodes = [
        FlowNode(
            name=names[k] if k < n else ("success", "failure")[k - n],
            kind="step" if k < n else "success" if k == n else "failure",
            members=1,
            folded=0,
            start=float(start[k]) if k < n else 0.0,
            visits=float(visits[k] if k < n else visits @ P[:, k]),
            failing=0.5,
            stays=float(P[k, k]) if k < n else 0.0,
        )
        for k in range(n + 2)
    ]
    edges = sorted(
        (
            FlowEdge(
                source=i, target=j, flow=visits[i] * P[i, j], probability=P[i, j], deviation=0.3 * P[i, j], observed=1
            )
            for i in range(n)
            for j in range(n + 2)
            if i != j and P[i, j] > 0
        ),
        key=lambda edge: -edge.flow,
    )
    return FlowGraph(nodes=tuple(nodes), edges=tuple(edges), drawn=drawn_edges(edges, len(nodes)), unreachable=0)


@given(st.integers(5, 60), st.sampled_from([0.03, 0.2, 1.0]), st.integers(0, 10**6))
@settings(max_examples=40)
def test_no_number_stands_on_a_state_or_on_another_number_and_all_texts_are_in_their_states(n, density, seed):
    """By the boxes of the drawing, with letters as wide as those of any usual font, on a page of 1280 pixels."""
    drawn = read_graph(random_graph(n, density, seed))
    root = ElementTree.fromstring(str(state_diagram(drawn)))  # noqa: S314 - our own
    assert float(root.get("width")) <= 970
    states, numbers = [], []
    for group in root.iter("g"):
        if not group.get("class", "").startswith("state"):
            continue
        rect = next(each for each in group.iter("rect") if each.get("class") == "node")
        left, top, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        states.append((left, top, left + width, top + height))
        texts = [text_box(each) for each in group.iter("text") if each.get("class") != "outcome"]
        for k, box in enumerate(texts):
            assert (left, top) <= box[:2]
            assert box[2] <= left + width
            assert top <= box[1] < box[3] <= top + height
            assert not [other for other in texts[:k] if overlap(box, other)]
    numbers = [text_box(each) for each in root.iter("text") if each.get("class") == "share"]
    written = [k for k in drawn.drawn if drawn.edges[k].probability >= LEAST_WRITTEN]
    assert len(states) == len(drawn.nodes)
    assert len(numbers) == len(written) > 0
    boxes = [*states, *numbers]
    right, bottom = float(root.get("width")), float(root.get("height"))
    for k, box in enumerate(boxes):
        assert min(box[:2]) >= 0
        assert box[2] <= right
        assert box[3] <= bottom
        assert not [other for other in boxes[:k] if overlap(box, other)]
    starts = [each.text for each in root.iter("text") if each.get("class") == "starts"]
    assert len(starts) == sum(node.start >= LEAST_START for node in drawn.nodes) > 0


def text_box(text):
    """Left, top, right, bottom: letters of DejaVu Sans, which is wide, in 12 pixels; signs and digits as they are."""
    widest = {"%": 11.4, " ": 3.9, ".": 4.2, "<": 10.1, ">": 10.1, "↻": 10.1}
    width = sum(widest.get(char, 7.7) for char in text.text)
    x, y = float(text.get("x")), float(text.get("y"))
    left = x - width if text.get("text-anchor") == "end" else x
    return left, y - 9.5, left + width, y + (0.5 if text.get("class") == "share" else 2.5)


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
