"""When a recursion crosses a threshold, in about as many matrix products as the step count has binary digits.

``x <- gain + P x`` on some states is ``x <- M x`` with one more entry that stays 1. The powers ``M^(2^j)`` are computed
once, in ball arithmetic; then every state has a row of its own, which is moved on by ever smaller powers of two as long
as its value has not crossed yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix
    from tracebridge.closedform.enclosure import EnclosureVector
    from tracebridge.pctl.ast import Comparison

    Mask = NDArray[np.bool_]
    Floats = NDArray[np.float64]

#: Up to so many states are computed with; a product takes some 20 ms then.
MAX_STATES = 64

#: Steps are counted up to this power of two, which doubles represent.
MAX_EXPONENT = 52

_PRECISION = 320  # bits; squaring doubles the error, which leaves more than 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepRecursion:
    """``x <- gain + P x`` on the active states, from a start at a certain count of steps on.

    Attributes:
        count: the steps that ``start`` belongs to. active: shape (n,). gain: None for zero.
    """

    count: int
    start: EnclosureVector
    active: Mask
    gain: EnclosureVector | None = None


def crossing_counts(
    P: RationalMatrix,
    recursion: StepRecursion,
    weights: Sequence[Sequence[Fraction]],
    comparison: Comparison,
    threshold: Fraction,
) -> tuple[Floats, Floats]:
    """The least and the greatest count at which weighted means of the values may come to satisfy the comparison.

    Args:
        weights: of each mean, one for each state. comparison: one that a mean satisfies from some count on, and not
            at the start, if at all.

    Returns:
        Two arrays of shape (means,); the second is infinite where the mean is not seen to satisfy it at all.
    """
    from flint import ctx

    with ctx.workprec(_PRECISION):
        search = _Search(_matrix(P, recursion), _column(recursion), _crossed_by(comparison, threshold))
        rows = [_row(recursion, some) for some in weights]
        lower = [recursion.count + last + 1 for last, _ in search.around(rows, search.surely_not)]
        upper = [recursion.count + first for _, first in search.around(rows, search.not_surely)]
    return np.array(lower, dtype=np.float64), np.array(upper, dtype=np.float64)


class _Search:
    """Powers of M applied to rows."""

    def __init__(self, matrix: Any, column: Any, crossed: tuple[Callable[[Any], bool], Callable[[Any], bool]]) -> None:
        self._powers = [matrix]
        self._column = column
        self._surely, self._surely_not = crossed

    def surely_not(self, value: Any) -> bool:
        """Whether a value has surely not crossed."""
        return self._surely_not(value)

    def not_surely(self, value: Any) -> bool:
        """Whether it has not surely crossed."""
        return not self._surely(value)

    def around(self, rows: list[list[Any]], before: Callable[[Any], bool]) -> list[tuple[int, float]]:
        """For each row the last number of steps at which it was found ``before``, and the first at which it was not.

        The second is infinite if there is none.
        """
        from flint import arb_mat

        current = arb_mat(rows)
        taken = [0] * len(rows)
        found = [float("inf")] * len(rows)
        size = len(rows[0])
        for j in range(self._exponent(current, before), -1, -1):
            moved = current * self._power(j)
            values = moved * self._column
            for i in range(len(rows)):
                steps = taken[i] + 2**j
                if before(values[i, 0]):
                    taken[i] = steps
                    for k in range(size):
                        current[i, k] = moved[i, k]
                else:
                    found[i] = min(found[i], float(steps))
        return list(zip(taken, found, strict=True))

    def _exponent(self, rows: Any, before: Callable[[Any], bool]) -> int:
        """The first j such that no row is ``before`` after 2^j steps, or the largest."""
        for j in range(MAX_EXPONENT):
            values = rows * (self._power(j) * self._column)
            if not any(before(values[i, 0]) for i in range(values.nrows())):
                return j
        return MAX_EXPONENT

    def _power(self, j: int) -> Any:
        while len(self._powers) <= j:
            self._powers.append(self._powers[-1] * self._powers[-1])
        return self._powers[j]


def _crossed_by(comparison: Comparison, threshold: Fraction) -> tuple[Callable[[Any], bool], Callable[[Any], bool]]:
    """Whether a ball surely satisfies the comparison, and whether it surely does not."""
    from flint import arb

    bound = arb(threshold.numerator) / arb(threshold.denominator)
    return {
        ">=": (lambda x: bool(x >= bound), lambda x: bool(x < bound)),
        ">": (lambda x: bool(x > bound), lambda x: bool(x <= bound)),
        "<=": (lambda x: bool(x <= bound), lambda x: bool(x > bound)),
        "<": (lambda x: bool(x < bound), lambda x: bool(x >= bound)),
    }[comparison]


def _matrix(P: RationalMatrix, recursion: StepRecursion) -> Any:
    from flint import arb, arb_mat

    states = np.flatnonzero(recursion.active).tolist()
    place = {state: i for i, state in enumerate(states)}
    m = len(states)
    matrix = arb_mat(m + 1, m + 1)
    matrix[m, m] = arb(1)
    for i, state in enumerate(states):
        inflow = arb(0) if recursion.gain is None else _ball(recursion.gain, state)
        for target, p in P.row(state).items():
            entry = arb(p.numerator) / arb(p.denominator)
            if target in place:
                matrix[i, place[target]] = entry
            else:
                inflow += entry * _ball(recursion.start, target)
        matrix[i, m] = inflow
    return matrix


def _column(recursion: StepRecursion) -> Any:
    from flint import arb, arb_mat

    return arb_mat([[_ball(recursion.start, i)] for i in np.flatnonzero(recursion.active).tolist()] + [[arb(1)]])


def _row(recursion: StepRecursion, weights: Sequence[Fraction]) -> list[Any]:
    """Weights on the active states, and what the others, which do not change, contribute."""
    from flint import arb

    row, rest = [], arb(0)
    for state, (weight, active) in enumerate(zip(weights, recursion.active.tolist(), strict=True)):
        ball = arb(weight.numerator) / arb(weight.denominator)
        if active:
            row.append(ball)
        elif weight:
            rest += ball * _ball(recursion.start, state)
    return [*row, rest]


def _ball(vector: EnclosureVector, index: int) -> Any:
    from flint import arb

    if vector.exact:
        number = vector.value[index]
        return arb(number.numerator) / arb(number.denominator)
    return arb(vector.lower[index]).union(arb(vector.upper[index]))
