"""Flows are conserved, and are those of the chain however its states are drawn together."""

from __future__ import annotations

import numpy as np
import pytest
from tests.report.html.pages import write_runs

from tracebridge import fit_chain, read_traces
from tracebridge.closedform import long_run_reliability
from tracebridge.inference.expanded.modelling import fit_named
from tracebridge.report.html.flow_graph import DRAWN_SHARE, flow_graph
from tracebridge.report.html.state_diagram import state_diagram
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
    assert graph.drawn_share >= DRAWN_SHARE or len(graph.drawn) >= 3 * len(nodes)
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
