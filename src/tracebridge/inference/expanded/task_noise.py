"""The noise of end curves where runs of one task are alike: whole tasks drawn again, instead of runs of a chain.

Runs drawn from a chain are independent, and several trials of one task are not: curves of such runs scatter more than
those of as many independent ones, and a chain would be rejected for it. So the noise of the gap is taken from the runs
themselves. Where the chain is right, the observed curve O and the fitted one F have the same limit, and the gap
``O - F`` scatters as ``(O* - O) - (F* - F)`` does, where the stars are for tasks drawn with replacement, and the chain
refitted to them (Cameron, Gelbach and Miller 2008, Review of Economics and Statistics 90, 414-427, on bootstraps of
clusters). With n tasks its variance is small by the factor ``(n - 1) / n``, which is made good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.estimation import ModelStack, estimate_stack
from tracebridge.inference.expanded.model_curves import end_curves
from tracebridge.inference.misfit import aalen_johansen_of_ends
from tracebridge.states.expansion import ContextSpace
from tracebridge.states.features import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.run_paths import RunPaths

    Codes = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: About so many numbers of parameters, and so many steps, are worked on at once.
_SLICE, _SLICE_STEPS = 4_000_000, 500_000


def task_gaps(
    fitted: RunPaths, judged: RunPaths | None, source: ExpandedModel, kappa: float, *, number: int, seed: int
) -> Floats:
    """The largest gap of so many resamples of tasks, shape (number,).

    Args:
        fitted: runs that the chain is fitted to. judged: runs held out that it is judged on; None for the same ones.
        source: the fit that searches for phases start from. kappa: of its rows.
        number: of resamples. seed: decides them.
    """
    longest = int((fitted if judged is None else judged).lengths.max(initial=0))
    parts = [fitted] if judged is None else [fitted, judged]
    none = np.zeros(fitted.n_runs, dtype=np.int64)
    first = _fitted_curves(estimate_stack(fitted, none, 1, source.form, kappa, source), longest)
    seen = _observed_curves(parts[-1], np.zeros(parts[-1].n_runs, dtype=np.int64), 1, longest)
    together = max(1, min(_SLICE // source.rows.size, _SLICE_STEPS // max(fitted.n_steps, 1)))
    seeds = np.random.SeedSequence(seed).spawn(number)
    found = []
    for begin in range(0, number, together):
        streams = [np.random.default_rng(child) for child in seeds[begin : begin + together]]
        drawn = [_resampled(part, streams) for part in parts]
        runs, corpora = drawn[0]
        stack = estimate_stack(fitted.take(runs), corpora, len(streams), source.form, kappa, source)
        again = _fitted_curves(stack, longest) - first
        runs, corpora = drawn[-1]
        observed = _observed_curves(parts[-1].take(runs), corpora, len(streams), longest) - seen
        found.append(np.abs(_corrected(observed, again, parts)).max(axis=(1, 2)))
    return np.concatenate(found)


def _corrected(observed: Floats, fitted: Floats, parts: Sequence[RunPaths]) -> Floats:
    """The difference of both deviations, each with the variance that so many tasks should give it."""
    factors = [np.sqrt(n / (n - 1)) if n > 1 else 1.0 for n in (len(np.unique(part.blocks)) for part in parts)]
    return factors[-1] * observed - factors[0] * fitted


def _resampled(paths: RunPaths, streams: Sequence[np.random.Generator]) -> tuple[Codes, Codes]:
    """Runs of as many tasks, drawn with replacement, once for each stream: the runs, and the resample of each."""
    blocks, block_of_run = np.unique(paths.blocks, return_inverse=True)
    order = np.argsort(block_of_run, kind="stable")
    sizes = np.bincount(block_of_run)
    firsts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
    chosen = np.concatenate([rng.integers(len(blocks), size=len(blocks)) for rng in streams])
    lengths = sizes[chosen]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - firsts[chosen], lengths)
    corpora = np.repeat(np.repeat(np.arange(len(streams)), len(blocks)), lengths)
    return order[place], corpora


def _fitted_curves(stack: ModelStack, longest: int) -> Floats:
    space = ContextSpace(form=stack.form, n_states=len(stack.states), n_groups=max(1, len(stack.groups)))
    return end_curves(space, stack.start, stack.rows, stack.advance, longest)


def _observed_curves(paths: RunPaths, corpora: Codes, number: int, longest: int) -> Floats:
    kinds, width = len(OUTCOMES), longest + 1
    cells = (corpora * kinds + paths.outcomes) * width + paths.lengths
    ends = np.bincount(cells, minlength=number * kinds * width).reshape(number, kinds, width)
    return aalen_johansen_of_ends(ends)
