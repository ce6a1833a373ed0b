"""The surrogate: whatever scores a text token by token, as teacher forcing does, or a server's prompt probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from tracebridge.errors import InputError

#: In place of a log-probability of minus infinity or none at all; the readout is flagged.
FLOOR = math.log(1e-8)
_ROUNDING = 1e-6  # log-probabilities of half-precision models may come out this much above zero


class ScoredToken(NamedTuple):
    """A token of the continuation: its text, its natural log-probability and its characters ``[start, end)`` there."""

    text: str
    log_probability: float
    start: int
    end: int


class Scorer(Protocol):
    """A surrogate language model."""

    def score(self, prompt: str, continuation: str) -> Sequence[ScoredToken]:
        """The tokens of the continuation in order, each scored given the prompt and what precedes it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredText:
    """The scores of a continuation, checked.

    Attributes:
        log_probabilities, starts, ends: of its tokens, each of shape (k,); natural logarithms, floored.
        floored: tokens whose probability was zero or missing.
    """

    log_probabilities: np.ndarray[tuple[int], np.dtype[np.float64]]
    starts: np.ndarray[tuple[int], np.dtype[np.int64]]
    ends: np.ndarray[tuple[int], np.dtype[np.int64]]
    floored: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @property
    def total(self) -> float:
        """The log-probability of the whole continuation."""
        return float(self.log_probabilities.sum())

    def overlapping(self, start: int, end: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which tokens share a character with ``[start, end)``."""
        return (self.starts < end) & (self.ends > start)


def score_text(scorer: Scorer, prompt: str, continuation: str) -> ScoredText:
    """Score a continuation.

    Raises:
        InputError: the tokens do not cover the continuation from end to end (a truncated context), or a
            log-probability is above zero.
    """
    tokens = list(scorer.score(prompt, continuation))
    scores = np.array([token.log_probability for token in tokens], dtype=np.float64)
    starts = np.array([token.start for token in tokens], dtype=np.int64)
    ends = np.array([token.end for token in tokens], dtype=np.int64)
    borders = np.concatenate([[0], ends])
    if np.any(starts > borders[:-1]) or np.any(ends < starts) or np.any(np.diff(borders) < 0):
        raise InputError("the surrogate's tokens leave out a part of the text that it was to score")
    if borders[-1] != len(continuation):
        raise InputError(
            f"the surrogate scored {borders[-1]} of {len(continuation)} characters: the context was truncated; "
            "shorten it or use a surrogate with a longer window"
        )
    if np.any(scores > _ROUNDING):
        worst = int(np.argmax(scores))
        raise InputError(f"the surrogate gave token {worst} ({tokens[worst].text!r:.40}) a log-probability above zero")
    floored = np.isnan(scores) | (scores < FLOOR)
    missing = np.isnan(scores) | np.isneginf(scores)
    return ScoredText(
        log_probabilities=np.where(floored, FLOOR, np.minimum(scores, 0.0)), starts=starts, ends=ends, floored=missing
    )
