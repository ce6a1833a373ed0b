"""Truth values that rounding may leave open: a formula holds *surely*, *possibly*, or not at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Truths:
    """Where a formula surely and where it possibly holds, shape (n + 1,) each; the last entry is the start."""

    surely: Mask
    possibly: Mask

    def __invert__(self) -> Truths:
        return Truths(~self.possibly, ~self.surely)

    def __and__(self, other: Truths) -> Truths:
        return Truths(self.surely & other.surely, self.possibly & other.possibly)

    def __or__(self, other: Truths) -> Truths:
        return Truths(self.surely | other.surely, self.possibly | other.possibly)

    def iff(self, other: Truths) -> Truths:
        """Both hold or neither does."""
        return (self & other) | (~self & ~other)

    @property
    def certain(self) -> bool:
        """No state is undecided (the start is not looked at)."""
        return bool((self.surely == self.possibly)[:-1].all())

    @property
    def states(self) -> Truths:
        """The same in the states alone, shape (n,)."""
        return Truths(self.surely[:-1], self.possibly[:-1])
