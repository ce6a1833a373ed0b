"""The distribution of first passage times: reliability within a step budget, and the means that go with it.

``R(d) = Pr(F<=d success)`` is the probability that a run succeeds within a budget of d steps. It never decreases in d;
the "decay" in the literature's "reliability decay curve" is over the length of the task, not over the budget. A run
without a step is absorbed at time 0. Distributions are computed forward, ``v <- v Q``, and never from a power of Q.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.closedform.absorbing_system import (
    AbsorbingSystem,
    Chain,
    Scalar,
    absorbers_in,
    absorbing_form,
    complementary,
    scalar,
)
from tracebridge.closedform.entries import Array
from tracebridge.closedform.fundamental import long_run_split
from tracebridge.closedform.passage import Passage, every_absorber, step_limit
from tracebridge.closedform.passage_balls import split_in_balls
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.absorbing import AbsorbingChain

Target = str | Collection[str]


def reliability(chain: Chain, d: int, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``R(d)``, the probability to reach the target within d steps from the initial distribution (paper, eq. 1).

    Args:
        chain: an absorbing chain.
        d: the budget in steps, not negative.
        target: the label or state that means success, or several of them; all of its states must be absorbing.
        exact: compute in Fractions.

    Raises:
        ModelError: if the chain is not absorbing, or for a target that is unknown or not absorbing.
        UnsupportedError: for a budget beyond the reach of every method at this size.
    """
    form = absorbing_form(chain)
    return _split(form, absorbers_in(form, target), _step_count(d), exact=exact, both=False)[0]


def reliability_curve(chain: Chain, d_max: int, *, target: Target = "success", exact: bool = False) -> Array:
    """``R(0), ..., R(d_max)``, shape (d_max + 1,), non-decreasing (the reliability decay curve of the literature)."""
    return _cumulated(first_passage_pmf(chain, d_max, target=target, exact=exact))


def first_passage_pmf(chain: Chain, d_max: int, *, target: Target = "success", exact: bool = False) -> Array:
    """Probabilities to succeed in exactly 0, ..., d_max steps; shape (d_max + 1,). Their sum tends to R_inf."""
    form = absorbing_form(chain)
    return Passage.into(form, absorbers_in(form, target), exact=exact).pmf(_step_count(d_max))


def absorption_time_pmf(chain: Chain, d_max: int, *, exact: bool = False) -> Array:
    """Probabilities that a run ends, however it ends, in exactly 0, ..., d_max steps; shape (d_max + 1,)."""
    form = absorbing_form(chain)
    return Passage.into(form, every_absorber(form), exact=exact).pmf(_step_count(d_max))


def absorption_time_cdf(chain: Chain, d_max: int, *, exact: bool = False) -> Array:
    """Probabilities that a run has ended within 0, ..., d_max steps; shape (d_max + 1,)."""
    return _cumulated(absorption_time_pmf(chain, d_max, exact=exact))


def reliability_split(
    chain: Chain, d: int | None, *, target: Target = "success", exact: bool = False
) -> tuple[Scalar, Scalar]:
    """``(R(d), 1 - R(d))``, both accurate however small; ``d=None`` means no limit."""
    if d is None:
        return long_run_split(chain, target=target, exact=exact)
    form = absorbing_form(chain)
    return _split(form, absorbers_in(form, target), _step_count(d), exact=exact, both=True)


def _split(form: AbsorbingChain, hit: NDArray[np.bool_], d: int, *, exact: bool, both: bool) -> tuple[Scalar, Scalar]:
    """As `reliability_split`; without ``both`` only R(d) is as accurate, which may take fewer steps."""
    if exact:
        reached = sum(Passage.into(form, hit, exact=True).pmf(d).tolist(), Fraction(0))
        return reached, 1 - reached
    system = AbsorbingSystem(form, exact=False)
    limit = step_limit(system.size, len(system.Q.rows))
    v, ended = system.initial, system.initial_absorbed
    for _ in range(min(d, limit)):
        running = v.sum()
        settled = min(ended[hit].sum(), ended[~hit].sum()) if both else ended[hit].sum()
        if running <= 2.0**-60 * settled:
            break  # what still runs changes nothing
        ended = ended + system.R.left(v)
        v = system.Q.left(v)
    else:
        if d > limit:
            return split_in_balls(Passage.into(form, hit, exact=True), d)
    return complementary(ended[hit].sum(), ended[~hit].sum() + v.sum(), exact=False)


# ---------------------------------------------------------------- means


def mean_time_to_success(chain: Chain, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``pi0 N h / R_inf``: expected steps of the runs that succeed; NaN if none can (there is nothing to average)."""
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    visits = system.visits()
    success = (system.R.left(visits) + system.initial_absorbed)[hit].sum()
    if not success:
        return math.nan
    return scalar(visits @ system.solve(system.exits(hit)) / success, exact=exact)


def steps_per_failure(chain: Chain, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``MTTA / (1 - R_inf)``: steps of operation for each run that does not succeed.

    Infinite if failure cannot be reached; NaN if, moreover, runs have no steps.
    """
    system = AbsorbingSystem(absorbing_form(chain), exact=exact)
    hit = absorbers_in(system.chain, target)
    visits = system.visits()
    return _ratio(visits.sum(), (system.R.left(visits) + system.initial_absorbed)[~hit].sum(), exact=exact)


def runs_per_failure(chain: Chain, *, target: Target = "success", exact: bool = False) -> Scalar:
    """``1 / (1 - R_inf)``: runs for each run that does not succeed; infinite if failure cannot be reached."""
    return _ratio(1, long_run_split(chain, target=target, exact=exact)[1], exact=exact)


# ---------------------------------------------------------------- behind them


def _cumulated(pmf: Array) -> Array:
    if pmf.dtype != object:
        return np.asarray(np.minimum(np.cumsum(pmf), 1.0))
    curve = np.empty(len(pmf), dtype=object)
    curve[:] = list(accumulate(pmf.tolist()))
    return curve


def _ratio(top: Any, bottom: Any, *, exact: bool) -> Scalar:
    if not bottom:
        return math.inf if top else math.nan
    return scalar(top, exact=exact) / scalar(bottom, exact=exact)


def _step_count(d: int) -> int:
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 0:
        raise UsageError(f"a number of steps is an integer, zero or more, not {d!r}")
    return int(d)
