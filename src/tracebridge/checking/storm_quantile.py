"""Quantiles from answers for single bounds: the bound at which an operator begins to satisfy its threshold.

The values only rise or only fall with the bound, so a search by doubling and halving finds where they cross the
threshold, in all states at once. See `tracebridge.closedform.quantile` for what is then the quantile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.checking.storm_rewards import common_unit
from tracebridge.checking.storm_steps import constant_number
from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.checking.storm_rewards import Spent

Ask = Callable[[ast.Operator], EnclosureVector]

#: No quantile takes more questions than this.
MAX_QUESTIONS = 500

#: The search goes up to such a number of steps, or of units of a reward, which Storm follows one by one; in rationals,
#: whose digits grow with every step, only so far.
MAX_STEPS, MAX_UNITS, MAX_EXACT_COUNT = 2**20, 2**14, 2**10

_OPPOSITE: dict[ast.Comparison, ast.Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def quantiles(
    asked: ast.Quantile, ask: Ask, weights: Sequence[Fraction], spent: Spent, *, attains_at_once: bool = True
) -> tuple[EnclosureVector, Enclosure]:
    """The quantile in every state and that of the mean.

    Args:
        ask: the value of an operator in every state. weights: of the mean, shape (n,).
        spent: what each step from a state, or each choice, spends of a reward structure.
        attains_at_once: whether values that come to be their limit do so within as many steps as there are states, as
            those of chains and of maxima do. Those of minima may take any number.

    Raises:
        UnsupportedError: not one variable that is the only bound, or no end of the search.
    """
    search = _Search(asked, ask, weights, spent, attains_at_once=attains_at_once)
    lower, upper = search.crossings()
    found = [search.quantile(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
    return EnclosureVector.from_enclosures(found[:-1]), found[-1]


@dataclass(frozen=True, slots=True)
class _Variable:
    """The only bound of an operator, of which the variable is one end; of steps where ``structure`` is one a step."""

    operator: ast.Probability | ast.Reward
    structure: ast.Structure
    bound: ast.StepBound

    @classmethod
    def of(cls, asked: ast.Quantile) -> _Variable:
        if len(asked.variables) != 1:
            raise UnsupportedError("a quantile over several variables has no single value")
        operator, path = asked.operator, asked.operator.path
        if operator.condition is not None or isinstance(path, ast.Next):
            raise UnsupportedError("Storm is asked for quantiles of bounded path operators without a condition")
        steps: ast.StepBound | None
        if isinstance(path, ast.CumulativeReward) and path.discount is None:
            steps = None if path.bound is None else ast.StepBound(upper=path.bound, upper_strict=path.strict)
        elif isinstance(path, ast.Temporal) and ast.is_pctl(path):
            steps = path.bound
        else:
            raise UnsupportedError("Storm is asked for quantiles of bounded path operators and of C only")
        bounds: list[tuple[ast.Structure, ast.StepBound]] = [
            (bound.structure, bound.bound) for bound in path.reward_bounds
        ]
        if steps is not None:
            bounds.append((ast.OnePerStep(), steps))
        ends = [end for _, bound in bounds for end in (bound.lower, bound.upper) if end is not None]
        if len(ends) != 1 or ends[0] != ast.Identifier(asked.variables[0].name):
            raise UnsupportedError("the variable of a quantile must be the only bound, and alone")
        structure, bound = bounds[0]
        if (bound.lower_strict or bound.upper_strict) and steps is None:
            raise UnsupportedError("a quantile needs a bound with <= or >=: below a strict one is no largest reward")
        return cls(operator, structure, bound)

    def at(self, number: Fraction) -> ast.Operator:
        """The operator with a number for the variable."""
        literal = ast.Number(number, integer=number.denominator == 1)
        path = self.operator.path
        assert isinstance(path, ast.CumulativeReward | ast.Temporal)  # noqa: S101 - checked in `of`
        assert not isinstance(path, ast.Next)  # noqa: S101
        if isinstance(path, ast.CumulativeReward) and not path.reward_bounds:
            return _with_path(self.operator, replace(path, bound=literal))
        ends = self.bound.lower, self.bound.upper
        lower, upper = (None if end is None else literal for end in ends)
        bound = replace(self.bound, lower=lower, upper=upper)
        if isinstance(path, ast.CumulativeReward) or path.reward_bounds:
            within = replace(path.reward_bounds[0], bound=bound)
            return _with_path(self.operator, replace(path, reward_bounds=(within,)))
        return _with_path(self.operator, replace(path, bound=bound))

    @property
    def rising(self) -> bool:
        """Whether the values rise with the bound."""
        safe = isinstance(self.operator.path, ast.Globally | ast.WeakUntil | ast.Release)
        return (self.bound.lower is not None) == safe

    def limit(self) -> ast.Operator | None:
        """What the values tend to, as an operator; None where no operator says it."""
        path = self.operator.path
        if isinstance(path, ast.CumulativeReward):
            return _with_path(self.operator, replace(path, bound=None, strict=False, reward_bounds=()))
        assert isinstance(path, ast.Temporal) and not isinstance(path, ast.Next)  # noqa: S101, PT018 - checked in `of`
        if self.bound.lower is None:
            return _with_path(self.operator, replace(path, bound=None, reward_bounds=()))
        if not isinstance(self.structure, ast.OnePerStep):
            return None  # only what costs something counts for ever
        match path:
            case ast.Eventually(goal):
                return _with_path(self.operator, ast.Globally(ast.Eventually(goal)))
            case ast.Globally(safe):
                return _with_path(self.operator, ast.Eventually(ast.Globally(safe)))
            case ast.Until(stay, goal):
                both = ast.PathBinary("&", ast.Globally(stay), ast.Globally(ast.Eventually(goal)))
                return _with_path(self.operator, both)
            case _:
                return None


def _with_path(operator: ast.Probability | ast.Reward, path: ast.PathFormula | ast.RewardPath) -> ast.Operator:
    return replace(operator, path=path)  # type: ignore[arg-type]  # of the same kind as before


class _Search:
    """The first count of units, per state and at the start, at which the values have crossed the threshold."""

    def __init__(
        self, asked: ast.Quantile, ask: Ask, weights: Sequence[Fraction], spent: Spent, *, attains_at_once: bool
    ) -> None:
        self._variable = _Variable.of(asked)
        self._ask = ask
        on_steps = isinstance(self._variable.structure, ast.OnePerStep)
        self._largest = MAX_STEPS if on_steps else MAX_UNITS
        threshold = asked.operator.threshold
        if threshold is None:
            raise PropertyError("a quantile needs a threshold, such as P>=0.9")
        self._threshold = constant_number(threshold.value)
        earned, n = spent(self._variable.structure), len(weights)
        self._unit = common_unit(earned) or Fraction(1)
        self._last = n * int(max(earned) / self._unit)  # the most that n steps can cost
        self._attains_at_once = attains_at_once
        self._support = [i for i, weight in enumerate(weights) if weight > 0]
        self._weights = [weights[i] for i in self._support]
        rising = self._variable.rising
        self._satisfied_beyond = (threshold.comparison in {">", ">="}) == rising
        self._crossed = threshold.comparison if self._satisfied_beyond else _OPPOSITE[threshold.comparison]
        self._low = np.zeros(n + 1)  # the crossing is at this count or later
        self._high = np.full(n + 1, np.inf)  # and at this one or earlier
        self._doubtful = np.zeros(n + 1, dtype=np.bool_)  # a count in between, of which nothing can be said
        self._questions = 0

    def crossings(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and the greatest count that may be the crossing, shape (n + 1,); infinite where there is none."""
        self._compare_with_limit()
        count = 0
        while (np.isinf(self._high) & np.isfinite(self._low) & ~self._doubtful).any():
            if count > self._largest:
                raise UnsupportedError(f"Storm was asked up to a bound of {count // 2} without an end")
            self._try(count)
            count = max(1, 2 * count)
        while (open_ := (self._low < self._high) & ~self._doubtful).any():
            first = int(np.argmax(open_))
            self._try(int((self._low[first] + self._high[first]) // 2))
        return self._low, self._high

    def _compare_with_limit(self) -> None:
        """Learn from what the values tend to which of them never cross the threshold."""
        limit = self._variable.limit()
        if limit is None:
            return
        values = self._values(limit)
        _, possibly = self._compare(values, self._crossed)
        self._low[~possibly] = np.inf
        strictly: ast.Comparison = ">" if self._variable.rising else "<"
        at_threshold = possibly & ~self._compare(values, strictly)[0]
        if at_threshold.any():
            # A limit that differs from the value for so large a bound is never reached: a run that still matters then
            # has cost something in one state twice, and may do so any number of times.
            self._try(self._last)
            unreached = at_threshold & (self._low == self._last + 1)
            may_be_beyond = self._compare(values, strictly)[1]
            decided = unreached & ~may_be_beyond & self._attains_at_once
            self._low[decided] = np.inf
            self._doubtful |= unreached & ~decided

    def quantile(self, low: float, high: float) -> Enclosure:
        """The quantile for a crossing between two counts."""
        if low == high or not (self._satisfied_beyond or low):  # before the first bound there is none
            return Enclosure.exactly(self._bound(low))
        least, greatest = directed.down(self._bound(low)), directed.up(self._bound(high))
        return Enclosure(least, least, greatest)

    def _bound(self, count: float) -> Fraction | float:
        if math.isinf(count):
            return math.inf
        if self._satisfied_beyond:
            return int(count) * self._unit
        return (int(count) - 1) * self._unit if count else math.nan

    def _try(self, count: int) -> None:
        """Ask about one count, and learn what it says about every entry."""
        surely, possibly = self._compare(self._values(self._variable.at(count * self._unit)), self._crossed)
        between = (self._low <= count) & (count < self._high)
        self._high[between & surely] = count
        self._low[between & ~possibly] = count + 1
        self._doubtful |= between & possibly & ~surely

    def _values(self, operator: ast.Operator) -> list[EnclosureVector]:
        """The values in every state, and their mean at the start."""
        self._questions += 1
        if self._questions > MAX_QUESTIONS:
            raise UnsupportedError(f"Storm would be asked more than {MAX_QUESTIONS} questions")
        values = self._ask(operator)
        if values.exact:
            self._largest = MAX_EXACT_COUNT
        start = values.take(np.array(self._support)).weighted_mean(self._weights)
        return [values, EnclosureVector.from_enclosures([start])]

    def _compare(
        self, parts: list[EnclosureVector], comparison: ast.Comparison
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Where values surely, and where they possibly, are across the threshold, shape (n + 1,)."""
        surely, possibly = [], []
        for part in parts:
            threshold = EnclosureVector.constant(len(part), self._threshold, exact=part.exact)
            masks = part.compare(comparison, threshold)
            surely.append(masks[0])
            possibly.append(masks[1])
        return np.concatenate(surely), np.concatenate(possibly)
