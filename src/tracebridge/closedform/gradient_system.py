"""Linear equations and their transposed ones in plain doubles, for right-hand sides of any sign and any size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.factorization import factorizations, require_leaving, without_diagonal
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.closedform.linear_solver import Factorization

    Floats = NDArray[np.float64]

_MOST_REFINEMENTS = 25

#: Refinement ends at a step of this size, relative to the largest unknown, and is good enough below the second.
_AIM, _ACCEPTED = 1e-15, 1e-11

#: An iteration breaks down on a right-hand side of a few states; after so many jumps it is spread over many.
_SPREADING = 20


class SignedSystem:
    """``(I - Q) x = b`` on a set of transient states, with the first factorization that is good enough.

    Args:
        Q: shape (m, m), non-negative. exits: the mass that leaves the set from each state, shape (m,); the diagonal of
            ``I - Q`` is what leaves a state, as in `factorize`.

    Raises:
        ModelError: if some state can never leave the set.
    """

    def __init__(self, Q: csr_array, exits: Floats) -> None:
        self._jumps = without_diagonal(Q)
        require_leaving(self._jumps, exits > 0)
        self._diagonal = np.asarray(self._jumps.sum(axis=1)).ravel() + exits
        self._ways = factorizations(self._jumps, exits)
        self._factors: Factorization | None = None
        self._failures: list[str] = []

    def solve(self, rhs: Floats, *, transposed: bool = False) -> Floats:
        """x, shape (m,); transposed, ``x (I - Q) = b``.

        Raises:
            EngineError: if no factorization leads to a solution.
        """
        while True:
            if self._factors is None:
                self._factors = self._next_way()
            try:
                found = self._solve(self._factors, rhs, transposed=transposed)
            except EngineError as failure:
                self._failures.append(str(failure))
                found = None
            if found is not None:
                return found
            self._factors = None

    def _next_way(self) -> Factorization:
        for make in self._ways:
            try:
                return make()
            except EngineError as failure:
                self._failures.append(str(failure))
        raise EngineError(
            f"the equations of {len(self._diagonal)} states were not solved in doubles: {'; '.join(self._failures)}"
        )

    def _solve(self, factors: Factorization, rhs: Floats, *, transposed: bool) -> Floats | None:
        if factors.componentwise:  # as good as doubles are, of parts of one sign
            parts = np.stack([np.maximum(rhs, 0.0), np.maximum(-rhs, 0.0)], axis=1)
            solved = factors.solve_transposed(parts) if transposed else factors.solve(parts)
            return np.asarray(solved[:, 0] - solved[:, 1])
        jumps = self._jumps.T if transposed else self._jumps
        x, residual, previous = np.zeros_like(rhs), rhs, np.inf
        for _ in range(_SPREADING):
            x = x + residual / self._diagonal
            residual = rhs - (self._diagonal * x - jumps @ x)
        for _ in range(_MOST_REFINEMENTS):
            step = factors.approximate(residual, transposed=transposed, tolerance=factors.finest)
            x = x + step
            size = float(np.max(np.abs(step), initial=0.0))
            largest = float(np.max(np.abs(x), initial=0.0))
            if size <= _AIM * largest:
                return x
            if not size <= previous / 2:  # NaN neither
                return x if size <= _ACCEPTED * largest else None
            previous = size
            residual = rhs - (self._diagonal * x - jumps @ x)
        return None
