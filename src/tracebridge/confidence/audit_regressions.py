"""The five regressions of the audit, each fitted or undefined with its reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.confidence.adoption import adoption_design
from tracebridge.confidence.cluster_logit import ClusterLogit, fit_cluster_logit
from tracebridge.confidence.cluster_logit_pooled import correctness_design, divergence_design
from tracebridge.confidence.outcome_linkage import outcome_designs

if TYPE_CHECKING:
    from tracebridge.confidence.commitment import CommitmentPairs
    from tracebridge.confidence.routing_pools import BlockPools


def fit_regressions(
    pools: BlockPools, pairs: CommitmentPairs, *, level: float = 0.95, seed: int = 0
) -> tuple[ClusterLogit, ...]:
    """Outcome linkage in two models, pooled correctness, pooled divergence and adoption."""
    designs = (
        *outcome_designs(pools, pairs),
        correctness_design(pools),
        divergence_design(pools, pairs),
        adoption_design(pools.table, pairs),
    )
    return tuple(fit_cluster_logit(design, level=level, seed=seed) for design in designs)
