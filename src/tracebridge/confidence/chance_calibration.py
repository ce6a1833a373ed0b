"""How large an ECE would be if confidence were calibrated, and how likely one as large as was found.

An ECE adds up absolute differences, so that of calibrated confidence is above zero too, and the more so the fewer the
answers. If confidence is calibrated in every bin, the sums of confidence less correctness over a cluster have mean zero
in each, and turning the signs of whole clusters shows how far their totals stray, whatever the dependence within
clusters: the wild bootstrap with the null imposed (Cameron, Gelbach and Miller 2008, Review of Economics and Statistics
90, with Rademacher's weights). Of many clusters the totals are normal, with the covariance that the sums have, and are
drawn as such. At nominal .05 the test rejects .04 to .08 of calibrated corpora of 10 clusters and .04 to .06 of those
of 20 to 200, with answers that are independent, alike or in between within clusters (600 corpora each).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.confidence.calibration import DEFAULT_BINS, Closed, bin_of_confidence
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.inference.few_units import FEW_UNITS, too_few
from tracebridge.inference.intervals import equal_tailed

if TYPE_CHECKING:
    from tracebridge.confidence.rated_answers import RatedAnswers
    from tracebridge.confidence.replicates import Resampling

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

ECE_BY_CHANCE = "ECE_by_chance"
CALIBRATION_P = "calibration_p"

MANY_CLUSTERS = 4_096
_UNITS = "answers with a confidence and a label"
_ALIKE = 1e-9  # relative; sums in another order are the same error


def chance_calibration(
    answers: RatedAnswers,
    cluster_of_answer: Integers,
    *,
    resampling: Resampling,
    n_bins: int = DEFAULT_BINS,
    closed: Closed = "left",
) -> tuple[MetricValue, MetricValue]:
    """``ECE_by_chance``, the mean ECE of calibrated confidence, between its quantiles, and ``calibration_p``.

    Args:
        answers: n of them. cluster_of_answer: shape (n,), any codes.
        resampling: how many draws, their seed, and the level of the quantiles.
        n_bins, closed: of the ECE.
    """
    n, n_dropped = answers.n, answers.n_dropped
    _, cluster = np.unique(cluster_of_answer, return_inverse=True)
    n_clusters = int(cluster.max(initial=-1)) + 1
    if n_clusters < 2:
        reason = "one cluster has all answers, which tells no chance" if n else f"there are no {_UNITS}"
        one, other = (
            MetricValue.undefined(name, reason, denominator=n, denominator_name=_UNITS, n_dropped=n_dropped)
            for name in (ECE_BY_CHANCE, CALIBRATION_P)
        )
        return one, other
    bins = bin_of_confidence(answers.confidence, n_bins, closed)
    residual = answers.confidence - answers.correct
    sums = csr_array((residual, (cluster, bins)), shape=(n_clusters, n_bins)).toarray()
    observed = float(np.abs(sums.sum(axis=0)).sum()) / n
    drawn = _turned(sums, resampling) / n
    as_large = int(np.count_nonzero(drawn >= observed * (1 - _ALIKE)))
    method = f"signs of {n_clusters} clusters turned at random"
    interval, _ = equal_tailed(drawn, resampling.level, method)
    few = too_few(n_clusters, "cluster") if n_clusters < FEW_UNITS else ""
    by_chance = MetricValue(
        name=ECE_BY_CHANCE,
        value=float(drawn.mean()),
        numerator=math.nan,
        denominator=n,
        denominator_name=_UNITS,
        n_dropped=n_dropped,
        lower=float(interval.lower),
        upper=float(interval.upper),
        level=resampling.level,
        method=method,
        reason=few,
    )
    p_value = MetricValue(
        name=CALIBRATION_P,
        value=(1 + as_large) / (1 + len(drawn)),
        numerator=math.nan,
        denominator=n,
        denominator_name=_UNITS,
        n_dropped=n_dropped,
        method=method,
        reason=few,
    )
    return by_chance, p_value


def _turned(sums: Floats, resampling: Resampling) -> Floats:
    """Sums over bins of the absolute sums over clusters (G, bins) whose signs are turned, shape (replicates,)."""
    rng = np.random.default_rng([resampling.seed, len(sums)])
    if len(sums) > MANY_CLUSTERS:
        values, vectors = np.linalg.eigh(sums.T @ sums)
        normal = rng.standard_normal((resampling.replicates, len(values)))
        return np.asarray(np.abs((normal * np.sqrt(np.maximum(values, 0.0))) @ vectors.T).sum(axis=1))
    signs = 2.0 * rng.integers(0, 2, size=(resampling.replicates, len(sums)), dtype=np.int8) - 1.0
    return np.asarray(np.abs(signs @ sums).sum(axis=1))
