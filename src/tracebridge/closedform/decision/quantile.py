"""Quantiles of a decision process: the bound at which the optimum over all schedulers crosses a threshold.

As an upper bound d grows, the greatest and the least probability of ``F<=d a`` only rise, and so does the optimal
reward of ``C<=d``; that of ``G<=d a`` only falls, with the other optimum of its complement. As for chains (see
`tracebridge.closedform.quantile`), the quantile is the first bound that satisfies the threshold, or the last one.

The values of growing bounds tend to the optimum x without a bound. For a maximum that is because two suprema, over d
and over schedulers, may change places. For a minimum the values rise to some y, and as each state has finitely many
choices, y is a solution of ``y = min_a (gain_a + P_a y)``; of these x is the least, and no value exceeds x, so y = x.
With x strictly beyond the threshold there is thus a crossing, which a search finds; with x before it there is none.

With x at the threshold there is one if and only if some bound attains x, which the graph decides. Call a choice
*conserving* if it attains the optimum of x, and a state *settled* if it is a goal or x is zero there.

* A maximum is attained where some scheduler of conserving choices almost surely settles within bounded cost: any other
  choice, and any successor for which x is not attained, loses something.
* A minimum is attained where no scheduler of conserving choices can go round a cycle that costs something before it
  settles. Where one can, it has spent any bound with positive probability and is then still owed something. Elsewhere
  the values of conserving choices come to be x as soon as the bound is large enough, and those of the others to be
  above it, as they tend to more than x; how large that is depends on the numbers.
"""

from __future__ import annotations

import math
from contextlib import suppress
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse.csgraph import connected_components

from tracebridge.chain.graph import reaching
from tracebridge.closedform.budget import units_of
from tracebridge.closedform.crossing import BoundSearch, Crossing, decided
from tracebridge.closedform.decision.choice_rewards import choice_gains, process_reward
from tracebridge.closedform.decision.exact_optimiser import ExactOptimiser
from tracebridge.closedform.decision.float_optimiser import FloatOptimiser
from tracebridge.closedform.decision.operators import optimal_values
from tracebridge.closedform.decision.optimum import optimum_of
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.quantile_bound import QuantileBound
from tracebridge.closedform.until import until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import CumulativeReward, Reward

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.closedform.decision.choices import Choices
    from tracebridge.closedform.decision.optimiser import Optimiser
    from tracebridge.closedform.enclosure import Enclosure
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Quantile

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: With doubles, ties are decided in rationals for processes of up to so many states and bounds of up to so many units.
TIE_STATES, TIE_BOUND = 40, 200

#: So many bounds are tried, one by one, where it is not known that one of them is beyond the threshold.
_DOUBTFUL_STEPS = 1_000

#: So many vectors are compared with the threshold at a time, and numbers in them.
MAX_BLOCK, MAX_BLOCK_NUMBERS = 256, 4_000_000


def optimal_quantile(
    optimiser: Optimiser, asked: Quantile, holds: Holds, weights: Sequence[Fraction]
) -> tuple[EnclosureVector, Enclosure]:
    """The quantile in every state, shape (n,), and that of the mean under the weights.

    ``P>=p`` is about the least probability, ``Pmax>=p`` about the greatest; see `optimum_of`.

    Args:
        optimiser: doubles or rationals, with the process. asked: its bound has an upper end alone, the variable.
        holds: where an operand is true, shape (n,). weights: shape (n,), sum one.

    Raises:
        PropertyError: a quantile without a threshold, an operator that does not say which optimum is meant, or an
            unknown reward structure.
        UnsupportedError: for bounds from below, several variables, and paths of LTL; in rationals also if it would be
            too much work.
    """
    process = optimiser.process
    search = _Search(process, asked, holds, weights)
    lower, upper = search.in_doubles(FloatOptimiser(process))
    if optimiser.exact:
        lower, upper = search.decided(ExactOptimiser(process), lower, upper, most=math.inf)
    elif process.n_states <= TIE_STATES:
        with suppress(UnsupportedError):  # then they stay open
            lower, upper = search.decided(ExactOptimiser(process), lower, upper, most=TIE_BOUND)
    return search.crossing.quantiles(lower, upper, exact=optimiser.exact)


class _Search:
    """The first bound, per state and at the start, at which the optimum has crossed the threshold."""

    def __init__(self, process: DecisionProcess, asked: Quantile, holds: Holds, weights: Sequence[Fraction]) -> None:
        self.variable = variable = QuantileBound.of(asked)
        operator, path, n = variable.operator, variable.path, process.n_states
        if variable.lower:
            raise UnsupportedError("quantiles over a bound from below are evaluated of chains only")
        self.process = process
        self.holds = holds
        self.maximise = optimum_of(operator) == "max"
        self.complemented = False
        self.gains: list[Fraction] | None = None
        if isinstance(path, CumulativeReward):
            structure = operator.structure if isinstance(operator, Reward) else None
            self.gains = choice_gains(process, process_reward(process, structure, operator.span))
            self.open_, self.goal = np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
        else:
            form = until_form(path, holds, n)
            self.open_, self.goal = form.left & ~form.right, form.right
            self.complemented = form.complemented
            self.maximise = self.maximise != form.complemented  # whoever makes the complement likely
        self.unit, self.cost = Fraction(1), np.ones(process.n_choices, dtype=np.int64)
        if not variable.on_steps:
            spent = process_reward(process, variable.structure, asked.span)
            self.unit, self.cost = units_of(choice_gains(process, spent))
        self.crossing = Crossing.of(asked, rising=not self.complemented, unit=self.unit, weights=weights)

    # ------------------------------------------------------------ values

    def limit(self, optimiser: Optimiser) -> EnclosureVector:
        """The optimum without a bound, shape (n,)."""
        return optimal_values(optimiser, self.variable.rebuild(None, ()), self.holds).values

    def values_at(self, optimiser: Optimiser, count: int) -> EnclosureVector:
        """The optimum for the bound of so many units, shape (n,)."""
        if self.variable.strict and count == 0:
            return optimiser.vector(np.full(self.process.n_states, self.complemented))
        return optimal_values(optimiser, self.variable.substituted(count * self.unit), self.holds).values

    def in_doubles(self, optimiser: FloatOptimiser) -> tuple[Floats, Floats]:
        """The least and the greatest count that may be the crossing, shape (n + 1,); the last entry is the start."""
        limit = self.crossing.with_start(self.limit(optimiser))
        open_ = ~self.crossing.never(limit, np.zeros(self.process.n_states, dtype=np.bool_))
        sure = limit.compare(">" if self.crossing.rising else "<", self.crossing.constant(limit))[0]
        find = self._step_by_step if self.variable.on_steps else self._by_halves
        return find(optimiser, open_, open_ & sure)

    def _step_by_step(self, optimiser: FloatOptimiser, open_: Mask, sure: Mask) -> tuple[Floats, Floats]:
        """The crossings in steps, of the open entries; those that are sure have one."""
        lower, upper = np.full(len(open_), np.inf), np.full(len(open_), np.inf)
        values = optimiser.iterates(
            optimiser.vector(self.goal), self.open_, maximise=self.maximise, gains=self.gains, cut=True
        )
        first, size = int(self.variable.strict), 1
        while block := list(islice(values, size)):
            # As values only rise or only fall, what is not across the threshold at the end of a block is so nowhere.
            surely, possibly = self._across(optimiser, block[-1])
            if (open_ & ((possibly & np.isinf(lower)) | (surely & np.isinf(upper)))).any():
                for count, x in enumerate(block, start=first):
                    surely, possibly = self._across(optimiser, x)
                    lower[open_ & possibly & np.isinf(lower)] = count
                    upper[open_ & surely & np.isinf(upper)] = count
            first += len(block)
            found = np.isfinite(upper)
            if found[open_].all() or (first > _DOUBTFUL_STEPS and found[sure].all()):
                break
            size = max(1, min(2 * size, MAX_BLOCK, MAX_BLOCK_NUMBERS // len(open_)))
        if self.variable.strict:  # before the first step there is a bound that nothing is within
            at_once = self.crossing.compare(self.crossing.with_start(self.values_at(optimiser, 0)))[0]
            lower[open_ & at_once] = upper[open_ & at_once] = 0
        lower[open_ & np.isinf(lower)] = first
        return lower, upper

    def _across(self, optimiser: FloatOptimiser, x: EnclosureVector) -> tuple[Mask, Mask]:
        """Where values of the until, or their complements, are across the threshold, shape (n + 1,)."""
        if self.complemented:
            rest = optimiser.vector(np.ones(len(x), dtype=np.bool_)) - x
            x = EnclosureVector.from_bounds(rest.value, np.maximum(rest.lower, 0), np.minimum(rest.upper, 1))
        return self.crossing.compare(self.crossing.with_start(x))

    def _by_halves(self, optimiser: FloatOptimiser, open_: Mask, sure: Mask) -> tuple[Floats, Floats]:
        """The crossings in units of a reward, by doubling and halving."""
        lower, upper = np.where(open_, 0, np.inf), np.full(len(open_), np.inf)
        surely, possibly = (
            BoundSearch(self.crossing, lambda count: self.values_at(optimiser, count), surely=degree)
            for degree in (True, False)
        )
        for entry in np.flatnonzero(sure).tolist():
            with suppress(UnsupportedError):  # the bounds unfold the process too far: it stays open
                upper[entry] = surely.first(entry, 0, math.inf)
                lower[entry] = possibly.first(entry, 0, upper[entry])
        return lower, upper

    def decided(self, optimiser: ExactOptimiser, lower: Floats, upper: Floats, *, most: float) -> tuple[Floats, Floats]:
        """What doubles leave open, decided in rationals; see `tracebridge.closedform.crossing.decided`."""
        search = BoundSearch(self.crossing, lambda count: self.values_at(optimiser, count))
        return decided(search, lambda: self._never(optimiser), lower, upper, most=most)

    # ------------------------------------------------------------ at the limit

    def _never(self, optimiser: ExactOptimiser) -> Mask:
        """Where no bound is across the threshold, shape (n + 1,)."""
        limit = self.limit(optimiser)
        return self.crossing.never(self.crossing.with_start(limit), ~self._attained(optimiser.choices, limit))

    def _attained(self, choices: Choices, limit: EnclosureVector) -> Mask:
        """Where some bound has the value of the limit, which is finite, shape (n,); see the module."""
        values: list[Fraction | float] = limit.value.tolist()
        if self.complemented:
            values = [1 - value for value in values]
        conserving = self._conserving(values)
        settled = self.goal | np.array([value == 0 for value in values], dtype=np.bool_)
        free = self.cost == 0
        if not self.maximise:
            return ~_goes_on(choices, conserving, ~settled, ~free)
        attained = settled
        while True:
            spending = conserving & ~free & choices.staying_in(attained)
            targets = attained | (choices.having(spending) & self.open_)
            found = choices.attainable(self.open_, targets, conserving & free)
            if np.array_equal(found, attained):
                return attained
            attained = found

    def _conserving(self, values: list[Fraction | float]) -> Mask:
        """The choices of finite worth that attain the optimum, shape (m,)."""
        matrix, owner = self.process.exact_transitions(), self.process.state_of_choice.tolist()
        found = np.zeros(len(owner), dtype=np.bool_)
        for choice, state in enumerate(owner):
            row = matrix.row(choice)
            if math.isinf(values[state]) or any(math.isinf(values[j]) for j in row):
                continue
            worth = sum((p * values[j] for j, p in row.items()), Fraction(0))
            found[choice] = worth + (0 if self.gains is None else self.gains[choice]) == values[state]
        return found


def _goes_on(choices: Choices, allowed: Mask, within: Mask, spending: Mask) -> Mask:
    """Where allowed choices may lead, inside a set of states, to a cycle with a choice that spends, shape (n,)."""
    inside = allowed & within[choices.owner]
    edges = choices.edges(inside)
    _, component = connected_components(edges, directed=True, connection="strong")
    around = inside & spending & choices.returning(component)
    return reaching(edges, choices.having(around), through=within)
