"""Probabilities and rewards while what is spent stays within budgets: ``F{"cost"}<=k`` and ``C{"cost"}<=k``.

A chain is unfolded over the levels of its budgets (see `budget`), from none left up to all of it: each level is one
product with the levels below, and one linear system, always of the same matrix, for the states that cost nothing.
Hartmanns, Junges, Katoen and Quatmann, Multi-cost bounded tradeoff analysis in MDP, Journal of Automated Reasoning 64,
2020; the semantics is theirs and Storm's: a reward is spent when its state is left.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching
from tracebridge.closedform.budget import MAX_LEVELS, level_after, levels_below, too_many_levels
from tracebridge.closedform.conditioning import AmplificationProbe
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.exit_distribution import BoundarySolver
from tracebridge.closedform.expected_reward import infinite_where, total_reward
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.until import UntilForm

    Mask = NDArray[np.bool_]
    Level = tuple[int, ...]

#: Multiplications of an unfolding in doubles, and operations on machine words of one in rationals.
MAX_WORK, MAX_EXACT_WORK = 2e10, 2e9

#: Numbers that are kept of the levels below.
MAX_STORED = 50_000_000


def until_within(arithmetic: Arithmetic, form: UntilForm, dimensions: Sequence[Budget]) -> EnclosureVector:
    """The probability of ``left U right`` with all bounds satisfied where ``right`` holds; or of the complement.

    Raises:
        UnsupportedError: if that unfolds the chain too far.
    """
    if any(dimension.empty for dimension in dimensions):
        return arithmetic.vector(np.full(len(form.left), form.complemented))
    return _whole_budget(arithmetic, until_recursion(arithmetic, form), dimensions)


def collected_within(
    arithmetic: Arithmetic, per_step: EnclosureVector, dimensions: Sequence[Budget]
) -> EnclosureVector:
    """Expected reward of the steps that no budget is exceeded by; infinite where that is.

    Raises:
        UnsupportedError: if that unfolds the chain too far.
    """
    if any(dimension.empty for dimension in dimensions):
        return arithmetic.vector(np.zeros(len(per_step), dtype=np.bool_))
    return _whole_budget(arithmetic, collecting_recursion(arithmetic, per_step, dimensions), dimensions)


def _whole_budget(arithmetic: Arithmetic, recursion: Recursion, dimensions: Sequence[Budget]) -> EnclosureVector:
    if isinstance(arithmetic, AmplificationProbe):
        arithmetic.count(_steps_within(arithmetic, recursion, dimensions))
        return recursion.exceeded
    unfolding = Unfolding(arithmetic, recursion, dimensions)
    found = None
    for found in unfolding.values(unfolding.needed_levels()):  # noqa: B007 - the last one counts
        pass
    if found is None or (found[0] != unfolding.top and not unfolding.settled):
        raise too_many_levels(unfolding.dimensions)
    return found[1]


def _steps_within(probe: AmplificationProbe, recursion: Recursion, dimensions: Sequence[Budget]) -> float:
    """An upper estimate of the expected number of steps that an unfolding follows a run for.

    Steps that cost something are limited by the budgets; between two of them a run stays where steps cost nothing. When
    all that is missing of lower bounds is spent, only upper ends are left to cost anything.
    """

    def stay(free: Mask) -> float:
        return probe.longest_stay(free & reaching(probe.chain.transitions, ~free, through=free))

    everywhere = np.ones(probe.chain.n_states, dtype=np.bool_)
    upper = [dimension.cost == 0 for dimension in dimensions if dimension.last is not None]
    free_of_upper = np.logical_and.reduce([everywhere, *upper])
    free = np.logical_and.reduce([dimension.cost == 0 for dimension in dimensions])
    costly = sum(_most_costly_steps(dimension) for dimension in dimensions)
    steps = costly * (1 + stay(free & recursion.open_[False])) if costly else 0.0
    if len(upper) < len(dimensions):
        steps += (costly + 1) * stay(free_of_upper & recursion.open_[True])
    return steps + (stay(free & recursion.open_[True]) if not costly else 0.0)


def _most_costly_steps(dimension: Budget) -> int:
    costs = dimension.cost[dimension.cost > 0]
    if not len(costs):
        return 0
    rounded_up = 0 if dimension.last is not None else costs.min() - 1  # more than what is missing may be spent
    return int((dimension.top + rounded_up) // costs.min())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recursion:
    """What an unfolding computes: ``x = gain + P x`` on open states, where P leads to the level after the step.

    Attributes:
        open_: the states that go on where the bounds are not satisfied, and where they are.
        settled: the values of the others, in the same two cases.
        exceeded: the value once a budget is exceeded, the same everywhere.
        stuck: the values of open states from which all that follows is open and free of cost; may be infinite.
        gain: None for zero.
    """

    open_: tuple[Mask, Mask]
    settled: tuple[EnclosureVector, EnclosureVector]
    exceeded: EnclosureVector
    stuck: EnclosureVector
    gain: EnclosureVector | None = None


def until_recursion(arithmetic: Arithmetic, form: UntilForm) -> Recursion:
    """The probability of ``left U right``, or its complement."""
    nowhere = np.zeros_like(form.left)
    goal = ~form.right if form.complemented else form.right
    outside = arithmetic.vector(nowhere | form.complemented)
    return Recursion(
        open_=(form.left, form.left & ~form.right),
        settled=(outside, arithmetic.vector(goal)),
        exceeded=outside,
        stuck=outside,
    )


def collecting_recursion(arithmetic: Arithmetic, per_step: EnclosureVector, dimensions: Sequence[Budget]) -> Recursion:
    """The expected reward of the steps within the budgets, all of which have upper ends only."""
    matrix = arithmetic.chain.transitions
    everywhere = np.ones(len(per_step), dtype=np.bool_)
    zero = arithmetic.vector(~everywhere)
    free = np.logical_and.reduce([dimension.cost == 0 for dimension in dimensions])
    stuck = free & ~reaching(matrix, ~free, through=free)
    return Recursion(
        open_=(everywhere, everywhere),
        settled=(zero, zero),
        exceeded=zero,
        stuck=total_reward(arithmetic, per_step, within=stuck),
        gain=per_step,
    )


class Unfolding:
    """The levels of a recursion, computed from below and forgotten when no later one needs them.

    Attributes:
        top: the level of the whole budget.
        settled: of a single budget, that the last level computed is that from which on nothing changes any more.
    """

    def __init__(self, arithmetic: Arithmetic, recursion: Recursion, dimensions: Sequence[Budget]) -> None:
        self.arithmetic = arithmetic
        self.recursion = recursion
        self.dimensions = dimensions
        self.top: Level = tuple(dimension.top for dimension in dimensions)
        self.settled = False
        costs = np.stack([np.minimum(dimension.cost, dimension.top + 1) for dimension in dimensions], axis=1)
        different, kinds = np.unique(costs, axis=0, return_inverse=True)
        self._costs: list[Level] = [tuple(row) for row in different.tolist()]
        self._kind: NDArray[np.int64] = kinds.reshape(-1)  # which of the costs a state has
        first, top = dimensions[0], self.top[0]
        # how far down the first budget a step can lead
        self._reach = max(
            (top - after for after in (first.after(top, cost[0]) for cost in self._costs) if after is not None),
            default=0,
        )
        self._stored: dict[Level, _Values] = {}
        self._order: deque[Level] = deque()
        self._regions: dict[bytes, _FreeRegion] = {}
        n = arithmetic.chain.n_states
        self._nowhere = np.zeros(n, dtype=np.bool_)
        self._zero = arithmetic.vector(self._nowhere)
        endless = np.array([x == np.inf for x in recursion.stuck.value.tolist()], dtype=np.bool_)
        self._stuck = _Values(EnclosureVector.where(endless, self._zero, recursion.stuck), endless)
        self._any_endless = bool(endless.any())
        self._work = 0.0

    def needed_levels(self) -> list[Level]:
        """The levels that that of the whole budget depends on, and it, ascending.

        Of a single budget that has too many, the first `MAX_LEVELS`, for values may settle before.

        Raises:
            UnsupportedError: if several budgets have too many.
        """
        try:
            return levels_below(self.dimensions, self._costs)
        except UnsupportedError:
            if len(self.dimensions) > 1:
                raise
            return [(level,) for level in range(MAX_LEVELS)]

    def values(self, levels: Iterable[Level]) -> Iterator[tuple[Level, EnclosureVector]]:
        """These levels, ascending, with the values at them; all levels that one depends on must be among those before.

        Raises:
            UnsupportedError: when it becomes too much work.
        """
        steady, since = None, 0
        for level in levels:
            while self._order and self._order[0][0] < level[0] - self._reach:
                del self._stored[self._order.popleft()]
            values = self._level(level)
            self._stored[level] = values
            self._order.append(level)
            self._require_feasible(values.finite)
            # With the same values at all levels that a step can lead to there is nothing to change them any more.
            if len(level) == 1 and self._fit(level) == self._fit(self.top):
                if steady is None or not steady.equals(values):
                    steady, since = values, level[0]
                self.settled = level[0] - since > self._reach
            yield level, infinite_where(values.endless, values.finite)
            if self.settled:
                return

    def _level(self, level: Level) -> _Values:
        fit = self._fit(level)
        open_, x = self.recursion.open_[fit], self.recursion.settled[fit]
        following = [level_after(self.dimensions, level, cost) for cost in self._costs]
        sources = list(dict.fromkeys(after for after in following if after not in {None, level}))
        place = {None: -1, level: -2} | {after: i for i, after in enumerate(sources)}
        source = np.where(open_, np.array([place[after] for after in following])[self._kind], -1)
        below = [self._stored[after] for after in sources]
        endless = self._nowhere
        if below:
            moved = self.arithmetic.advance(
                [values.finite for values in below], np.maximum(source, -1), self.recursion.gain
            )
            x = EnclosureVector.where(source >= 0, moved, x)
            if self._any_endless:
                endless = self._endless_next(below, source)
        exceeded = open_ & (source == -1)
        if exceeded.any():
            x = EnclosureVector.where(exceeded, self.recursion.exceeded, x)
        free = source == -2
        return self._through_free(free, _Values(x, endless)) if free.any() else _Values(x, endless)

    def _through_free(self, free: Mask, x: _Values) -> _Values:
        """The states where a step costs nothing, from the values of the others."""
        matrix = self.arithmetic.chain.transitions
        region = self._free_region(free)
        finite, endless = EnclosureVector.where(region.stuck, self._stuck.finite, x.finite), x.endless
        if self._any_endless:
            endless = reaching(matrix, endless | (region.stuck & self._stuck.endless), through=region.leaving)
        finite = region.solve(finite)
        if self._any_endless:
            finite = EnclosureVector.where(endless, self._zero, finite)
        return _Values(finite, endless)

    def _free_region(self, free: Mask) -> _FreeRegion:
        """Of these states; they are the same at almost all levels."""
        key = free.tobytes()
        if key not in self._regions:
            leaving = free & reaching(self.arithmetic.chain.transitions, ~free, through=free)
            solve = BoundarySolver(self.arithmetic, leaving, self.recursion.gain)
            self._regions[key] = _FreeRegion(leaving=leaving, stuck=free & ~leaving, solve=solve)
        return self._regions[key]

    def _endless_next(self, below: list[_Values], source: NDArray[np.int64]) -> Mask:
        """The states that a step leads from to infinite reward."""
        matrix = self.arithmetic.chain.transitions
        rows = np.repeat(np.arange(len(source)), np.diff(matrix.indptr))
        moving = source[rows] >= 0
        infinite = np.stack([values.endless for values in below])[source[rows[moving]], matrix.indices[moving]]
        found = self._nowhere.copy()
        found[rows[moving][infinite]] = True
        return found

    def _fit(self, level: Level) -> bool:
        return all(dimension.fits(amount) for dimension, amount in zip(self.dimensions, level, strict=True))

    def _require_feasible(self, x: EnclosureVector) -> None:
        entries, n = self.arithmetic.chain.transitions.nnz, len(x)
        if x.exact:
            words = max(value.denominator.bit_length() for value in x.value.tolist()) / 64
            self._work += entries * (50 + words)
        else:
            free = sum(region.solve.work for region in self._regions.values())
            self._work += entries + len(self._costs) * (n + 1_000) + free
        if self._work > (MAX_EXACT_WORK if x.exact else MAX_WORK):
            advice = "; use doubles" if x.exact else ""
            raise UnsupportedError(
                f"the bounds unfold a chain of {n} states so far that it becomes too much work{advice}"
            )
        if len(self._stored) * n > MAX_STORED:
            raise UnsupportedError(
                f"the bounds unfold a chain of {n} states so far that {len(self._stored)} levels are needed in memory "
                "at once, which is too much"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _FreeRegion:
    """States where a step costs nothing: those that are left in the end, and how to solve for them; the others."""

    leaving: Mask
    stuck: Mask
    solve: BoundarySolver


@dataclass(frozen=True, slots=True, eq=False)
class _Values:
    """The values at a level: what is finite, and where they are infinite (there 0 stands in the vector)."""

    finite: EnclosureVector
    endless: Mask

    def equals(self, other: _Values) -> bool:
        return all(
            np.array_equal(getattr(self.finite, part), getattr(other.finite, part))
            for part in ("value", "lower", "upper")
        ) and np.array_equal(self.endless, other.endless)
