"""Gated fusion: streams that agree are fused; where they do not, the confident ones are, or the most confident answers.

The published name stands for a rule of our own, as the published rule is not public; no equality with it is claimed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.composition import (
    BaseRate,
    ComposedAnswers,
    Composition,
    base_rates,
    best_stream,
    composed,
    fit_composition,
    majority_stream,
)
from tracebridge.confidence.composition_pools import LOG_ODDS_POOLS, Pool, PoolName
from tracebridge.confidence.composition_streams import Streams, stated_support
from tracebridge.confidence.ranking import ConfidenceRanking
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError

Floats: TypeAlias = NDArray[np.float64]

_THRESHOLDS = 21


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatedFusion:
    """Called with streams of calibrated confidence, it answers for them.

    A question whose streams all give one answer takes it, with the pool's probability. Otherwise streams below the
    threshold are left out; of the answers of the rest the most probable by the pool of the rest is taken. Where none is
    left, the most confident stream answers with its own confidence.

    Attributes:
        pool: a log-odds pool or the beta pool, which do without absent streams.
        threshold: of calibrated confidence. seed: of the hashes that break ties.
        base_rate: as in `fit_composition`.
    """

    pool: Pool
    threshold: float
    base_rate: BaseRate = "uniform"
    seed: int = 0

    def __call__(self, streams: Streams) -> ComposedAnswers:
        """The composed answers."""
        support, there = stated_support(streams), streams.present
        kept = there & (np.where(there, streams.confidence, -1.0) >= self.threshold)
        agreed = streams.n_candidates() == 1
        kept[agreed] = there[agreed]
        routed = ~kept.any(axis=1)
        fused = self.pool(
            np.where(kept[:, None, :] & kept[:, :, None], support, np.nan), base_rates(streams, self.base_rate)
        )
        chosen = best_stream(streams, [fused], kept, self.seed)
        chosen[agreed] = majority_stream(streams, support, self.seed)[agreed]
        alone = best_stream(streams, [np.where(there, streams.confidence, np.nan)], there, self.seed)
        chosen[routed] = alone[routed]
        rows, place = np.arange(len(chosen)), np.maximum(chosen, 0)
        confidence = np.where(routed, streams.confidence[rows, place], fused[rows, place])
        return composed(streams, chosen, confidence)


def fit_gated_fusion(
    fit: Streams, pool: PoolName = "discount", *, base_rate: BaseRate = "uniform", seed: int = 0
) -> GatedFusion:
    """A gate whose threshold has the largest AUARC on the questions it is fitted to; the least of several.

    Thresholds tried are 0 and the quantiles of the streams' confidences in steps of .05.

    Raises:
        UsageError: a pool that needs all streams. FitError: no question has a labelled answer.
    """
    if pool not in (*LOG_ODDS_POOLS, "beta"):
        raise UsageError(f"a gate leaves streams out, and the pool {pool} needs all of them")
    composition: Composition = fit_composition(fit, pool, base_rate=base_rate, seed=seed)
    stated = fit.confidence[fit.present]
    tried = np.unique([0.0, *np.quantile(stated, np.linspace(0, 1, _THRESHOLDS)).tolist()])
    gates = [GatedFusion(pool=composition.pool, threshold=float(tau), base_rate=base_rate, seed=seed) for tau in tried]
    areas = [_area(gate(fit)) for gate in gates]
    return gates[int(np.argmax(np.round(areas, 12)))]


def _area(answers: ComposedAnswers) -> float:
    unanswered = answers.answer == UNKNOWN
    rated = RatedAnswers.of(answers.confidence, np.where(unanswered, UNKNOWN, answers.correct))
    return float(ConfidenceRanking.of(rated).auarc())
