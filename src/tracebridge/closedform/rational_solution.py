"""The equations of transient states solved in rationals, by elimination in integers (FLINT)."""

from __future__ import annotations

from fractions import Fraction
from math import lcm
from typing import TYPE_CHECKING

from tracebridge.closedform.integer_system import IntegerSystem
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix

#: Systems with more states than this are not solved in rationals.
EXACT_LIMIT = 1_000


def solve_exact(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """``(I - P[transient, transient]) x = rhs`` in rationals; ``rhs`` is a list of columns, the result too.

    Raises:
        ModelError: if some state of the set can never leave it.
        UnsupportedError: for more than `EXACT_LIMIT` states.
    """
    return solve_system_exact(IntegerSystem.of(P, transient), rhs)


def solve_exact_transposed(
    P: RationalMatrix, transient: NDArray[np.int64], rhs: Sequence[Sequence[Fraction]]
) -> list[list[Fraction]]:
    """``x (I - P[transient, transient]) = rhs`` in rationals: expected visits from a start. Else as `solve_exact`."""
    return solve_system_exact(IntegerSystem.of(P, transient), rhs, transposed=True)


def solve_system_exact(
    system: IntegerSystem, rhs: Sequence[Sequence[Fraction]], *, transposed: bool = False
) -> list[list[Fraction]]:
    """As `solve_exact`, for a system at hand."""
    check_columns(rhs, system.size)
    if system.size > EXACT_LIMIT:
        raise UnsupportedError(
            f"{system.size} transient states are too many for exact arithmetic (at most {EXACT_LIMIT}); use doubles"
        )
    if system.size == 0 or not rhs:
        return [[] for _ in rhs]
    from flint import fmpz_mat

    m, k = system.size, len(rhs)
    matrix = [[0] * m for _ in range(m)]
    for i, j, entry in zip(system.rows.tolist(), system.columns.tolist(), system.entries.tolist(), strict=True):
        matrix[j if transposed else i][i if transposed else j] = -entry
    for i, entry in enumerate(system.diagonal.tolist()):
        matrix[i][i] = entry
    denominators = system.denominators.tolist()
    columns = [[Fraction(b) if transposed else b * denominators[i] for i, b in enumerate(column)] for column in rhs]
    scales = [lcm(*(b.denominator for b in column)) for column in columns]
    integers = [[int(column[i] * scale) for column, scale in zip(columns, scales, strict=True)] for i in range(m)]
    solution = fmpz_mat(matrix).solve(fmpz_mat(integers)).tolist()
    return [
        [
            Fraction(int(solution[i][c].p), int(solution[i][c].q) * scales[c]) * (denominators[i] if transposed else 1)
            for i in range(m)
        ]
        for c in range(k)
    ]


def check_columns(rhs: Sequence[Sequence[Fraction | float]], size: int) -> None:
    """Raise ValueError unless every column has one entry a state."""
    for column in rhs:
        if len(column) != size:
            raise ValueError(f"{size} states need columns of that length, not of {len(column)}")
