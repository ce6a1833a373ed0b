"""A Krylov method for large chains that mix well: a few dozen matrix products, where elimination would fill up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import bicgstab

from tracebridge.closedform.linear_solver import Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_TOLERANCE = 1e-10
_ITERATIONS = 500
_REFINEMENTS = 2
_SCALE = 40  # right-hand sides are scaled to about 2**40: scipy takes small numbers for a breakdown


class NoConvergenceError(EngineError):
    """The iteration does not find a solution in the number of steps that it has."""


class JumpChainIteration(Factorization):
    """BiCGSTAB (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992) on the jump chain: rows over the mass that leaves.

    Solutions are accurate relative to their largest component, by iterative refinement.
    """

    def __init__(self, offdiagonal: csr_array, exits: Floats) -> None:
        """``offdiagonal`` has shape (m, m) and no diagonal, ``exits`` shape (m,)."""
        self.size = len(exits)
        self.componentwise = False
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        scaled = offdiagonal.copy()
        scaled.data = scaled.data / np.repeat(self._leaving, np.diff(offdiagonal.indptr))
        self._system = csr_array(eye_array(len(exits), format="csr") - scaled)
        self._transposed_system = csr_array(self._system.T.tocsr())

    def converges(self) -> bool:
        """Whether it finds the expected number of jumps, which is the hardest right-hand side."""
        try:
            self._iterate(np.ones(self.size), transposed=False)
        except NoConvergenceError:
            return False
        return True

    def _solve(self, rhs: Floats, *, transposed: bool, refined: bool) -> Floats:
        """As in the base class. Raises NoConvergenceError."""
        system = self._transposed_system if transposed else self._system
        scaled = rhs if transposed else rhs / self._leaving[:, None]
        solution = np.zeros_like(scaled)
        for _ in range(1 + (_REFINEMENTS if refined else 0)):
            residual = scaled - system @ solution
            solution = solution + np.stack([self._iterate(r, transposed=transposed) for r in residual.T], axis=1)
        if refined:
            solution = np.maximum(solution, 0.0)
        return solution / self._leaving[:, None] if transposed else solution

    def _iterate(self, rhs: Floats, *, transposed: bool) -> Floats:
        system = self._transposed_system if transposed else self._system
        shift = _SCALE - int(np.frexp(np.abs(rhs).max())[1])
        with np.errstate(all="ignore"):  # an iteration that diverges overflows; it is then not used
            found, failed = bicgstab(system, np.ldexp(rhs, shift), rtol=_TOLERANCE, atol=0.0, maxiter=_ITERATIONS)
        if failed or not np.all(np.isfinite(found)):
            raise NoConvergenceError(f"the iteration for {self.size} states did not converge in {_ITERATIONS} steps")
        return np.asarray(np.ldexp(found, -shift))
