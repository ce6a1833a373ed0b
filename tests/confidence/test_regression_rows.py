"""What the regressions of the audit are fitted to: rows and columns by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracebridge.confidence.adoption import adoption_design, last_block_with
from tracebridge.confidence.audit_regressions import fit_regressions
from tracebridge.confidence.cluster_logit_pooled import correctness_design, divergence_design
from tracebridge.confidence.commitment import commitment_pairs
from tracebridge.confidence.outcome_linkage import outcome_designs, trace_rates
from tracebridge.confidence.regression_design import RegressionDesign
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.confidence.table import ConfidenceTable
from tracebridge.studies.broadcast_notation import Block, Run, build_table

RUNS = [
    Run(
        blocks=[
            Block("c90:4 w80:5", "w:5", by=0, round=0),  # degraded
            Block("w70:5 c60:4 i1", "c:4", by=0, round=1),  # improved, a miss
            Block("i95 i1 c20:4", round=1),  # solvable, an invalid poll selected
            Block("w50:6", "w:6", by=0, round=1),  # kept
        ],
        tier=0,
        passed=1,
    ),
    Run(blocks=[Block("i1 i1 i1")], tier=1, cluster=1, passed=0),
    Run(blocks=[Block("c40:4 w30:5", "c:4")], tier=1, cluster=2, passed=-1),
    Run(blocks=[], cluster=2, passed=1, mode="single_agent"),
]


def columns(design: RegressionDesign) -> dict[str, list[float]]:
    return {name: design.X[:, k].tolist() for k, name in enumerate(design.columns)}


def table() -> ConfidenceTable:
    return build_table(RUNS, n_tiers=2)


def test_rates_of_traces() -> None:
    found = trace_rates(block_pools(table()), commitment_pairs(table()))
    expected = {
        "pool_solvable_rate": [3 / 4, 0, 1, np.nan],
        "selected_correct_rate": [1 / 4, 0, 1, np.nan],
        "routing_slack": [2 / 4, 0, 0, np.nan],
        "improvement_rate": [1 / 3, 0, 0, 0],
        "degradation_rate": [1 / 3, 0, 0, 0],
        "tier_rank": [0, 1, 1, 0],
        "selected_invalid_rate": [1 / 4, 1, 0, np.nan],
        "PSDR": [2 / 3, 0, 0, 0],
        "mean_selected_confidence": [(0.9 + 0.7 + 0.95 + 0.5) / 4, 0.01, 0.4, np.nan],
    }
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        assert found[name].tolist() == pytest.approx(values, nan_ok=True), name


def test_outcome_rows_are_polled_traces_with_an_outcome() -> None:
    first, second = outcome_designs(block_pools(table()), commitment_pairs(table()))
    assert (first.y.tolist(), first.n_left_out) == ([1.0, 0.0], 1)
    assert any("1 traces have no valid pair" in remark for remark in first.remarks)
    assert {"pool_solvable_rate", *first.dropped} >= {"improvement_rate", "PSDR"}
    assert columns(first)["pool_solvable_rate"] == pytest.approx([1, -1])
    assert second.columns[0] == "selected_correct_rate"


def test_pooled_rows() -> None:
    pools, pairs = block_pools(table()), commitment_pairs(table())
    correctness = correctness_design(pools)
    assert correctness.y.tolist() == [1, 0, 0, 1, 1, 0, 1, 0]
    found = columns(correctness)
    assert found["score"] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.2, 0.5, 0.4, 0.3])
    assert found["round"] == [0, 0, 1, 1, 1, 1, 0, 0]
    tier = np.array([0, 0, 0, 0, 0, 0, 1, 1])
    z = (tier - tier.mean()) / tier.std()
    assert found["tier"] == pytest.approx(z)
    assert found["score:tier"] == pytest.approx(z * found["score"])
    assert found["agent[a1]"] == [0, 1, 0, 1, 0, 0, 0, 1]
    divergence = divergence_design(pools, pairs)
    assert divergence.y.tolist() == [1, 1, 0, 0]
    assert columns(divergence)["poll_correct"] == [1, 0, 0, 1]
    assert "agent[a1]" not in divergence.columns


def test_adoption_rows() -> None:
    """One row for each public answer in view of a divergent speaker, and one for the incumbent."""
    base = build_table(
        [
            Run(
                blocks=[
                    Block("c90:4", "c:4", by=0),
                    Block("w80:5", "w:5", by=1),
                    Block("c70:4", "w:5", by=0, incumbent="4"),
                    Block("w60:7", "w:8", by=1, incumbent="9"),
                ]
            ),
            Run(blocks=[Block("c50:4", "c:4", by=2), Block("w30:5", "w:6", by=0)]),
            Run(blocks=[Block("w20:5", "w:5", by=2), Block("c35:4", "c:4", by=1), Block("w45:6", "w:5", by=0)]),
        ]
    )
    labels = base.blocks.incumbent_correct.copy()
    labels[2] = 1
    made = replace(base, blocks=replace(base.blocks, incumbent_correct=labels))
    design = adoption_design(made, commitment_pairs(made))
    # The incumbent 9 of the last block was never polled: its row has no source, and is left out.
    assert design.n_left_out == 1
    assert design.y.tolist() == [0, 1, 0, 0, 0, 0, 1, 0, 0]
    assert columns(design) == {
        "role_self": [1, 0, 0, 1, 0, 0, 0, 0, 0],
        "role_incumbent": [0, 0, 0, 0, 0, 0, 0, 0, 1],
        "lag": [2, 1, 3, 2, 1, 1, 2, 1, 2],
        "source_confidence": pytest.approx([0.9, 0.8, 0.9, 0.8, 0.7, 0.5, 0.2, 0.35, 0.9]),
        "source_correct": [1, 0, 1, 0, 0, 1, 0, 1, 1],
        "most_recent": [0, 1, 0, 0, 1, 1, 0, 1, 0],
    }


def test_the_source_of_an_incumbent_is_where_it_was_said_last_or_else_selected() -> None:
    made = build_table(
        [
            Run(blocks=[Block("c90:4", "c:4")]),
            Run(
                blocks=[
                    Block("c90:4", "w:5"),
                    Block("c90:4", "w:6"),
                    Block("c90:4", "w:5"),
                    Block("c90:7", "w:5", incumbent="5"),
                    Block("c90:4", incumbent="4"),
                ]
            ),
        ]
    )
    block = np.array([4, 5, 2])
    code = {answer: k for k, answer in enumerate(made.answers)}
    answer = np.array([code["5"], code["4"], code["6"]])
    # Of the second trace alone; the block itself does not count.
    assert last_block_with(made, block, answer).tolist() == [3, 3, -1]


def test_five_regressions_and_their_reasons() -> None:
    fits = fit_regressions(block_pools(table()), commitment_pairs(table()))
    assert [fit.model for fit in fits] == [
        "outcome_linkage", "outcome_linkage_decomposed", "correctness", "divergence", "adoption",
    ]  # fmt: skip
    assert all(fit.reason for fit in fits if fit.status == "undefined")
