"""Replicates of a corpus: drawn from a chain, fitted, and judged as the corpus itself is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.estimation import WARM_ITERATIONS, ModelStack, estimate_stack
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.expanded.statistics import ModelMisfit, model_misfit
from tracebridge.inference.path_tables import STEP_BINS, PathTables
from tracebridge.inference.smoothed_chain import censoring_hazard

if TYPE_CHECKING:
    from tracebridge.chain.expanded.model import ExpandedModel
    from tracebridge.states.run_paths import RunPaths

#: About so many numbers of parameters and tables, and so many steps, are worked on at once.
_SLICE, _SLICE_STEPS = 4_000_000, 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is done to the real runs and to every replicate alike: with the source given, they are exchangeable.

    The iterations for phases begin at the very chain that replicates are drawn from, and at the best that was found for
    the real runs. So the search behind it matters: where it ended in a poor local optimum, the real runs would fit
    worse than replicates do, and chains of the form would be rejected too often (at level .05, of corpora of a chain
    with four phases 6 of 60 with three starts, and 3 of 58 of the same with the best three of twelve).

    Attributes:
        warm: what replicates are drawn from but for classes, and what the search for phases starts from.
        kappa: see `certify_model`.
        n_fitted: how many runs chains are fitted to, the first of each corpus, if they are judged on the others alone.
    """

    warm: ExpandedModel
    kappa: float
    n_fitted: int | None

    def judge(self, paths: RunPaths, number: int = 1) -> tuple[ModelStack, ModelMisfit]:
        """Fit chains to corpora of equal numbers of runs, one for each, and judge them."""
        corpora = np.repeat(np.arange(number), paths.n_runs // number)
        fitted, judged, own, others = paths, paths, corpora, corpora
        if self.n_fitted is not None:
            first = np.arange(paths.n_runs) % (paths.n_runs // number) < self.n_fitted
            fitted, judged = paths.take(np.flatnonzero(first)), paths.take(np.flatnonzero(~first))
            own, others = corpora[first], corpora[~first]
        form = self.warm.form
        stack = estimate_stack(fitted, own, number, form, self.kappa, self.warm, WARM_ITERATIONS)
        return stack, model_misfit(stack, judged, others)


def replicate(
    trial: Trial,
    source: ExpandedModel,
    like: RunPaths,
    number: int,
    seed: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[ModelMisfit, int]:
    """The statistics of replicates, some of them side by side at a time, and the runs that were stopped.

    Args:
        trial: what is done to each. source: what they are drawn from.
        like: the real runs, of which replicates have the number, the censoring, and the tasks that share a class.
        number: of replicates. seed: decides them. progress: called with the replicates done and all of them.
    """
    m = source.n_states
    hazard = censoring_hazard(PathTables.of_paths(like.codes, like.offsets, like.outcomes, m))
    simulation = ModelSimulation(source, hazard)
    cells = source.rows.size + (m + 1 + 2 * len(STEP_BINS)) * m * (m + 2)
    together = max(1, min(_SLICE // cells, _SLICE_STEPS // max(like.n_steps, 1)))
    seeds = np.random.SeedSequence(seed).spawn(number)
    found, n_stopped = [], 0
    for first in range(0, number, together):
        mine = seeds[first : first + together]
        drawn, _ = simulation.corpora(like.n_runs, mine, like.blocks)
        found.append(trial.judge(drawn, len(mine))[1])
        n_stopped += simulation.stopped(drawn)
        if progress is not None:
            progress(first + len(mine), number)
    return ModelMisfit.joined(found), n_stopped
