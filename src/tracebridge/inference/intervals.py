"""Intervals about the data: what the numbers of a report may be, given how many runs there were.

They are no numerical bounds: those are `tracebridge.closedform.Enclosure`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from tracebridge.checking.result import number_to_json
from tracebridge.errors import UsageError
from tracebridge.html_table import html_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A confidence or credible interval.

    Attributes:
        lower, upper: its ends; NaN where the method has no answer.
        level: nominal, such as 0.95. method: in words, such as ``Wilson score``.
    """

    lower: float
    upper: float
    level: float
    method: str

    @property
    def width(self) -> float:
        """``upper - lower``."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def _repr_html_(self) -> str:
        return html_text(f"[{self.lower:.6g}, {self.upper:.6g}] ({100 * self.level:.6g} %, {self.method})")

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        ends = {"lower": number_to_json(self.lower), "upper": number_to_json(self.upper)}
        return {**ends, "level": self.level, "method": self.method}


def require_level(level: float) -> None:
    """Raise UsageError unless ``0 < level < 1``."""
    if not 0 < level < 1:
        raise UsageError(f"a level lies between 0 and 1, not {level!r}")


def equal_tailed(values: Floats, level: float, method: str) -> tuple[Interval, tuple[float, float]]:
    """The interval between two quantiles of draws, and the Monte-Carlo standard errors of its two ends.

    An end is a draw itself, so that infinite draws do no harm. Its standard error is half the distance of the draws one
    standard error of their rank away on either side.

    Args:
        values: shape (draws,), at least one, none undefined. level: between 0 and 1. method: its name.
    """
    require_level(level)
    ordered = np.sort(values)
    tail = (1 - level) / 2
    ends = [float(_quantile(ordered, q)) for q in (tail, 1 - tail)]
    errors = [_quantile_error(ordered, q) for q in (tail, 1 - tail)]
    return Interval(lower=ends[0], upper=ends[1], level=level, method=method), (errors[0], errors[1])


def wilson(successes: float, trials: float, level: float = 0.95) -> Interval:
    """The score interval of a proportion (Wilson 1927), for any number of trials above zero, whole or effective."""
    require_level(level)
    if not 0 <= successes <= trials or trials <= 0:
        raise UsageError(f"{successes} successes of {trials} trials are no proportion")
    z2 = float(ndtri((1 + level) / 2)) ** 2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(z2 * (share * (1 - share) / trials + z2 / (4 * trials**2))) / (1 + z2 / trials)
    lower = 0.0 if successes == 0 else centre - half
    upper = 1.0 if successes == trials else centre + half
    return Interval(lower=lower, upper=upper, level=level, method="Wilson score")


def normal(value: float, error: float, level: float, method: str, *, largest: float = math.inf) -> Interval:
    """``value`` plus and minus so many standard errors, cut off at 0 and at ``largest``."""
    require_level(level)
    half = float(ndtri((1 + level) / 2)) * error
    return Interval(lower=max(value - half, 0.0), upper=min(value + half, largest), level=level, method=method)


def _quantile(ordered: Floats, q: float) -> float:
    rank = math.ceil(q * len(ordered) - 1e-9)  # 0.025 in doubles must not become the next rank
    return float(ordered[min(max(rank - 1, 0), len(ordered) - 1)])


def _quantile_error(ordered: Floats, q: float) -> float:
    shift = math.sqrt(q * (1 - q) / len(ordered))
    low, high = _quantile(ordered, max(q - shift, 0.0)), _quantile(ordered, min(q + shift, 1.0))
    return 0.0 if low == high else (high - low) / 2
