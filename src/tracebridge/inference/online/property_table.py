"""One property for every prefix: its conditional value, what the data leave open of it, and its verdict so far."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.evaluation import Evaluation
from tracebridge.checking.truths import Truths
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import UnsupportedError
from tracebridge.inference.batched_evaluation import TIE
from tracebridge.inference.online.prefix_form import prefix_form
from tracebridge.inference.uncertainty import credible_level
from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class PropertyReading(msgspec.Struct, frozen=True, kw_only=True):
    """A property after a prefix.

    Attributes:
        name: of the property, or its text.
        value: the conditional probability of its path formula, or the reward so far plus what is expected.
        lower, upper: the equal-tailed posterior interval of the value; NaN where nothing was drawn.
        verdict: of its threshold at this value, ``satisfied``, ``violated`` or ``undecided``; None for a query.
        settled: the prefix alone decides the value, whatever follows.
    """

    name: str
    value: float
    lower: float
    upper: float
    verdict: str | None
    settled: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyTable:
    """The values of a property by time and state; the last time stands for all later ones.

    Attributes:
        name: of the property, or its text.
        settled: see `PrefixForm`, shape (T, n).
        value: of the rest of the run for the fitted chain, shape (T, n).
        lower, upper: ends of the posterior interval of the value, shape (T, n).
        least, most: the values that a share ``credible`` of the draws is at or above, and at or below, shape (T, n);
            the value itself without ``credible``.
        earned: see `PrefixForm`, shape (n,) or None.
        comparison, threshold: the bound of the operator; None for a query.
    """

    name: str
    settled: Mask
    value: Floats
    lower: Floats
    upper: Floats
    least: Floats
    most: Floats
    earned: Floats | None
    comparison: str | None
    threshold: float

    @classmethod
    def of(
        cls, property_: ast.Property, chain: MarkovChain, draws: ChainStack | None, level: float = 0.95
    ) -> PropertyTable:
        """The table of a resolved property.

        Nested thresholds single out the states that they do in the fitted chain, in every draw.

        Args:
            property_: one operator P or R, with a threshold or as a query. chain: the fitted chain.
            draws: chains of the posterior; None for no interval. level: of the interval.

        Raises:
            UnsupportedError: see `prefix_form`; also for a nested threshold within rounding.
            PropertyError: it does not fit the chain, or ``credible`` is no level.
        """
        asked = property_.formula
        evaluation = Evaluation(PropertyChecker(chain, ClosedFormSession(chain)))
        form = prefix_form(chain, asked, lambda operand: _states(evaluation, operand))
        credible = credible_level(property_)
        comparison, threshold = None, math.nan
        if isinstance(asked, ast.Probability | ast.Reward) and asked.threshold is not None:
            comparison, threshold = asked.threshold.comparison, _number(evaluation, asked.threshold.value)
        shape = form.settled.shape
        value, lower, upper = np.empty(shape), np.full(shape, np.nan), np.full(shape, np.nan)
        for t, point in zip(range(shape[0] - 1, -1, -1), form.values(ChainStack.of_chain(chain)), strict=True):
            value[t] = point[:, 0]
        least, most = value, value
        if draws is not None:
            number = draws.draws
            tail = (1 - level) / 2
            if credible is not None:
                least, most = np.empty(shape), np.empty(shape)
            before = None
            for t, drawn in zip(range(shape[0] - 1, -1, -1), form.values(draws), strict=True):
                if drawn is before:
                    for ends in (lower, upper) if credible is None else (lower, upper, least, most):
                        ends[t] = ends[t + 1]
                    continue
                before, ordered = drawn, np.sort(drawn, axis=1)
                lower[t], upper[t] = (
                    ordered[:, quantile_rank(tail, number)],
                    ordered[:, quantile_rank(1 - tail, number)],
                )
                if credible is not None:
                    most[t] = ordered[:, quantile_rank(credible, number)]
                    least[t] = ordered[:, number - 1 - quantile_rank(credible, number)]
        elif credible is not None:
            least, most = np.full(shape, np.nan), np.full(shape, np.nan)
        return cls(
            name=property_.name or property_.text,
            settled=form.settled,
            value=value,
            lower=lower,
            upper=upper,
            least=least,
            most=most,
            earned=form.earned,
            comparison=comparison,
            threshold=threshold,
        )

    def reading(self, time: int, state: int, so_far: float, *, over: bool = False) -> PropertyReading:
        """The property after a prefix that ends at a time in a state, with what was earned before it.

        Args:
            time, state, so_far: these. over: the run has ended, so that nothing can change the value.
        """
        row = min(time, len(self.settled) - 1)
        settled = over or bool(self.settled[row, state])
        value = so_far + self.value.item(row, state)
        verdict = None
        if self.comparison is not None:
            if settled:
                verdict = self._verdict(value, value, value, exactly=True)
            else:
                ends = self.least.item(row, state), self.most.item(row, state)
                verdict = self._verdict(value, so_far + ends[0], so_far + ends[1], exactly=False)
        return PropertyReading(
            name=self.name,
            value=value,
            lower=value if settled else so_far + self.lower.item(row, state),
            upper=value if settled else so_far + self.upper.item(row, state),
            verdict=verdict,
            settled=settled,
        )

    def mixed_reading(
        self, time: int, states: NDArray[np.int64], chances: Floats, so_far: float, *, over: bool = False
    ) -> PropertyReading:
        """The same where the run is in one of several states with these chances; in all of them the same is settled."""
        row = min(time, len(self.settled) - 1)
        settled = over or bool(self.settled[row, states[0]])
        value, lower, upper, least, most = (
            so_far + mean_of(each[row, states], chances)
            for each in (self.value, self.lower, self.upper, self.least, self.most)
        )
        verdict = None
        if self.comparison is not None:
            ends = (value, value) if settled else (least, most)
            verdict = self._verdict(value, *ends, exactly=settled)
        return PropertyReading(
            name=self.name,
            value=value,
            lower=value if settled else lower,
            upper=value if settled else upper,
            verdict=verdict,
            settled=settled,
        )

    def require_alike(self, groups: Iterable[NDArray[np.int64]]) -> None:
        """Refuse a property of which the same steps settle or earn different things in states that look alike.

        Raises:
            UnsupportedError: naming the property.
        """
        for states in groups:
            settled = self.settled[:, states]
            earned = np.zeros(len(states)) if self.earned is None else self.earned[states]
            if len(states) and ((settled != settled[:, :1]).any() or (earned != earned[0]).any()):
                raise UnsupportedError("it is about more than the steps of a run, which are all that a monitor sees")

    def _verdict(self, value: float, least: float, most: float, *, exactly: bool) -> str:
        """By the fitted chain, and where ``credible`` asks for it by a share of the draws on the same side."""
        assert self.comparison is not None  # noqa: S101 - asked only with a threshold
        holds, bound = _COMPARE[self.comparison], self.threshold
        # a probability is exactly 0 or 1 where the edges decide it; within rounding of any other bound nobody knows
        certain = exactly or (self.earned is None and bound in (0, 1))
        if value != value or (not certain and abs(value - bound) <= TIE * abs(bound)):  # noqa: PLR0124 - NaN
            return "undecided"
        worst, best = (least, most) if self.comparison in (">", ">=") else (most, least)
        if holds(value, bound):
            return "satisfied" if holds(worst, bound) else "undecided"
        return "violated" if best == best and not holds(best, bound) else "undecided"  # noqa: PLR0124


def mean_of(values: Floats, chances: Floats) -> float:
    """The mean of values that have these chances, exactly the value where all have the same."""
    if (values == values[0]).all():
        return float(values[0])
    return float(chances @ values)


def quantile_rank(share: float, number: int) -> int:
    """The position among so many ordered draws of the first at or below which there is at least this share of them."""
    return min(max(math.ceil(share * number - 1e-9) - 1, 0), number - 1)


def _states(evaluation: Evaluation, operand: ast.Formula) -> Mask:
    truths = evaluation.run(operand)
    if not isinstance(truths, Truths):
        raise UnsupportedError(f"a truth value is needed here, not a number: {format_formula(operand)}")
    if not truths.certain:
        raise UnsupportedError(f"a nested threshold lies within rounding of its value: {format_formula(operand)}")
    return truths.states.surely


def _number(evaluation: Evaluation, bound: ast.Formula) -> float:
    if isinstance(bound, ast.Number):
        return float(bound.value)
    values = evaluation.run(bound)
    if not isinstance(values, EnclosureVector):
        raise UnsupportedError(f"a threshold is a number, not {format_formula(bound)}")
    return float(Fraction(values[len(values) - 1].value))
