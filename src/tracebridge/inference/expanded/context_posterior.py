"""Draws of the rows of contexts: the Bayesian bootstrap of transitions, refitted.

Every transition that was seen gets an exponential weight (Rubin 1981, The Bayesian bootstrap; for fits with a prior,
Newton and Raftery 1994, the weighted likelihood bootstrap), so that a count becomes a gamma variable with the count as
its shape. Rows are made of these as they are of counts, see `shrunk_rows`; the prior of mass one of a category's row
becomes gamma variables with shapes ``1 / (m + 2)``. A chain without contexts is thus drawn from the Dirichlet
posterior of its first-order fit, exactly.

Two things differ from a hierarchy of Dirichlet distributions, drawn level by level. Coarser counts are sums of the same
gamma variables, and not drawn again: what was counted in a context was counted there and in all coarser ones; if the
levels varied independently, figures would vary too little where contexts were rarely seen. And the mass of the prior is
no random share: a context that was never seen behaves as the coarser one does, in a draw as in the estimate. A
Dirichlet row of mass one there is close to a certain step, often back to itself, and mean times have no bound then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.context_rows import (
    context_counts,
    context_levels,
    given_survivors,
    shrunk_to,
    start_counts,
    survivor_counts,
)
from tracebridge.errors import UsageError
from tracebridge.inference.expanded.parameter_draws import ParameterDraws
from tracebridge.inference.posterior import SMALLEST_PROBABILITY, log_gammas

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.expansion import ContextSpace
    from tracebridge.states.run_paths import RunPaths

    Floats = NDArray[np.float64]
    Counts = NDArray[np.int64]

#: Draws are made side by side as long as they have at most about so many probabilities.
_CELLS_SIDE_BY_SIDE, _MOST_SIDE_BY_SIDE = 4_000_000, 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContextPosterior:
    """Draws of the parameters of a form without hidden phases and classes.

    The start has the counts alone for concentrations, as that of a first-order fit.

    Attributes:
        space: C contexts over m categories. kappa: mass of the prior around the row of the coarser context.
        counts: of what followed, shape (C, m, m + 2).
        survivors: of runs that were cut, shape (C, m); zeros without contexts, as in a first-order fit.
        starts: runs by group and first category or end, (G, m + 2).

    Raises:
        UsageError: for a form with phases or classes.
    """

    space: ContextSpace
    kappa: float
    counts: Counts
    survivors: Counts
    starts: Counts

    def __post_init__(self) -> None:
        if self.space.form.phases > 1 or self.space.form.classes > 1:
            raise UsageError(f"{self.space.form} has hidden parts: their parameters are not independent of each other")

    @classmethod
    def of_runs(cls, space: ContextSpace, paths: RunPaths, kappa: float) -> ContextPosterior:
        """After these runs, which are under their censoring policy."""
        return cls(
            space=space,
            kappa=kappa,
            counts=context_counts(space, paths)[0],
            survivors=survivor_counts(space, paths)[0] * space.form.has_context,
            starts=start_counts(space, paths)[0],
        )

    @property
    def at_a_time(self) -> int:
        """How many draws are made side by side."""
        return max(1, min(_CELLS_SIDE_BY_SIDE // max(1, self.counts.size), _MOST_SIDE_BY_SIDE))

    def block(self, key: int, number: int, seed: int) -> ParameterDraws:
        """The first ``number`` of the `at_a_time` draws of a block, the same whatever others are asked for."""
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
        draws = self.at_a_time
        starts = np.zeros((draws, *self.starts.shape))
        seen = self.starts > 0
        starts[:, seen] = _shares(_log_gammas_of_counts(self.starts[seen], draws, rng))
        rows = self._rows(draws, rng)
        advance = np.ones((number, 1, self.space.n_states, 1))
        return ParameterDraws.of_first_axis(starts[:number, :, None], rows[:number, None], advance)

    def _rows(self, draws: int, rng: np.random.Generator) -> Floats:
        gammas = np.exp(_log_gammas_of_counts(self.counts, draws, rng))
        cut = np.exp(_log_gammas_of_counts(self.survivors, draws, rng))[..., np.newaxis]
        *finer, coarsest = context_levels(self.space, gammas)
        *finer_cut, coarsest_cut = context_levels(self.space, cut)
        prior = np.full(coarsest.shape, 1 / coarsest.shape[-1])
        with np.errstate(divide="ignore"):  # what was never counted has a logarithm, too
            logs = np.logaddexp(np.log(coarsest), log_gammas(prior, rng))
        rows = given_survivors(_shares(logs), np.exp(logs).sum(axis=-1, keepdims=True), coarsest_cut)
        for level, level_cut in zip(reversed(finer), reversed(finer_cut), strict=True):
            rows = shrunk_to(rows, level, self.kappa, level_cut)
        return rows.reshape(draws, *self.counts.shape)


def _log_gammas_of_counts(counts: Counts, draws: int, rng: np.random.Generator) -> Floats:
    """Logarithms of gamma variables whose shapes are counts, minus infinity for none; shape (draws, ...)."""
    result = np.full((draws, *counts.shape), -np.inf)
    seen = counts > 0
    result[:, seen] = log_gammas(np.broadcast_to(counts[seen].astype(np.float64), (draws, int(seen.sum()))), rng)
    return result


def _shares(logs: Floats) -> Floats:
    """Shares of numbers given by their logarithms, along the last axis; none is zero."""
    numbers = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares = numbers / numbers.sum(axis=-1, keepdims=True)
    return np.asarray(np.maximum(shares, SMALLEST_PROBABILITY))
