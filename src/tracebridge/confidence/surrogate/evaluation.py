"""How well readouts tell correct calls from wrong ones, beside what else could be had for the price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from tracebridge.confidence.bootstrap import DEFAULT_RESAMPLING, Resampling
from tracebridge.confidence.confidence_quality import ConfidenceQuality, confidence_quality
from tracebridge.confidence.folds import tier_stratified_folds
from tracebridge.confidence.recalibration import recalibrate
from tracebridge.confidence.surrogate.ensemble import mid_ranks

if TYPE_CHECKING:
    from tracebridge.confidence.table import Codes

CONTROL = "random"
"""A score that knows nothing: whoever does not beat it has found nothing."""


def evaluate_scores(
    scores: Mapping[str, ArrayLike],
    correct: ArrayLike,
    *,
    cluster_of_call: Codes,
    n_clusters: int,
    seed: int = 0,
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> dict[str, ConfidenceQuality]:
    """Calibration and ranking of each score and of a control at random; higher scores mean more trust.

    A score becomes its mid-rank among the calls, which changes no ranking, and then the isotonic probability of that
    rank, fitted to the other half of the clusters; AUROC, AUARC and risk-coverage are those of the ranks, ECE and Brier
    those of the held-out probabilities.

    Args:
        scores: by name (readouts, their ensemble, stated confidence, self-consistency), each of shape (n,); NaN where
            undefined.
        correct: shape (n,), 1, 0 or ``UNKNOWN``.
        cluster_of_call: shape (n,), codes 0..n_clusters-1 of what is independent.

    Raises:
        InputError, UsageError: as `confidence_quality` does.
    """
    labels = np.asarray(correct)
    control = np.random.default_rng(seed).random(len(labels))
    folds = tier_stratified_folds(cluster_of_call, np.zeros(len(labels), dtype=np.int64), seed=seed)
    found = {}
    for name, values in {**scores, CONTROL: control}.items():
        raw = np.asarray(values, dtype=np.float64)
        ranks = mid_ranks(raw, np.sort(raw[~np.isnan(raw)]))
        held_out = recalibrate("isotonic", ranks, labels, folds).confidence
        of_ranks, of_probabilities = (
            confidence_quality(
                confidence, labels, cluster_of_unit=cluster_of_call, n_clusters=n_clusters, resampling=resampling
            )
            for confidence in (ranks, held_out)
        )
        ranking = {key: of_ranks[key] for key in _OF_RANKS}
        found[name] = ConfidenceQuality(metrics={**of_probabilities.metrics, **ranking}, bins=of_probabilities.bins)
    return found


_OF_RANKS = ("AUROC", "AUARC", "AURC", "E-AURC", "accuracy at coverage .5")
