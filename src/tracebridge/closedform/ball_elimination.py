"""Elimination of a sparse matrix in ball arithmetic, for systems that no refinement in doubles reaches.

Where a run changes its state 1e13 times or more before it leaves, residuals say nothing any more. Elimination without
subtraction (see `sparse_elimination`) does not care; in balls its result is its own proof. Radii grow with every
product, so that precision is raised until they are small enough.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.sparse_elimination import Censoring
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.closedform.integer_system import IntegerSystem

#: Detours that elimination may add in all, about two microseconds each.
MAX_WORK = 20_000_000

_PRECISIONS = (128, 512, 2_048, 8_192)  # bits
_ACCURATE = 60  # bits of every unknown


def solve_in_balls(
    system: IntegerSystem, columns: Sequence[Sequence[tuple[int, int]]], *, transposed: bool
) -> list[EnclosureVector]:
    """``(I - P) x = b``, or ``x (I - P) = b``, on the set; neighbouring doubles around every unknown.

    Args:
        system: any size. columns: right-hand sides as numerators and denominators, not negative.

    Raises:
        EngineError: if the states lead to one another in too many ways, or balls stay too wide.
    """
    from flint import ctx

    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            censoring = _eliminated(system)
            solutions = [_substituted(censoring, system, column, transposed=transposed) for column in columns]
            if all(x.is_zero() or x.rel_accuracy_bits() >= _ACCURATE for solution in solutions for x in solution):
                return [_enclosures(solution) for solution in solutions]
    raise EngineError(f"the linear system of {system.size} states is too ill-conditioned for {_PRECISIONS[-1]} bits")


def _eliminated(system: IntegerSystem) -> Censoring:
    from flint import arb

    bounds = np.searchsorted(system.rows, np.arange(system.size + 1)).tolist()
    targets, masses = system.columns.tolist(), [arb(mass) for mass in system.entries.tolist()]
    successors = [dict(zip(targets[a:b], masses[a:b], strict=True)) for a, b in pairwise(bounds)]
    censoring = Censoring(successors, [arb(mass) for mass in system.exits.tolist()], lambda row: sum(row, arb(0)))
    censoring.run(lambda _: np.inf, MAX_WORK)
    if censoring.left:
        raise EngineError(
            f"the linear system of {system.size} states is too hard: {censoring.left} of them lead to one another in "
            "too many ways to be eliminated"
        )
    return censoring


def _substituted(
    censoring: Censoring, system: IntegerSystem, column: Sequence[tuple[int, int]], *, transposed: bool
) -> list[Any]:
    """The unknowns as balls; triplets come in the order of elimination, so that each number is complete when used."""
    from flint import arb

    denominators = system.denominators.tolist()
    x = [arb(top) / arb(bottom) for top, bottom in column]
    if transposed:
        for state, target, probability in censoring.onward:
            x[target] += probability * x[state]
    else:
        x = [b * scale for b, scale in zip(x, denominators, strict=True)]
        for source, state, share in censoring.shares:
            x[source] += share * x[state]
    for state, pivot in zip(censoring.censored, censoring.pivots, strict=True):
        x[state] /= pivot
    if transposed:
        for source, state, share in reversed(censoring.shares):
            x[state] += share * x[source]
        return [z * scale for z, scale in zip(x, denominators, strict=True)]
    for state, target, probability in reversed(censoring.onward):
        x[state] += probability * x[target]
    return x


def _enclosures(solution: list[Any]) -> EnclosureVector:
    bounds = np.array([directed.ball_bounds(x) for x in solution])
    lower, upper = np.maximum(bounds[:, 0], 0.0), bounds[:, 1]
    middle = np.array([directed.ball_bounds(x.mid())[0] for x in solution])
    return EnclosureVector.from_bounds(middle, lower, upper)
