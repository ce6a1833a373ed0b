"""Two pooled logistic regressions with agents as fixed effects: is a candidate correct, and does its pair diverge?

``correct ~ score + tier + score:tier + round + agent`` over valid labelled polls, and
``divergent ~ poll_correct + tier + poll_correct:tier + score + round + agent`` over valid pairs. The score is the
confidence in [0, 1]; the tier is the z-scored difficulty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.confidence.regression_design import RegressionDesign, indicators, regression_design

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Codes, Numbers


def correctness_design(pools: BlockPools) -> RegressionDesign:
    """Over the valid polls with a label."""
    polls = np.flatnonzero(pools.correct >= 0)
    return _pooled(
        "correctness",
        "correct",
        "valid polls",
        pools,
        polls,
        y=pools.correct[polls],
        leading={"score": pools.table.polls.confidence[polls]},
        products=[("score", "tier")],
        n_left_out=int((pools.table.polls.valid & (pools.correct < 0)).sum()),
    )


def divergence_design(pools: BlockPools, pairs: CommitmentPairs) -> RegressionDesign:
    """Over the valid pairs."""
    return _pooled(
        "divergence",
        "divergent",
        "valid pairs",
        pools,
        pairs.poll,
        y=pairs.divergent,
        leading={
            "poll_correct": pairs.poll_correct.astype(np.float64),
            "score": pools.table.polls.confidence[pairs.poll],
        },
        products=[("poll_correct", "tier")],
        n_left_out=len(pairs.dropped_trace),
    )


def _pooled(
    model: str,
    response: str,
    unit: str,
    pools: BlockPools,
    polls: Codes,
    *,
    y: NDArray[np.generic],
    leading: dict[str, Numbers],
    products: Sequence[tuple[str, str]],
    n_left_out: int,
) -> RegressionDesign:
    table = pools.table
    block = table.polls.block[polls]
    trace = table.blocks.trace[block]
    agents, dropped = indicators("agent", table.polls.agent[polls], table.agents)
    columns = {
        **leading,
        "tier": table.traces.tier_rank[trace],
        "round": table.blocks.round[block].astype(np.float64),
        **agents,
    }
    return regression_design(
        model,
        response,
        unit,
        y=y,
        columns=columns,
        cluster=table.traces.cluster[trace],
        dropped=dropped,
        standardised=["tier"],
        products=products,
        n_left_out=n_left_out,
    )
