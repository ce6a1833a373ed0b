"""Step counts that are proven for the exact chain: quantiles, budgets and horizons.

``R_inf - R(d) = v Q^d h`` with ``h = N r`` is a positive quantity that never increases. It is compared in rigorous
bounds, in ball arithmetic where doubles leave the comparison open, and in rationals where it is a tie. Numbers given as
floats are read as the decimals that print them: 0.9 is 9/10.
"""

from __future__ import annotations

import math
from fractions import Fraction
from numbers import Rational
from typing import TYPE_CHECKING

from tracebridge.closedform import directed
from tracebridge.closedform.absorbing_system import Chain, Scalar, absorbers_in, absorbing_form
from tracebridge.closedform.fundamental import long_run_split
from tracebridge.closedform.passage import BALL_LIMIT, Passage, every_absorber, step_limit
from tracebridge.closedform.passage_balls import UndecidedError, search_in_balls
from tracebridge.errors import UnsupportedError, UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracebridge.chain.absorbing import AbsorbingChain
    from tracebridge.closedform.entries import Array
    from tracebridge.closedform.firstpassage import Target

#: Up to this many states balls are quicker than doubles.
_BALLS_FIRST = 48
_UNIT = 2.0**-53


def first_passage_quantile(
    chain: Chain, p: Scalar | int, *, target: Target = "success", given_success: bool = False
) -> float:
    """The smallest d with ``R(d) >= p``; infinite where no budget reaches p, in particular where ``R_inf < p``.

    With ``given_success`` the distribution is that of the runs that succeed, ``R(d) / R_inf`` (NaN if none can).

    Raises:
        UsageError: unless 0 <= p <= 1.
        UnsupportedError: if the chain is too large to decide a comparison that lies within rounding.
    """
    p = _probability(p)
    form = absorbing_form(chain)
    hit = absorbers_in(form, target)
    if given_success and not long_run_split(form, target=target)[0]:
        return math.nan
    if p == 0:
        return 0
    if given_success:
        return _first_step_within(form, hit, slope=1 - p, offset=Fraction(0))
    return _first_step_within(form, hit, slope=Fraction(1), offset=-p)


def budget_for(chain: Chain, reliability: Scalar | int, *, target: Target = "success") -> int | None:
    """The smallest budget d with ``R(d) >= reliability``; None where no budget is enough."""
    d = first_passage_quantile(chain, reliability, target=target)
    return None if math.isinf(d) else int(d)


def absorption_time_quantile(chain: Chain, p: Scalar | int) -> float:
    """The smallest d such that a run has ended within d steps with probability p or more.

    Infinite only for p = 1 in a chain with a cycle.
    """
    form = absorbing_form(chain)
    return _first_step_within(form, every_absorber(form), slope=Fraction(0), offset=1 - _probability(p))


def horizon(chain: Chain, gap: Scalar | int, *, target: Target = "success") -> float:
    """The smallest d with ``R_inf - R(d) <= gap``: the budget beyond which more steps buy at most ``gap``.

    Exact, where the paper's eq. 14 and `horizon_bound` are bounds. Infinite only for gap 0 in a chain with a cycle.

    Raises:
        UsageError: for a negative gap.
        UnsupportedError: if the chain is too large to decide a comparison that lies within rounding.
    """
    form = absorbing_form(chain)
    return _first_step_within(form, absorbers_in(form, target), slope=Fraction(0), offset=allowed_gap(gap))


# ---------------------------------------------------------------- deciding the first step


def _first_step_within(form: AbsorbingChain, hit: NDArray[np.bool_], *, slope: Fraction, offset: Fraction) -> float:
    """The smallest d with ``R_inf - R(d) <= slope * R_inf + offset``, proven for the exact chain; infinite if none."""
    if slope == 0 and offset >= 1:
        return 0
    passage = Passage.into(form, hit, exact=False)
    if passage.size > _BALLS_FIRST:
        try:
            return _search_in_doubles(passage, slope, offset)
        except UndecidedError:
            if passage.size > BALL_LIMIT:
                raise UnsupportedError(
                    f"a step count of a chain with {passage.size} states cannot be decided: a comparison lies within "
                    "rounding, or the count is beyond a recursion in doubles"
                ) from None
    return search_in_balls(Passage.into(form, hit, exact=True), slope, offset)


def _search_in_doubles(passage: Passage, slope: Fraction, offset: Fraction) -> float:
    """By forward recursion; every number carries the bound on the roundings behind it."""
    once = (
        passage.size + passage.form.chain.n_states + 16
    )  # roundings of the initial distribution and the product with h
    lower, upper = passage.hitting_bounds()

    def gap_bounds(v: Array, d: int) -> tuple[float, float]:
        roundings = (d * passage.roundings_per_step + once) * _UNIT
        relative = roundings / (1 - roundings)
        # The constant covers what underflow may have changed.
        return float(v @ lower) * (1 - relative) - 1e-300, float(v @ upper) * (1 + relative) + 1e-300

    least = most = slope + offset
    if not passage.certain:
        low, high = gap_bounds(passage.v, 0)
        around = Fraction(once, 2**52)
        least = slope * (Fraction(passage.mass) * (1 - around) + Fraction(low)) + offset
        most = slope * (Fraction(passage.mass) * (1 + around) + Fraction(high)) + offset
    if most < 0:
        return math.inf
    if least == most == 0:
        return passage.longest()
    if least <= 0:
        raise UndecidedError
    least_double, most_double = directed.down(least), directed.up(most)
    v = passage.v
    for d in range(step_limit(passage.size, len(passage.Q.rows))):
        low, high = gap_bounds(v, d)
        if high <= least_double:
            return d
        if low <= most_double:
            raise UndecidedError
        v = passage.Q.left(v)
    raise UndecidedError


# ---------------------------------------------------------------- numbers as written


def rational(value: Scalar | int) -> Fraction:
    """The number as a user wrote it: a float stands for the shortest decimal that prints it, 0.9 for 9/10."""
    if isinstance(value, Rational):
        return Fraction(value)
    number = float(value)
    if not math.isfinite(number):
        raise UsageError(f"a finite number is needed, not {value!r}")
    return Fraction(repr(number))


def _probability(p: Scalar | int) -> Fraction:
    number = rational(p)
    if not 0 <= number <= 1:
        raise UsageError(f"a probability lies between 0 and 1, {p} does not")
    return number


def allowed_gap(gap: Scalar | int) -> Fraction:
    """A gap as written. Raises UsageError for a negative one."""
    number = rational(gap)
    if number < 0:
        raise UsageError(f"a gap is zero or more, not {gap!r}")
    return number
