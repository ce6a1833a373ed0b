"""What statistics would be if the null hypothesis held, from replicates, and what the observed ones are against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Values closer than this are ties: equal corpora may add up their logarithms in another order.
_TIE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NullDistribution:
    """Observed statistics among replicates of them, s of them, large is bad.

    The largest standardised statistic (maxZ) is the joint test. For it the observed corpus is one more replicate, in
    means and deviations too, so that under the null every one of them is equally likely to be the largest.

    Attributes:
        observed: shape (s,). replicates: shape (B, s).
        p_values: (1 + replicates at least as large) / (B + 1), for each statistic, shape (s,).
        p: the same for maxZ.
        mean, spread: of each statistic over the replicates, shape (s,).
        critical: each statistic's value at which it alone would make p reach ``level``, shape (s,).

    Raises:
        UsageError: for no replicates.
    """

    observed: NDArray[np.float64]
    replicates: NDArray[np.float64]
    level: float = 0.05
    p_values: NDArray[np.float64] = field(init=False)
    p: float = field(init=False)
    mean: NDArray[np.float64] = field(init=False)
    spread: NDArray[np.float64] = field(init=False)
    critical: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        number = len(self.replicates)
        if not number:
            raise UsageError("a test needs replicates")
        everything = np.vstack([self.observed, self.replicates])
        centre, scale = everything.mean(axis=0), everything.std(axis=0)
        varies = scale > _TIE
        z = np.where(varies, (everything - centre) / np.where(varies, scale, 1.0), 0.0)
        largest = z.max(axis=1)
        set_ = object.__setattr__
        set_(self, "p_values", (everything >= self.observed - _TIE).mean(axis=0))
        set_(self, "p", float((largest >= largest[0] - _TIE).mean()))
        set_(self, "mean", self.replicates.mean(axis=0))
        set_(self, "spread", self.replicates.std(axis=0))
        quantile = np.quantile(largest[1:], 1 - self.level, method="higher")
        set_(self, "critical", self.mean + quantile * self.spread)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted for testing all of them (Holm, 1979, Scandinavian Journal of Statistics 6, 65-70)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted
