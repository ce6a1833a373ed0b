"""RunFlow: how many runs pass from where to where, in integers.

A run is a closed walk: it enters from outside, passes through its steps and leaves again; a run without a step goes
from outside to outside. Summed over runs this is a circulation: everywhere, and outside too, as much enters as leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: The passages of one flow sum to less than this, so that sums of a few flows stay far from the ends of int64.
MAX_TOTAL = 2**60


@dataclass(frozen=True, slots=True, eq=False)
class RunFlow:
    """Counts of passages among ``m`` places and the outside, which is the last row and column.

    Attributes:
        passages: CSR int64, shape (m + 1, m + 1), canonical: indices ascending, no zeros stored.

    Raises:
        ModelError: for a negative count, a total of 2^60 or more, or a place where more enter than leave.
    """

    passages: csr_array

    def __post_init__(self) -> None:
        matrix = csr_array(self.passages, dtype=np.int64, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
            raise ModelError(f"passages need a square matrix with a row for the outside, not shape {matrix.shape}")
        if matrix.nnz and matrix.data.min() < 0:
            raise ModelError(f"a count is negative: {matrix.data.min()}")
        if matrix.data.sum(dtype=np.float64) >= MAX_TOTAL:
            raise ModelError("the counts are too large: their sum must stay below 2^60")
        surplus = np.zeros(matrix.shape[0], dtype=np.int64)  # entries less departures
        np.add.at(surplus, matrix.indices, matrix.data)
        surplus -= np.diff(np.append(0, np.cumsum(matrix.data))[matrix.indptr])
        for place in np.flatnonzero(surplus).tolist():
            where = "outside" if place == matrix.shape[0] - 1 else f"place {place}"
            raise ModelError(f"{where}: entries minus departures is {int(surplus[place])}, which must be 0")
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        object.__setattr__(self, "passages", matrix)

    @classmethod
    def none(cls, size: int) -> RunFlow:
        """No run at all, over ``size`` places."""
        return cls(csr_array((size + 1, size + 1), dtype=np.int64))

    @classmethod
    def from_entries(cls, sources: ArrayLike, targets: ArrayLike, counts: ArrayLike, size: int) -> RunFlow:
        """From passages as three arrays of one length; equal pairs add up; ``size`` denotes the outside."""
        coordinates = (np.asarray(sources, dtype=np.int64), np.asarray(targets, dtype=np.int64))
        counts = np.asarray(counts, dtype=np.int64)
        return cls(csr_array((counts, coordinates), shape=(size + 1, size + 1)))

    @classmethod
    def from_paths(cls, codes: NDArray[np.integer], offsets: NDArray[np.integer], size: int) -> RunFlow:
        """From paths laid end to end: run ``r`` visits the places ``codes[offsets[r]:offsets[r + 1]]``."""
        walk = closed_walk(codes, offsets, size).astype(np.int64, copy=False)
        cells = (size + 1) ** 2
        if cells > len(walk):  # a table would be mostly empty
            return cls.from_entries(walk[:-1], walk[1:], np.ones(len(walk) - 1, dtype=np.int64), size)
        table = np.bincount(walk[:-1] * (size + 1) + walk[1:], minlength=cells)
        return cls(csr_array(table.reshape(size + 1, size + 1)))

    @property
    def size(self) -> int:
        """The number of places m."""
        return int(self.passages.shape[0]) - 1

    @property
    def transitions(self) -> csr_array:
        """Passages from step to step, CSR, shape (m, m)."""
        return self.passages[: self.size, : self.size]

    @property
    def starts(self) -> NDArray[np.int64]:
        """Runs by their first place, shape (m,)."""
        return np.asarray(self.passages[[self.size], :].toarray()).ravel()[: self.size]

    @property
    def ends(self) -> NDArray[np.int64]:
        """Runs by their last place, shape (m,)."""
        return np.asarray(self.passages[:, [self.size]].toarray()).ravel()[: self.size]

    @property
    def n_empty(self) -> int:
        """Runs without a step."""
        return int(self.passages[self.size, self.size])

    @property
    def visits(self) -> NDArray[np.int64]:
        """Steps at each place, shape (m,)."""
        return np.asarray(self.passages.sum(axis=1)).ravel()[: self.size]

    @property
    def n_runs(self) -> int:
        """All runs."""
        return int(np.asarray(self.passages.sum(axis=1)).ravel()[self.size])

    @property
    def n_steps(self) -> int:
        """All steps of all runs."""
        return int(self.visits.sum())

    def __add__(self, other: RunFlow) -> RunFlow:
        if not isinstance(other, RunFlow):
            return NotImplemented
        return RunFlow(self.passages + other.passages)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunFlow):
            return NotImplemented
        a, b = self.passages, other.passages
        return a.shape == b.shape and all(
            np.array_equal(getattr(a, part), getattr(b, part)) for part in ("indptr", "indices", "data")
        )

    def __hash__(self) -> int:
        return hash((self.size, self.n_runs, self.n_steps, self.passages.nnz))

    def relabelled(self, targets: ArrayLike, size: int) -> RunFlow:
        """The flow after place ``i`` became ``targets[i]`` among ``size`` places; places sent to one target merge."""
        moved = np.append(np.asarray(targets, dtype=np.int64), size)
        if size == self.size and np.array_equal(moved, np.arange(size + 1)):
            return self
        rows, columns = self.passages.tocoo().coords
        return RunFlow.from_entries(moved[rows], moved[columns], self.passages.data, size)


def closed_walk(codes: NDArray[np.integer], offsets: NDArray[np.integer], outside: int) -> NDArray[np.int64]:
    """All runs as one walk that passes ``outside`` before, between and after them, shape (n_steps + n_runs + 1,)."""
    n_runs = len(offsets) - 1
    walk = np.full(len(codes) + n_runs + 1, outside, dtype=np.int64)
    run_of_step = np.repeat(np.arange(n_runs), np.diff(offsets))
    walk[np.arange(len(codes)) + run_of_step + 1] = codes
    return walk
