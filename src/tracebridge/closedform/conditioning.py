"""How far rounding of the transition matrix can move an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import bicgstab

from tracebridge.chain.graph import reaching
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.factorization import DENSE_LIMIT, factorize, without_diagonal
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Limit

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: A rough solution w of ``(I - Q) w = 1`` is taken if every component of ``(I - Q) w`` is above this.
_SHARP = 0.9

_TOLERANCE = 1e-3
_ITERATIONS = 60
_QUICK = 4_000_000  # work of an elimination: about two seconds
_MANY_STEPS = 10_000


class AmplificationProbe:
    """An `Arithmetic` that computes no answer but adds up the steps that rounding errors of P can accumulate over.

    A solution of ``x = b + P x`` moves by at most ``e max(x) max((I - Q)^-1 1)`` if every row of P is wrong by e in
    total: the factor is the largest expected time in the set. Stepping k times accumulates k errors.
    """

    exact = False

    def __init__(self, chain: MarkovChain, parent: AmplificationProbe | None = None) -> None:
        """What a probe finds out about a derived chain counts for its ``parent``, too."""
        self.chain = chain
        self.amplification = 0.0
        self._parent = parent
        self._last_stay: tuple[bytes, float] | None = None

    def on(self, chain: MarkovChain) -> AmplificationProbe:
        """A probe of another chain, for the same answer."""
        return AmplificationProbe(chain, self)

    def count(self, steps: float) -> None:
        """Steps that errors accumulate over."""
        self.amplification += steps
        if self._parent is not None:
            self._parent.count(steps)

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
        """Count the steps, or the expected time in the active states if that is shorter and easily found."""
        n_active = np.count_nonzero(active)
        if n_active:
            easily = n_active <= DENSE_LIMIT or steps > _MANY_STEPS
            self.count(min(float(steps), self.longest_stay(active)) if steps > 1 and easily else steps)
        return start

    def advance(
        self,
        sources: Sequence[EnclosureVector],  # noqa: ARG002
        source: NDArray[np.int64],
        gain: EnclosureVector | None = None,  # noqa: ARG002
    ) -> EnclosureVector:
        """Count one step. The result changes each time, so that nothing is taken for a fixed point."""
        if (source >= 0).any():
            self.count(1.0)
        return EnclosureVector.constant(self.chain.n_states, self.amplification, exact=False)

    def solve(self, active: Mask, boundary: EnclosureVector, gain: EnclosureVector | None = None) -> EnclosureVector:  # noqa: ARG002
        """Count the expected time in the active states."""
        if active.any():
            self.count(self.longest_stay(active))
        return boundary

    def longest_stay(self, active: Mask) -> float:
        """The largest expected number of steps before leaving the active states; infinite if they can hold a run.

        It is also infinite where it is not known, and at most a few percent too large otherwise.
        """
        if not active.any():
            return 0.0
        key = active.tobytes()
        if self._last_stay is None or self._last_stay[0] != key:  # often asked about the same states in a row
            self._last_stay = key, self._longest_stay(active)
        return self._last_stay[1]

    def _longest_stay(self, active: Mask) -> float:
        if not reaching(self.chain.transitions, ~active)[active].all():
            return np.inf
        rows = self.chain.transitions[np.flatnonzero(active)]
        exits = np.asarray(rows[:, np.flatnonzero(~active)].sum(axis=1)).ravel()
        return _longest_stay(csr_array(rows[:, np.flatnonzero(active)]), exits)


def _longest_stay(Q: csr_array, exits: Floats) -> float:
    """An upper estimate of ``max((I - Q)^-1 1)``, infinite if none is found.

    Any w with ``(I - Q) w >= c > 0`` shows that it is at most ``max(w) / c``: of a large set a rough solution will do,
    and one that went wrong is found out. Elimination gives the number itself, however large it is.
    """
    if len(exits) > DENSE_LIMIT:
        bound = _bound_from(_rough_stay(Q, exits), Q, exits)
        if np.isfinite(bound):
            return bound
    try:
        factors = factorize(Q, exits, max_work=_QUICK)
        stay = factors.solve(np.ones(len(exits)))
    except EngineError:  # beyond doubles, or too entangled: not known
        return np.inf
    if not factors.componentwise:
        return _bound_from(stay, Q, exits)
    longest = float(stay.max())
    return np.inf if np.isnan(longest) else longest


def _bound_from(stay: Floats, Q: csr_array, exits: Floats) -> float:
    """``max(w) / c`` for a w that is sharp and positive, else infinite."""
    offdiagonal = without_diagonal(Q)
    leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
    with np.errstate(all="ignore"):
        least = float((leaving * stay - offdiagonal @ stay).min())
    return float(stay.max()) / least if least > _SHARP else np.inf  # NaN is not above either


def _rough_stay(Q: csr_array, exits: Floats) -> Floats:
    """A quick approximation of ``(I - Q)^-1 1``, or something else where a few iterations do not find it."""
    jumps = without_diagonal(Q)
    leaving = np.asarray(jumps.sum(axis=1)).ravel() + exits
    jumps.data = jumps.data / np.repeat(leaving, np.diff(jumps.indptr))
    system = csr_array(eye_array(len(exits), format="csr") - jumps)
    with np.errstate(all="ignore"):  # an iteration that diverges overflows; its result is then refused
        return np.asarray(bicgstab(system, 1 / leaving, rtol=_TOLERANCE, atol=0.0, maxiter=_ITERATIONS)[0])
