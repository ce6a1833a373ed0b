"""Sparse matrices whose entries may be rationals, which scipy has none of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """A sparse matrix of doubles, Fractions or integers; multiplies from both sides in any of them.

    Attributes:
        rows, columns: shape (nnz,). values: shape (nnz,), float64 or object.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: Array
    shape: tuple[int, int]

    def right(self, x: Array) -> Array:
        """``A x``; x of shape (n,) or (n, k)."""
        return gathered(self.rows, self.values, x[self.columns], self.shape[0])

    def left(self, x: Array) -> Array:
        """``x A``; x of shape (n,)."""
        return gathered(self.columns, self.values, x[self.rows], self.shape[1])


def gathered(into: NDArray[np.int64], values: Array, factors: Array, length: int) -> Array:
    """``sum values * factors`` over the positions with the same ``into``; shape (length,) or (length, k)."""
    if values.dtype == object:
        total = np.zeros((length, *factors.shape[1:]), dtype=object)
        np.add.at(total, into, values.reshape(-1, *[1] * (factors.ndim - 1)) * factors)
        return total
    if factors.ndim == 1:
        return np.bincount(into, weights=values * factors, minlength=length)
    columns = [np.bincount(into, weights=values * column, minlength=length) for column in factors.T]
    return np.stack(columns, axis=1) if columns else np.zeros((length, 0))


def object_array(values: Sequence[Any]) -> Array:
    """Any values as an array of Python objects, shape (n,)."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
