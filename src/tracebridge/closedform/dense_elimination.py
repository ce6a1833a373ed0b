"""Elimination of a full matrix without subtraction, in blocks, so that matrix products do the work.

One thread does it. The products are too small for more: threads of a BLAS that wait for one another cost up to ten
times as much, on a machine with other work, as they gain on one without; and sums then have an order of their own.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import ThreadpoolController

from tracebridge.closedform.linear_solver import Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_BLOCK = 64
_ROWS = 512


class DenseElimination(Factorization):
    """The algorithm of Grassmann, Taksar and Heyman: state k is censored, its mass flows on to the states after it.

    ``I - Q = L U`` with the mass that leaves each state, among the states that are left, on the diagonal of U. Both
    factors are M-matrices, so that substitution, too, only adds.
    """

    def __init__(self, offdiagonal: Floats, exits: Floats) -> None:
        """Takes over ``offdiagonal``, shape (m, m), whose diagonal is ignored; ``exits`` has shape (m,).

        Raises:
            EngineError: if the mass that leaves a state is beyond the range of doubles.
        """
        self.size = len(exits)
        self.componentwise = True
        factors = np.ascontiguousarray(offdiagonal)
        remaining = exits.copy()
        # Overflow is found out at the next pivot, or in the solution.
        with np.errstate(over="ignore", invalid="ignore"), _one_thread(self.size):
            for start in range(0, len(exits), _BLOCK):
                _censor_block(factors, remaining, slice(start, min(start + _BLOCK, len(exits))))
        diagonal = factors.diagonal().copy()
        np.negative(factors, out=factors)
        np.fill_diagonal(factors, diagonal)
        self._factors = factors

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:  # noqa: ARG002 - no iteration
        with _one_thread(self.size):
            if transposed:
                upper = solve_triangular(self._factors, rhs, trans="T", check_finite=False)
                return np.asarray(
                    solve_triangular(
                        self._factors, upper, lower=True, unit_diagonal=True, trans="T", check_finite=False
                    )
                )
            lower = solve_triangular(self._factors, rhs, lower=True, unit_diagonal=True, check_finite=False)
            return np.asarray(solve_triangular(self._factors, lower, check_finite=False))


def _one_thread(size: int) -> AbstractContextManager[Any]:
    """Within it the BLAS has one thread, where it would take more."""
    return nullcontext() if size <= _BLOCK else _threads().limit(limits=1, user_api="blas")


@cache
def _threads() -> Any:
    return ThreadpoolController()  # which looks for the libraries that are loaded


def _censor_block(factors: Floats, remaining: Floats, block: slice) -> None:
    """Censor the states of a block, in place; for those inside it what lies behind the block is one more exit."""
    own = factors[block, block]
    behind = slice(block.stop, len(factors))
    outside = factors[block, behind].sum(axis=1) + remaining[block]
    for k in range(len(own)):
        pivot = own[k, k + 1 :].sum() + outside[k]
        if not 0 < pivot < math.inf:
            raise EngineError(f"the mass leaving state {block.start + k} of the set is beyond the range of doubles")
        own[k, k] = pivot
        shares = own[k + 1 :, k] / pivot
        own[k + 1 :, k] = shares
        own[k + 1 :, k + 1 :] += np.outer(shares, own[k, k + 1 :])
        outside[k + 1 :] += shares * outside[k]
    if block.stop == len(factors):
        return
    onward = np.column_stack([factors[block, behind], remaining[block]])
    onward = solve_triangular(-own, onward, lower=True, unit_diagonal=True, check_finite=False)
    pivots = own.diagonal().copy()
    upper = -own
    np.fill_diagonal(upper, pivots)
    shares = solve_triangular(upper, factors[behind, block].T, trans="T", check_finite=False).T
    factors[block, behind] = onward[:, :-1]
    factors[behind, block] = shares
    for start in range(block.stop, len(factors), _ROWS):  # the product of all rows would need as much memory again
        rows = slice(start, min(start + _ROWS, len(factors)))
        factors[rows, behind] += shares[rows.start - block.stop : rows.stop - block.stop] @ onward[:, :-1]
    remaining[behind] += shares @ onward[:, -1]
