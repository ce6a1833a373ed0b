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
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Floats = NDArray[np.float64]

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
        self._width = width = bandwidth(offdiagonal)
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        rows = _rows(offdiagonal)
        band = np.zeros((3 * width + 1, m), order="F")
        band[2 * width] = 1.0
        band[2 * width + (offdiagonal.indices - rows), rows] = -offdiagonal.data / self._leaving[rows]
        self._factors, self._exchanges, failed = lapack.dgbtrf(band, width, width, overwrite_ab=True)
        if failed:
            raise EngineError(f"the linear system of {m} states could not be eliminated: a pivot is zero in doubles")

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:  # noqa: ARG002 - no iteration
        scaled = rhs if transposed else rhs / self._leaving[:, None]
        solution, _ = lapack.dgbtrs(
            self._factors, self._width, self._width, scaled, self._exchanges, trans=0 if transposed else 1
        )
        return np.asarray(solution / self._leaving[:, None] if transposed else solution)


def bandwidth(pattern: csr_array) -> int:
    """How far an entry is from the diagonal at most."""
    return int(np.abs(pattern.indices - _rows(pattern)).max(initial=0))


def _rows(matrix: csr_array) -> NDArray[np.integer]:
    return np.repeat(np.arange(matrix.shape[0], dtype=matrix.indices.dtype), np.diff(matrix.indptr))
