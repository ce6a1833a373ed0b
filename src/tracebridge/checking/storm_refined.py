"""The Storm engine in doubles, with its rationals in reserve for small chains on which its doubles are poor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.checking.result import Note
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_formulation import parts_of
from tracebridge.checking.storm_process import TIME_LIMIT, StormWorker
from tracebridge.errors import EngineTimeoutError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.checking.engine import Holds
    from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
    from tracebridge.pctl.ast import Operator, Quantile

#: Doubles that may be off by more than this (relative where the value is above one) are not good enough.
ACCURACY = 1e-9

#: Storm's rationals take about 0.2 s for dense equations in so many states, and five times that in 60.
EXACT_STATES = 40

#: Seconds that the rationals get for one operator; if they take longer, the session never asks for them again.
EXACT_TIME_LIMIT = 10.0

#: Rationals grow with every step, so that many more steps than this are not tried.
EXACT_STEPS = 1_000


class RefinedStormSession(StormSession):
    """A `StormSession` in doubles that answers from Storm's exact engine, rounded outward, where its doubles are poor.

    That is the case if equations amplify rounding (sticky or nearly decomposable chains), and done if the chain is one
    of rationals with at most `EXACT_STATES` states. On other chains and operators it is a `StormSession`.

    Attributes:
        notes: also where the exact engine was used, and where it took too long.
    """

    def __init__(self, chain: MarkovChain, *, worker: StormWorker, time_limit: float = TIME_LIMIT) -> None:
        """Nothing is sent yet.

        Args:
            worker: may serve several sessions. time_limit: seconds for each query.
        """
        super().__init__(chain, exact=False, worker=worker, time_limit=time_limit)
        self._reserve: StormSession | None = None
        if chain.is_exact and chain.n_states <= EXACT_STATES:
            limit = min(time_limit, EXACT_TIME_LIMIT)
            self._reserve = StormSession(chain, exact=True, worker=worker, time_limit=limit)
            self._reserve.notes = self.notes

    def value(self, operator: Operator, holds: Holds) -> EnclosureVector:
        """The value of the operator in every state, shape (n,), without notes on how Storm was asked."""
        try:
            rough = super().value(operator, holds)
        except UnsupportedError:
            exact = self._exactly_if_possible(operator, holds, "may have no correct digit")
            if exact is None:
                raise
            return exact
        error = _largest_error(rough)
        if error <= ACCURACY:
            return rough
        exact = self._exactly_if_possible(operator, holds, f"may be off by up to {error:.1g}")
        return rough if exact is None else exact

    def evaluate_quantile(
        self, quantile: Quantile, holds: Holds, weights: Sequence[Fraction]
    ) -> tuple[EnclosureVector, Enclosure]:
        """The quantile in every state, and that of the mean; see `StormSession.evaluate_quantile`."""
        rough = super().evaluate_quantile(quantile, holds, weights)
        decided = rough[0].upper.tolist() == rough[0].lower.tolist() and rough[1].width == 0
        if decided or self._reserve is None:
            return rough
        try:
            exact = self._reserve.evaluate_quantile(quantile, holds, weights)
        except EngineTimeoutError as error:
            self._reserve = None
            self._warn(f"Storm's doubles do not decide a threshold, and its exact engine gave up: {error}")
            return rough
        self._warn("Storm's doubles do not decide a threshold within the quantile; its exact engine was used")
        return exact[0].to_float(), exact[1]

    def _exactly_if_possible(self, operator: Operator, holds: Holds, flaw: str) -> EnclosureVector | None:
        """The answer in rationals, rounded outward; None if there is none to be had in short time."""
        if self._reserve is None or parts_of(operator) is not None:  # the parts were refined
            return None
        query = self.query(operator)
        if query.steps is not None or query.delay > EXACT_STEPS:
            return None
        try:
            exact = self._reserve.value(operator, holds).to_float()
        except EngineTimeoutError as error:
            self._reserve = None
            self._warn(f"Storm's doubles {flaw} on this chain, and its exact engine gave up: {error}")
            return None
        self._warn(f"Storm's doubles {flaw} on this chain; its exact engine was used")
        return exact

    def _warn(self, text: str) -> None:
        self.notes.append(Note(kind="warning", text=text))


def _largest_error(vector: EnclosureVector) -> float:
    """How far a value may be off, relative where it is above one; shape () over all states."""
    finite = np.isfinite(vector.value)
    value = vector.value[finite]
    error = np.maximum(vector.upper[finite] - value, value - vector.lower[finite]) / np.maximum(1.0, np.abs(value))
    return float(error.max(initial=0.0))
