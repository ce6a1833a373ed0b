"""What holds of all chains between the bounds: the extreme values of a property at the start, and its verdict."""

from __future__ import annotations

import operator as relation
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from tracebridge.closedform.robust.operators import robust_values
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import Number, Probability, Property, Reward

if TYPE_CHECKING:
    from tracebridge.chain.interval import IntervalChain
    from tracebridge.closedform.enclosure import Enclosure
    from tracebridge.pctl.ast import Threshold

RobustVerdict = Literal["satisfied", "violated", "undecided"]

_COMPARE = {"<": relation.lt, "<=": relation.le, ">": relation.gt, ">=": relation.ge}


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustResult:
    """A property over an interval chain.

    Attributes:
        property: what was asked.
        minimum, maximum: the least and the greatest value at the start, the mean under the initial distribution, each
            with its bound on rounding.
        verdict: of a threshold: ``satisfied`` if it holds whatever nature chooses, ``violated`` if it never does, else
            ``undecided``; None for a query.
        reason: why it is undecided.
    """

    property: Property
    minimum: Enclosure
    maximum: Enclosure
    verdict: RobustVerdict | None = None
    reason: str | None = None


def robust(chain: IntervalChain, property_: Property) -> RobustResult:
    """The extreme values of a property that is one ``P`` or ``R`` operator; see `robust_values`.

    A ``satisfied`` or ``violated`` property is so in every chain between the bounds, also in one that changes its rows
    from step to step. ``Pmin`` and ``Pmax`` are read as ``P``: both extremes are given anyway.

    Args:
        chain: the bounds. property_: constants are already numbers.

    Raises:
        UnsupportedError: for any other property. PropertyError, ModelError: as `robust_values`.
    """
    formula = property_.formula
    if not isinstance(formula, Probability | Reward):
        raise UnsupportedError("over an interval chain a property is one P or R operator")
    weights = [Fraction(mass) for mass in chain.initial.tolist()]
    minimum = robust_values(chain, formula, "min").weighted_mean(weights)
    maximum = robust_values(chain, formula, "max").weighted_mean(weights)
    if formula.threshold is None:
        return RobustResult(property=property_, minimum=minimum, maximum=maximum)
    verdict, reason = _judged(minimum, maximum, formula.threshold)
    return RobustResult(property=property_, minimum=minimum, maximum=maximum, verdict=verdict, reason=reason)


def _judged(minimum: Enclosure, maximum: Enclosure, threshold: Threshold) -> tuple[RobustVerdict, str | None]:
    if not isinstance(threshold.value, Number):
        raise PropertyError(f"a threshold must be a number here, not {threshold.value}")
    holds, bound = _COMPARE[threshold.comparison], threshold.value.value
    at_least = threshold.comparison in {">", ">="}
    worst, best = (minimum, maximum) if at_least else (maximum, minimum)
    if holds(worst.lower if at_least else worst.upper, bound):
        return "satisfied", None
    if not holds(best.upper if at_least else best.lower, bound):
        return "violated", None
    both = holds(best.lower if at_least else best.upper, bound)
    both = both and not holds(worst.upper if at_least else worst.lower, bound)
    if both:
        return "undecided", "it holds for some choices between the bounds and not for others"
    return "undecided", "an extreme value is within rounding of the threshold"
