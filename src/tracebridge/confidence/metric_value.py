"""The value of one metric of the audit: what was divided by what, what was left out, and how sure it is.

A metric whose denominator is empty is undefined: NaN with a reason, never zero and never an exception.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.checking.result import number_to_json
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from typing import Self

#: Whether a metric has a value.
Status = Literal["ok", "undefined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValue:
    """A number of the audit with its denominator.

    Attributes:
        name: of the metric, such as ``CRA``.
        value: NaN where it is undefined.
        numerator: NaN for what is no quotient of two sums.
        denominator: how many units (blocks, pairs, polls) the value rests on.
        denominator_name: what they are, such as ``selected valid blocks``.
        n_dropped: units left out because a label or a confidence is missing.
        lower, upper: the ends of an interval; NaN without one.
        level: its nominal level, such as 0.95; NaN without one.
        method: its method in words, empty without one.
        status: ``ok`` or ``undefined``.
        reason: why it is undefined, or what is to be known about the interval.

    Raises:
        UsageError: a status that contradicts the value, or an undefined value without a reason.
    """

    name: str
    value: float
    numerator: float
    denominator: float
    denominator_name: str
    n_dropped: int = 0
    lower: float = math.nan
    upper: float = math.nan
    level: float = math.nan
    method: str = ""
    status: Status = "ok"
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.status == "undefined") != math.isnan(self.value):
            raise UsageError(f"the metric {self.name} is {self.value} and its status {self.status!r}")
        if self.status == "undefined" and not self.reason:
            raise UsageError(f"the metric {self.name} is undefined without a reason")

    @classmethod
    def undefined(
        cls, name: str, reason: str, *, denominator: float, denominator_name: str, n_dropped: int = 0
    ) -> Self:
        """A metric without a value, and why it has none."""
        return cls(
            name=name,
            value=math.nan,
            numerator=math.nan,
            denominator=denominator,
            denominator_name=denominator_name,
            n_dropped=n_dropped,
            status="undefined",
            reason=reason,
        )

    def with_interval(self, lower: float, upper: float, *, level: float, method: str, remark: str = "") -> Self:
        """The same with an interval; a ``remark`` about it is added to the reason."""
        reason = "; ".join(part for part in (self.reason, remark) if part)
        return replace(self, lower=lower, upper=upper, level=level, method=method, reason=reason)

    def to_dict(self) -> dict[str, Any]:
        """A JSON document; what is undefined is written as `tracebridge.checking.result.number_to_json` does."""
        numbers = ("value", "numerator", "denominator", "lower", "upper", "level")
        return {
            name: number_to_json(float(getattr(self, name))) if name in numbers else getattr(self, name)
            for name in self.__slots__
        }


def ratio(name: str, numerator: float, denominator: float, denominator_name: str, n_dropped: int = 0) -> MetricValue:
    """``numerator / denominator``, two sums over units; undefined where there are no units."""
    if denominator == 0:
        unlabelled = f" with a label: {n_dropped:,} have none that would tell" if n_dropped else ""
        return MetricValue.undefined(
            name,
            f"there are no {denominator_name}{unlabelled}",
            denominator=0.0,
            denominator_name=denominator_name,
            n_dropped=n_dropped,
        )
    return MetricValue(
        name=name,
        value=float(numerator) / float(denominator),
        numerator=float(numerator),
        denominator=float(denominator),
        denominator_name=denominator_name,
        n_dropped=n_dropped,
    )
