"""The equations of a set of transient states in integers.

A chain with rational rows, each row multiplied by its denominator, is a system ``(D - A) x = b`` with ``A >= 0`` and D
diagonal: what leaves a state, in the set and out of it. In integers its residuals are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform.factorization import factorize, require_leaving

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.linear_solver import Factorization

    Integers = NDArray[Any]  # Python integers, dtype object


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntegerSystem:
    """``(I - P[set, set])`` in integers: row i times ``denominators[i]`` is ``diagonal[i] x_i - sum_j a_ij x_j``.

    Attributes:
        rows, columns, entries: the m x m matrix A by coordinates, row by row: positive integers off the diagonal.
        diagonal: the mass that leaves each state, to the set or out of it, shape (m,), positive.
        exits: the mass that leaves the set, shape (m,). denominators: of the rows, shape (m,).
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    entries: Integers
    diagonal: Integers
    exits: Integers
    denominators: Integers

    @classmethod
    def of(cls, P: RationalMatrix, transient: NDArray[np.int64]) -> IntegerSystem:
        """The system of a set of states of P, whose rows sum to one.

        Raises:
            ModelError: if some state of the set can never leave it; the message gives its position in the set.
        """
        return cls.of_rows(rows_of(P, transient), transient)

    @classmethod
    def of_rows(cls, rows: RationalMatrix, transient: NDArray[np.int64]) -> IntegerSystem:
        """As `of`, from the rows of the states in the set alone."""
        m = len(transient)
        position = np.full(rows.n_columns, -1, dtype=np.int64)
        position[transient] = np.arange(m)
        sources = rows.row_of_entry
        targets = position[rows.indices]
        leaving = sources != targets
        outward = leaving & (targets < 0)
        inside = np.flatnonzero(leaving & (targets >= 0))
        numerators = rows.numerators.astype(object)
        diagonal, exits = np.zeros(m, dtype=object), np.zeros(m, dtype=object)
        np.add.at(diagonal, sources[leaving], numerators[leaving])
        np.add.at(exits, sources[outward], numerators[outward])
        system = cls(
            rows=sources[inside],
            columns=targets[inside],
            entries=numerators[inside],
            diagonal=diagonal,
            exits=exits,
            denominators=rows.denominators.astype(object),
        )
        require_leaving(system.pattern(), exits > 0)
        return system

    @property
    def size(self) -> int:
        """The number m of states."""
        return len(self.diagonal)

    def pattern(self) -> csr_array:
        """A sparse matrix of shape (m, m) with ones in the places of A."""
        return self._sparse(np.ones(len(self.entries)))

    def factorize(self) -> Factorization:
        """The jump chain (every row divided by its diagonal) in doubles, each entry correctly rounded.

        Raises:
            EngineError: as `tracebridge.closedform.factorization.factorize`.
        """
        bottoms = self.diagonal[self.rows]
        entries = np.array([a / b for a, b in zip(self.entries.tolist(), bottoms.tolist(), strict=True)])
        exits = np.array([a / b for a, b in zip(self.exits.tolist(), self.diagonal.tolist(), strict=True)])
        return factorize(self._sparse(entries), exits)

    def apply(self, x: Integers, *, transposed: bool = False) -> Integers:
        """``(D - A) x``, or ``(D - A)^T x``, for integers x of shape (m, k)."""
        result = self.diagonal[:, None] * x
        if len(self.entries):
            targets, sources = (self.columns, self.rows) if transposed else (self.rows, self.columns)
            order = np.argsort(targets, kind="stable") if transposed else slice(None)
            products = self.entries[order, None] * x[sources[order]]
            filled, starts = np.unique(targets[order], return_index=True)
            result[filled] -= np.add.reduceat(products, starts, axis=0)
        return result

    def _sparse(self, entries: NDArray[np.float64]) -> csr_array:
        return csr_array((entries, (self.rows, self.columns)), shape=(self.size, self.size))


def rows_of(P: RationalMatrix, states: NDArray[np.int64]) -> RationalMatrix:
    """Some rows of P in this order, with all columns."""
    lengths = np.diff(P.indptr)[states]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    entries = np.repeat(P.indptr[states] - indptr[:-1], lengths) + np.arange(indptr[-1])
    return RationalMatrix(indptr, P.indices[entries], P.numerators[entries], P.denominators[states], P.n_columns)
