"""Policy iteration (Howard 1960): in rationals, where its end is the optimum, and in doubles for a good start of that.

A policy is left only for a strictly better choice, so that each policy is better than the one before and the iteration
ends (Puterman, Markov Decision Processes, section 6.4). The first policy leaves the unknown states surely, and so do
all others: where one does not, it gains without end, which is no improvement for a minimum, and for a maximum there is
none.
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import splu

from tracebridge.closedform.decision.equation import extended, rational_rows
from tracebridge.closedform.integer_system import IntegerSystem, rows_of
from tracebridge.closedform.rational_solution import solve_system_exact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix
    from tracebridge.closedform.decision.equation import OptimalityEquation

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

_MAX_POLICIES = 100
_IMPROVEMENT = 1e-11  # what is less may be rounding


def solve_in_rationals(
    equation: OptimalityEquation, matrix: RationalMatrix, policy: Indices
) -> tuple[list[Fraction], Indices]:
    """The solution in all states, n Fractions, and an optimal policy.

    Args:
        equation: what is solved. matrix: the rows of the process, shape (m, n).
        policy: a proper policy to start from, shape (u,), choices of the equation.

    Raises:
        UnsupportedError: for more unknown states than are solved in rationals.
    """
    values = [Fraction(int(one)) for one in equation.known.tolist()]
    unknown = np.flatnonzero(equation.unknown)
    if not len(unknown):
        return values, policy
    rows = rational_rows(matrix, equation.rows)
    while True:
        solution = _value_of_policy(equation, rows, policy)
        for i, value in zip(unknown.tolist(), solution, strict=True):
            values[i] = value
        better = _improved(equation, rows, values, policy)
        if np.array_equal(better, policy):
            return values, policy
        policy = better


def _value_of_policy(equation: OptimalityEquation, rows: RationalMatrix, policy: Indices) -> list[Fraction]:
    chosen = rows_of(rows, policy)
    known = np.flatnonzero(equation.known[chosen.indices])
    sums = np.zeros(len(policy), dtype=object)
    np.add.at(sums, chosen.row_of_entry[known], chosen.numerators[known].astype(object))
    inflow = [Fraction(int(top), int(bottom)) for top, bottom in zip(sums, chosen.denominators.tolist(), strict=True)]
    if equation.gains is not None:
        inflow = [a + b for a, b in zip(inflow, equation.gains[policy].tolist(), strict=True)]
    system = IntegerSystem.of_rows(chosen, np.flatnonzero(equation.unknown))
    return solve_system_exact(system, [inflow])[0]


def _improved(equation: OptimalityEquation, rows: RationalMatrix, values: list[Fraction], policy: Indices) -> Indices:
    """The policy with the best choice where that is strictly better than the present one."""
    gains = None if equation.gains is None else equation.gains.tolist()
    scale = lcm(*{value.denominator for value in values}, *({gain.denominator for gain in gains} if gains else ()))
    x = _integers(values, scale)
    products = rows.numerators.astype(object) * x[rows.indices]
    tops = np.add.reduceat(products, rows.indptr[:-1])
    bottoms = rows.denominators.astype(object)
    if gains is not None:
        tops = tops + _integers(gains, scale) * bottoms
    better = policy.copy()
    starts = equation.choices.starts
    for place, state in enumerate(np.flatnonzero(equation.unknown).tolist()):
        best = int(policy[place])
        for choice in range(int(starts[state]), int(starts[state + 1])):
            gap = tops[choice] * bottoms[best] - tops[best] * bottoms[choice]
            if gap > 0 if equation.maximise else gap < 0:
                best = choice
        better[place] = best
    return better


def _integers(values: list[Fraction], scale: int) -> NDArray[Any]:
    result = np.empty(len(values), dtype=object)
    result[:] = [value.numerator * (scale // value.denominator) for value in values]
    return result


# ---------------------------------------------------------------- doubles


def policy_in_doubles(equation: OptimalityEquation, matrix: csr_array) -> Indices:
    """A proper policy that is optimal up to rounding, shape (u,).

    Args:
        equation: what is solved. matrix: the rows of the process in doubles, shape (m, n).
    """
    policy = equation.proper_policy()
    rows = csr_array(extended(matrix)[equation.rows])
    sign = 1.0 if equation.maximise else -1.0
    starts, unknown = equation.choices.starts[:-1], equation.unknown
    for _ in range(_MAX_POLICIES if len(policy) else 0):
        values = value_in_doubles(equation, rows, policy)
        if values is None:
            break
        worth = sign * (rows @ values + _float_gains(equation))
        best = np.maximum.reduceat(worth, starts)[unknown]
        better = best > worth[policy] + _IMPROVEMENT * np.maximum(1.0, np.abs(worth[policy]))
        if not better.any():
            break
        choices = np.where(worth >= np.repeat(np.maximum.reduceat(worth, starts), np.diff(equation.choices.starts)))[0]
        first = choices[np.searchsorted(choices, starts)][unknown]
        found = np.where(better, first, policy)
        if not equation.is_proper(found):
            break
        policy = found
    return policy


def value_in_doubles(
    equation: OptimalityEquation, rows: csr_array, policy: Indices, gains: Floats | None = None
) -> Floats | None:
    """What a policy is worth in every state, shape (n,), in plain doubles; None where they fail.

    Args:
        rows: of the choices of the equation, shape (k, n). gains: of them, shape (k,), in the place of its own.
    """
    unknown = equation.unknown
    chosen = csr_array(rows[policy])
    earned = (_float_gains(equation) if gains is None else gains)[policy]
    known = equation.known.astype(np.float64)
    if gains is not None:
        known[:] = 0
    system = (eye_array(len(policy), format="csc") - chosen[:, unknown]).tocsc()
    try:
        solution = splu(system).solve(earned + chosen @ known)
    except RuntimeError:  # exactly singular: the policy never leaves, up to rounding
        return None
    if not np.isfinite(solution).all():
        return None
    known[unknown] = solution
    return known


def _float_gains(equation: OptimalityEquation) -> Floats:
    if equation.gains is None:
        return np.zeros(len(equation.rows))
    return np.array([float(gain) for gain in equation.gains.tolist()])
