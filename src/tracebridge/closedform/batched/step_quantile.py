"""Quantiles over a step bound on a stack of chains.

The same meaning as in `tracebridge.closedform.quantile`, in plain doubles: values are monotone in the bound, so that
each entry, a state or the start, crosses the threshold at one count of steps, or never. The limit of the values says
which do. The first counts are tried one by one, for all draws; what is open then goes on by ever smaller powers of two,
with powers of the matrices.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import recurrent_classes
from tracebridge.closedform.batched.chain_stack import DENSE_STATES, MAX_STEP_WORK
from tracebridge.closedform.batched.operators import total_reward, unbounded_until, until_probability
from tracebridge.closedform.bounded_value import BoundedCollection, BoundedProbability
from tracebridge.closedform.bounds import StepWindow, problem_at
from tracebridge.closedform.budget import step_budget
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.quantile_bound import QuantileBound
from tracebridge.closedform.until import UntilForm, until_form
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import CumulativeReward, Number, Reward

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Comparison, Quantile

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

#: So many counts, and as many as the chain has states, are tried one by one where a search by doubling can go on.
FIRST_COUNTS = 64

#: Crossings are searched for up to about this power of two, beyond which doubles do not count steps.
MAX_EXPONENT = 52

_POWER_BYTES = 64 * 2**20  # of the powers of matrices that are kept at a time

_COMPARE: dict[Comparison, Callable[[Floats, float], Mask]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_OPPOSITE: dict[Comparison, Comparison] = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def step_quantile(stack: ChainStack, asked: Quantile, holds: Holds, *, tie: float = 0.0) -> Floats:
    """The quantile in every state and, in the last row, at the start, shape (n + 1, draws).

    At the start it is that of the mean value of its operator. It is NaN where no bound is small enough, and where
    doubles cannot tell a crossing that comes after some 2^52 steps from none.

    Args:
        stack: the chains.
        asked: a quantile over steps; all constants but its variable are numbers.
        holds: the states where an operand is true, shape (n,), in all draws.
        tie: values whose relative distance to the threshold is at most this count as equal to it.

    Raises:
        PropertyError: without a threshold that is a number; for an unknown reward structure.
        UnsupportedError: for several variables or bounds, for an operator of another kind than ``P`` of a PCTL path and
            ``R`` of ``C``, and for too many steps of a large chain.
    """
    variable = QuantileBound.of(asked)
    threshold = variable.operator.threshold
    if threshold is None:
        raise PropertyError(problem_at("a quantile needs a threshold, such as P>=0.9", None, asked.span))
    if not isinstance(threshold.value, Number):
        raise PropertyError(f"the threshold of a quantile must be a number here, not {threshold.value}")
    values = _values(stack.chain, variable, holds)
    # Of the threshold's comparison and its opposite, the one that holds from some bound on.
    satisfied_beyond = (threshold.comparison in {">", ">="}) == values.rising
    comparison = threshold.comparison if satisfied_beyond else _OPPOSITE[threshold.comparison]
    crossing = _Crossing(values, comparison, float(threshold.value.value), tie)
    counts = crossing.counts(stack)
    if satisfied_beyond:
        return counts
    return np.where(counts == 0, np.nan, counts - 1)


# ---------------------------------------------------------------- values as a function of the bound


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Recursion:
    """``x <- gain + P x`` on the active states: from one bound to the next.

    Attributes:
        first: the values for the counts 0, 1, ..., each of shape (n, draws) or (n, 1); the recursion begins at the last
            one. active: shape (n,). gain: shape (n,), None for zero.
    """

    first: list[Floats]
    active: Mask
    gain: Floats | None = None


class _Probability:
    """``P`` of a path operator with one bound on steps."""

    def __init__(self, form: UntilForm, *, lower: bool, strict: bool) -> None:
        self._form = form
        self._lower = lower
        self._strict = strict
        self._kind = BoundedProbability(form, lower=lower)
        self.rising = self._kind.rising

    def recursion(self, stack: ChainStack) -> _Recursion:
        form = self._form
        if self._lower:  # up to the bound, which is one step at least, a run only has to stay in ``left``
            from_one_on = until_probability(stack, form, StepWindow(1, None))
            at_zero = [] if self._strict else [until_probability(stack, form, StepWindow(0, None))]
            return _Recursion(first=[*at_zero, from_one_on], active=form.left)
        none_fits = [_column(np.full(len(form.left), form.complemented))] if self._strict else []
        at_zero = [_column(~form.right if form.complemented else form.right)]
        return _Recursion(first=[*none_fits, *at_zero], active=form.left & ~form.right)

    def limit(self, stack: ChainStack) -> Floats:
        form = self._form
        if not self._lower:
            return unbounded_until(stack, form)
        for_ever = np.zeros_like(form.left)  # beyond every bound ``right`` is seen if it is so again and again
        for states in recurrent_classes(stack.chain.transitions):
            for_ever[states] = form.left[states].all() and form.right[states].any()
        return unbounded_until(stack, UntilForm(left=form.left, right=for_ever, complemented=form.complemented))

    def only_approached(self, chain: MarkovChain) -> Mask:
        """Where the values differ from their limit at every bound, shape (n,)."""
        return self._kind.never_attained(FloatArithmetic(chain), step_budget(chain, 0, None))


class _Collection:
    """``R`` of ``C`` with a bound on steps."""

    rising = True

    def __init__(self, structure: RewardStructure, *, strict: bool) -> None:
        self._per_step = structure.per_step
        self._strict = strict
        self._kind = BoundedCollection(structure.fractions(action=True))

    def recursion(self, stack: ChainStack) -> _Recursion:  # noqa: ARG002
        nothing = np.zeros((len(self._per_step), 1))
        everywhere = np.ones(len(self._per_step), dtype=np.bool_)
        return _Recursion(first=[nothing] * (1 + self._strict), active=everywhere, gain=self._per_step)

    def limit(self, stack: ChainStack) -> Floats:
        return total_reward(stack, self._per_step)

    def only_approached(self, chain: MarkovChain) -> Mask:
        return self._kind.never_attained(FloatArithmetic(chain), step_budget(chain, 0, None))


def _values(chain: MarkovChain, variable: QuantileBound, holds: Holds) -> _Probability | _Collection:
    if not isinstance(variable.path, CumulativeReward):
        form = until_form(variable.path, holds, chain.n_states)
        return _Probability(form, lower=variable.lower, strict=variable.strict)
    name = variable.operator.structure if isinstance(variable.operator, Reward) else None
    return _Collection(reward_structure(chain, name, variable.operator.span), strict=variable.strict)


def _column(mask: Mask) -> Floats:
    return mask.astype(np.float64)[:, None]


# ---------------------------------------------------------------- the search


@dataclass(frozen=True, slots=True, eq=False)
class _Crossing:
    """The first count at which values satisfy a comparison that they satisfy from some count on, if at all."""

    values: _Probability | _Collection
    comparison: Comparison
    threshold: float
    tie: float

    def counts(self, stack: ChainStack) -> Floats:
        """For every state and the start, shape (n + 1, draws); infinite for never, NaN where doubles cannot tell."""
        n, draws = stack.chain.n_states, np.arange(stack.draws)
        open_ = ~self._never(stack)
        counts = np.where(open_, np.nan, np.inf)
        recursion = self.values.recursion(stack)
        first = [np.broadcast_to(x, (n, stack.draws)) for x in recursion.first]
        count, x = 0, first[0]
        while True:
            crossed = open_ & self._crossed(_with_start(stack, x))
            counts[:, draws] = np.where(crossed, count, counts[:, draws])
            open_ &= ~crossed
            going_on = np.flatnonzero(open_.any(axis=0))
            if not len(going_on):
                return counts
            if 2 * len(going_on) <= len(draws):
                stack, draws, open_ = stack.select(going_on), draws[going_on], open_[:, going_on]
                x, first = x[:, going_on], [each[:, going_on] for each in first]
            if count >= FIRST_COUNTS + n and n <= DENSE_STATES:
                beyond = count + self._further(stack, x, recursion, open_)
                counts[:, draws] = np.where(open_, beyond, counts[:, draws])
                return counts
            if n > DENSE_STATES and (count + 1) * stack.entries.size > MAX_STEP_WORK:
                raise UnsupportedError(
                    f"a quantile of more than {count:,} steps of {n} states is too much for {stack.draws} draws"
                )
            count += 1
            if count < len(first):
                x = first[count]
                continue
            following = stack.iterate(x, 1, recursion.active, recursion.gain)
            if n > DENSE_STATES and np.array_equal(following, x):  # as near to the limit as doubles come
                return counts
            x = following

    def _crossed(self, x: Floats) -> Mask:
        return _COMPARE[self.comparison](self._snapped(x), self.threshold)

    def _snapped(self, x: Floats) -> Floats:
        """The values with those that tie with the threshold on it."""
        if not self.tie:
            return x
        return np.where(np.abs(x - self.threshold) <= self.tie * abs(self.threshold), self.threshold, x)

    def _never(self, stack: ChainStack) -> Mask:
        """Where the limit says that no count crosses, shape (n + 1, draws)."""
        limit = self._snapped(_with_start(stack, self.values.limit(stack)))
        limit = np.broadcast_to(limit, (len(limit), stack.draws))
        approached = np.repeat(self._only_approached(stack.chain)[:, None], stack.draws, axis=1)
        if not stack.has_all_edges:  # a draw without some edges may attain what others only approach
            for draw in np.flatnonzero((approached & (limit == self.threshold)).any(axis=0)).tolist():
                approached[:, draw] = self._only_approached(stack.chain_at(draw))
        beyond = _COMPARE[">" if self.values.rising else "<"](limit, self.threshold)
        # A limit that is only approached must lie beyond the threshold; one at it is never reached.
        return ~np.where(approached, beyond, self._crossed(limit))

    def _only_approached(self, chain: MarkovChain) -> Mask:
        """For every state and the start, shape (n + 1,)."""
        approached = self.values.only_approached(chain)
        return np.append(approached, approached[chain.initial > 0].any())

    def _further(self, stack: ChainStack, x: Floats, recursion: _Recursion, open_: Mask) -> Floats:
        """How many steps on from x the open entries cross, shape (n + 1, draws)."""
        rows = np.flatnonzero(recursion.active)
        entries = np.append(rows, stack.chain.n_states)
        further = np.full(open_.shape, np.nan)
        size = max(1, _POWER_BYTES // (8 * (MAX_EXPONENT + 4) * len(entries) ** 2))
        for first in range(0, stack.draws, size):
            draws = np.arange(first, min(first + size, stack.draws))
            some, values = stack.select(draws), x[:, draws]
            matrix = some.affine_map(values, rows, recursion.gain)
            column = np.vstack([values[rows], np.ones(len(draws))]).T[:, :, None]
            found = self._by_powers(matrix, column, _mean_row(some, values, rows), open_[np.ix_(entries, draws)].T)
            further[np.ix_(entries, draws)] = found.T
        return further

    def _by_powers(self, matrix: Floats, column: Floats, start: Floats, open_: Mask) -> Floats:
        """The least number t of steps after which ``rows M^t column`` has crossed, shape (draws, entries).

        Args:
            matrix: M, shape (draws, entries, entries). column: shape (draws, entries, 1).
            start: the row of the last entry, shape (draws, entries); those of the others are unit vectors.
            open_: entries that have not crossed in no step, but do in some, shape (draws, entries).
        """
        entries = open_.shape[1]
        rows = np.repeat(np.eye(entries)[None], len(open_), axis=0)
        rows[:, -1] = start
        powers = [matrix]
        while True:
            crossed = self._crossed((rows @ (powers[-1] @ column))[:, :, 0])
            if (crossed | ~open_).all() or len(powers) > MAX_EXPONENT:
                break
            powers.append(powers[-1] @ powers[-1])
        steps = np.zeros(open_.shape)
        for exponent in range(len(powers) - 1, -1, -1):
            moved = rows @ powers[exponent]
            waiting = ~self._crossed((moved @ column)[:, :, 0])
            rows = np.where(waiting[:, :, None], moved, rows)
            steps += np.where(waiting, 2.0**exponent, 0)
        return np.where(crossed, steps + 1, np.nan)


def _with_start(stack: ChainStack, x: Floats) -> Floats:
    """Values of states with their mean at the start below, shape (n + 1, draws) or (n + 1, 1)."""
    start = np.atleast_1d(stack.mean_at_start(x))
    width = max(x.shape[1], len(start))
    return np.vstack([np.broadcast_to(x, (len(x), width)), np.broadcast_to(start, (1, width))])


def _mean_row(stack: ChainStack, x: Floats, rows: Indices) -> Floats:
    """The row whose product with x on the rows, and one, is the mean at the start, shape (draws, rows + 1)."""
    initial = np.broadcast_to(stack.initial, x.shape)
    others = np.setdiff1d(np.arange(len(x)), rows)
    fixed = (initial[others] * x[others]).sum(axis=0)
    return np.vstack([initial[rows], fixed[None]]).T
