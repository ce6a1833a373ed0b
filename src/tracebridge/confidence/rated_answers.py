"""Answers with a stated confidence and a label: the input of calibration and ranking, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from typing import Self

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatedAnswers:
    """The n answers whose confidence and label are both known.

    Attributes:
        confidence: shape (n,), in [0, 1]. correct: shape (n,), 0.0 or 1.0.
        kept: shape (n,), their places among what was given.
        n_dropped: how many were given without a confidence or without a label.
    """

    confidence: Floats
    correct: Floats
    kept: Integers
    n_dropped: int

    @classmethod
    def of(cls, confidence: ArrayLike, correct: ArrayLike) -> Self:
        """Leaves out, and counts, a confidence of NaN and a label of ``UNKNOWN``.

        Raises:
            InputError: a confidence outside [0, 1], a label that is none. UsageError: shapes that differ.
        """
        stated = np.asarray(confidence, dtype=np.float64)
        labels = np.asarray(correct)
        if stated.ndim != 1 or stated.shape != labels.shape:
            raise UsageError(f"confidences of shape {stated.shape} and labels of shape {labels.shape}")
        outside = np.flatnonzero((stated < 0) | (stated > 1))
        if outside.size:
            place = int(outside[0])
            raise InputError(
                f"the confidence at place {place} is {stated[place]!s}, outside [0, 1]; "
                "divide scores by the maximum of their scale"
            )
        if labels.dtype != np.bool_:
            odd = np.flatnonzero((labels != 0) & (labels != 1) & (labels != UNKNOWN))
            if odd.size:
                place = int(odd[0])
                raise InputError(f"the label at place {place} is {labels[place]!s}, not 1, 0 or {UNKNOWN} for unknown")
        kept = np.flatnonzero(np.isfinite(stated) & (labels != UNKNOWN))
        return cls(
            confidence=stated[kept],
            correct=labels[kept].astype(np.float64),
            kept=kept,
            n_dropped=len(stated) - len(kept),
        )

    @property
    def n(self) -> int:
        """How many they are."""
        return len(self.confidence)

    @property
    def one_class(self) -> bool:
        """All are correct, or all wrong, or there are none."""
        return self.n == 0 or bool(np.all(self.correct == self.correct[0]))

    def __getitem__(self, which: NDArray[Any]) -> RatedAnswers:
        """Some of them, by a mask or by places; nothing counts as dropped."""
        return RatedAnswers(
            confidence=self.confidence[which], correct=self.correct[which], kept=self.kept[which], n_dropped=0
        )

    def by_confidence(self) -> tuple[Floats, Integers]:
        """The D distinct confidences, increasing, and which of them each answer has, shape (n,)."""
        distinct, group = np.unique(self.confidence, return_inverse=True)
        return distinct, group.astype(np.int64)
