"""Few long runs in pieces: all pieces advance side by side, instead of one step after the other.

What a pass takes into a piece of a run is a distribution over Z phases, and what comes out is linear in that, up to a
factor. So all pieces are passed from each of the Z phases first; then the distributions are handed from piece to piece;
and from these all pieces are passed once more (a parallel prefix; Blelloch, "Prefix sums and their applications",
1990). For T steps that takes a few times sqrt(T) operations on arrays in place of T, and Z times the arithmetic, which
pays as long as few runs stand side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.kernels import Backward, Kernel
    from tracebridge.chain.expanded.side_by_side import SideBySide

    Floats = NDArray[np.float64]


def enter_pieces(layout: SideBySide, kernel: Kernel, phases: Floats) -> None:
    """Set the probabilities of the phase at the first step of every piece given its run up to it.

    Args:
        phases: shape (Z, S), set at the first steps of runs.
    """
    weights, logs = _each_phase(layout, len(phases)), np.zeros((len(phases), len(layout.following)))
    for steps in _through(layout):
        weights = kernel.onward(weights, steps)
        total = weights.sum(axis=1)
        weights /= total[:, np.newaxis]
        logs += np.log(total)
    possible = logs > -np.inf  # which NaN is not, the logarithm after what is impossible
    weights = np.where(possible[:, np.newaxis], weights, 0)
    logs = np.where(possible, logs, -np.inf)
    for pieces in layout.handed_on():
        chances = np.log(phases[:, pieces]) + logs[:, pieces]
        onward = np.einsum("yzn,yn->zn", weights[:, :, pieces], np.exp(chances - chances.max(axis=0)))
        phases[:, layout.following[pieces]] = onward / onward.sum(axis=0)


def hand_back(layout: SideBySide, backward: Backward, phases: Floats, after: Floats) -> None:
    """Set the probabilities, given the whole run, of the phase after the last step of every piece but those of runs.

    Args:
        phases: given the whole run, shape (Z, S), set at the first steps of the last pieces of runs.
        after: shape (Z, S).
    """
    shares = _each_phase(layout, len(phases))
    through = _through(layout)
    for steps in reversed(through):
        shares = backward.back(shares, steps)
    last = after[:, through[-1]]
    for pieces in reversed(layout.handed_on()):
        last[:, pieces] = phases[:, layout.following[pieces]]
        phases[:, pieces] = np.einsum("yzn,yn->zn", shares[:, :, pieces], last[:, pieces])


def _each_phase(layout: SideBySide, n_phases: int) -> Floats:
    """For each phase, all pieces that are not their runs' last in this phase: shape (Z, Z, n)."""
    return np.repeat(np.eye(n_phases)[..., np.newaxis], len(layout.following), axis=2)


def _through(layout: SideBySide) -> list[slice]:
    """The steps of the same pieces, for each time since they began."""
    return [slice(begin, begin + len(layout.following)) for begin in layout.begins[:-1].tolist()]
