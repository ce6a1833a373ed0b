"""A Krylov method for large chains that mix well: a few dozen matrix products, where elimination would fill up."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

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

#: What an iteration in single precision can aim at.
SINGLE_TOLERANCE = 2e-6

#: With fewer entries the matrix stays in the caches of a processor, and single precision gains nothing.
SINGLE_ENTRIES = 2_000_000

_SINGLE_SMALLEST = 1e-30

#: So many steps must bring the residual down by this factor, or the iteration is given up.
_PATIENCE = 16
_PROGRESS = 0.5

#: A solution of which not even one digit is right is none.
_USELESS = 0.1


class NoConvergenceError(EngineError):
    """The iteration does not find a solution in the number of steps that it has."""


def bicgstab(
    apply: Apply, rhs: Floats, precondition: Apply | None = None, *, tolerance: float, precision: Any = np.float64
) -> tuple[Floats, float]:
    """A solution of ``apply(x) = rhs`` and the norm of its residual over that of ``rhs``; shape (m,).

    BiCGSTAB (van der Vorst, SIAM J. Sci. Stat. Comput. 13, 1992) with preconditioning from the right. It ends at the
    tolerance, or where rounding or the matrix lets it come no further; the best solution on the way is returned. In
    between, vectors have the given precision.
    """
    # Only relative sizes matter, and squares of small numbers underflow.
    scale = int(np.frexp(np.abs(rhs).max(initial=0.0))[1])
    residual = np.ldexp(rhs, -scale).astype(precision, copy=False)
    size = math.sqrt(_dot(residual, residual))
    x = np.zeros_like(residual)
    best, best_ratio = x, 1.0
    if size == 0:
        return np.zeros_like(rhs), 0.0
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
        ratio = math.sqrt(_dot(residual, residual)) / size
        if not math.isfinite(ratio):
            break
        if ratio < best_ratio:
            best, best_ratio = x, ratio
        if ratio <= tolerance or omega == 0:
            break
        if step % _PATIENCE == 0:
            if best_ratio > _PROGRESS * milestone:
                break
            milestone = best_ratio
    return np.ldexp(best.astype(np.float64, copy=False), scale), best_ratio


def _dot(a: Floats, b: Floats) -> float:
    """The inner product, always added up in the same order, which the threads of a BLAS do not promise."""
    return float(np.einsum("i,i->", a, b))


class JumpChainIteration(Factorization):
    """BiCGSTAB on the jump chain: rows over the mass that leaves.

    Solutions are accurate relative to their largest component. In single precision they have six digits at most, in
    half the memory, and half the time where the chain is larger than the caches of the processor.
    """

    def __init__(self, offdiagonal: csr_array, exits: Floats, *, single: bool = False) -> None:
        """``offdiagonal`` has shape (m, m) and no diagonal, ``exits`` shape (m,). See `better_in_single`."""
        self.size = len(exits)
        self.componentwise = False
        self._precision = np.float32 if single else np.float64
        self.finest = SINGLE_TOLERANCE if single else TOLERANCE
        self._refinements = 5 if single else 2
        self._offdiagonal = offdiagonal
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        data = offdiagonal.data.astype(self._precision)
        data /= np.repeat(self._leaving.astype(self._precision), np.diff(offdiagonal.indptr))
        self._jumps = csr_array((data, offdiagonal.indices, offdiagonal.indptr), shape=offdiagonal.shape)

    @staticmethod
    def better_in_single(offdiagonal: csr_array, exits: Floats) -> bool:
        """Whether the matrix is large, and its numbers are within the range of single precision."""
        data = offdiagonal.data
        if len(data) < SINGLE_ENTRIES:
            return False
        largest = max(data.max(initial=0.0), exits.max(initial=0.0))
        return bool(data.min(initial=1.0) > _SINGLE_SMALLEST and largest < 1 / _SINGLE_SMALLEST)

    @cached_property
    def _transposed_jumps(self) -> csr_array:
        return csr_array(self._jumps.T.tocsr())

    def converges(self) -> bool:
        """Whether it finds the expected number of jumps, which is the hardest right-hand side."""
        try:
            found = self._iterate(np.ones(self.size), transposed=False, tolerance=_USELESS / 2)
        except NoConvergenceError:
            return False
        missing = 1 - found + self._after_a_jump(found[:, None], transposed=False)[:, 0]
        return bool(_dot(missing, missing) <= _USELESS**2 * self.size)

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:
        """As in the base class. Raises NoConvergenceError."""
        scaled = rhs if transposed else rhs / self._leaving[:, None]
        solution = self._corrections(scaled, TOLERANCE if tolerance is None else tolerance, transposed=transposed)
        if tolerance is None:
            for _ in range(self._refinements):
                residual = scaled - solution + self._after_a_jump(solution, transposed=transposed)
                solution = solution + self._corrections(residual, TOLERANCE, transposed=transposed)
            solution = np.maximum(solution, 0.0)
        return solution / self._leaving[:, None] if transposed else solution

    def _after_a_jump(self, x: Floats, *, transposed: bool) -> Floats:
        """The jump chain applied, in double precision."""
        leaving = self._leaving[:, None]
        product = self._offdiagonal.T @ (x / leaving) if transposed else (self._offdiagonal @ x) / leaving
        return np.asarray(product)

    def _corrections(self, rhs: Floats, tolerance: float, *, transposed: bool) -> Floats:
        return np.stack([self._iterate(column, transposed=transposed, tolerance=tolerance) for column in rhs.T], axis=1)

    def _iterate(self, rhs: Floats, *, transposed: bool, tolerance: float) -> Floats:
        jumps = self._transposed_jumps if transposed else self._jumps
        aim = max(tolerance, self.finest)
        with np.errstate(all="ignore"):  # an iteration that diverges overflows; it is then not used
            found, ratio = bicgstab(lambda x: x - jumps @ x, rhs, tolerance=aim, precision=self._precision)
        if not ratio <= _USELESS:
            raise NoConvergenceError(f"the iteration for {self.size} states did not converge in {_ITERATIONS} steps")
        return found
