"""Elimination of a narrow band in compiled code (LAPACK): birth-death chains and pipelines that are numbered in order.

It is the transpose of ``I - J`` that is eliminated: every column then has its largest entry on the diagonal and keeps
it there, so that partial pivoting exchanges nothing and the band stays as narrow as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import lapack

from tracebridge.closedform.linear_solver import Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float64]
    Substitute = Callable[[Floats, str], Floats]

#: How far from its state a successor may be; a band of more than this is no better than a sparse matrix.
WIDEST = 8


class BandElimination(Factorization):
    """``(I - J)^T = L U`` for the jump chain J, whose rows are those of the matrix over the mass that leaves."""

    def __init__(self, offdiagonal: csr_array, exits: Floats) -> None:
        """Factorize.

        Args:
            offdiagonal: shape (m, m), no diagonal, of a small `bandwidth`. exits: shape (m,).

        Raises:
            EngineError: if a pivot is zero in doubles.
        """
        self.size = m = len(exits)
        self.componentwise = True  # but for what pivots lose, as in `sparse_lu`
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        width = bandwidth(offdiagonal)
        rows = _rows(offdiagonal)
        system = np.zeros((2 * width + 1, m))  # entry (i, j) of I - J is at [j - i + width, i]
        system[width] = 1.0
        system[offdiagonal.indices - rows + width, rows] = -offdiagonal.data / self._leaving[rows]
        substitute = _tridiagonal(system) if width == 1 and m > 2 else _banded(system, width)
        if substitute is None:
            raise EngineError(f"the linear system of {m} states could not be eliminated: a pivot is zero in doubles")
        self._substitute = substitute

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:  # noqa: ARG002 - no iteration
        if transposed:
            return self._substitute(rhs, "N") / self._leaving[:, None]
        return self._substitute(rhs / self._leaving[:, None], "T")


def _banded(system: Floats, width: int) -> Substitute | None:
    """Substitution for ``(I - J)^T``, "N", or its transpose, "T"; None if a pivot is zero."""
    band = np.zeros((3 * width + 1, system.shape[1]), order="F")  # with room for exchanges
    band[width:] = system
    factors, exchanges, failed = lapack.dgbtrf(band, width, width, overwrite_ab=True)
    if failed:
        return None
    return lambda rhs, side: np.asarray(lapack.dgbtrs(factors, width, width, rhs, exchanges, trans=int(side == "T"))[0])


def _tridiagonal(system: Floats) -> Substitute | None:
    """The same for one entry on each side, many times faster; scipy does not take it for two states."""
    *factors, failed = lapack.dgttrf(system[2, :-1], system[1], system[0, 1:])
    if failed:
        return None
    return lambda rhs, side: np.asarray(lapack.dgttrs(*factors, rhs, trans=side)[0])


def bandwidth(pattern: csr_array) -> int:
    """How far an entry is from the diagonal at most."""
    return int(np.abs(pattern.indices - _rows(pattern)).max(initial=0))


def _rows(matrix: csr_array) -> NDArray[np.integer]:
    return np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
