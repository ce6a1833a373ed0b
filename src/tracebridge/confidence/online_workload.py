"""Simulated responses of models that drift: skill and overconfidence shift, models come and go, feedback is late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tracebridge.confidence.online import ResponseStream
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftingWorkload:
    """How responses are simulated.

    In each regime every model has a skill, an overconfidence and a bias of its own, drawn anew at every shift. On a
    question of difficulty d it is right with the log-odds ``skill - d``, which it states ``overconfidence`` times, plus
    its bias, rounded to a whole percentage; a wrong answer is any of the others. That such confidence is a line away in
    log-odds from the truth favours calibrators that are lines in log-odds.

    Attributes:
        n_rounds, n_models, n_options: how many; each round asks one question.
        shifts: rounds at which a new regime begins. ramp: over so many rounds the old one fades into it.
        delay: rounds until an outcome is known. observed: the share of responses whose outcome is ever known.
        present: for a model by its number, the rounds from which and before which it responds; all others always.
        seed: of everything drawn.

    Raises:
        UsageError: numbers out of range.
    """

    n_rounds: int = 1_000
    n_models: int = 4
    n_options: int = 4
    shifts: tuple[int, ...] = (500,)
    ramp: int = 0
    delay: int = 0
    observed: float = 1.0
    present: Mapping[int, tuple[int, int]] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.n_rounds, self.n_models) < 1 or self.n_options < 2:
            raise UsageError("a workload needs a round, a model and two options")
        if self.ramp < 0 or self.delay < 0 or not 0 <= self.observed <= 1:
            raise UsageError("ramp and delay count rounds from 0, and the observed share lies in [0, 1]")
        if any(not 0 < shift < self.n_rounds for shift in self.shifts) or list(self.shifts) != sorted(set(self.shifts)):
            raise UsageError(f"shifts are increasing rounds between 0 and {self.n_rounds}, not {self.shifts}")

    def responses(self) -> ResponseStream:
        """The simulated stream; answer 0 is the right one."""
        rng = np.random.default_rng(self.seed)
        shape = self.n_rounds, self.n_models
        skill, slope, bias = (self._by_round(rng, *spread) for spread in ((1.0, 0.8), (1.6, 0.6), (0.0, 0.5)))
        log_odds = skill - rng.normal(0.0, 1.0, (self.n_rounds, 1))
        right = rng.random(shape) < expit(log_odds)
        stated = np.round(100 * expit(np.abs(slope) * log_odds + bias)) / 100
        answer = np.where(right, 0, rng.integers(1, self.n_options, shape))
        delay = np.where(rng.random(shape) < self.observed, self.delay, UNKNOWN)
        there = np.ones(shape, dtype=np.bool_)
        for model, (first, end) in (self.present or {}).items():
            there[:, model] = (np.arange(self.n_rounds) >= first) & (np.arange(self.n_rounds) < end)
        rounds, models = np.nonzero(there)
        return ResponseStream(
            models=tuple(f"model {m}" for m in range(self.n_models)),
            round=rounds.astype(np.int64),
            model=models.astype(np.int64),
            answer=answer[there].astype(np.int64),
            confidence=stated[there],
            correct=right[there].astype(np.int8),
            delay=delay[there].astype(np.int64),
        )

    def _by_round(self, rng: np.random.Generator, mean: float, spread: float) -> Floats:
        """A parameter of each model in each round, shape (T, models)."""
        values = rng.normal(mean, spread, (len(self.shifts) + 1, self.n_models))
        rounds = np.arange(self.n_rounds)
        by_round = np.broadcast_to(values[0], (self.n_rounds, self.n_models))
        for regime, shift in enumerate(self.shifts, start=1):
            share = np.clip((rounds - shift + 1) / (self.ramp + 1), 0, 1)[:, None]
            by_round = (1 - share) * by_round + share * values[regime]
        return by_round
