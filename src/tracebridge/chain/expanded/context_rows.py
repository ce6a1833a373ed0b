"""Rows of probabilities by context: counts, and their shrinkage to the rows of coarser contexts.

The row of a category is the posterior mean under a symmetric Dirichlet prior of total mass one, as in first-order fits.
A row of a finer context is the posterior mean under a prior of mass kappa around the row of the coarser context, so
that a context which was rarely seen behaves as the coarser one does (a hierarchical Dirichlet back-off; MacKay and
Peto, "A hierarchical Dirichlet language model", 1995). Above a kappa of one the prior is a Dirichlet tree (Minka, "The
Dirichlet-tree distribution", 1999): the ends of runs are shrunk less than their paths, see `shrunk_to`.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.errors import FitError, Location, ModelError, Problem, UsageError
from tracebridge.states.run_paths import CENSORED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.expansion import ContextSpace
    from tracebridge.states.run_paths import RunPaths

    Counts = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Integers = NDArray[np.integer]

#: Counts that are held at once, over all corpora: half a gibibyte.
MAX_CELLS = 2**26

#: Most of the mass of a prior that bears on how runs of a context end.
_ENDS_MASS = 1.0

_PHASES = -7  # the axis before group, bin, dwell, previous, category and next


def context_counts(space: ContextSpace, paths: RunPaths, corpora: Integers | None = None, b: int = 1) -> Counts:
    """How often each category in each context was followed by what, shape (b, C, m, m + 2).

    The last columns are success and failure. What follows the last step of a censored run was not seen and is not here,
    see `survivor_counts`.

    Args:
        space: C contexts over the m categories of the runs.
        corpora: the corpus of each run, from 0 to b - 1, shape (n_runs,); all are of one corpus without it.

    Raises:
        FitError: for more than `MAX_CELLS` counts.
    """
    m = space.n_states
    _require_same(space, paths)
    require_cells(space, b)
    cells = space.size * m * (m + 2)
    following = paths.following
    seen = following < m + 2
    key = (space.of_paths(paths.codes, paths.offsets, paths.groups) * m + paths.codes) * (m + 2) + following
    if corpora is not None:
        key += np.repeat(_checked(corpora, paths.n_runs, b), paths.lengths) * cells
    return np.bincount(key[seen], minlength=b * cells).reshape(b, space.size, m, m + 2)


def survivor_counts(space: ContextSpace, paths: RunPaths, corpora: Integers | None = None, b: int = 1) -> Counts:
    """How often a censored run was cut in each category and context, shape (b, C, m).

    It is known to have gone on: had its last step ended it, the end would have been seen. Where to was not seen.
    """
    m = space.n_states
    _require_same(space, paths)
    cut = (paths.outcomes == CENSORED) & (paths.lengths > 0)
    last = paths.offsets[1:][cut] - 1
    key = space.of_paths(paths.codes, paths.offsets, paths.groups)[last] * m + paths.codes[last]
    if corpora is not None:
        key += _checked(corpora, paths.n_runs, b)[cut] * (space.size * m)
    return np.bincount(key, minlength=b * space.size * m).reshape(b, space.size, m)


def require_cells(space: ContextSpace, b: int = 1) -> None:
    """Raise FitError if b tables of counts over these contexts are more than `MAX_CELLS` counts."""
    cells = b * space.size * space.n_states * (space.n_states + 2)
    if cells > MAX_CELLS:
        raise FitError(
            Problem(
                location=Location(),
                message=f"model {space.form} has {space.size} contexts of {space.n_states} states: {cells} counts are "
                f"more than {MAX_CELLS}",
                hint="leave a part out, give the clock fewer bins, or fold rare states (--top, --min-count)",
            )
        )


def start_counts(space: ContextSpace, paths: RunPaths, corpora: Integers | None = None, b: int = 1) -> Counts:
    """Runs by group and first category, or by the end (m, m + 1) of a run without a step; shape (b, G, m + 2).

    Censored runs without a step tell nothing and are not here. For ``corpora`` and ``b`` see `context_counts`.
    """
    _require_same(space, paths)
    m, n_groups = space.n_states, space.n_groups
    lengths = paths.lengths
    first = m + paths.outcomes.astype(np.int64)
    first[lengths > 0] = paths.codes[paths.offsets[:-1][lengths > 0]]
    key = first if n_groups == 1 else paths.groups * (m + 2) + first
    if corpora is not None:
        key = key + _checked(corpora, paths.n_runs, b) * (n_groups * (m + 2))
    return np.bincount(key[first < m + 2], minlength=b * n_groups * (m + 2)).reshape(b, n_groups, m + 2)


def context_levels(space: ContextSpace, counts: NDArray[Any]) -> list[NDArray[Any]]:
    """Counts, shape (..., C, m, m + 2), at every level of detail, the finest first, the categories' own last.

    Each has the shape (..., groups, bins, dwell levels, previous, m, m + 2), with ones for what its level does not
    tell apart, so that levels broadcast. A part with one value makes no level.
    """
    shape, coarser = space.shape, space.coarser()
    levels = [counts.reshape(*counts.shape[:-3], *shape, *counts.shape[-2:])]
    while coarser is not None:
        forgotten = tuple(i - 6 for i, (fine, less) in enumerate(zip(shape, coarser.shape, strict=True)) if fine > less)
        if forgotten:
            levels.append(levels[-1].sum(axis=forgotten, keepdims=True))
        shape, coarser = coarser.shape, coarser.coarser()
    return levels


def category_rows(counts: NDArray[Any], survivors: NDArray[Any] | None = None) -> Floats:
    """Posterior means under a symmetric Dirichlet prior of mass one; counts and rows of shape (..., m, m + 2).

    For ``survivors`` see `given_survivors`.
    """
    totals = counts.sum(axis=-1, keepdims=True)
    rows: Floats = (counts + 1 / counts.shape[-1]) / (totals + 1.0)
    return given_survivors(rows, totals + 1.0, survivors)


def dirichlet_means(
    parents: Floats, counts: NDArray[Any], kappa: float, survivors: NDArray[Any] | None = None
) -> Floats:
    """Posterior means under Dirichlet priors of mass kappa around the parents' rows; shapes that broadcast.

    For ``survivors`` see `given_survivors`.
    """
    weight = counts.sum(axis=-1, keepdims=True) + kappa
    rows: Floats = (counts + kappa * parents) / weight
    return given_survivors(rows, weight, survivors)


def given_survivors(rows: Floats, weight: NDArray[Any], survivors: NDArray[Any] | None) -> Floats:
    """Rows given that besides what was counted some more steps ended no run; where these went is not known.

    Rows maximise ``sum(n * log(row))`` for n counts and mass of the prior; given survivors, with p the probability to
    end, they maximise ``sum(n * log(row)) + survivors * log(1 - p)``. So p falls by the factor ``weight / (weight +
    survivors)``, and where a run goes if it does not end stays as it is.

    Args:
        rows: shape (..., m, m + 2), none of ends alone. weight: ``sum(n)``, shape (..., m, 1).
        survivors: how many steps, shape (..., m, 1); none without it.
    """
    if survivors is None:
        return rows
    ends = rows[..., -2:] * (weight / (weight + survivors))
    on = rows[..., :-2].sum(axis=-1, keepdims=True)
    onward = rows[..., :-2] * ((weight + survivors / on) / (weight + survivors))
    return np.concatenate([onward, ends], axis=-1)


def shrunk_to(parents: Floats, counts: NDArray[Any], kappa: float, survivors: NDArray[Any] | None = None) -> Floats:
    """Posterior means of rows of contexts around those of coarser ones, shapes (..., m, m + 2) that broadcast.

    Where a run goes if it does not end has a Dirichlet prior of mass kappa times the parent's probability to go on.
    Whether it ends, and how, has one of mass kappa too, but of one at most: contexts tell apart when runs end, and with
    more mass the chain's pass rate and times would leave the observed ones, however much better it foretells the path.
    Up to a kappa of one this is the Dirichlet prior of mass kappa around the whole row. For ``survivors`` see
    `given_survivors`.
    """
    if kappa <= _ENDS_MASS:
        return dirichlet_means(parents, counts, kappa, survivors)
    on_parents, on = parents[..., :-2].sum(axis=-1, keepdims=True), counts[..., :-2].sum(axis=-1, keepdims=True)
    totals = on + counts[..., -2:].sum(axis=-1, keepdims=True)
    going_on = (on + _ENDS_MASS * on_parents) / (totals + _ENDS_MASS)
    onward = (counts[..., :-2] + kappa * parents[..., :-2]) / (on + kappa * on_parents)
    ends = (counts[..., -2:] + _ENDS_MASS * parents[..., -2:]) / (totals + _ENDS_MASS)
    return given_survivors(np.concatenate([going_on * onward, ends], axis=-1), totals + _ENDS_MASS, survivors)


def shrunk_rows(
    space: ContextSpace,
    counts: NDArray[Any],
    kappa: float = 1.0,
    *,
    survivors: NDArray[Any] | None = None,
    over_phases: bool = False,
) -> NDArray[np.float64]:
    """Rows of probabilities from counts, level by level from the categories' own rows to the finest contexts.

    Args:
        space: C contexts over m categories.
        counts: shape (..., C, m, m + 2); whole or expected numbers. Leading axes are corpora side by side.
        kappa: the mass of the prior around the row of the coarser context, see `shrunk_to`.
        survivors: how often runs were cut, shape (..., C, m); see `survivor_counts` and `given_survivors`.
        over_phases: counts have the shape (..., Z, C, m, m + 2), and the row of a category in a phase is itself the
            posterior mean under a Dirichlet prior of mass kappa around that of the category over all phases.

    Raises:
        UsageError: for a kappa that is not above 0.
    """
    require_kappa(kappa)
    *finer, coarsest = context_levels(space, counts)
    *finer_cut, cut = _cut_levels(space, survivors, len(finer) + 1)
    if over_phases and coarsest.shape[_PHASES] > 1:
        over_all = None if cut is None else cut.sum(axis=_PHASES, keepdims=True)
        rows = category_rows(coarsest.sum(axis=_PHASES, keepdims=True), over_all)
        rows = dirichlet_means(rows, coarsest, kappa, cut)
    else:
        rows = category_rows(coarsest, cut)
    for level, level_cut in zip(reversed(finer), reversed(finer_cut), strict=True):
        rows = shrunk_to(rows, level, kappa, level_cut)
    return rows.reshape(counts.shape)


def _cut_levels(space: ContextSpace, survivors: NDArray[Any] | None, n_levels: int) -> list[NDArray[Any] | None]:
    """Survivors at every level of `context_levels`, shapes (..., m, 1); no array where none is known of."""
    if survivors is None or not survivors.any():
        return [None] * n_levels
    return [*context_levels(space, survivors[..., np.newaxis])]


def require_kappa(kappa: float) -> None:
    """Raise UsageError unless kappa is a number above 0."""
    if not (isfinite(kappa) and kappa > 0):
        raise UsageError(f"kappa is the mass of a prior, a number above 0, not {kappa}")


def _require_same(space: ContextSpace, paths: RunPaths) -> None:
    if len(paths.states) != space.n_states or space.n_groups not in (1, paths.n_groups):
        raise ModelError(
            f"runs over {len(paths.states)} states and {paths.n_groups} groups in contexts over {space.n_states} and "
            f"{space.n_groups}"
        )


def _checked(corpora: Integers, n_runs: int, b: int) -> Counts:
    result = np.asarray(corpora, dtype=np.int64)
    if result.shape != (n_runs,) or (n_runs and not 0 <= result.min() <= result.max() < b):
        raise ModelError(f"corpora must give each of the {n_runs} runs a number from 0 to {b - 1}")
    return result
