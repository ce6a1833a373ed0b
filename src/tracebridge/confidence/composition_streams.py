"""Streams of answers to the same questions, and how far each stream supports each candidate answer.

A stream is an agent, or an agent at one stage: for every question an answer with a confidence. Streams are made
comparable by a calibrator of their own, fitted on other questions than those they are judged on.

Elahi and Di Eugenio, Multiagent Protocols with Aggregated Confidence Signals (arXiv:2606.13591).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.calibrators import DEFAULT_CLIP, Calibrator, CalibratorName, fit_calibrator
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.table import UNKNOWN, Codes, Labels
from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats: TypeAlias = NDArray[np.float64]

#: Every stream is compared with every other on every question; so many comparisons fit into half a gigabyte.
MOST_COMPARISONS = 2**26

#: How far from 0 and 1 a support is kept.
SUPPORT_CLIP = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Streams:
    """Q questions answered by n streams.

    Attributes:
        questions: (Q,) names, which decide the split and break ties.
        answer: (Q, n) codes, equal where answers are equivalent; ``UNKNOWN`` without an answer.
        confidence: (Q, n) in [0, 1]; NaN without one.
        correct: (Q, n) whether the answer is correct.
        n_options: (Q,) how many answers a closed question has; 0 for an open one.
        gold: (Q,) codes of the right answers; ``UNKNOWN`` where they are not known.

    Raises:
        InputError: a confidence outside [0, 1], fewer options than answers given, two labels for one answer of a
            question.
        UsageError: shapes that do not fit, too many streams.
    """

    questions: tuple[str, ...]
    answer: Codes
    confidence: Floats
    correct: Labels
    n_options: Codes
    gold: Codes

    def __post_init__(self) -> None:
        if self.answer.ndim != 2 or self.answer.shape[1] < 1:
            raise UsageError(f"answers of shape {self.answer.shape} are not of one stream or more")
        Q, n = len(self.questions), self.answer.shape[-1]
        require_room(Q, n)
        for name, shape in (
            ("answer", (Q, n)),
            ("confidence", (Q, n)),
            ("correct", (Q, n)),
            ("n_options", (Q,)),
            ("gold", (Q,)),
        ):
            if getattr(self, name).shape != shape:
                raise UsageError(f"{name} has the shape {getattr(self, name).shape}, not {shape}")
        RatedAnswers.of(self.confidence.ravel(), self.correct.ravel())
        same = self.same_answer()
        labels = self.correct.astype(np.int64)
        known = labels != UNKNOWN
        contradiction = same & known[:, :, None] & known[:, None, :] & (labels[:, :, None] != labels[:, None, :])
        if contradiction.any():
            raise InputError(
                f"question {self.questions[int(np.argwhere(contradiction)[0, 0])]!r}: one answer has two labels"
            )
        few = np.flatnonzero((self.n_options != 0) & (self.n_options < np.maximum(self.n_candidates(), 2)))
        if few.size:
            raise InputError(
                f"question {self.questions[int(few[0])]!r} has more answers than its {self.n_options[few[0]]} options"
            )

    @classmethod
    def of(
        cls,
        questions: Sequence[str],
        answer: Codes,
        confidence: Floats,
        correct: Labels,
        *,
        n_options: Codes | int = 0,
        gold: Codes | None = None,
    ) -> Streams:
        """The streams of some arrays; ``n_options`` may be one number for all questions, and ``gold`` absent."""
        Q = len(questions)
        return cls(
            questions=tuple(questions),
            answer=np.asarray(answer, dtype=np.int64),
            confidence=np.asarray(confidence, dtype=np.float64),
            correct=np.asarray(correct, dtype=np.int8),
            n_options=np.broadcast_to(np.asarray(n_options, dtype=np.int64), (Q,)),
            gold=np.full(Q, UNKNOWN, dtype=np.int64) if gold is None else np.asarray(gold, dtype=np.int64),
        )

    @property
    def n_streams(self) -> int:
        """n."""
        return int(self.answer.shape[1])

    @property
    def present(self) -> NDArray[np.bool_]:
        """(Q, n) there are an answer and a confidence."""
        return np.asarray((self.answer != UNKNOWN) & np.isfinite(self.confidence))

    def same_answer(self) -> NDArray[np.bool_]:
        """(Q, n, n) both streams gave an answer, and the same."""
        given = self.answer != UNKNOWN
        same = self.answer[:, :, None] == self.answer[:, None, :]
        return np.asarray(same & given[:, :, None] & given[:, None, :])

    def n_candidates(self) -> Codes:
        """(Q,) how many different answers were given."""
        first = ~np.tril(self.same_answer(), -1).any(axis=2) & (self.answer != UNKNOWN)
        return np.asarray(first.sum(axis=1), dtype=np.int64)

    def n_possible(self) -> Codes:
        """(Q,) how many answers are possible: the options, or, open, those given and one that stands for all others."""
        return np.where(self.n_options > 0, self.n_options, self.n_candidates() + 1)

    def __getitem__(self, which: NDArray[np.bool_]) -> Streams:
        """The questions of a mask."""
        return Streams(
            questions=tuple(name for name, kept in zip(self.questions, which.tolist(), strict=True) if kept),
            answer=self.answer[which],
            confidence=self.confidence[which],
            correct=self.correct[which],
            n_options=self.n_options[which],
            gold=self.gold[which],
        )


def require_room(n_questions: int, n_streams: int) -> None:
    """Raise UsageError if so many questions and streams are more than fit into memory."""
    if n_questions * n_streams**2 > MOST_COMPARISONS:
        raise UsageError(
            f"{n_questions:,} questions by {n_streams:,} streams are too many to compose at once; "
            "leave out agents, or compose parts of the corpus apart"
        )


def fitting_questions(questions: Sequence[str], share: float = 0.3, seed: int = 0) -> NDArray[np.bool_]:
    """Which questions to fit on: those whose hash is among the lowest ``share`` of all possible ones, shape (Q,).

    A question's side depends on its name and the seed alone, not on which others there are.

    Raises:
        UsageError: a share outside (0, 1).
    """
    if not 0 < share < 1:
        raise UsageError(f"the share of questions to fit on lies between 0 and 1, not {share!r}")
    return np.array([hashed(seed, name) < share for name in questions], dtype=np.bool_)


def hashed(seed: int, *names: str) -> float:
    """A number in [0, 1) that the seed and the names determine, as if drawn."""
    text = "\x1f".join((str(seed), *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def calibrated_streams(
    fit: Streams, streams: Streams, name: CalibratorName = "platt", *, clip: float = DEFAULT_CLIP
) -> tuple[Streams, tuple[Calibrator, ...]]:
    """Streams with the confidence of each mapped by its own calibrator, which was fitted to other questions.

    Returns:
        The streams and the n calibrators; one that cannot be fitted is the identity and says so.

    Raises:
        UsageError: another number of streams, an unknown calibrator.
    """
    if fit.n_streams != streams.n_streams:
        raise UsageError(f"{fit.n_streams} streams to fit on and {streams.n_streams} to calibrate")
    calibrators = tuple(
        fit_calibrator(name, RatedAnswers.of(fit.confidence[:, j], fit.correct[:, j]), clip=clip)
        for j in range(fit.n_streams)
    )
    columns = [calibrator(streams.confidence[:, j]) for j, calibrator in enumerate(calibrators)]
    return replace(streams, confidence=np.column_stack(columns)), calibrators


def stated_support(streams: Streams) -> Floats:
    """How far stream i supports the answer of stream j, shape (Q, n, n) indexed [question, j, i].

    Its own confidence where they agree; else what it leaves, shared evenly by the other possible answers. Clipped to
    [.001, .999]; NaN where either stream is not present.
    """
    p, present = streams.confidence, streams.present
    elsewhere = (1 - p) / np.maximum(streams.n_possible() - 1, 1)[:, None]
    support = np.where(streams.same_answer(), p[:, None, :], elsewhere[:, None, :])
    both = present[:, :, None] & present[:, None, :]
    return np.where(both, np.clip(support, SUPPORT_CLIP, 1 - SUPPORT_CLIP), np.nan)


def sampled_support(agreeing: Codes, samples: Codes | int) -> Floats:
    """A support from sampled answers: ``(k + .5) / (m + 1)`` for k of m samples that agree; shapes broadcast.

    Raises:
        UsageError: a negative number, or more that agree than there are.
    """
    k, m = np.broadcast_arrays(np.asarray(agreeing), np.asarray(samples))
    if (k < 0).any() or (k > m).any():
        raise UsageError("of m samples 0 to m agree")
    return np.asarray(np.clip((k + 0.5) / (m + 1), SUPPORT_CLIP, 1 - SUPPORT_CLIP))
