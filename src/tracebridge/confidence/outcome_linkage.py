"""Which same-trace summaries go with passing: two logistic regressions over traces, descriptive and no more.

The predictors are z-scored. The first model has the pool-solvable rate; the second puts in its place the
selected-correct rate and the routing slack, which add up to it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.cluster_logit import DESCRIPTIVE
from tracebridge.confidence.regression_design import RegressionDesign, regression_design
from tracebridge.confidence.routing_pools import at_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Codes, Numbers

COMMON_PREDICTORS = (
    "improvement_rate",
    "degradation_rate",
    "tier_rank",
    "selected_invalid_rate",
    "PSDR",
    "mean_selected_confidence",
)


def outcome_designs(pools: BlockPools, pairs: CommitmentPairs) -> tuple[RegressionDesign, RegressionDesign]:
    """Both models; a row is a trace with a polled block whose outcome is known.

    A trace without valid pair has the rates 0 of what pairs do, and a remark says how many there are.
    """
    traces = pools.table.traces
    rates = trace_rates(pools, pairs)
    polled = np.bincount(pools.table.blocks.trace[pools.n_polls > 0], minlength=len(traces.passed)) > 0
    rows = np.flatnonzero(polled & (traces.passed >= 0))
    n_unknown = int((polled & (traces.passed < 0)).sum())
    without = int((np.bincount(pairs.trace, minlength=len(traces.passed))[rows] == 0).sum())
    remarks = [DESCRIPTIVE]
    if without:
        remarks.append(f"{without} traces have no valid pair; their rates over pairs are set to 0")

    def design(model: str, *leading: str) -> RegressionDesign:
        predictors = (*leading, *COMMON_PREDICTORS)
        return regression_design(
            model,
            "passed",
            "traces with a known outcome",
            y=traces.passed[rows],
            columns={name: rates[name][rows] for name in predictors},
            cluster=traces.cluster[rows],
            standardised=predictors,
            n_left_out=n_unknown,
            remarks=remarks,
        )

    return (
        design("outcome_linkage", "pool_solvable_rate"),
        design("outcome_linkage_decomposed", "selected_correct_rate", "routing_slack"),
    )


def trace_rates(pools: BlockPools, pairs: CommitmentPairs) -> dict[str, Numbers]:
    """By predictor, its value in every trace (T,); NaN where nothing is known of it."""
    table, block_trace = pools.table, pools.table.blocks.trace
    n = len(table.traces.passed)
    solvable, hit = pools.solvable, pools.selected_correct

    def over_blocks(value: NDArray[np.generic], known: NDArray[np.bool_]) -> Numbers:
        return _mean(value[known], block_trace[known], n)

    def over_pairs(value: NDArray[np.generic]) -> Numbers:
        return np.nan_to_num(_mean(value, pairs.trace, n), nan=0.0)

    confidence = at_rows(table.polls.confidence, pools.selected, np.nan)
    asked = pools.n_polls > 0
    return {
        "pool_solvable_rate": over_blocks(solvable == 1, asked & (solvable >= 0)),
        "selected_correct_rate": over_blocks(hit == 1, pools.has_selection & (hit >= 0)),
        "routing_slack": over_blocks(
            (solvable == 1).astype(np.int64) - (hit == 1), pools.has_selection & (hit >= 0) & (solvable >= 0)
        ),
        "improvement_rate": over_pairs(pairs.divergent & (pairs.shift > 0)),
        "degradation_rate": over_pairs(pairs.divergent & (pairs.shift < 0)),
        "tier_rank": table.traces.tier_rank,
        "selected_invalid_rate": over_blocks(~pools.selected_valid, pools.has_selection),
        "PSDR": over_pairs(pairs.divergent),
        "mean_selected_confidence": over_blocks(confidence, ~np.isnan(confidence)),
    }


def _mean(value: NDArray[np.generic], trace: Codes, n_traces: int) -> Numbers:
    count = np.bincount(trace, minlength=n_traces)
    total = np.bincount(trace, weights=value, minlength=n_traces)
    return np.asarray(np.divide(total, count, out=np.full(n_traces, np.nan), where=count > 0))
