"""Where values that only rise, or only fall, with a bound cross a threshold, and what is then the quantile.

Bounds are counted in units from 0 on. The crossing is that of a comparison which holds from some bound on: the
threshold's where large bounds satisfy it, else its opposite. Each state has one, and so has the start, whose value is
the mean of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.bounds import problem_at
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import PropertyError
from tracebridge.pctl.ast import Number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tracebridge.pctl.ast import Comparison, Quantile

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

_OPPOSITE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What is looked for; vectors of `with_start` have the n states and then the start.

    Attributes:
        threshold: what is crossed. comparison: that holds from the crossing on. rising: whether values rise.
        satisfied_beyond: whether it is the large bounds that satisfy the operator.
        unit: what a count of one is. weights: of the states at the start, shape (n,), sum one.
    """

    threshold: Fraction
    comparison: Comparison
    rising: bool
    satisfied_beyond: bool
    unit: Fraction
    weights: tuple[Fraction, ...]

    @classmethod
    def of(cls, asked: Quantile, *, rising: bool, unit: Fraction, weights: Sequence[Fraction | float]) -> Crossing:
        """Raises PropertyError for a quantile without a number as its threshold."""
        threshold = asked.operator.threshold
        if threshold is None:
            raise PropertyError(problem_at("a quantile needs a threshold, such as P>=0.9", None, asked.span))
        if not isinstance(threshold.value, Number):
            raise PropertyError(f"the threshold of a quantile must be a number here, not {threshold.value}")
        satisfied_beyond = (threshold.comparison in {">", ">="}) == rising
        return cls(
            threshold=threshold.value.value,
            comparison=threshold.comparison if satisfied_beyond else _OPPOSITE[threshold.comparison],
            rising=rising,
            satisfied_beyond=satisfied_beyond,
            unit=unit,
            weights=tuple([Fraction(weight) for weight in weights]),
        )

    @property
    def support(self) -> NDArray[np.int64]:
        """The start states."""
        return np.flatnonzero(np.array([weight > 0 for weight in self.weights]))

    def compare(self, x: EnclosureVector) -> tuple[Mask, Mask]:
        """Where the values surely, and where they possibly, are across the threshold."""
        return x.compare(self.comparison, self.constant(x))

    def never(self, limit: EnclosureVector, approached: Mask) -> Mask:
        """Where no bound is across the threshold for certain.

        Args:
            limit: what the values tend to, with the start. approached: shape (n,), where no bound attains it.
        """
        at_start = approached[self.support].any()
        beyond: Comparison = ">" if self.rising else "<"
        # A limit that is only approached must lie beyond the threshold; one at it is never reached.
        return ~np.where(
            np.append(approached, at_start),
            limit.compare(beyond, self.constant(limit))[1],
            self.compare(limit)[1],
        )

    def constant(self, like: EnclosureVector) -> EnclosureVector:
        """The threshold in every entry."""
        return EnclosureVector.constant(len(like), self.threshold, exact=like.exact)

    def with_start(self, x: EnclosureVector) -> EnclosureVector:
        """The values with their mean at the start appended."""
        support = self.support
        if len(support) == 1:
            return x.take(np.append(np.arange(len(x)), support))
        mean = x.take(support).weighted_mean([self.weights[i] for i in support.tolist()])
        if x.exact:
            return EnclosureVector.from_fractions([*x.value.tolist(), mean.value])
        tail = EnclosureVector.from_enclosures([mean]).to_float()
        return EnclosureVector(
            *(np.append(getattr(x, part), getattr(tail, part)) for part in ("value", "lower", "upper"))
        )

    def quantiles(self, lower: Floats, upper: Floats, *, exact: bool) -> tuple[EnclosureVector, Enclosure]:
        """The quantile in every state and that of the start, for crossings between these counts, shape (n + 1,)."""
        found = [self._bound_at(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
        values = EnclosureVector.from_enclosures(found[:-1])
        return (values, found[-1]) if exact else (values.to_float(), _in_doubles(found[-1]))

    def _bound_at(self, lower: float, upper: float) -> Enclosure:
        low, high = (self._bound(count) for count in (lower, upper))
        if math.isnan(low):
            return Enclosure.exactly(math.nan)
        if low == high:
            return Enclosure.exactly(low)
        return Enclosure(directed.down(low), directed.down(low), directed.up(high))

    def _bound(self, count: float) -> Fraction | float:
        if math.isinf(count):
            return math.inf
        if self.satisfied_beyond:
            return int(count) * self.unit
        return (int(count) - 1) * self.unit if count else math.nan


def _in_doubles(number: Enclosure) -> Enclosure:
    if number.undefined:
        return number
    ends = (directed.nearest(number.value), directed.down(number.lower), directed.up(number.upper))
    return Enclosure(*(end + 0.0 for end in ends))  # rounding zero upward gives the other zero


class BoundSearch:
    """The first count at which an entry is across the threshold, by values at single bounds."""

    def __init__(self, crossing: Crossing, values_at: Callable[[int], EnclosureVector], *, surely: bool = True) -> None:
        """``values_at`` gives the values at a count, shape (n,); it is across ``surely``, or possibly."""
        self._crossing = crossing
        self._values_at = values_at
        self._degree = 0 if surely else 1
        self._across: dict[int, Mask] = {}

    def first(self, entry: int, low: int, high: float) -> int:
        """That of one entry of `Crossing.with_start`, which is ``low`` or later, and ``high`` at the latest."""
        stride = 1
        while math.isinf(high):  # it crosses somewhere
            if self._at(low + stride - 1)[entry]:
                high = low + stride - 1
            else:
                low, stride = low + stride, 2 * stride
        while low < high:
            middle = (low + int(high)) // 2
            low, high = (low, middle) if self._at(middle)[entry] else (middle + 1, high)
        return low

    def _at(self, count: int) -> Mask:
        if count not in self._across:
            values = self._crossing.with_start(self._values_at(count))
            self._across[count] = self._crossing.compare(values)[self._degree]
        return self._across[count]


def decided(
    search: BoundSearch, never: Callable[[], Mask], lower: Floats, upper: Floats, *, most: float
) -> tuple[Floats, Floats]:
    """The crossings that doubles left open, shape (n + 1,); those that may lie beyond ``most`` are only told from none.

    Args:
        search: in rationals. never: where no bound is across the threshold. lower, upper: the counts they lie between.
    """
    open_ = lower < upper
    if not open_.any():
        return lower, upper
    lower, upper = lower.copy(), upper.copy()
    nowhere = never()
    lower[nowhere] = upper[nowhere] = np.inf
    for entry in np.flatnonzero(open_ & ~nowhere & (upper <= most)).tolist():
        lower[entry] = upper[entry] = search.first(entry, int(lower[entry]), upper[entry])
    return lower, upper
