"""Exact probabilities: integers over one common denominator per row.

A chain fitted from counts has such rows by nature, and row sums are checked in integers. Arrays hold int64 where every
number fits and Python integers (dtype object) where one does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SAFE = 2**31  # sums and products with small factors stay inside int64 below this


def _integers(values: Sequence[int] | NDArray[Any]) -> NDArray[Any]:
    """The values as int64 if all are small, else as Python integers; read-only."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and np.all((values > -_SAFE) & (values < _SAFE)):
        copy = values.ravel().copy()
        copy.flags.writeable = False
        return copy
    array = np.asarray(values, dtype=object)
    flat = [int(value) for value in array.ravel().tolist()]
    small = all(-_SAFE < value < _SAFE for value in flat)
    result = np.array(flat, dtype=np.int64) if small else np.empty(len(flat), dtype=object)
    if not small:
        result[:] = flat
    result.flags.writeable = False
    return result


def _quotients(numerators: NDArray[Any], denominators: NDArray[Any]) -> NDArray[np.float64]:
    """Correctly rounded quotients: int64 below 2^31 are exact doubles, and Python's int / int rounds correctly."""
    if numerators.dtype != object and denominators.dtype != object:
        return np.asarray(numerators / denominators, dtype=np.float64)
    pairs = zip(numerators.tolist(), denominators.tolist(), strict=True)
    return np.array([top / bottom for top, bottom in pairs], dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class RationalVector:
    """A vector of rationals over one denominator, shape (n,)."""

    numerators: NDArray[Any]
    denominator: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "numerators", _integers(self.numerators))
        if self.denominator <= 0:
            raise ValueError(f"the denominator must be positive, not {self.denominator}")

    @classmethod
    def from_fractions(cls, values: Sequence[Fraction | int]) -> RationalVector:
        """The same numbers over their least common denominator."""
        fractions = [Fraction(value) for value in values]
        denominator = lcm(*(value.denominator for value in fractions)) if fractions else 1
        return cls(np.array([int(value * denominator) for value in fractions], dtype=object), denominator)

    def __len__(self) -> int:
        return len(self.numerators)

    def to_fractions(self) -> list[Fraction]:
        """The entries as Fractions."""
        return [Fraction(top, self.denominator) for top in self.numerators.tolist()]

    def to_float(self) -> NDArray[np.float64]:
        """The entries, each correctly rounded."""
        return _quotients(self.numerators, _integers([self.denominator] * len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class RationalMatrix:
    """A sparse matrix of rationals in CSR layout; row ``i`` has the single denominator ``denominators[i]``.

    Attributes:
        indptr: shape (n_rows + 1,). indices: shape (nnz,), ascending in each row, no duplicates.
        numerators: shape (nnz,), none zero. denominators: shape (n_rows,), positive.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    numerators: NDArray[Any]
    denominators: NDArray[Any]
    n_columns: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "numerators", _integers(self.numerators))
        object.__setattr__(self, "denominators", _integers(self.denominators))
        for name in ("indptr", "indices"):
            array = np.array(getattr(self, name), dtype=np.int64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def from_rows(cls, rows: Sequence[dict[int, Fraction]], n_columns: int | None = None) -> RationalMatrix:
        """From one mapping ``column -> probability`` a row; zero entries are left out."""
        indptr: list[int] = [0]
        indices: list[int] = []
        numerators: list[int] = []
        denominators: list[int] = []
        for row in rows:
            entries = {column: Fraction(value) for column, value in sorted(row.items()) if value != 0}
            denominator = lcm(*(value.denominator for value in entries.values())) if entries else 1
            indices.extend(entries)
            numerators.extend(int(value * denominator) for value in entries.values())
            denominators.append(denominator)
            indptr.append(len(indices))
        return cls(
            np.array(indptr, dtype=np.int64),
            np.array(indices, dtype=np.int64),
            np.array(numerators, dtype=object),
            np.array(denominators, dtype=object),
            len(rows) if n_columns is None else n_columns,
        )

    @classmethod
    def from_float(cls, matrix: csr_array) -> RationalMatrix:
        """The chain that rows of doubles denote: every double taken exactly, each row divided by its exact sum.

        The sum of correctly rounded probabilities is 1 only up to rounding; dividing by it changes no entry by
        more than that. ``matrix`` is in canonical CSR form with positive entries.
        """
        numerators: list[int] = []
        denominators: list[int] = []
        data = matrix.data.tolist()
        for start, end in zip(matrix.indptr[:-1].tolist(), matrix.indptr[1:].tolist(), strict=True):
            ratios = [value.as_integer_ratio() for value in data[start:end]]
            common = max((bottom for _, bottom in ratios), default=1)  # denominators of doubles are powers of two
            row = [top * (common // bottom) for top, bottom in ratios]
            numerators.extend(row)
            denominators.append(sum(row) or 1)
        return cls(
            np.asarray(matrix.indptr),
            np.asarray(matrix.indices),
            np.array(numerators, dtype=object),
            np.array(denominators, dtype=object),
            int(matrix.shape[1]),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.indptr) - 1, self.n_columns

    @property
    def row_of_entry(self) -> NDArray[np.int64]:
        """The row of each stored entry, shape (nnz,)."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))

    def row_sums(self) -> NDArray[Any]:
        """Sums of the numerators of each row, exact, shape (n_rows,)."""
        sums = np.zeros(self.shape[0], dtype=self.numerators.dtype)
        filled = np.flatnonzero(np.diff(self.indptr))
        if len(filled):
            sums[filled] = np.add.reduceat(self.numerators, self.indptr[:-1][filled])
        return sums

    def row(self, index: int) -> dict[int, Fraction]:
        """One row as ``column -> probability``, ascending."""
        span = slice(int(self.indptr[index]), int(self.indptr[index + 1]))
        bottom = int(self.denominators[index])
        pairs = zip(self.indices[span].tolist(), self.numerators[span].tolist(), strict=True)
        return {column: Fraction(top, bottom) for column, top in pairs}

    def to_float(self) -> csr_array:
        """The same matrix in doubles, each entry correctly rounded."""
        data = _quotients(self.numerators, self.denominators[self.row_of_entry])
        return csr_array((data, self.indices.copy(), self.indptr.copy()), shape=self.shape)
