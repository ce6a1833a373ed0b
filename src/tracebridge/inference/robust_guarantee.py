"""The conservative guarantee of a property: its extremes over all chains that the counts do not exclude.

Every transition probability of a fit has its exact binomial confidence interval (Clopper and Pearson 1934), each at the
level ``1 - (1 - level) / m`` for the m uncertain transitions of the whole chain, so that by Bonferroni's inequality all
of them hold at once with at least the stated probability, whatever the true chain on this support is and without a
prior. A property is then somewhere between its least and its greatest value over all these chains, even if the rows
change from step to step. That holds for all properties at once. It is much wider than the posterior interval of one
property: errors of all transitions are allowed to be large at once, and in the worst direction for it.

Taken as given are the support, the assumption of such a chain and the initial distribution, as in the posterior, and
the number of departures from each state: departures are independent draws from its row, but where runs come back their
number hangs on what was drawn, which the binomial law leaves out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.chain.fit import ChainFit
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.evaluation import Evaluation
from tracebridge.checking.result import Verdict, number_to_json
from tracebridge.checking.robust_session import RobustSession
from tracebridge.checking.truths import Truths
from tracebridge.errors import EngineError
from tracebridge.inference.interval_entries import interval_chain_of_fit, uncertain_entries
from tracebridge.inference.intervals import require_level
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.pctl import fold_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.agreement import Ends
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.interval import IntervalChain
    from tracebridge.pctl.ast import Property

METHOD = "Clopper-Pearson intervals of all transitions at once (Bonferroni)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RobustGuarantee:
    """What holds of a property for all chains between simultaneous confidence bounds.

    Attributes:
        level: at least with this probability all bounds hold together. transitions: how many are uncertain.
        lower, upper: the least and greatest value, rounded outward, possibly infinite; None without a number.
        verdict: ``satisfied`` if the property holds in all these chains, ``violated`` if in none, else ``undecided``;
            None for a query, and where nothing can be said.
        reason: why nothing can be said.
    """

    level: float
    transitions: int = 0
    lower: float | None = None
    upper: float | None = None
    verdict: Verdict | None = None
    reason: str | None = None

    def width_ratio(self, interval: Ends | None) -> float | None:
        """How many times as wide as another interval it is; None where one of them is missing or has no width."""
        if interval is None or self.lower is None or self.upper is None:
            return None
        width = interval.upper - interval.lower
        return (self.upper - self.lower) / width if 0 < width < math.inf else None

    def to_dict(self, interval: Ends | None = None) -> dict[str, Any]:
        """A JSON document, with the width ratio to the posterior interval."""
        numbers = {"lower": self.lower, "upper": self.upper, "width_ratio": self.width_ratio(interval)}
        return {
            "method": METHOD,
            "level": self.level,
            "transitions": self.transitions,
            **{name: None if value is None else number_to_json(value) for name, value in numbers.items()},
            "verdict": None if self.verdict is None else str(self.verdict),
            "reason": self.reason,
        }


def robust_guarantees(
    fit: ChainFit | ExpandedFit, properties: Sequence[Property], *, level: float = 0.95
) -> list[RobustGuarantee]:
    """The guarantee of each property of a fitted chain.

    Args:
        properties: resolved, as `tracebridge.checking.check` returns them. level: of all bounds together.

    Raises:
        UsageError: for a level that is none.
    """
    require_level(level)
    missing = _why_not(fit)
    if missing is not None or not isinstance(fit, ChainFit):
        return [RobustGuarantee(level=level, reason=missing)] * len(properties)
    chain = interval_chain_of_fit(fit, method="clopper-pearson", level=level, together="chain")
    transitions = int(np.count_nonzero(uncertain_entries(ChainPosterior.of_fit(fit))))
    return [_guarantee(chain, each, level, transitions) for each in properties]


def _why_not(fit: ChainFit | ExpandedFit) -> str | None:
    if not isinstance(fit, ChainFit):
        return (
            "in a chain whose states remember more, transitions share what was counted, and such intervals are about "
            "counts of each transition by itself"
        )
    if fit.weighted is not None:
        return "Clopper-Pearson intervals are about counts, and these runs have weights"
    return None


def _guarantee(chain: IntervalChain, property_: Property, level: float, transitions: int) -> RobustGuarantee:
    evaluation = Evaluation(PropertyChecker(chain.member, RobustSession(chain)))
    formula = fold_steps(property_.formula)
    try:
        result = evaluation.run(formula)
        number = evaluation.headline(formula)
    except EngineError as error:
        return RobustGuarantee(level=level, transitions=transitions, reason=str(error))
    verdict = None
    if isinstance(result, Truths):
        verdict = Verdict.UNDECIDED
        if result.surely[-1]:
            verdict = Verdict.SATISFIED
        elif not result.possibly[-1]:
            verdict = Verdict.VIOLATED
    return RobustGuarantee(
        level=level,
        transitions=transitions,
        lower=None if number is None else float(number.lower),
        upper=None if number is None else float(number.upper),
        verdict=verdict,
        reason="the value may be undefined" if number is None and verdict is None else None,
    )
