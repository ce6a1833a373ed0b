"""Sparse elimination in compiled code (SuperLU), where the shape of a graph promises that it stays sparse.

Pivots are taken from the diagonal in an order that is chosen for sparsity: an M-matrix needs no other. They are formed
by subtraction, so that digits are lost where a run moves among the states for very long; the solutions are steps of a
refinement that is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from tracebridge.closedform.linear_solver import Factorization
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

#: So many entries a state may be filled in for elimination in the order of the states to be taken at once.
NARROW = 40

#: What elimination in a banded order may cost at most: entries, and entries times the width of the band. Elimination
#: in the order of least degree, which is the one that is used, takes much less where this is much.
MOST_ENTRIES = 150_000_000
MOST_WORK = 30_000_000_000


class SparseLU(Factorization):
    """``I - J = L U`` for the jump chain J, whose rows are those of the matrix over the mass that leaves."""

    def __init__(self, offdiagonal: csr_array, exits: Floats, *, keep_order: bool) -> None:
        """Factorize.

        Args:
            offdiagonal: shape (m, m), no diagonal. exits: shape (m,).
            keep_order: eliminate the states in their order instead of one found by least degree.

        Raises:
            EngineError: if a pivot is zero in doubles or memory ends.
        """
        self.size = m = len(exits)
        self.componentwise = True  # but for what pivots lose; the right-hand sides of a proof are not negative
        self._leaving = np.asarray(offdiagonal.sum(axis=1)).ravel() + exits
        matrix = _jump_system(offdiagonal, self._leaving)
        try:
            self._factors = splu(
                matrix,
                permc_spec="NATURAL" if keep_order else "MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True, "Equil": False},
            )
        except (RuntimeError, MemoryError) as error:
            raise EngineError(f"the linear system of {m} states could not be eliminated: {error}") from error

    def _solve(self, rhs: Floats, *, transposed: bool, tolerance: float | None) -> Floats:  # noqa: ARG002 - no iteration
        if transposed:
            return np.asarray(self._factors.solve(rhs)) / self._leaving[:, None]
        return np.asarray(self._factors.solve(rhs / self._leaving[:, None], trans="T"))


def band_entries(pattern: csr_array, limit: float = np.inf) -> float:
    """An upper bound of the entries of L and U if the states are eliminated in their order: the envelope.

    Above the limit it may be any number above the limit.
    """
    m = pattern.shape[0]
    lengths = np.diff(pattern.indptr)
    filled = np.flatnonzero(lengths)
    first_in_row = np.arange(m)
    if len(filled):
        least = np.minimum.reduceat(pattern.indices, pattern.indptr[filled])
        first_in_row[filled] = np.minimum(filled, least)
    lower = float((np.arange(m) - first_in_row).sum())
    if lower > limit:
        return lower
    first_in_column = np.arange(m)
    np.minimum.at(first_in_column, pattern.indices, np.repeat(np.arange(m), lengths))
    return lower + float((np.arange(m) - first_in_column).sum())


def is_narrow(pattern: csr_array) -> bool:
    """Whether elimination in the order of the states is cheap: corridors, birth-death chains, pipelines."""
    m: int = pattern.shape[0]
    return band_entries(pattern, NARROW * m) <= NARROW * m


def is_affordable(pattern: csr_array) -> bool:
    """Whether elimination surely stays within `MOST_ENTRIES` and `MOST_WORK` in a banded order."""
    m: int = pattern.shape[0]
    limit = min(MOST_ENTRIES, float(np.sqrt(MOST_WORK * m)))
    if band_entries(pattern, limit) <= limit:
        return True
    order = reverse_cuthill_mckee(pattern)
    return band_entries(csr_array(pattern[order][:, order]), limit) <= limit


def _jump_system(offdiagonal: csr_array, leaving: Floats) -> csr_array:
    """``(I - J)^T`` in CSC layout, which is ``I - J`` in CSR layout."""
    data = offdiagonal.data / np.repeat(leaving, np.diff(offdiagonal.indptr))
    jumps = csr_array((data, offdiagonal.indices, offdiagonal.indptr), shape=offdiagonal.shape)
    return csr_array(eye_array(len(leaving), format="csr") - jumps).T
