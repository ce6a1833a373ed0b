"""Confidence corrected while outcomes come in: the responses of a stream, what corrects them, and delayed feedback.

Every response is corrected before its outcome is known, and outcomes reach the calibrator only when they would: so many
rounds later, or never. Calibrators that are compared get the same feedback at the same time.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.table import UNKNOWN, Codes, Labels
from tracebridge.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

Floats: TypeAlias = NDArray[np.float64]


class OnlineCalibrator(Protocol):
    """What corrects confidence from outcomes seen so far. Without any it leaves confidence as it was stated."""

    def corrected(self, model: str, confidence: float) -> float:
        """The confidence of a model's response, in [0, 1]; its state stays as it is."""
        ...

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        """The outcome of a response that was made with this stated confidence."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResponseStream:
    """N responses of models to the questions of T rounds, in order of rounds. Models may come and go.

    Attributes:
        models: names.
        round: (N,) 0..T-1, non-decreasing. model: (N,) codes into ``models``, at most one a round.
        answer: (N,) codes, equal where answers are equivalent.
        confidence: (N,) as stated, in [0, 1]. correct: (N,) whether the answer is correct, 1 or 0.
        delay: (N,) the outcome of round t is known before round t + 1 + delay; ``UNKNOWN``: never.

    Raises:
        InputError: a confidence or a label that is none. UsageError: columns, codes or an order that do not fit.
    """

    models: tuple[str, ...]
    round: Codes
    model: Codes
    answer: Codes
    confidence: Floats
    correct: Labels
    delay: Codes

    def __post_init__(self) -> None:
        n = len(self.round)
        columns = (self.model, self.answer, self.confidence, self.correct, self.delay)
        if any(column.shape != (n,) for column in columns):
            raise UsageError("the columns of a stream of responses have different lengths")
        if (np.diff(self.round) < 0).any() or (n and self.round[0] < 0):
            raise UsageError("responses are in the order of their rounds, counted from 0")
        if n and not 0 <= int(self.model.min()) <= int(self.model.max()) < len(self.models):
            raise UsageError("a response is of a model without a name")
        if len(np.unique(np.column_stack([self.round, self.model]), axis=0)) < n:
            raise UsageError("a model responds at most once a round")
        if (self.delay < UNKNOWN).any():
            raise UsageError("a delay counts rounds from 0")
        if RatedAnswers.of(self.confidence, self.correct).n_dropped:
            raise InputError("a response of a stream needs a confidence and a label; leave the others out")

    @property
    def n_rounds(self) -> int:
        """T."""
        return int(self.round[-1]) + 1 if len(self.round) else 0

    def first_of_round(self) -> Codes:
        """(T + 1,) round t has the responses ``first[t]:first[t + 1]``."""
        return np.asarray(np.searchsorted(self.round, np.arange(self.n_rounds + 1)), dtype=np.int64)


def prequential_confidence(calibrator: OnlineCalibrator, stream: ResponseStream) -> Floats:
    """Each response's corrected confidence, shape (N,), from the outcomes that were known before its round.

    Outcomes arrive in the order of the rounds in which they become known, then of responses.
    """
    first = stream.first_of_round().tolist()
    models, stated = [stream.models[m] for m in stream.model.tolist()], stream.confidence.tolist()
    correct, delay = (stream.correct == 1).tolist(), stream.delay.tolist()
    corrected = np.empty(len(stated))
    waiting: list[tuple[int, int]] = []
    for t in range(stream.n_rounds):
        while waiting and waiting[0][0] <= t:
            _, i = heapq.heappop(waiting)
            calibrator.observe(models[i], stated[i], correct[i])
        for i in range(first[t], first[t + 1]):
            corrected[i] = calibrator.corrected(models[i], stated[i])
            if delay[i] != UNKNOWN:
                heapq.heappush(waiting, (t + 1 + delay[i], i))
    return corrected


def selected_responses(stream: ResponseStream, confidence: Floats) -> Codes:
    """The response whose answer wins each round, shape (T,); ``UNKNOWN`` in a round without responses.

    The answer with the largest sum of confidences; of several that with the largest single one, then the first given.
    Of the responses with that answer the first stands for it.
    """
    first = stream.first_of_round().tolist()
    chosen = np.full(stream.n_rounds, UNKNOWN, dtype=np.int64)
    answers, weights = stream.answer.tolist(), np.asarray(confidence, dtype=np.float64).tolist()
    for t in range(stream.n_rounds):
        rows = range(first[t], first[t + 1])
        if rows:
            chosen[t] = rows[best_answer([answers[i] for i in rows], [weights[i] for i in rows])]
    return chosen


def best_answer(answers: Sequence[int], confidence: Sequence[float]) -> int:
    """Which of some responses to follow: the place of the first that gave the answer `selected_responses` takes.

    Sums are compared to 12 digits.

    Raises:
        UsageError: no response.
    """
    if not answers:
        raise UsageError("there is no response to follow")
    total: dict[int, float] = {}
    largest: dict[int, float] = {}
    for answer, weight in zip(answers, confidence, strict=True):
        total[answer] = total.get(answer, 0.0) + weight
        largest[answer] = max(largest.get(answer, 0.0), weight)
    return answers.index(max(total, key=lambda answer: (round(total[answer], 12), largest[answer])))
