"""How far rounding of the transition matrix can move an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.graph import reaching
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.factorization import factorize

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Limit

    Mask = NDArray[np.bool_]


class AmplificationProbe:
    """An `Arithmetic` that computes no answer but adds up the steps that rounding errors of P can accumulate over.

    A solution of ``x = b + P x`` moves by at most ``e max(x) max((I - Q)^-1 1)`` if every row of P is wrong by e in
    total: the factor is the largest expected time in the set. Stepping k times accumulates k errors.
    """

    exact = False

    def __init__(self, chain: MarkovChain) -> None:
        self.chain = chain
        self.amplification = 0.0

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """The nearest doubles."""
        return EnclosureVector.from_floats(np.array(values, dtype=np.float64))

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        gain: EnclosureVector | None = None,  # noqa: ARG002 - errors of P alone are counted
        limit: Limit | None = None,  # noqa: ARG002
    ) -> EnclosureVector:
        """Count the steps, or the expected time in the active states if that is shorter."""
        if active.any():
            self.amplification += min(float(steps), self._time_in(active)) if steps > 1 else steps
        return start

    def solve(self, active: Mask, boundary: EnclosureVector, gain: EnclosureVector | None = None) -> EnclosureVector:  # noqa: ARG002
        """Count the expected time in the active states."""
        if active.any():
            self.amplification += self._time_in(active)
        return boundary

    def _time_in(self, active: Mask) -> float:
        """The largest expected number of steps before leaving the active states; infinite if they can hold a run."""
        if not reaching(self.chain.transitions, ~active)[active].all():
            return np.inf
        rows = self.chain.transitions[np.flatnonzero(active)]
        exits = np.asarray(rows[:, np.flatnonzero(~active)].sum(axis=1)).ravel()
        factors = factorize(csr_array(rows[:, np.flatnonzero(active)]), exits)
        return float(factors.solve(np.ones(len(exits))).max())
