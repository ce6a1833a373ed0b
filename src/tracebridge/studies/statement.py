"""Statement: something that a study asserts, with the number it measured and how much of that is chance.

A measured number inside its bounds holds. Outside of them it fails, unless chance would bring a number so far out, or
farther, once in `FAILURE_CHANCE` studies even if the truth were the nearest value that the statement allows; then it is
*within error*, and more replicates will tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom, chi2
from scipy.stats import t as student

from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The one-sided tail of a normal distribution beyond three standard errors.
FAILURE_CHANCE = 0.00135

StatementVerdict = Literal["holds", "within error", "fails"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A measured number and the bounds that it should lie in; either bound may be missing.

    Attributes:
        text: what is asserted, in words. measured: the number. lower, upper: its bounds, inclusive.
        standard_error: of the measured number; of a share it is that which it would have at the nearest bound. 0 for a
            number without chance.
        chance: the probability of such a number, or one farther out, if the truth were the nearest one allowed; 1 for
            a number inside the bounds.
        sample: what was averaged over, in words; empty for a number without chance.
    """

    text: str
    measured: float
    lower: float | None = None
    upper: float | None = None
    standard_error: float = 0.0
    chance: float
    sample: str = ""

    @property
    def verdict(self) -> StatementVerdict:
        """``holds``, ``within error`` or ``fails``."""
        if _nearest(self.measured, self.lower, self.upper) == self.measured:
            return "holds"
        return "within error" if self.chance >= FAILURE_CHANCE else "fails"

    @property
    def bound(self) -> str:
        """The bounds in words, such as ``at most 0.07``, ``0.93 to 0.97``, or ``0.303797 ± 1e-12``."""
        if self.lower is None:
            return f"at most {self.upper:.6g}"
        if self.upper is None:
            return f"at least {self.lower:.6g}"
        if self.lower == self.upper:
            return f"{self.lower:.6g}"
        middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
        if half <= 1e-3 * abs(middle):
            return f"{middle:.6g} ± {half:.1g}"
        return f"{self.lower:.6g} to {self.upper:.6g}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "text": self.text,
            "measured": float(f"{self.measured:.10g}"),
            "lower": self.lower,
            "upper": self.upper,
            "standard_error": float(f"{self.standard_error:.10g}"),
            "chance": float(f"{self.chance:.6g}"),
            "sample": self.sample,
            "verdict": self.verdict,
        }


def fixed(text: str, measured: float, *, lower: float | None = None, upper: float | None = None) -> Statement:
    """A number that follows from its inputs, or the extreme of a sample: outside of its bounds it fails."""
    _require_bounds(lower, upper)
    inside = _nearest(measured, lower, upper) == measured
    return Statement(text=text, measured=measured, lower=lower, upper=upper, chance=1.0 if inside else 0.0)


def equals(text: str, measured: float, expected: float, tolerance: float) -> Statement:
    """A number that must be another, up to a tolerance that covers how that one was rounded."""
    return fixed(text, measured, lower=expected - tolerance, upper=expected + tolerance)


def rate(
    text: str, count: int, number: int, of: str, *, lower: float | None = None, upper: float | None = None
) -> Statement:
    """A share of independent replicates; chance is the binomial tail.

    Args:
        count: how many of ``number`` replicates did it. of: what a replicate is, in the plural.
    """
    _require_bounds(lower, upper)
    if not 0 <= count <= number or number < 1:
        raise UsageError(f"{count} of {number} is no share")
    share = count / number
    nearest = _nearest(share, lower, upper)
    at_bound = _nearest_bound(share, lower, upper)
    tail = 1.0
    if share > nearest:
        tail = float(binom.sf(count - 1, number, nearest))
    elif share < nearest:
        tail = float(binom.cdf(count, number, nearest))
    return Statement(
        text=text,
        measured=share,
        lower=lower,
        upper=upper,
        standard_error=math.sqrt(at_bound * (1 - at_bound) / number),
        chance=tail,
        sample=f"{number} {of}",
    )


def mean(
    text: str,
    values: Sequence[float] | NDArray[np.float64],
    of: str,
    *,
    lower: float | None = None,
    upper: float | None = None,
) -> Statement:
    """The mean of one number a replicate, two replicates or more; chance is the tail of Student's t."""
    _require_bounds(lower, upper)
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or len(sample) < 2:
        raise UsageError("a mean with its standard error takes two replicates or more")
    measured, error = float(sample.mean()), float(sample.std(ddof=1)) / math.sqrt(len(sample))
    distance = abs(measured - _nearest(measured, lower, upper))
    tail = 1.0
    if distance:
        tail = float(student.sf(distance / error, len(sample) - 1)) if error else 0.0
    return Statement(
        text=text,
        measured=measured,
        lower=lower,
        upper=upper,
        standard_error=error,
        chance=tail,
        sample=f"{len(sample)} {of}",
    )


def mean_share(
    text: str,
    shares: NDArray[np.float64],
    of: str,
    *,
    lower: float | None = None,
    upper: float | None = None,
) -> Statement:
    """The mean of numbers between 0 and 1, one a replicate, that may well all be equal.

    Chance and standard error take the largest variance that such numbers of a given mean can have, that of a coin, so
    that they are too large rather than too small.
    """
    _require_bounds(lower, upper)
    if not len(shares) or shares.min() < 0 or shares.max() > 1:
        raise UsageError("a mean share takes numbers between 0 and 1, one at least")
    measured = float(shares.mean())
    at_bound = _nearest_bound(measured, lower, upper)
    error = math.sqrt(at_bound * (1 - at_bound) / len(shares))
    distance = abs(measured - _nearest(measured, lower, upper))
    tail = 1.0
    if distance:
        tail = float(ndtr(-distance / error)) if error else 0.0
    return Statement(
        text=text,
        measured=measured,
        lower=lower,
        upper=upper,
        standard_error=error,
        chance=tail,
        sample=f"{len(shares)} {of}",
    )


def spread(text: str, scores: NDArray[np.float64], of: str, *, lower: float, upper: float) -> Statement:
    """The root mean square of independent standardised errors, which is one if both sides are right; by chi-square."""
    _require_bounds(lower, upper)
    number = len(scores)
    total = float(np.square(scores).sum())
    measured = math.sqrt(total / number)
    nearest = _nearest(measured, lower, upper)
    tail = 1.0
    if measured > nearest:
        tail = float(chi2.sf(total / nearest**2, number))
    elif measured < nearest:
        tail = float(chi2.cdf(total / nearest**2, number))
    return Statement(
        text=text,
        measured=measured,
        lower=lower,
        upper=upper,
        standard_error=nearest / math.sqrt(2 * number),
        chance=tail,
        sample=f"{number} {of}",
    )


def _nearest(value: float, lower: float | None, upper: float | None) -> float:
    """The allowed value nearest to ``value``; not a number is beyond every bound."""
    if math.isnan(value):
        return math.inf
    if lower is not None and value < lower:
        return lower
    return upper if upper is not None and value > upper else value


def _nearest_bound(value: float, lower: float | None, upper: float | None) -> float:
    return min((bound for bound in (lower, upper) if bound is not None), key=lambda bound: abs(bound - value))


def _require_bounds(lower: float | None, upper: float | None) -> None:
    if lower is None and upper is None:
        raise UsageError("a statement needs a bound")
    if lower is not None and upper is not None and lower > upper:
        raise UsageError(f"the bounds {lower} and {upper} leave nothing between them")
