"""A Krylov method for large chains that mix well: a few dozen matrix products, where elimination would fill up."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.closedform.linear_solver import TOLERANCE, Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Apply = Callable[[Floats], Floats]

_ITERATIONS = 500
_REFINEMENTS = 2

#: So many steps must bring the residual down by this factor, or the iteration is given up.
_PATIENCE = 16
_PROGRESS = 0.5

#: A solution of which not even one digit is right is none.
_USELESS = 0.1


class NoConvergenceError(EngineError):
    """The iteration does not find a solution in the number of steps that it has."""


def bicgstab(apply: Apply, rhs: Floats, precondition: Apply | None = None, *, tolerance: float) -> tuple[Floats, float]:
    """A solution of ``apply(x) = rhs`` and the norm of its residual over that of ``rhs``; shape (m,).

    BiCGSTAB (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992) with preconditioning from the right. It ends at the
    tolerance, or where rounding or the matrix lets it come no further; the best solution on the way is returned.
    """
    # Only relative sizes matter, and squares of small numbers underflow.
    scale = int(np.frexp(np.abs(rhs).max(initial=0.0))[1])
    residual = np.ldexp(rhs, -scale)
    size = np.sqrt(_dot(residual, residual))
    x = np.zeros_like(residual)
    best, best_ratio = x, 1.0
    if size == 0:
        return x, 0.0
    shadow, direction, image = residual.copy(), np.zeros_like(x), np.zeros_like(x)
    rho = alpha = omega = 1.0
    milestone = 1.0
    for step in range(1, _ITERATIONS + 1):
        previous, rho = rho, _dot(shadow, residual)
        if rho == 0:
            break
        beta = rho / previous * (alpha / omega)
        direction -= omega * image
        direction *= beta
        direction += residual
        towards = direction if precondition is None else precondition(direction)
        image = apply(towards)
        across = _dot(shadow, image)
        if across == 0:
            break
        alpha = rho / across
        x = x + alpha * towards
        residual = residual - alpha * image
        towards = residual if precondition is None else precondition(residual)
        second = apply(towards)
        length = _dot(second, second)
        omega = _dot(second, residual) / length if length else 0.0
        x += omega * towards
        residual -= omega * second
        ratio = np.sqrt(_dot(residual, residual)) / size
        if not np.isfinite(ratio):
            break
        if ratio < best_ratio:
            best, best_ratio = x, ratio
        if ratio <= tolerance or omega == 0:
            break
        if step % _PATIENCE == 0:
            if best_ratio > _PROGRESS * milestone:
                break
            milestone = best_ratio
    return np.ldexp(best, scale), best_ratio


def _dot(a: Floats, b: Floats) -> float:
    """The inner product, always added up in the same order, which the threads of a BLAS do not promise."""
    return float(np.einsum("i,i->", a, b))


class JumpChainIteration(Factorization):
    """BiCGSTAB on the jump chain: rows over the mass that leaves.

    Solutions are accurate relative to their largest component, by iterative refinement.
    """

    def __init__(self, offdiagonal: csr_array, exits: Floats) -> None:
        """``offdiagonal`` has shape (m, m) and no diagonal, ``exits`` shape (m,)."""
        self.size = len(exits)
        self.componentwise = False
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        data = offdiagonal.data / np.repeat(self._leaving, np.diff(offdiagonal.indptr))
        self._jumps = csr_array((data, offdiagonal.indices, offdiagonal.indptr), shape=offdiagonal.shape)

    @cached_property
    def _transposed_jumps(self) -> csr_array:
        return csr_array(self._jumps.T.tocsr())

    def converges(self) -> bool:
        """Whether it finds the expected number of jumps, which is the hardest right-hand side."""
        try:
            self._iterate(np.ones(self.size), transposed=False, tolerance=_USELESS)
        except NoConvergenceError:
            return False
        return True

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        """As in the base class. Raises NoConvergenceError."""
        jumps = self._transposed_jumps if transposed else self._jumps
        scaled = rhs if transposed else rhs / self._leaving[:, None]
        solution = np.zeros_like(scaled)
        for _ in range(1 + (_REFINEMENTS if tolerance is None else 0)):
            residual = scaled - solution + jumps @ solution
            found = [self._iterate(r, transposed=transposed, tolerance=tolerance or TOLERANCE) for r in residual.T]
            solution = solution + np.stack(found, axis=1)
        if tolerance is None:
            solution = np.maximum(solution, 0.0)
        return solution / self._leaving[:, None] if transposed else solution

    def _iterate(self, rhs: Floats, *, transposed: bool, tolerance: float) -> Floats:
        jumps = self._transposed_jumps if transposed else self._jumps
        with np.errstate(all="ignore"):  # an iteration that diverges overflows; it is then not used
            found, ratio = bicgstab(lambda x: x - jumps @ x, rhs, tolerance=tolerance)
        if not ratio <= _USELESS:
            raise NoConvergenceError(f"the iteration for {self.size} states did not converge in {_ITERATIONS} steps")
        return found
