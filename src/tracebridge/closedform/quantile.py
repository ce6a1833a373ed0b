"""Quantiles: the bound at which an operator begins to satisfy its threshold, or ceases to.

As a bound B grows, ``P [ F<=B a ]`` and ``R [ C<=B ]`` only rise and ``P [ F>=B a ]`` only falls (the other way round
with G, W and R). The bounds that satisfy the threshold are therefore all from some B on, and then the quantile is the
smallest of them, or all up to some B, and then it is the largest: as in Storm, which disregards ``min`` and ``max``,
for the other end is 0 or infinity whatever the chain is. Where no bound is large enough for the threshold the smallest
is infinite, where all satisfy it the largest is; where no bound is small enough the largest is undefined.

A bound on steps is a whole number, a bound on a reward a multiple of its unit, as in Storm: see `budget`. The operator
is evaluated bound by bound, each one step on from the one before, in doubles with rigorous bounds, until every state is
decided, and for many steps in a small chain by doubling (see `step_doubling`); a tie is then decided in rationals, if
that is the arithmetic or the chain is small. Ummels and Baier, Computing quantiles in Markov reward models, FoSSaCS
2013.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.arithmetic import ExactArithmetic, FloatArithmetic
from tracebridge.closedform.bounded_value import BoundedCollection, BoundedProbability
from tracebridge.closedform.bounds import problem_at
from tracebridge.closedform.budget import MAX_LEVELS, Budget, reward_units, step_budget
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.closedform.quantile_bound import QuantileBound
from tracebridge.closedform.reward_bounded import Unfolding
from tracebridge.closedform.step_doubling import MAX_STATES, crossing_counts
from tracebridge.closedform.until import until_form
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import CumulativeReward, Number, Reward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.bounded_value import BoundedValue
    from tracebridge.closedform.step_doubling import StepRecursion
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Comparison, Operator, Quantile

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Evaluate = Callable[[Arithmetic, Operator, Holds], EnclosureVector]

#: With doubles, ties are decided in rationals for chains of up to so many states and bounds of up to so many units.
TIE_STATES, TIE_BOUND = 40, 200

#: So many bounds are tried one by one where a search by doubling can go on.
FIRST_COUNTS = 1_000

_OPPOSITE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def quantile(
    arithmetic: Arithmetic, asked: Quantile, holds: Holds, weights: Sequence[Fraction | float], evaluate: Evaluate
) -> tuple[EnclosureVector, Enclosure]:
    """See `tracebridge.closedform.modelcheck.evaluate_quantile`; ``evaluate`` is its `evaluate_operator`."""
    search = _Search(arithmetic.chain, asked, holds, weights)
    lower, upper = search.in_doubles()
    if arithmetic.exact:
        lower, upper = _Ties(search, arithmetic, holds, evaluate).decided(lower, upper, most=math.inf)
    elif arithmetic.chain.n_states <= TIE_STATES:
        ties = _Ties(search, ExactArithmetic(arithmetic.chain), holds, evaluate)
        with suppress(UnsupportedError):  # then they stay open
            lower, upper = ties.decided(lower, upper, most=TIE_BOUND)
    found = [search.bound_at(low, high) for low, high in zip(lower.tolist(), upper.tolist(), strict=True)]
    values = EnclosureVector.from_enclosures(found[:-1])
    return (values, found[-1]) if arithmetic.exact else (values.to_float(), _in_doubles(found[-1]))


def bounded_by(chain: MarkovChain, asked: Quantile, holds: Holds, evaluate: Evaluate) -> Operator:
    """The operator of a quantile with the quantile of the initial distribution for its variable, or about that."""
    _, start = quantile(FloatArithmetic(chain), asked, holds, chain.exact_initial(), evaluate)
    number = Fraction(0) if start.undefined or math.isinf(start.lower) else Fraction(start.lower)
    return QuantileBound.of(asked).substituted(number)


# ---------------------------------------------------------------- the search


class _Search:
    """The first bound, per state and at the start, at which the value has crossed the threshold.

    Bounds are counted in units from 0 on. The crossing is that of a comparison which holds from some bound on: the
    threshold's where large bounds satisfy it, else its opposite.
    """

    def __init__(self, chain: MarkovChain, asked: Quantile, holds: Holds, weights: Sequence[Fraction | float]) -> None:
        self.variable = QuantileBound.of(asked)
        operator = self.variable.operator
        if operator.threshold is None:
            raise PropertyError(problem_at("a quantile needs a threshold, such as P>=0.9", None, asked.span))
        if not isinstance(operator.threshold.value, Number):
            raise PropertyError(f"the threshold of a quantile must be a number here, not {operator.threshold.value}")
        self.threshold = operator.threshold.value.value
        self.chain = chain
        self._weights = [Fraction(weight) for weight in weights]
        self._support = np.flatnonzero(np.array([weight > 0 for weight in self._weights]))
        self.kind: BoundedValue
        if isinstance(self.variable.path, CumulativeReward):
            if self.variable.lower:
                raise PropertyError(problem_at("C takes upper bounds only", None, operator.span))
            name = operator.structure if isinstance(operator, Reward) else None
            structure = reward_structure(chain, name, operator.span)
            self.kind = BoundedCollection(structure.fractions(action=True))
        else:
            form = until_form(self.variable.path, holds, chain.n_states)
            self.kind = BoundedProbability(form, lower=self.variable.lower)
        if self.variable.on_steps:
            self.unit, cost = Fraction(1), step_budget(self.chain, 0, None).cost
        else:
            self.unit, cost = reward_units(self.chain, self.variable.structure, asked.span)
        # The levels below do not depend on how large the budget is.
        first, last = (MAX_LEVELS - 1, None) if self.variable.lower else (0, MAX_LEVELS - 1)
        self.budget = Budget(cost=cost, unit=self.unit, first=first, last=last)
        comparison = operator.threshold.comparison
        self.satisfied_beyond = (comparison in {">", ">="}) == self.kind.rising
        self.crossed: Comparison = comparison if self.satisfied_beyond else _OPPOSITE[comparison]

    def in_doubles(self) -> tuple[Floats, Floats]:
        """The least and the greatest count that may be the crossing, shape (n + 1,); the last entry is the start."""
        arithmetic = FloatArithmetic(self.chain)
        open_ = ~self.never(arithmetic)
        lower, upper = np.full(len(open_), np.inf), np.full(len(open_), np.inf)
        recursion = self.kind.step_recursion(arithmetic) if self.variable.on_steps else None
        doubling = recursion is not None and np.count_nonzero(recursion.active) <= MAX_STATES
        count = -1
        for count, x in enumerate(islice(self._values(arithmetic), FIRST_COUNTS if doubling else None)):
            surely, possibly = self.compare(self.with_start(x))
            lower[open_ & possibly & np.isinf(lower)] = count
            upper[open_ & surely] = count
            open_ &= ~surely
            if not open_.any():
                return lower, upper
        lower[open_ & np.isinf(lower)] = count + 1
        if doubling and recursion is not None:
            self._go_on_doubling(recursion, lower, upper, np.flatnonzero(open_))
        return lower, upper

    def _go_on_doubling(
        self, recursion: StepRecursion, lower: Floats, upper: Floats, entries: NDArray[np.int64]
    ) -> None:
        """Narrow the bounds of some entries."""
        n = self.chain.n_states
        weights = [
            self._weights if entry == n else [Fraction(int(i == entry)) for i in range(n)] for entry in entries.tolist()
        ]
        P = self.chain.exact_transitions()
        low, high = crossing_counts(P, recursion, weights, self.crossed, self.threshold)
        shift = 0 if not self.variable.strict else -1 if self.variable.lower else 1
        lower[entries] = np.maximum(lower[entries], low + shift)
        upper[entries] = high + shift

    def never(self, arithmetic: Arithmetic) -> Mask:
        """Where the threshold is surely not crossed at any bound, shape (n + 1,)."""
        limit = self.with_start(self.kind.limit(arithmetic, self.budget))
        approached = self.kind.never_attained(arithmetic, self.budget)
        approached = np.append(approached, approached[self._support].any())
        beyond: Comparison = ">" if self.kind.rising else "<"
        # A limit that is only approached must lie beyond the threshold; one at it is never reached.
        possible = np.where(approached, limit.compare(beyond, self._constant(limit))[1], self.compare(limit)[1])
        return ~possible

    def compare(self, x: EnclosureVector) -> tuple[Mask, Mask]:
        """Where the values surely, and where they possibly, are across the threshold."""
        return x.compare(self.crossed, self._constant(x))

    def with_start(self, x: EnclosureVector) -> EnclosureVector:
        """The values with their mean at the start appended."""
        if len(self._support) == 1:
            return x.take(np.append(np.arange(len(x)), self._support))
        mean = x.take(self._support).weighted_mean([self._weights[i] for i in self._support.tolist()])
        if x.exact:
            return EnclosureVector.from_fractions([*x.value.tolist(), mean.value])
        tail = EnclosureVector.from_enclosures([mean]).to_float()
        return EnclosureVector(
            *(np.append(getattr(x, part), getattr(tail, part)) for part in ("value", "lower", "upper"))
        )

    def bound_at(self, lower: float, upper: float) -> Enclosure:
        """The quantile for a crossing that lies between two counts."""
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

    def _values(self, arithmetic: Arithmetic) -> Iterator[EnclosureVector]:
        """The values for the bounds 0, 1, ... units; the last is that for all larger bounds, as far as doubles tell."""
        levels: Iterable[tuple[int]] = ((level,) for level in range(MAX_LEVELS))
        unfolding = Unfolding(arithmetic, self.kind.recursion(arithmetic, self.budget), [self.budget])
        values = (x for _, x in unfolding.values(levels))
        if not self.variable.strict:
            return values
        if self.variable.lower:  # >B is >=B+1
            return islice(values, 1, None)
        return _with_first(self.kind.without_budget(arithmetic), values)

    def _constant(self, like: EnclosureVector) -> EnclosureVector:
        return EnclosureVector.constant(len(like), self.threshold, exact=like.exact)


def _with_first(first: EnclosureVector, rest: Iterable[EnclosureVector]) -> Iterator[EnclosureVector]:
    yield first
    yield from rest


def _in_doubles(number: Enclosure) -> Enclosure:
    if number.undefined:
        return number
    ends = (directed.nearest(number.value), directed.down(number.lower), directed.up(number.upper))
    return Enclosure(*(end + 0.0 for end in ends))  # rounding zero upward gives the other zero


# ---------------------------------------------------------------- ties


class _Ties:
    """What doubles leave open, decided by values in rationals at single bounds."""

    def __init__(self, search: _Search, arithmetic: Arithmetic, holds: Holds, evaluate: Evaluate) -> None:
        self._search = search
        self._arithmetic = arithmetic
        self._holds = holds
        self._evaluate = evaluate
        self._crossed: dict[int, Mask] = {}

    def decided(self, lower: Floats, upper: Floats, *, most: float) -> tuple[Floats, Floats]:
        """The crossings, shape (n + 1,); those that may lie beyond ``most`` are only told from infinite ones."""
        open_ = lower < upper
        if not open_.any():
            return lower, upper
        lower, upper = lower.copy(), upper.copy()
        never = self._search.never(self._arithmetic)
        lower[never] = upper[never] = np.inf
        for entry in np.flatnonzero(open_ & ~never & (upper <= most)).tolist():
            lower[entry] = upper[entry] = self._crossing(entry, int(lower[entry]), upper[entry])
        return lower, upper

    def _crossing(self, entry: int, low: int, high: float) -> int:
        """The first count at which an entry has crossed; that is from ``low`` on, at ``high`` at the latest."""
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
        if count not in self._crossed:
            search = self._search
            if search.variable.strict and not search.variable.lower and count == 0:
                x = search.kind.without_budget(self._arithmetic)
            else:
                operator = search.variable.substituted(count * search.unit)
                x = self._evaluate(self._arithmetic, operator, self._holds)
            self._crossed[count] = search.compare(search.with_start(x))[0]
        return self._crossed[count]
