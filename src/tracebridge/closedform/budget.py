"""Budgets: bounds on steps and rewards as whole numbers of units, one dimension a bound.

The unit of a reward is the largest number of which all its amounts are multiples, so that what a run has spent is a
whole number of units. A run is followed by what is left of its budget, its *level*; of a lower bound alone that is what
is still missing, which never falls below zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import amount_of_reward, step_window
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.pctl.ast import RewardBound, Span, StepBound

#: Chains are unfolded over at most so many levels.
MAX_LEVELS = 100_000

_NEVER_AFFORDED = 2**62
_MAX_COMBINATIONS = 3_000_000  # of a level and a cost
_MAX_UNIT_BITS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Budget:
    """One bound: ``first <= spent <= last`` in units of ``unit``; ``last`` of None is no end.

    Attributes:
        cost: units that leaving a state spends, shape (n,), int64; of a decision process, that a choice spends, shape
            (m,).
    """

    cost: NDArray[np.int64]
    unit: Fraction
    first: int
    last: int | None

    @property
    def empty(self) -> bool:
        """Whether nothing that is spent fits."""
        return self.last is not None and self.last < self.first

    @property
    def top(self) -> int:
        """The level a run starts at."""
        return self.first if self.last is None else self.last

    def fits(self, level: int) -> bool:
        """Whether what was spent from `top` down to this level satisfies the bound."""
        return level <= (0 if self.last is None else self.last - self.first)

    def after(self, level: int, cost: int) -> int | None:
        """The level after spending; None if that exceeds the budget."""
        if self.last is None:
            return max(level - cost, 0)
        return level - cost if cost <= level else None


def budgets(
    chain: MarkovChain, bound: StepBound | None, reward_bounds: Sequence[RewardBound], span: Span | None = None
) -> list[Budget]:
    """The bounds of an operator, that on steps first.

    Raises:
        PropertyError: for bounds that are no numbers or negative, and unknown reward structures.
        UnsupportedError: for bounds of 2^62 units and more.
    """
    return budgets_of(
        chain.n_states,
        lambda structure: reward_structure(chain, structure, span).fractions(action=True),
        bound,
        reward_bounds,
    )


def budgets_of(
    size: int,
    amounts: Callable[[str | None], Sequence[Fraction]],
    bound: StepBound | None,
    reward_bounds: Sequence[RewardBound],
) -> list[Budget]:
    """As `budgets`, for so many rows: states of a chain, or choices of a decision process.

    Args:
        amounts: what taking each row spends of a reward structure.
    """
    found = []
    if bound is not None:
        window = step_window(bound)
        cost = np.ones(size, dtype=np.int64)
        found.append(Budget(cost=cost, unit=Fraction(1), first=window.first, last=window.last))
    for reward_bound in reward_bounds:
        unit, cost = units_of(amounts(reward_bound.structure))
        ends = reward_bound.bound
        first, last = 0, None
        if ends.lower is not None:
            units = amount_of_reward(ends.lower) / unit
            first = floor(units) + 1 if ends.lower_strict else ceil(units)
        if ends.upper is not None:
            units = amount_of_reward(ends.upper) / unit
            last = ceil(units) - 1 if ends.upper_strict else floor(units)
        found.append(Budget(cost=cost, unit=unit, first=first, last=last))
    if any(budget.top >= _NEVER_AFFORDED for budget in found):
        raise too_many_levels(found)
    return found


def step_budget(chain: MarkovChain, first: int, last: int | None) -> Budget:
    """A bound on the number of steps."""
    return Budget(cost=np.ones(chain.n_states, dtype=np.int64), unit=Fraction(1), first=first, last=last)


def reward_units(
    chain: MarkovChain, structure: str | None, span: Span | None = None
) -> tuple[Fraction, NDArray[np.int64]]:
    """The unit of a reward structure, and what leaving each state spends in it, shape (n,); see `units_of`.

    Raises:
        PropertyError: for an unknown reward structure.
        UnsupportedError: if the common denominator of the amounts is huge.
    """
    return units_of(reward_structure(chain, structure, span).fractions(action=True))


def units_of(amounts: Sequence[Fraction]) -> tuple[Fraction, NDArray[np.int64]]:
    """The largest number of which all amounts are multiples, and these in it, int64.

    An amount beyond 2^62 units counts as that, more than any unfolding can afford.

    Raises:
        UnsupportedError: if the common denominator of the amounts is huge.
    """
    positive = [x for x in amounts if x > 0]
    if not positive:
        return Fraction(1), np.zeros(len(amounts), dtype=np.int64)
    bottom = 1
    for denominator in {x.denominator for x in positive}:
        bottom = lcm(bottom, denominator)
        if bottom.bit_length() > _MAX_UNIT_BITS:
            raise UnsupportedError("the amounts of a reward structure have no common unit of less than 10,000 bits")
    unit = Fraction(gcd(*(x.numerator * (bottom // x.denominator) for x in positive)), bottom)
    return unit, np.array([min(int(x / unit), _NEVER_AFFORDED) for x in amounts], dtype=np.int64)


def levels_below(dimensions: Sequence[Budget], costs: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Every level that a run can come to, those of less budget before those of more.

    Args:
        costs: what steps can spend, in each dimension.

    Raises:
        UnsupportedError: if there are more than `MAX_LEVELS`.
    """
    steps = list(costs)
    top = tuple(dimension.top for dimension in dimensions)
    if len(dimensions) == 1 and top[0] < MAX_LEVELS:
        return [(level,) for level in _sums_below(dimensions[0], np.array(steps, dtype=np.int64).ravel())]
    found, frontier = {top}, [top]
    while frontier:
        level = frontier.pop()
        for cost in steps:
            following = level_after(dimensions, level, cost)
            if following is not None and following not in found:
                found.add(following)
                frontier.append(following)
        if len(found) > MAX_LEVELS or (len(found) - len(frontier)) * len(steps) > _MAX_COMBINATIONS:
            raise too_many_levels(dimensions)
    return sorted(found)


def _sums_below(dimension: Budget, costs: NDArray[np.int64]) -> list[int]:
    """The levels of one budget."""
    found = np.zeros(dimension.top + 1, dtype=np.bool_)
    found[dimension.top] = True
    for level in range(dimension.top, -1, -1):
        if found[level]:
            after = level - costs
            found[np.maximum(after, 0) if dimension.last is None else after[after >= 0]] = True
    return np.flatnonzero(found).tolist()


def level_after(dimensions: Sequence[Budget], level: tuple[int, ...], cost: tuple[int, ...]) -> tuple[int, ...] | None:
    """The level after a step that spends something in each dimension; None if some budget is exceeded."""
    following = []
    for dimension, before, spent in zip(dimensions, level, cost, strict=True):
        after = dimension.after(before, spent)
        if after is None:
            return None
        following.append(after)
    return tuple(following)


def too_many_levels(dimensions: Sequence[Budget]) -> UnsupportedError:
    """The error for bounds that unfold a chain too far."""
    sizes = ", ".join(f"{dimension.top * dimension.unit} in units of {dimension.unit}" for dimension in dimensions)
    return UnsupportedError(
        f"bounds that unfold the chain over more than {MAX_LEVELS:,} levels of what was spent are not evaluated: "
        f"{sizes}. Rewards that are multiples of a larger unit need fewer levels; a reward given as a double is a "
        "multiple of a tiny power of two unless it is written as a rational"
    )
