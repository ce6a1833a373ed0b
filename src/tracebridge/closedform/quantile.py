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

from tracebridge.closedform.bounded_value import BoundedCollection, BoundedProbability
from tracebridge.closedform.bounds import problem_at
from tracebridge.closedform.budget import MAX_LEVELS, Budget, reward_units, step_budget
from tracebridge.closedform.crossing import BoundSearch, Crossing, decided
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.quantile_bound import QuantileBound
from tracebridge.closedform.reward_bounded import Unfolding
from tracebridge.closedform.step_doubling import MAX_STATES, crossing_counts
from tracebridge.closedform.until import until_form
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import CumulativeReward, Reward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.bounded_value import BoundedValue
    from tracebridge.closedform.step_doubling import StepRecursion
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Operator, Quantile

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Evaluate = Callable[[Arithmetic, Operator, Holds], EnclosureVector]

#: With doubles, ties are decided in rationals for chains of up to so many states and bounds of up to so many units.
TIE_STATES, TIE_BOUND = 40, 200

#: So many bounds are tried one by one where a search by doubling can go on.
FIRST_COUNTS = 1_000


def quantile(
    arithmetic: Arithmetic, asked: Quantile, holds: Holds, weights: Sequence[Fraction | float], evaluate: Evaluate
) -> tuple[EnclosureVector, Enclosure]:
    """See `tracebridge.closedform.modelcheck.evaluate_quantile`; ``evaluate`` is its `evaluate_operator`."""
    search = _Search(arithmetic.chain, asked, holds, weights)
    lower, upper = search.in_doubles()
    if arithmetic.exact:
        lower, upper = search.decided(arithmetic, holds, evaluate, lower, upper, most=math.inf)
    elif arithmetic.chain.n_states <= TIE_STATES:
        exact = ExactArithmetic(arithmetic.chain)
        with suppress(UnsupportedError):  # then they stay open
            lower, upper = search.decided(exact, holds, evaluate, lower, upper, most=TIE_BOUND)
    return search.crossing.quantiles(lower, upper, exact=arithmetic.exact)


def bounded_by(chain: MarkovChain, asked: Quantile, holds: Holds, evaluate: Evaluate) -> Operator:
    """The operator of a quantile with the quantile of the initial distribution for its variable, or about that."""
    _, start = quantile(FloatArithmetic(chain), asked, holds, chain.exact_initial(), evaluate)
    number = Fraction(0) if start.undefined or math.isinf(start.lower) else Fraction(start.lower)
    return QuantileBound.of(asked).substituted(number)


# ---------------------------------------------------------------- the search


class _Search:
    """The first bound, per state and at the start, at which the value has crossed the threshold."""

    def __init__(self, chain: MarkovChain, asked: Quantile, holds: Holds, weights: Sequence[Fraction | float]) -> None:
        self.variable = QuantileBound.of(asked)
        operator = self.variable.operator
        self.chain = chain
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
            unit, cost = Fraction(1), step_budget(self.chain, 0, None).cost
        else:
            unit, cost = reward_units(self.chain, self.variable.structure, asked.span)
        # The levels below do not depend on how large the budget is.
        first, last = (MAX_LEVELS - 1, None) if self.variable.lower else (0, MAX_LEVELS - 1)
        self.budget = Budget(cost=cost, unit=unit, first=first, last=last)
        self.crossing = Crossing.of(asked, rising=self.kind.rising, unit=unit, weights=weights)

    def in_doubles(self) -> tuple[Floats, Floats]:
        """The least and the greatest count that may be the crossing, shape (n + 1,); the last entry is the start."""
        arithmetic = FloatArithmetic(self.chain)
        open_ = ~self.never(arithmetic)
        lower, upper = np.full(len(open_), np.inf), np.full(len(open_), np.inf)
        recursion = self.kind.step_recursion(arithmetic) if self.variable.on_steps else None
        doubling = recursion is not None and np.count_nonzero(recursion.active) <= MAX_STATES
        count = -1
        for count, x in enumerate(islice(self._values(arithmetic), FIRST_COUNTS if doubling else None)):
            surely, possibly = self.crossing.compare(self.crossing.with_start(x))
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
            self.crossing.weights if entry == n else [Fraction(int(i == entry)) for i in range(n)]
            for entry in entries.tolist()
        ]
        P = self.chain.exact_transitions()
        low, high = crossing_counts(P, recursion, weights, self.crossing.comparison, self.crossing.threshold)
        shift = 0 if not self.variable.strict else -1 if self.variable.lower else 1
        lower[entries] = np.maximum(lower[entries], low + shift)
        upper[entries] = high + shift

    def never(self, arithmetic: Arithmetic) -> Mask:
        """Where the threshold is surely not crossed at any bound, shape (n + 1,)."""
        limit = self.crossing.with_start(self.kind.limit(arithmetic, self.budget))
        return self.crossing.never(limit, self.kind.never_attained(arithmetic, self.budget))

    def decided(
        self, arithmetic: Arithmetic, holds: Holds, evaluate: Evaluate, lower: Floats, upper: Floats, *, most: float
    ) -> tuple[Floats, Floats]:
        """What doubles leave open, decided in rationals; see `tracebridge.closedform.crossing.decided`."""

        def values_at(count: int) -> EnclosureVector:
            if self.variable.strict and not self.variable.lower and count == 0:
                return self.kind.without_budget(arithmetic)
            return evaluate(arithmetic, self.variable.substituted(count * self.crossing.unit), holds)

        search = BoundSearch(self.crossing, values_at)
        return decided(search, lambda: self.never(arithmetic), lower, upper, most=most)

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


def _with_first(first: EnclosureVector, rest: Iterable[EnclosureVector]) -> Iterator[EnclosureVector]:
    yield first
    yield from rest
