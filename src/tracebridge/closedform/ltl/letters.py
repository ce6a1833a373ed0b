"""What operands are true in the states of a chain, as letters of an alphabet, and which letters follow each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Mask = NDArray[np.bool_]
    Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Letters:
    """The letters of the states of a chain.

    Attributes:
        truth: the different rows of truth values, shape (letters, operands).
        of_state: the letter of each state, shape (n,).
        followers: for each letter, ascending, the letters of the successors of its states; none if it does not occur.
    """

    truth: Mask
    of_state: Integers
    followers: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, operands: Sequence[Mask], matrix: csr_array) -> Letters:
        """The letters of operands, each of shape (n,)."""
        n = matrix.shape[0]
        rows = np.stack(operands, axis=1) if operands else np.zeros((n, 0), dtype=np.bool_)
        packed = np.packbits(rows, axis=1) if operands else np.zeros((n, 1), dtype=np.uint8)
        _, first, of_state = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        of_state = of_state.ravel()
        return cls(rows[first], of_state, _followers(of_state, len(first), matrix))

    def restricted(self, states: Integers, matrix: csr_array) -> Letters:
        """The same letters on some states only, with the transitions among them."""
        of_state = self.of_state[states]
        return Letters(self.truth, of_state, _followers(of_state, len(self.truth), matrix))


def _followers(of_state: Integers, count: int, matrix: csr_array) -> tuple[tuple[int, ...], ...]:
    sources = np.repeat(of_state, np.diff(matrix.indptr))
    pairs = np.unique(sources * count + of_state[matrix.indices])
    starts = np.searchsorted(pairs, np.arange(count + 1) * count)
    following = (pairs % count).tolist()
    return tuple(tuple(following[a:b]) for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
