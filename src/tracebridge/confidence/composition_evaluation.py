"""How good composed answers and their confidence are, beside the best single stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.bootstrap import DEFAULT_RESAMPLING, Resampling
from tracebridge.confidence.calibration import DEFAULT_BINS, Closed
from tracebridge.confidence.calibrators import fit_calibrator
from tracebridge.confidence.confidence_quality import ConfidenceQuality, confidence_quality
from tracebridge.confidence.metric_value import MetricValue, ratio
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.confidence.composition import ComposedAnswers
    from tracebridge.confidence.table import Codes

Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CompositionQuality:
    """The quality of composed answers.

    Attributes:
        stated: with the confidence as composed.
        tempered: after one temperature that was fitted to composed answers of other questions (t-ECE, t-Brier).
        temperature: of that; NaN where it could not be fitted and the confidence is left as it was.
        weighted_f1: see `weighted_f1`.
    """

    stated: ConfidenceQuality
    tempered: ConfidenceQuality
    temperature: float
    weighted_f1: MetricValue


def composition_quality(
    fit: ComposedAnswers,
    answers: ComposedAnswers,
    *,
    cluster_of_question: Integers | None = None,
    n_clusters: int = 0,
    n_bins: int = DEFAULT_BINS,
    closed: Closed = "left",
    resampling: Resampling = DEFAULT_RESAMPLING,
) -> CompositionQuality:
    """The quality of some composed answers.

    Args:
        fit: composed answers of other questions, for the temperature.
        cluster_of_question, n_clusters, n_bins, closed, resampling: as in `confidence_quality`.

    Raises:
        UsageError: as `confidence_quality`.
    """
    calibrator = fit_calibrator("temperature", RatedAnswers.of(fit.confidence, fit.correct))
    stated, tempered = (
        confidence_quality(
            confidence,
            answers.correct,
            cluster_of_unit=cluster_of_question,
            n_clusters=n_clusters,
            n_bins=n_bins,
            closed=closed,
            resampling=resampling,
        )
        for confidence in (answers.confidence, calibrator(answers.confidence))
    )
    return CompositionQuality(
        stated=stated,
        tempered=tempered,
        temperature=calibrator.parameters[0] if calibrator.parameters else float("nan"),
        weighted_f1=weighted_f1(answers.answer, answers.gold),
    )


def weighted_f1(answer: Codes, gold: Codes) -> MetricValue:
    """The F1 of each right answer as a class, weighted by how often it is right; for closed questions.

    Questions without a known right answer are dropped; one without an answer counts as wrong.

    Args:
        answer, gold: shape (Q,), codes of the same coding; ``UNKNOWN`` where there is none.
    """
    known = gold != UNKNOWN
    given, right = answer[known], gold[known]
    total = 0.0
    for code in np.unique(right).tolist():
        hits = float(((given == code) & (right == code)).sum())
        total += float((right == code).sum()) * 2 * hits / float((given == code).sum() + (right == code).sum())
    return ratio("weighted F1", total, len(right), "questions with a known answer", n_dropped=int((~known).sum()))


def mean_difference(name: str, values: Mapping[str, MetricValue], references: Mapping[str, MetricValue]) -> MetricValue:
    """The mean over groups, such as benchmarks, of the difference between a value and its reference.

    Groups in which either is undefined are dropped and counted.

    Raises:
        UsageError: other groups in the one than in the other.
    """
    if values.keys() != references.keys():
        raise UsageError("values and references are of different groups")
    differences = np.array([values[group].value - references[group].value for group in values])
    defined = np.isfinite(differences)
    return ratio(name, float(differences[defined].sum()), int(defined.sum()), "groups", int((~defined).sum()))
