"""Composing streams: one answer for every question, and one confidence in it.

First an answer is chosen, by majority or by the largest pooled probability; then the pool gives the confidence in it.
Pools are fitted to the majority answers of other questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.composition_pools import Pool, PoolName, fit_pool
from tracebridge.confidence.composition_streams import Streams, hashed, stated_support
from tracebridge.confidence.table import UNKNOWN, Codes, Labels
from tracebridge.errors import FitError, UsageError

Floats: TypeAlias = NDArray[np.float64]

#: How an answer is chosen: ``majority``, ties by the sum of supports; ``posterior``, the largest pooled probability.
Choice = Literal["majority", "posterior"]
#: See `fit_composition`.
BaseRate: TypeAlias = Literal["uniform", "fitted"] | float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComposedAnswers:
    """One answer for each of Q questions.

    Attributes:
        questions: (Q,) names.
        answer: (Q,) codes; ``UNKNOWN`` where no stream has an answer with a confidence.
        confidence: (Q,) that it is correct; NaN where there is none.
        correct: (Q,) whether it is.
        gold: (Q,) codes of the right answers.
    """

    questions: tuple[str, ...]
    answer: Codes
    confidence: Floats
    correct: Labels
    gold: Codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composition:
    """A choice with a fitted pool; called with streams, it answers for them.

    Attributes:
        pool: the confidence. choice: the answer. seed: of the hashes that break what ties remain.
        base_rate: see `fit_composition`.
    """

    pool: Pool
    choice: Choice = "majority"
    base_rate: BaseRate = "uniform"
    seed: int = 0

    def __call__(self, streams: Streams) -> ComposedAnswers:
        """The composed answers of streams whose confidence is calibrated."""
        support = stated_support(streams)
        pooled = self.pool(support, base_rates(streams, self.base_rate))
        if self.choice == "majority":
            chosen = majority_stream(streams, support, self.seed)
        else:
            chosen = best_stream(streams, [pooled], streams.present, self.seed)
        return composed(streams, chosen, _taken(pooled, chosen))


def fit_composition(
    fit: Streams,
    pool: PoolName = "discount",
    *,
    choice: Choice = "majority",
    base_rate: BaseRate = "uniform",
    seed: int = 0,
) -> Composition:
    """A composition fitted to streams with calibrated confidence.

    Args:
        fit: questions to fit on; the majority answers with a label are used.
        base_rate: pi of the log-odds pools. ``uniform``: one over the possible answers, which is what a stream that
            knows nothing supports every answer with; ``fitted``: the share of correct majority answers, for supports
            that are about that answer alone; or a number.

    Raises:
        UsageError: an unknown pool, choice or base rate. FitError: no question has a labelled answer.
    """
    if choice not in ("majority", "posterior"):
        raise UsageError(f"an answer is chosen by majority or posterior, not {choice!r}")
    support = stated_support(fit)
    chosen = majority_stream(fit, support, seed)
    correct = composed(fit, chosen, np.zeros(len(chosen))).correct
    usable = correct != UNKNOWN
    if not usable.any():
        raise FitError("no question has an answer with a confidence and a label")
    rows = support[np.flatnonzero(usable), chosen[usable]]
    rates = base_rates(fit, base_rate)
    given = base_rate if isinstance(base_rate, float) else None
    fitted = fit_pool(pool, rows, correct[usable], base_rate=given if rates is None else rates[usable, 0])
    return Composition(pool=fitted, choice=choice, base_rate=base_rate, seed=seed)


def base_rates(streams: Streams, base_rate: BaseRate) -> Floats | None:
    """What a pool takes for each question, shape (Q, 1); None: its own.

    Raises:
        UsageError: an unknown base rate.
    """
    if base_rate == "uniform":
        return np.asarray(1 / np.maximum(streams.n_possible(), 2)[:, None])
    if base_rate != "fitted" and not isinstance(base_rate, float):
        raise UsageError(f"a base rate is uniform, fitted or a number, not {base_rate!r}")
    return None


def majority_stream(streams: Streams, support: Floats, seed: int) -> Codes:
    """For each question a stream with the answer that most streams give, shape (Q,).

    Of answers with as many streams that with the largest sum of supports is taken, then that of the largest hash.

    Args:
        support: shape (Q, n, n), as of `stated_support`.
    """
    there = streams.present
    votes = (streams.same_answer() & there[:, None, :]).sum(axis=2).astype(np.float64)
    return best_stream(streams, [votes, np.nansum(support, axis=2)], there, seed)


def best_stream(streams: Streams, scores: list[Floats], eligible: NDArray[np.bool_], seed: int) -> Codes:
    """For each question an eligible stream whose answer is best by the first score, then by the next; shape (Q,).

    Scores are compared to 12 digits. What is still tied between answers is decided by a hash of the seed, the question
    and the answer, so that the order of streams is of no matter. ``UNKNOWN`` where no stream is eligible.

    Args:
        scores: each of shape (Q, n); NaN is the least.
    """
    left = eligible.copy()
    for score in scores:
        value = np.where(left & ~np.isnan(score), np.round(score, 12), -np.inf)
        left &= value == value.max(axis=1, keepdims=True)
    chosen = np.where(left.any(axis=1), left.argmax(axis=1), UNKNOWN)
    rivals = left & (streams.answer != np.take_along_axis(streams.answer, chosen[:, None], axis=1))
    for q in np.flatnonzero(rivals.any(axis=1)).tolist():
        lots = {
            j: hashed(seed, streams.questions[q], str(streams.answer[q, j])) for j in np.flatnonzero(left[q]).tolist()
        }
        chosen[q] = max(lots, key=lambda j: lots[j])
    return np.asarray(chosen, dtype=np.int64)


def composed(streams: Streams, chosen: Codes, confidence: Floats) -> ComposedAnswers:
    """The answers of the chosen streams, with the label that any stream with the same answer has.

    Args:
        chosen: (Q,) streams; ``UNKNOWN`` for none. confidence: (Q,).
    """
    answered = chosen != UNKNOWN
    rows, place = np.arange(len(chosen)), np.maximum(chosen, 0)
    alike = streams.same_answer()[rows, place]
    label = np.where(alike, streams.correct, UNKNOWN).max(axis=1, initial=UNKNOWN)
    return ComposedAnswers(
        questions=streams.questions,
        answer=np.where(answered, streams.answer[rows, place], UNKNOWN),
        confidence=np.where(answered, confidence, np.nan),
        correct=np.where(answered, label, UNKNOWN).astype(np.int8),
        gold=streams.gold,
    )


def single_stream(streams: Streams, stream: int) -> ComposedAnswers:
    """The answers of one stream alone, with its own confidence."""
    there = streams.present[:, stream]
    return composed(streams, np.where(there, stream, UNKNOWN), streams.confidence[:, stream])


def best_single_stream(fit: Streams) -> int:
    """The stream with the largest share of correct answers among its labelled ones; the first of several.

    Raises:
        FitError: no stream has a labelled answer.
    """
    labelled = (fit.correct != UNKNOWN) & fit.present
    right = ((fit.correct == 1) & labelled).sum(axis=0)
    if not labelled.any():
        raise FitError("no stream has an answer with a confidence and a label")
    shares = np.where(labelled.any(axis=0), right / np.maximum(labelled.sum(axis=0), 1), -1.0)
    return int(shares.argmax())


def _taken(values: Floats, chosen: Codes) -> Floats:
    return np.asarray(values[np.arange(len(chosen)), np.maximum(chosen, 0)])
