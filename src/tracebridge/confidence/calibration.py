"""Calibration: how far stated confidence is from the share of correct answers, in bins whose convention is stated.

All measures are functions of sums over answers, so that `tracebridge.confidence.bootstrap` can draw them again; such
sums may have any axes in front.

Naeini et al. (2015), AAAI (ECE, MCE); Guo et al. (2017), ICML; Nixon et al. (2019), CVPR workshops (equal-mass bins);
Kumar, Liang and Ma (2019), NeurIPS (debiased squared error); Murphy (1973), J. Appl. Meteor. 12 (partition).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.bootstrap import quotient
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.rated_answers import RatedAnswers

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

#: Which end of a bin belongs to it: ``left`` [k/M, (k+1)/M), the last bin closed; ``right`` (k/M, (k+1)/M], the first
#: bin closed, as in Guo et al. and scikit-learn.
Closed = Literal["left", "right"]

DEFAULT_BINS = 10
MOST_BINS = 10_000


def bin_of_confidence(confidence: Floats, n_bins: int = DEFAULT_BINS, closed: Closed = "left") -> Integers:
    """In which of ``n_bins`` bins of equal width each confidence lies, 0..n_bins-1.

    Not by comparison with ``np.linspace``, whose edges at .3, .6 and .7 lie above those decimals. A confidence of
    score / maximum with whole numbers gets the bin that integer arithmetic gives it: off an edge it is at least
    n_bins / maximum away from it, on an edge within 1e-9, to which it is rounded; for scales up to 10**8.

    Args:
        confidence: any shape, in [0, 1].

    Raises:
        UsageError: a number of bins outside 1..10,000, a convention that is neither.
    """
    _require_bins(n_bins)
    if closed not in ("left", "right"):
        raise UsageError(f"bins are closed left or right, not {closed!r}")
    place = np.round(np.asarray(confidence, dtype=np.float64) * n_bins, 9)
    index = np.floor(place) if closed == "left" else np.ceil(place) - 1
    return np.asarray(np.clip(index, 0, n_bins - 1), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReliabilityBins:
    """Sums over the answers in each of M bins; the table behind a reliability diagram.

    Attributes:
        closed: the convention.
        count, confidence, correct: shape (..., M): answers, and the sums of their confidences and labels.
    """

    closed: Closed
    count: Floats
    confidence: Floats
    correct: Floats

    @classmethod
    def of(cls, answers: RatedAnswers, n_bins: int = DEFAULT_BINS, closed: Closed = "left") -> ReliabilityBins:
        """The bins of some answers."""
        index = bin_of_confidence(answers.confidence, n_bins, closed)
        sums = [
            np.bincount(index, weights, minlength=n_bins).astype(np.float64)
            for weights in (np.ones(answers.n), answers.confidence, answers.correct)
        ]
        return cls(closed=closed, count=sums[0], confidence=sums[1], correct=sums[2])

    @property
    def n_bins(self) -> int:
        """M."""
        return int(self.count.shape[-1])

    def expected_error(self) -> Floats:
        """ECE: the absolute differences of confidence and accuracy, weighted by the bins' shares; shape (...).

        At least the absolute signed gap. NaN without answers.
        """
        return quotient(np.abs(self.confidence - self.correct).sum(axis=-1), self.count.sum(axis=-1))

    def maximum_error(self) -> Floats:
        """MCE: the largest absolute difference of any bin that has answers; NaN without answers."""
        errors = np.where(self.count > 0, quotient(np.abs(self.confidence - self.correct), self.count), -np.inf)
        largest = errors.max(axis=-1)
        return np.where(np.isfinite(largest), largest, np.nan)

    def signed_gap(self) -> Floats:
        """Mean confidence less accuracy; above 0 is overconfidence. NaN without answers."""
        return quotient((self.confidence - self.correct).sum(axis=-1), self.count.sum(axis=-1))

    def debiased_squared_error(self) -> Floats:
        """The squared calibration error less the part that the sampling of labels adds; it may be below 0.

        Each bin's squared difference less ``a (1 - a) / (n - 1)`` with its accuracy ``a`` and its ``n`` answers,
        weighted by its share (Kumar et al. 2019, definition 4.1); NaN if a bin has a single answer, or there are none.
        """
        accuracy = quotient(self.correct, self.count)
        bias = quotient(accuracy * (1 - accuracy), self.count - 1)
        terms = self.count * ((quotient(self.confidence, self.count) - accuracy) ** 2 - bias)
        return quotient(np.where(self.count > 0, terms, 0.0).sum(axis=-1), self.count.sum(axis=-1))

    def to_records(self) -> list[dict[str, Any]]:
        """One row a bin: its ends, answers, mean confidence, accuracy and their difference (NaN in an empty bin).

        Raises:
            UsageError: for sums with axes in front.
        """
        if self.count.ndim != 1:
            raise UsageError("records are of the bins of one set of answers")
        confidence, accuracy = quotient(self.confidence, self.count), quotient(self.correct, self.count)
        return [
            {
                "bin": k,
                "lower": k / self.n_bins,
                "upper": (k + 1) / self.n_bins,
                "n": int(self.count[k]),
                "mean_confidence": float(confidence[k]),
                "accuracy": float(accuracy[k]),
                "gap": float(confidence[k] - accuracy[k]),
            }
            for k in range(self.n_bins)
        ]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        rows = [
            {key: number_to_json(value) if isinstance(value, float) else value for key, value in row.items()}
            for row in self.to_records()
        ]
        return {"n_bins": self.n_bins, "closed": self.closed, "bins": rows}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BrierPartition:
    """Murphy's partition of the Brier score over the distinct confidences: reliability - resolution + uncertainty.

    Attributes:
        reliability: the mean squared difference of a confidence and the accuracy at it.
        resolution: the variance of those accuracies. uncertainty: of the labels.
    """

    reliability: Floats
    resolution: Floats
    uncertainty: Floats

    @classmethod
    def of(cls, answers: RatedAnswers) -> BrierPartition:
        """The partition of some answers."""
        distinct, group = answers.by_confidence()
        count = np.bincount(group, minlength=len(distinct)).astype(np.float64)
        correct = np.bincount(group, answers.correct, minlength=len(distinct)).astype(np.float64)
        return cls.of_sums(distinct, count, correct)

    @classmethod
    def of_sums(cls, distinct: Floats, count: Floats, correct: Floats) -> BrierPartition:
        """From the D distinct confidences, and for each the answers and the correct ones, shape (..., D)."""
        n = count.sum(axis=-1)
        accuracy = quotient(correct, count)
        base = quotient(correct.sum(axis=-1), n)
        apart = np.where(count > 0, count * (distinct - accuracy) ** 2, 0.0).sum(axis=-1)
        spread = np.where(count > 0, count * (accuracy - base[..., None]) ** 2, 0.0).sum(axis=-1)
        return cls(
            reliability=quotient(apart, n), resolution=quotient(spread, n), uncertainty=np.asarray(base * (1 - base))
        )

    @property
    def brier(self) -> Floats:
        """The Brier score: the mean of ``(confidence - label)**2``."""
        return np.asarray(self.reliability - self.resolution + self.uncertainty)


def equal_mass_error(distinct: Floats, count: Floats, correct: Floats, n_bins: int = DEFAULT_BINS) -> Floats:
    """ACE: the expected error over bins of as equal mass as ties allow.

    All answers of one confidence share the bin that holds the middle of their ranks, so that their order is of no
    matter; bins are weighted by their answers, whose numbers ties make unequal.

    Args:
        distinct: (D,), increasing. count, correct: answers and correct ones at each, shape (..., D).

    Returns:
        Shape (...); NaN without answers.

    Raises:
        UsageError: a number of bins outside 1..10,000.
    """
    _require_bins(n_bins)
    n = count.sum(axis=-1)
    middle = quotient(np.cumsum(count, axis=-1) - count / 2, np.broadcast_to(n[..., None], count.shape))
    index = np.clip(np.floor(np.round(np.nan_to_num(middle) * n_bins, 9)), 0, n_bins - 1).astype(np.int64)
    row = np.arange(n.size).reshape(n.shape)[..., None] * n_bins
    sums = np.bincount((row + index).ravel(), (count * distinct - correct).ravel(), minlength=n.size * n_bins)
    return quotient(np.abs(sums.reshape(*n.shape, n_bins)).sum(axis=-1), n)


def _require_bins(n_bins: int) -> None:
    if not 1 <= n_bins <= MOST_BINS:
        raise UsageError(f"confidence is put into 1 to {MOST_BINS:,} bins, not {n_bins}")
