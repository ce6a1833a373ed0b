"""Every measure of stated confidence at once, each with its denominator and a cluster interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, hstack

from tracebridge.confidence.bootstrap import DEFAULT_RESAMPLING, ClusterInterval, Resampling, totals_intervals
from tracebridge.confidence.calibration import (
    DEFAULT_BINS,
    BrierPartition,
    Closed,
    ReliabilityBins,
    bin_of_confidence,
    equal_mass_error,
)
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.confidence.ranking import ConfidenceRanking
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import UsageError

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

#: The names of the measures, in order.
MEASURES = (
    "accuracy",
    "mean confidence",
    "gap",
    "ECE",
    "MCE",
    "ACE",
    "Brier",
    "reliability",
    "resolution",
    "uncertainty",
    "AUROC",
    "AUARC",
    "AURC",
    "E-AURC",
    "accuracy at coverage .5",
)

_BOUNDS = [
    {"gap": (-1.0, 1.0), "resolution": (0.0, 0.25), "uncertainty": (0.0, 0.25)}.get(m, (0.0, 1.0)) for m in MEASURES
]

#: Measures of ranking compare the correct with the wrong answers, so that they rest on the clusters of the rarer kind.
#: Where these are 2 to 11 of 8 to 60, their intervals cover .90 to .99 of corpora; of all clusters, .78 to .93.
_RANKINGS = frozenset({"AUROC", "AUARC", "AURC", "E-AURC", "accuracy at coverage .5"})

_NO_ANSWERS = "there are no answers with a confidence and a label"
_ONE_CLASS = "the answers are all correct or all wrong"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfidenceQuality:
    """Calibration and ranking of some answers.

    Attributes:
        metrics: by the names in ``MEASURES``.
        bins: the table behind ECE and MCE, with its convention.
    """

    metrics: dict[str, MetricValue]
    bins: ReliabilityBins

    def __getitem__(self, name: str) -> MetricValue:
        return self.metrics[name]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {"metrics": [metric.to_dict() for metric in self.metrics.values()], "reliability": self.bins.to_dict()}


def confidence_quality(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    cluster_of_unit: Integers | None = None,
    n_clusters: int = 0,
    n_bins: int = DEFAULT_BINS,
    closed: Closed = "left",
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> ConfidenceQuality:
    """The measures named in ``MEASURES`` of some answers, all intervals from the same replicates.

    Args:
        confidence: shape (n,), in [0, 1], NaN where there is none. correct: shape (n,), 1, 0 or ``UNKNOWN``.
        cluster_of_unit: shape (n,), codes 0..n_clusters-1; without them there are no intervals.
        n_clusters: the clusters of the corpus.

    Raises:
        InputError: a confidence outside [0, 1], a label that is none.
        UsageError: shapes, bins or clusters that do not fit.
    """
    answers = RatedAnswers.of(confidence, correct)
    sums = _Sums.of(answers, n_bins, closed)
    point = sums.measures(np.asarray(sums.table.sum(axis=0)).reshape(1, -1))[0]
    metrics = _metrics(MEASURES, point, answers.n, answers.n_dropped)
    if cluster_of_unit is not None:
        clusters = _of_kept(cluster_of_unit, answers.n + answers.n_dropped, answers.kept)
        intervals = totals_intervals(
            sums.table,
            sums.measures,
            clusters,
            n_clusters,
            resampling=resampling,
            bounds=_BOUNDS,
            resting_on=_resting_on(clusters, [answers]),
        )
        metrics = _with_intervals(metrics, intervals)
    return ConfidenceQuality(metrics=metrics, bins=ReliabilityBins.of(answers, n_bins, closed))


def quality_difference(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    cluster_of_unit: Integers | None = None,
    n_clusters: int = 0,
    n_bins: int = DEFAULT_BINS,
    closed: Closed = "left",
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> dict[str, MetricValue]:
    """The measures of one set of answers less those of another to the same questions, such as before recalibration.

    Intervals are paired: every replicate has the same questions on both sides. Questions that are not answered, with a
    confidence and a label, on both sides are dropped.

    Args:
        first, second: each confidences and labels as in `confidence_quality`, of shape (n,), question by question.
        cluster_of_unit, n_clusters, n_bins, closed, resampling: as there.

    Raises:
        InputError, UsageError: as `confidence_quality`; sides of different lengths.
    """
    sides = [RatedAnswers.of(*side) for side in (first, second)]
    n = sides[0].n + sides[0].n_dropped
    if sides[1].n + sides[1].n_dropped != n:
        raise UsageError(f"{n} answers cannot be compared with {sides[1].n + sides[1].n_dropped}")
    kept = np.intersect1d(sides[0].kept, sides[1].kept)
    both = [side[np.isin(side.kept, kept)] for side in sides]
    one, other = (_Sums.of(side, n_bins, closed) for side in both)
    table, width = csr_array(hstack([one.table, other.table], format="csr")), one.table.shape[1]

    def difference(sums: Floats) -> Floats:
        return one.measures(sums[:, :width]) - other.measures(sums[:, width:])

    point = difference(np.asarray(table.sum(axis=0)).reshape(1, -1))[0]
    names = tuple(f"{name}, difference" for name in MEASURES)
    metrics = _metrics(names, point, len(kept), n - len(kept))
    if cluster_of_unit is not None:
        clusters = _of_kept(cluster_of_unit, n, kept)
        intervals = totals_intervals(
            table,
            difference,
            clusters,
            n_clusters,
            resampling=resampling,
            resting_on=_resting_on(clusters, both),
        )
        metrics = _with_intervals(metrics, intervals)
    return dict(zip(MEASURES, metrics.values(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sums:
    """What all measures are functions of: the answers and the correct ones at each of D distinct confidences.

    ``table`` holds what each answer adds to these sums, shape (n, 2 D).
    """

    distinct: Floats
    table: csr_array
    n_bins: int
    closed: Closed

    @classmethod
    def of(cls, answers: RatedAnswers, n_bins: int, closed: Closed) -> _Sums:
        """The sums of some answers."""
        distinct, group = answers.by_confidence()
        rows, shape = np.arange(answers.n), (answers.n, len(distinct))
        count = csr_array((np.ones(answers.n), (rows, group)), shape=shape)
        right = csr_array((answers.correct, (rows, group)), shape=shape)
        table = csr_array(hstack([count, right], format="csr"))
        return cls(distinct=distinct, table=table, n_bins=n_bins, closed=closed)

    def measures(self, sums: Floats) -> Floats:
        """From sums, shape (r, 2 D), to values, shape (r, measures), in the order of ``MEASURES``."""
        D = len(self.distinct)
        count, correct = sums[:, :D], sums[:, D:]
        index = bin_of_confidence(self.distinct, self.n_bins, self.closed)
        member = csr_array((np.ones(D), (np.arange(D), index)), shape=(D, self.n_bins))
        bins = ReliabilityBins(
            closed=self.closed,
            count=count @ member,
            confidence=(count * self.distinct) @ member,
            correct=correct @ member,
        )
        ranking = ConfidenceRanking(confidence=self.distinct, count=count, correct=correct)
        brier = BrierPartition.of_sums(self.distinct, count, correct)
        auarc, excess = ranking.auarc_and_excess()
        gap, accuracy = bins.signed_gap(), ranking.accuracy
        values = {
            "accuracy": accuracy,
            "mean confidence": accuracy + gap,
            "gap": gap,
            "ECE": bins.expected_error(),
            "MCE": bins.maximum_error(),
            "ACE": equal_mass_error(self.distinct, count, correct, self.n_bins),
            "Brier": brier.brier,
            "reliability": brier.reliability,
            "resolution": brier.resolution,
            "uncertainty": brier.uncertainty,
            "AUROC": ranking.auroc(),
            "AUARC": auarc,
            "AURC": 1 - auarc,
            "E-AURC": excess,
            "accuracy at coverage .5": ranking.selective_accuracy(0.5),
        }
        return np.stack([values[name] for name in MEASURES], axis=-1)


def _metrics(names: tuple[str, ...], values: Floats, n: int, n_dropped: int) -> dict[str, MetricValue]:
    units, metrics = "answers with a confidence and a label", {}
    for name, value in zip(names, values.tolist(), strict=True):
        if np.isnan(value):
            reason = _ONE_CLASS if n else _NO_ANSWERS
            metrics[name] = MetricValue.undefined(
                name, reason, denominator=n, denominator_name=units, n_dropped=n_dropped
            )
        else:
            metrics[name] = MetricValue(
                name=name,
                value=value,
                numerator=float("nan"),
                denominator=n,
                denominator_name=units,
                n_dropped=n_dropped,
            )
    return metrics


def _with_intervals(metrics: dict[str, MetricValue], intervals: tuple[ClusterInterval, ...]) -> dict[str, MetricValue]:
    return {
        name: interval.attached_to(metric) for (name, metric), interval in zip(metrics.items(), intervals, strict=True)
    }


def _resting_on(cluster_of_answer: Integers, sides: Sequence[RatedAnswers]) -> list[int]:
    """How many clusters each measure rests on; those of ranking on all where the answers are of one kind."""
    clusters = len(np.unique(cluster_of_answer))
    of_kinds = [len(np.unique(cluster_of_answer[side.correct == kind])) for side in sides for kind in (0, 1)]
    return [min(of_kinds) or clusters if name in _RANKINGS else clusters for name in MEASURES]


def _of_kept(cluster_of_unit: Integers, n: int, kept: Integers) -> Integers:
    clusters = np.asarray(cluster_of_unit)
    if clusters.shape != (n,):
        raise UsageError(f"{n} answers and clusters of shape {clusters.shape}")
    return clusters[kept]
