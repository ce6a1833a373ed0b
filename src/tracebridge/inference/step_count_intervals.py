"""Intervals for step counts of a fitted chain: its horizon, and the budget that a reliability takes.

Each draw of the posterior has a step count of its own; the ends of the interval are order statistics of these, found
by bisection, so that no curve of any draw is ever listed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching
from tracebridge.errors import UsageError
from tracebridge.inference.expanded.posterior import FitDraws
from tracebridge.inference.intervals import Interval, require_level
from tracebridge.inference.posterior import DEFAULT_DRAWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.closedform.batched.chain_stack import ChainStack

    Floats = NDArray[np.float64]

_MOST_STEPS = 2**40


def horizon_interval(
    fit: ChainFit | ExpandedFit,
    gap: float,
    *,
    draws: int = DEFAULT_DRAWS,
    seed: int = 0,
    level: float = 0.95,
    source: FitDraws | None = None,
) -> Interval:
    """The interval of the smallest d with ``R_inf - R(d) <= gap``, over posterior draws of the chain.

    Args:
        fit: the chain with its counts. gap: above zero, in probability. draws, seed: of the posterior.
        level: of the equal-tailed interval; an end is a number of steps. source: see `property_uncertainty`.

    Raises:
        UsageError: for a gap of zero or below, no draw, or a level that is none.
        UnsupportedError: for a large chain whose runs are too long.
    """
    if not gap > 0:
        raise UsageError(f"a horizon needs a gap above zero, not {gap!r}")
    return _interval(source or FitDraws.of_fit(fit), lambda R_inf: R_inf - gap, draws, seed, level)


def budget_interval(
    fit: ChainFit | ExpandedFit, reliability: float, *, draws: int = DEFAULT_DRAWS, seed: int = 0, level: float = 0.95
) -> Interval:
    """The interval of the smallest d with ``R(d) >= reliability``; arguments and errors as for `horizon_interval`.

    An end is infinite where so many draws never get there.
    """
    if not 0 < reliability <= 1:
        raise UsageError(f"a reliability to reach is above 0 and at most 1, not {reliability!r}")
    source = FitDraws.of_fit(fit)
    return _interval(source, lambda R_inf: np.full_like(R_inf, reliability), draws, seed, level)


# ---------------------------------------------------------------- behind them


def _interval(source: FitDraws, wanted: Callable[[Floats], Floats], draws: int, seed: int, level: float) -> Interval:
    """``wanted``: from R_inf of some draws to the R(d) that each must reach."""
    require_level(level)
    draws = source.number(draws)
    stacks = list(source.draws(draws, seed))
    chain = source.posterior.chain
    success = chain.label("success").astype(np.float64)[:, None]
    open_ = ~chain.label("absorbed") & reaching(chain.transitions, chain.label("success"))
    limits = [np.broadcast_to(s.mean_at_start(s.solve(open_, success)), (s.draws,)) for s in stacks]
    goals = [wanted(limit) for limit in limits]
    ever = sum(int((limit >= goal).sum()) for limit, goal in zip(limits, goals, strict=True))
    curve = _Curve(stacks, goals, 0, [success] * len(stacks))
    tail = (1 - level) / 2
    ends = []
    for q in (tail, 1 - tail):
        rank = max(1, math.ceil(q * draws - 1e-9))  # as in `equal_tailed`: rounding must not lead to the next rank
        found = _first_within(curve, rank) if rank <= ever else None
        ends.append(math.inf if found is None else float(found.d))
        curve = found or curve
    return Interval(lower=ends[0], upper=ends[1], level=level, method=source.method)


@dataclass(frozen=True, slots=True, eq=False)
class _Curve:
    """R(d) of all draws at one d, and what it must reach.

    Attributes:
        stacks: the draws. goals: of each draw, shape (draws,) for each stack. d: the step.
        values: R(d) from every state, shape (n, draws) or (n, 1) for each stack.
    """

    stacks: Sequence[ChainStack]
    goals: Sequence[Floats]
    d: int
    values: Sequence[Floats]

    def at(self, d: int) -> _Curve:
        """The same at a later d."""
        everywhere = np.ones(self.stacks[0].chain.n_states, dtype=np.bool_)
        values = [s.iterate(x, d - self.d, everywhere) for s, x in zip(self.stacks, self.values, strict=True)]
        return replace(self, d=d, values=values)

    def number_within(self) -> int:
        """Draws whose step count is at most d."""
        parts = zip(self.stacks, self.values, self.goals, strict=True)
        return sum(int((stack.mean_at_start(x) >= goal).sum()) for stack, x, goal in parts)


def _first_within(curve: _Curve, rank: int) -> _Curve | None:
    """The smallest d, from that of ``curve`` on, within which ``rank`` draws are; None beyond 2^40 steps."""
    if curve.number_within() >= rank:
        return curve
    step, below = 1, curve
    above = below.at(below.d + step)
    while above.number_within() < rank:
        if above.d > _MOST_STEPS:
            return None
        step *= 2
        below, above = above, above.at(above.d + step)
    while above.d - below.d > 1:
        middle = below.at((below.d + above.d) // 2)
        below, above = (below, middle) if middle.number_within() >= rank else (middle, above)
    return above
