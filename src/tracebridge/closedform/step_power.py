"""Very many steps of a small chain at once: a power of its matrix, in ball arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import EnclosureVector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.rational import RationalMatrix
    from tracebridge.closedform.stochastic_step import StochasticStep


def power_of_steps(
    start: EnclosureVector,
    steps: int,
    rows: NDArray[np.int64],
    gain: EnclosureVector | None,
    exact_rows: RationalMatrix,
    product: StochasticStep,
) -> EnclosureVector:
    """After so many steps: ``M^steps x``, M with one more state of value 1 for all that comes from outside.

    Args:
        start: the numbers x. rows: the active states, of which ``exact_rows`` are the rows. gain: what each step adds.
        product: one step of the active states.
    """
    from flint import arb, arb_mat, ctx

    m = len(rows)
    position = {state: i for i, state in enumerate(rows.tolist())}
    with ctx.workprec(128 + 2 * steps.bit_length()):
        matrix = arb_mat(m + 1, m + 1)
        matrix[m, m] = arb(1)
        for i, state in enumerate(rows.tolist()):
            inflow = arb(0) if gain is None else _ball(gain, state)
            for target, p in exact_rows.row(i).items():
                entry = arb(p.numerator) / arb(p.denominator)
                if target in position:
                    matrix[i, position[target]] = entry
                else:
                    inflow += entry * _ball(start, target)
            matrix[i, m] = inflow
        x = arb_mat([[_ball(start, state)] for state in rows.tolist()] + [[arb(1)]])
        remaining = steps
        while remaining:
            if remaining & 1:
                x = matrix * x
            remaining >>= 1
            if remaining:
                matrix = matrix * matrix
        bounds = np.array([directed.ball_bounds(x[i, 0]) for i in range(m)])
    lower, upper = np.maximum(bounds[:, 0], 0.0), bounds[:, 1]
    if gain is None:
        # Whatever the entries were m steps before the end, between the extremes, the last m steps lead here: that
        # settles exactly what the graph settles.
        last = np.stack([start.value, start.lower, start.upper], axis=1)
        last[rows] = [start.value.min(), start.lower.min(), start.upper.max()]
        for _ in range(m):
            last[rows] = product.apply(last)
        lower, upper = np.maximum(lower, last[rows, 1]), np.minimum(upper, last[rows, 2])
    merged = [start.value.copy(), start.lower.copy(), start.upper.copy()]
    for part, values in zip(merged, (lower + (upper - lower) / 2, lower, upper), strict=True):
        part[rows] = values
    return EnclosureVector.from_bounds(*merged)


def _ball(vector: EnclosureVector, index: int) -> Any:
    from flint import arb

    return arb(vector.lower[index]).union(arb(vector.upper[index]))
