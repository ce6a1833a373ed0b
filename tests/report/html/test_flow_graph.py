"""Flows are conserved, and are those of the chain however its states are drawn together."""

from __future__ import annotations

import re
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.report.html.pages import write_runs

from tracebridge import fit_chain, read_traces
from tracebridge.closedform import long_run_reliability
from tracebridge.inference.expanded.modelling import fit_named
from tracebridge.report.html.flow_graph import DRAWN_PER_NODE, DRAWN_SHARE, flow_graph
from tracebridge.report.html.folded_graph import folded
from tracebridge.report.html.state_diagram import name_lines, state_diagram
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


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), min_size=1, max_size=60))
def test_names_take_two_lines_at_most_and_are_cut_only_if_they_must(name):
    lines = name_lines(name, 16)
    assert len(lines) <= 2
    assert all(0 < len(line) <= 16 for line in lines)
    assert "…" in "".join(lines) or "".join(lines) == name
    if len(name) <= 16:
        assert lines == [name]


def test_no_number_stands_on_a_state_or_on_another_number(tmp_path):
    names = [f"state_{k}" for k in range(12)]
    runs = [
        ([names[(k * step) % 12] for step in range(1, 4 + k % 9)], "success" if k % 3 else "failure") for k in range(60)
    ]
    graph = flow_graph(fit_chain(read_traces([write_runs(tmp_path, runs)])))
    drawing = str(state_diagram(graph))
    boxes = [
        tuple(float(value) for value in found)
        for found in re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" rx="5"', drawing)
    ]
    assert len(boxes) == len(graph.nodes)
    numbers = re.findall(
        r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="middle" class="share" aria-hidden="true">([^<]+)<', drawing
    )
    assert numbers
    for x, y, text in numbers:
        width = 5.5 * len(text.replace("&lt;", "<").replace("&gt;", ">"))
        box = (float(x) - width / 2, float(y) - 8, width, 8.0)
        assert not [other for other in boxes if overlap(box, other)]
        boxes.append(box)


def overlap(a, b):
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]
