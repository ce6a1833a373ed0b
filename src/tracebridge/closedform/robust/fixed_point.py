"""The optimal values of unknown states by their Bellman equation, between proven bounds.

``x = gain + opt p x`` over the rows p between the bounds, with x known outside the unknown states. Three steps:

1. *Policy iteration* in plain doubles guesses x: choose the extreme rows for x, solve the linear system, again.
2. *Proof.* With w > 0 and ``w >= 1 + p w`` for the rows that matter, ``x + d w`` is an upper bound as soon as one step
   of the equation, rounded outward, does not raise it, and ``x - d w`` a lower bound if one does not lower it (the
   induction of Park: the equation is monotone and has one solution). The distance d starts at the residual.
3. *Interval iteration* narrows both, or starts from zero and the largest possible value where nothing was proved:
   each step, rounded outward, of a bound is a bound. It ends at a gap of 1e-9, or where little progress is left: the
   bounds are then as far apart as they are.

The equation has one solution where each choice of rows leaves the unknown states surely, or earns without end if it
does not; the caller sees to that by graph algorithms. Haddad and Monmege, Theoretical Computer Science 735, 2018;
Hartmanns and Kaminski, CAV 2020; Bertsekas and Tsitsiklis, Mathematics of Operations Research 16, 1991.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import eye_array
from scipy.sparse.linalg import splu

from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.robust.rows import IntervalRows

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

#: Bounds are narrowed until they are as close as this, relative to values above one.
GAP = 1e-9

_MAX_POLICIES = 100
_MAX_DOUBLINGS = 24
_FEW_SWEEPS, _MANY_SWEEPS = 300, 10_000  # where both bounds were proved, and where one has all the way to go
_PROGRESS_SWEEPS, _PROGRESS = 100, 0.999  # so many sweeps must close a thousandth of the gaps
_CLOSE = 4e-16

# What overflows is noticed and given up.
_QUIET = np.errstate(over="ignore", invalid="ignore", divide="ignore")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BellmanEquation:
    """``x[unknown] = gain + opt p x`` over the rows between bounds.

    Attributes:
        rows: of the unknown states, in their order. unknown: shape (n,).
        known_lower, known_upper: what lies outside the unknown states, shape (n,). gain_lower, gain_upper: of the
            unknown states, shape (k,). maximise: which optimum.
        largest: a bound on all values, or None.
        ranking: values, shape (n,), whose optimal rows leave the unknown states surely.
        every_choice_leaves: all rows do so.
    """

    rows: IntervalRows
    unknown: Mask
    known_lower: Floats
    known_upper: Floats
    gain_lower: Floats
    gain_upper: Floats
    maximise: bool
    largest: float | None
    ranking: Floats
    every_choice_leaves: bool

    def step(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """One step of a lower and of an upper bound, shape (n,) each, rounded outward: those of the unknown states."""
        below, _ = self.rows.mean_bounds(lower, maximise=self.maximise)
        _, above = self.rows.mean_bounds(upper, maximise=self.maximise)
        return directed.add_down(below, self.gain_lower), directed.add_up(above, self.gain_upper)

    def with_values(self, values: Floats, *, upper: bool) -> Floats:
        """Values of the unknown states among the known ones, shape (n,)."""
        whole = (self.known_upper if upper else self.known_lower).copy()
        whole[self.unknown] = values
        return whole


def solve_bellman(equation: BellmanEquation) -> EnclosureVector:
    """The solution in all states, shape (n,).

    Raises:
        UnsupportedError: if no finite bound can be proved.
    """
    if not equation.unknown.any():
        return _enclosed(equation, np.empty(0), np.empty(0), np.empty(0))
    guess = _by_policies(equation)
    proved_lower = proved_upper = None
    if guess is not None:
        solution, stay = guess
        # The rows chosen for x bear out the bound that nature would rather improve on. The other one stands against all
        # rows: those that are nearly as good are often as quick, and where not, weights for all rows are safe.
        safe = _weights_for_all(equation, solution)
        stays = [stay] if safe is None else [stay, safe]
        proved_lower = _proved(equation, solution, stays[:1] if equation.maximise else stays, upper=False)
        proved_upper = _proved(equation, solution, stays if equation.maximise else stays[:1], upper=True)
    k = int(np.count_nonzero(equation.unknown))
    lower = np.zeros(k) if proved_lower is None else np.maximum(proved_lower, 0.0)
    if equation.largest is not None:
        largest = np.full(k, equation.largest)
        upper = largest if proved_upper is None else np.minimum(proved_upper, largest)
    elif proved_upper is not None:
        upper = proved_upper
    else:
        raise UnsupportedError(
            "no finite bound of a robust expected reward can be proved: runs are too long for doubles"
        )
    proved = proved_lower is not None and proved_upper is not None
    lower, upper = _narrowed(equation, lower, upper, _FEW_SWEEPS if proved else _MANY_SWEEPS)
    return _enclosed(equation, solution if guess is not None else (lower + upper) / 2, lower, upper)


@_QUIET
def _by_policies(equation: BellmanEquation) -> tuple[Floats, Floats] | None:
    """The values and the expected stay under the best rows, shape (k,) each, in plain doubles; None without any."""
    unknown = equation.unknown
    known = (equation.known_lower + equation.known_upper) / 2
    known[unknown] = 0
    gain = (equation.gain_lower + equation.gain_upper) / 2
    values, k = equation.ranking, len(gain)
    solution, weights = np.full(k, np.nan), np.ones(k)
    for _ in range(_MAX_POLICIES):
        rows = equation.rows.extreme_rows(values, maximise=equation.maximise)
        system = (eye_array(k, format="csc") - rows[:, unknown]).tocsc()
        try:
            factors = splu(system)
        except RuntimeError:  # exactly singular: these rows never leave, up to rounding
            return None
        found = factors.solve(gain + rows @ known)
        weights = factors.solve(np.ones(k))
        if not (np.isfinite(found).all() and np.isfinite(weights).all() and (weights > 0).all()):
            return None
        values = known.copy()
        values[unknown] = found
        settled = np.all(np.abs(found - solution) <= _CLOSE * np.abs(found))  # never at first
        solution = found
        if settled:
            break
    return solution, weights


def _weights_for_all(equation: BellmanEquation, solution: Floats) -> Floats | None:
    """Weights, shape (k,), that bear out a bound against all rows, up to rounding; None if there are none.

    Where every choice leaves, the greatest expected stay. Elsewhere what is earned holds the lower bound up:
    with v the greatest expected number of steps before anything is earned, ``v + c x``, with c so large that the least
    gain outweighs v.
    """
    k = len(solution)
    if equation.every_choice_leaves:
        longest = _by_policies(_longest_stay(equation, np.ones(k, dtype=np.bool_)))
        return None if longest is None else np.maximum(longest[0], 1.0)
    idle = equation.gain_lower == 0
    waiting = np.zeros(k)
    if idle.any():
        longest = _by_policies(_longest_stay(equation, idle))
        if longest is None:
            return None
        waiting[idle] = np.maximum(longest[0], 1.0)
    least_gain = float(equation.gain_lower.min(where=~idle, initial=np.inf))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(waiting + solution * ((2 * waiting.max() + 1) / least_gain))


def _longest_stay(equation: BellmanEquation, among: Mask) -> BellmanEquation:
    """The equation of the greatest expected number of steps in a row in some of the unknown states, shape (k,)."""
    nothing = np.zeros_like(equation.known_lower)
    one = np.ones(np.count_nonzero(among))
    unknown = equation.unknown.copy()
    unknown[unknown] = among
    return replace(
        equation,
        rows=equation.rows.keep(among[equation.rows.row_of_entry]),
        unknown=unknown,
        known_lower=nothing,
        known_upper=nothing,
        gain_lower=one,
        gain_upper=one,
        maximise=True,
        ranking=unknown.astype(np.float64),
    )


@_QUIET
def _proved(equation: BellmanEquation, solution: Floats, stays: list[Floats], *, upper: bool) -> Floats | None:
    """A bound of the unknown states that one step confirms, or None; weights are tried in their order."""
    sign = 1.0 if upper else -1.0

    def overstepped(candidate: Floats) -> Floats:
        whole = equation.with_values(candidate, upper=upper)
        stepped = equation.step(whole, whole)[int(upper)]
        return sign * (stepped - candidate)

    residual = max(2 * float(np.max(overstepped(solution))), 2.0**-1000)
    for weights in stays:
        distance = residual
        for _ in range(_MAX_DOUBLINGS):
            candidate = solution + sign * distance * weights
            if not np.isfinite(candidate).all():
                break
            if np.all(overstepped(candidate) <= 0):
                return candidate
            distance = max(2 * distance, 2.0**-60 * float(np.max(np.abs(solution) / weights)))
    return None


def _narrowed(equation: BellmanEquation, lower: Floats, upper: Floats, sweeps: int) -> tuple[Floats, Floats]:
    """Interval iteration until the bounds are close, or hardly come closer any more."""
    apart = np.inf
    for sweep in range(sweeps):
        gaps = (upper - lower) / np.maximum(1.0, upper)
        if np.all(gaps <= GAP):
            break
        if sweep % _PROGRESS_SWEEPS == 0:
            if gaps.sum() > _PROGRESS * apart:
                break
            apart = gaps.sum()
        below, above = equation.step(equation.with_values(lower, upper=False), equation.with_values(upper, upper=True))
        lower, upper = np.maximum(lower, below), np.minimum(upper, above)
    return lower, upper


def _enclosed(equation: BellmanEquation, value: Floats, lower: Floats, upper: Floats) -> EnclosureVector:
    low, high = equation.with_values(lower, upper=False), equation.with_values(upper, upper=True)
    middle = (low + high) / 2
    middle[equation.unknown] = value
    return EnclosureVector.from_bounds(middle, low, high)
