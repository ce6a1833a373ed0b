"""Whether the runs say what becomes of a run in the end, or only what becomes of it until it is cut.

Where no run was seen to end, nothing that a chain says of ends was measured: it takes them from its prior, or has runs
stop for good where they were last seen. Where all runs are cut at some step, nothing was seen beyond it: whatever share
was then still going may all succeed or all fail, and R_inf of a chain is its extrapolation. What the runs themselves
say of R_inf are bounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.survival import aalen_johansen

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.survival import LengthCounts
    from tracebridge.inference.intervals import Interval

#: Why numbers about how runs end, and when, are undefined where none was seen to.
NO_END_REASON = "no run was seen to end: what a chain says of ends rests on no observation"

#: A smaller share of runs that were still going is not spoken of.
LEAST_SHARE = 0.01


#: Why draws of a chain without a prior may tell nothing about a number.
NO_VARIATION_REASON = (
    "no interval: without a prior no draw gives a chance to what was never seen, and here all draws are the same"
)

#: Draws that differ by less, relative to their size where that is above one, differ by rounding.
_ROUNDING = 1e-7


def is_unvaried(fit: ChainFit | ExpandedFit, interval: Interval) -> bool:
    """Whether all draws of a fit without a prior are the same, so that their interval tells nothing.

    Where all runs ended alike, each draw has them end so for sure: that is no knowledge of what other runs would do.
    """
    if isinstance(fit, ExpandedFit) or fit.prior not in {"none", 0}:
        return False
    lower, upper = interval.lower, interval.upper
    return lower == upper or upper - lower <= _ROUNDING * max(1.0, abs(lower))


def has_seen_an_end(fit: ChainFit) -> bool:
    """Whether some run behind a fit succeeded or failed, under its policy for censored runs."""
    rows = fit.row_counts()
    m = len(rows.states)
    return bool(rows.starts[m:].any() or rows.counts[:, [m, m + 1]].sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityBounds:
    """What runs say of R_inf without a chain, where some were still going at the last step that was seen.

    Attributes:
        step: the last step at which runs were seen. lower: R there, by Aalen and Johansen. upper: the same and all that
            were still going.
    """

    step: int
    lower: float
    upper: float

    @property
    def going(self) -> float:
        """The share of runs still going."""
        return self.upper - self.lower

    def __str__(self) -> str:
        return (
            f"R_inf is not identified: after step {self.step} nothing was seen, and {self.going:.1%} of the runs were "
            f"still going; the runs say that it is between {self.lower:.4g} and {self.upper:.4g}, and a number is the "
            "chain's extrapolation"
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"step": self.step, "lower": self.lower, "upper": self.upper}


def reliability_bounds(lengths: LengthCounts) -> ReliabilityBounds | None:
    """The bounds, or None where nearly all runs were seen to end.

    Args:
        lengths: runs under their censoring policy.
    """
    curves = aalen_johansen(lengths)
    if math.isinf(curves.horizon) or curves.horizon < 0:
        return None
    last = int(curves.horizon)
    success, failure = float(curves.at(last)), float(curves.at(last, "failure"))
    if 1 - success - failure <= LEAST_SHARE:
        return None
    return ReliabilityBounds(step=last, lower=success, upper=1 - failure)
