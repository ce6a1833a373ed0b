"""After very many steps: how far a chain may still be from its limit.

``x - P x = gain`` is reached from ``x_0`` by ``x_k = gain + P x_(k-1)``, and ``x_k - x = Q^k (x_0 - x)`` with Q the
transitions among the states whose number still moves. If ``Q t <= (1 - c) t`` for some ``t > 0``, then
``|x_k - x| <= (1 - c)^k max(|x_0 - x| / t) t`` (weighted maximum norm; Bertsekas and Tsitsiklis, Parallel and
Distributed Computation, section 2.6). About the expected time as t makes c about one over the longest one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracebridge.closedform import directed
from tracebridge.closedform.error_free import SUBNORMAL
from tracebridge.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tracebridge.closedform.double_solution import DoubleSolver
    from tracebridge.closedform.enclosure import EnclosureVector

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

#: A distance from the limit below this is not seen in doubles.
INVISIBLE = 2.0**-64

_ROUNDED_UP = 1 + 2.0**-40


class Approach(NamedTuple):
    """Bounds of all n numbers, and the share of the way to the limit that may still be ahead."""

    lower: Floats
    upper: Floats
    ahead: float


def approach(
    start: EnclosureVector,
    end: EnclosureVector,
    steps: int,
    active: Mask,
    solver_of: Callable[[Mask], DoubleSolver | None],
) -> Approach:
    """Where numbers are that rise or fall from ``start`` to ``end``, after so many steps; the inactive ones stay.

    Args:
        solver_of: the equations of a set of states, or None where there are none in doubles.
    """
    lower = np.where(active, np.minimum(start.lower, end.lower), start.lower)
    upper = np.where(active, np.maximum(start.upper, end.upper), start.upper)
    moving = active & ~(lower == upper)
    if not moving.any():
        return Approach(lower, upper, 0.0)
    solver = solver_of(moving) if np.all(np.isfinite(upper[moving])) else None
    if solver is None:
        return Approach(lower, upper, 1.0)
    try:
        t, s = solver.positive_image()
    except EngineError:  # without a t nothing more is known
        return Approach(lower, upper, 1.0)
    rate = float((s / solver.system.scale.high / t).min()) / _ROUNDED_UP  # (D - A) t >= s is scale (t - Q t) >= s
    ahead = min(1.0, float(np.exp(-rate * steps / _ROUNDED_UP)) * _ROUNDED_UP)
    gap = float((directed.add_up(upper[moving], -lower[moving]) / t).max())
    distance = gap * ahead * t * _ROUNDED_UP + 4 * SUBNORMAL
    lower[moving] = np.maximum(lower[moving], directed.add_down(end.lower[moving], -distance))
    upper[moving] = np.minimum(upper[moving], directed.add_up(end.upper[moving], distance))
    return Approach(lower, upper, ahead)
