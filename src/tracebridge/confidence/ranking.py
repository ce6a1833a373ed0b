"""How well confidence ranks correct answers above wrong ones, whatever its scale, and what abstaining would gain.

Every measure takes ties by expectation over their order, so that it depends on no order of answers (a running mean over
sorted answers does). It needs only the answers and the correct ones at each distinct confidence; such sums may have any
axes in front, so that `tracebridge.confidence.bootstrap` can draw them again.

Geifman, Uziel and El-Yaniv (2019), ICLR (AURC, E-AURC); Nadeem, Zucker and Hanczar (2009), MLSB (accuracy-rejection).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.bootstrap import quotient
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.confidence.rated_answers import RatedAnswers

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConfidenceRanking:
    """Answers grouped by confidence.

    Attributes:
        confidence: shape (D,), distinct, increasing.
        count, correct: shape (..., D): the answers and the correct ones at each, whole numbers.
    """

    confidence: Floats
    count: Floats
    correct: Floats

    @classmethod
    def of(cls, answers: RatedAnswers) -> ConfidenceRanking:
        """The ranking of some answers."""
        distinct, group = answers.by_confidence()
        count, correct = (
            np.bincount(group, weights, minlength=len(distinct)) for weights in (np.ones(answers.n), answers.correct)
        )
        return cls(confidence=distinct, count=count.astype(np.float64), correct=correct.astype(np.float64))

    @property
    def n(self) -> Floats:
        """The number of answers, shape (...)."""
        return np.asarray(self.count.sum(axis=-1))

    @property
    def accuracy(self) -> Floats:
        """The share of correct ones; NaN without answers."""
        return quotient(self.correct.sum(axis=-1), self.n)

    def auroc(self) -> Floats:
        """The chance that a correct answer has more confidence than a wrong one, ties counting one half.

        The same as (the sum of the mid-ranks of the correct - n1 (n1 + 1) / 2) / (n1 n0). NaN with a single class.
        """
        wrong = self.count - self.correct
        below = np.cumsum(wrong, axis=-1) - wrong
        wins = (self.correct * (below + wrong / 2)).sum(axis=-1)
        return quotient(wins, self.correct.sum(axis=-1) * wrong.sum(axis=-1))

    def auarc(self) -> Floats:
        """The mean over k = 1..n of the expected accuracy of the k most confident; NaN without answers.

        With K answers, S of them correct, above m tied ones, s of them correct, the j-th of the ties adds
        ``(S + j s / m) / (K + j)``; their sum over j follows from a difference of harmonic numbers.
        """
        count, correct = self.count[..., ::-1], self.correct[..., ::-1]
        through, correct_through = np.cumsum(count, axis=-1), np.cumsum(correct, axis=-1)
        above, correct_above = through - count, correct_through - correct
        numbers = _harmonic_numbers(through)
        harmonic = numbers[through.astype(np.int64)] - numbers[above.astype(np.int64)]
        slope = correct / np.maximum(count, 1)
        return quotient((correct_above * harmonic + slope * (count - above * harmonic)).sum(axis=-1), self.n)

    def auarc_and_excess(self) -> tuple[Floats, Floats]:
        """AUARC and E-AURC: by how much the AURC, 1 - AUARC, exceeds that of the best ranking.

        The best has all correct answers first. NaN without answers.
        """
        n, correct = self.n, np.asarray(self.correct.sum(axis=-1))
        numbers = _harmonic_numbers(n)
        best = quotient(correct * (1 + numbers[n.astype(np.int64)] - numbers[correct.astype(np.int64)]), n)
        auarc = self.auarc()
        return auarc, best - auarc

    def selective_accuracy(self, coverage: float) -> Floats:
        """The expected accuracy of the most confident share of the answers; of a tie that it cuts, a fraction.

        Args:
            coverage: in (0, 1].

        Returns:
            Shape (...); NaN without answers.

        Raises:
            UsageError: a coverage outside (0, 1].
        """
        if not 0 < coverage <= 1:
            raise UsageError(f"a coverage lies in (0, 1], not {coverage!r}")
        count, correct = self.count[..., ::-1], self.correct[..., ::-1]
        above = np.cumsum(count, axis=-1) - count
        wanted = coverage * self.n
        share = np.clip(np.nan_to_num(quotient(wanted[..., None] - above, count)), 0, 1)
        return quotient((share * correct).sum(axis=-1), wanted)

    def risk_coverage(self) -> RiskCoverage:
        """The curve at every distinct confidence.

        Raises:
            UsageError: for sums with axes in front.
        """
        if self.count.ndim != 1:
            raise UsageError("a curve is of one set of answers")
        through, correct = np.cumsum(self.count[::-1]), np.cumsum(self.correct[::-1])
        accuracy = quotient(correct, through)
        return RiskCoverage(
            threshold=self.confidence[::-1],
            coverage=quotient(through, np.full_like(through, self.n)),
            risk=1 - accuracy,
        )


def _harmonic_numbers(counts: Floats) -> Floats:
    """1 + 1/2 + ... + 1/k for k from 0 to the largest of some counts."""
    largest = int(counts.max(initial=0))
    return np.concatenate([[0.0], np.cumsum(1 / np.arange(1, largest + 1))])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RiskCoverage:
    """What answering only above a threshold does.

    Attributes:
        threshold: shape (D,), decreasing. coverage: the share of answers at or above it. risk: the share of wrong ones
            among those.
    """

    threshold: Floats
    coverage: Floats
    risk: Floats

    def to_records(self) -> list[dict[str, float]]:
        """One row a threshold."""
        columns = (self.threshold.tolist(), self.coverage.tolist(), self.risk.tolist())
        return [{"threshold": t, "coverage": c, "risk": r} for t, c, r in zip(*columns, strict=True)]
