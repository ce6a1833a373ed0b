"""One number with a rigorous bound on what rounding did to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from tracebridge.html_table import html_table

Real = Fraction | float


@dataclass(frozen=True, slots=True)
class Enclosure:
    """A number known to lie in ``[lower, upper]``; infinity is a value, NaN means undefined.

    Raises:
        ValueError: unless ``lower <= value <= upper``, or value is NaN between ``-inf`` and ``inf``.
    """

    value: Real
    lower: Real
    upper: Real

    def __post_init__(self) -> None:
        if self.undefined:
            if (self.lower, self.upper) != (-math.inf, math.inf):
                raise ValueError("an undefined number has the bounds -inf and inf")
        elif not self.lower <= self.value <= self.upper:
            raise ValueError(f"{self.value!r} does not lie in [{self.lower!r}, {self.upper!r}]")

    @classmethod
    def exactly(cls, value: Real) -> Enclosure:
        """The number itself; an int or Fraction stays rational, NaN becomes the undefined number."""
        if isinstance(value, float):
            return cls(value, -math.inf, math.inf) if math.isnan(value) else cls(value, value, value)
        fraction = Fraction(value)
        return cls(fraction, fraction, fraction)

    @property
    def undefined(self) -> bool:
        """Whether there is no such number."""
        return isinstance(self.value, float) and math.isnan(self.value)

    @property
    def exact(self) -> bool:
        """Whether this is a rational or an infinity, known without any rounding."""
        return isinstance(self.value, Fraction) or (math.isinf(self.value) and self.lower == self.upper)

    @property
    def width(self) -> Real:
        """``upper - lower``; zero for an infinity that is certain, NaN where undefined."""
        if self.undefined:
            return math.nan
        return Fraction(0) if self.exact else self.upper - self.lower

    def _repr_html_(self) -> str:
        return html_table(("value", "lower bound", "upper bound"), [(self.value, self.lower, self.upper)])

    def __contains__(self, number: Real) -> bool:
        return bool(self.lower <= number <= self.upper)
