"""When runs of an expanded chain have ended, by a recursion over what a state remembers, for many chains side by side.

The number of earlier steps is the same for all runs at a time, so that a clock costs nothing here: the recursion goes
over (group, phase, stay, previous, category), and the bin follows from the time. Where a state remembers neither its
stay nor its predecessor, one step is one product with a matrix of its bin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.expansion import ContextSpace

    Floats = NDArray[np.float64]

#: About so many numbers of a step of the recursion are worked on at once.
_SLICE = 1_000_000


def end_curves(space: ContextSpace, start: Floats, rows: Floats, advance: Floats, longest: int) -> Floats:
    """Probabilities to have ended in success, and in failure, within 0, ..., longest steps: (b, 2, longest + 1).

    Args:
        space: contexts of all b chains. start, rows, advance: the parameters of `ExpandedModel` with an axis of chains
            in front: (b, G, Z, m + 2), (b, Z, C, m, m + 2), (b, Z, m, Z).
        longest: steps.
    """
    b = len(start)
    groups, _, levels, previous = space.shape
    cells = rows.shape[1] * levels * previous * space.n_states
    width, matrix = groups * cells * (space.n_states + 2), groups * cells * (cells + 2)
    in_products = levels * previous == 1 and matrix <= _SLICE
    together = max(1, _SLICE // (matrix if in_products else width))
    curves = np.empty((b, 2, longest + 1))
    for first in range(0, b, together):
        part = slice(first, first + together)
        found = _curves_in_products if in_products else _curves
        curves[part] = found(space, start[part], rows[part], advance[part], longest)
    return curves


def _curves_in_products(space: ContextSpace, start: Floats, rows: Floats, advance: Floats, longest: int) -> Floats:
    """For states that remember a group, a clock and a phase alone."""
    b, phases = rows.shape[:2]
    m, (groups, bins, _, _) = space.n_states, space.shape
    cells = phases * m
    rows = rows.reshape(b, phases, groups, bins, m, m + 2)
    now = start[..., :m].reshape(b, groups, 1, cells)
    curves = np.empty((b, 2, longest + 1))
    curves[..., 0] = start[..., m:].sum(axis=(1, 2))
    bin_at = space.bin_of(np.arange(longest)).tolist()
    step = np.empty((b, groups, cells, cells + 2))
    for d, of_bin in enumerate(bin_at):
        if d == 0 or of_bin != bin_at[d - 1]:
            own = rows[:, :, :, of_bin]
            onward = np.einsum("bzgcx,bzcy->bgzcyx", own[..., :m], advance)
            step[..., :cells] = onward.reshape(b, groups, cells, cells)
            step[..., cells:] = own[..., m:].swapaxes(1, 2).reshape(b, groups, cells, 2)
        after = now @ step
        now = after[..., :cells]
        np.add(curves[..., d], after[..., 0, cells:].sum(axis=1), out=curves[..., d + 1])
    return curves


def _curves(space: ContextSpace, start: Floats, rows: Floats, advance: Floats, longest: int) -> Floats:
    b, phases = rows.shape[:2]
    m = space.n_states
    groups, bins, levels, n_previous = space.shape
    rows = rows.reshape(b, phases, groups, bins, levels, n_previous, m, m + 2)
    bin_at = space.bin_of(np.arange(longest))
    now = np.zeros((b, phases, groups, levels, n_previous, m))
    now[:, :, :, 0, -1] = start[..., :m].swapaxes(1, 2)  # without a memory of it, `previous` has one value
    curves = np.empty((b, 2, longest + 1))
    curves[:, :, 0] = start[..., m:].sum(axis=(1, 2))
    for d in range(longest):
        flow = np.einsum("bzgdpc,bzgdpcx->bzgdcx", now, rows[:, :, :, bin_at[d]])
        curves[:, :, d + 1] = curves[:, :, d] + flow[..., m:].sum(axis=(1, 2, 3, 4))
        if phases > 1:
            flow = np.einsum("bzgdcx,bzcy->bygdcx", flow[..., :m], advance)
        now = _arrivals(flow[..., :m], remembers=n_previous > 1)
    return curves


def _arrivals(flow: Floats, *, remembers: bool) -> Floats:
    """Where runs are that went from c in a stay of level d to x: (..., d, c, x) becomes (..., level, previous, x)."""
    *outer, levels, m, _ = flow.shape
    same = np.arange(m)
    stayed = flow[..., same, same]
    entered = flow.sum(axis=-3)  # over levels: a new stay has level 0
    arrived = np.zeros((*outer, levels, m + 1 if remembers else 1, m))
    if levels == 1:
        if remembers:
            arrived[..., 0, :m, :] = entered
        else:
            arrived[..., 0, 0, :] = entered.sum(axis=-2)
        return arrived
    entered[..., same, same] = 0.0
    longer = np.zeros((*outer, levels, m))
    longer[..., 1:, :] = stayed[..., :-1, :]
    longer[..., -1, :] += stayed[..., -1, :]
    if remembers:
        arrived[..., 0, :m, :] = entered
        arrived[..., same, same] += longer
    else:
        arrived[..., 0, 0, :] = entered.sum(axis=-2)
        arrived[..., 0, :] += longer
    return arrived
