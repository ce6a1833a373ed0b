"""Draws from the posterior of a fitted chain.

Each row of a fit is the mean of a Dirichlet posterior with concentration ``count + alpha`` for each allowed successor;
rows are independent, and so is the start. A start that was fitted as observed has no prior of its own: its posterior is
Dirichlet with the counts alone (the Bayesian bootstrap of Rubin 1981), whose mean is the observed distribution. The
edges of all draws are those of the fitted chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.estimate import concentration_of
from tracebridge.closedform.batched.chain_stack import DENSE_STATES, ChainStack
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.markov import MarkovChain

    Floats = NDArray[np.float64]

#: How many draws are made unless the caller says otherwise.
DEFAULT_DRAWS = 4_000

#: Draws that are in memory at a time take about so many bytes at most, one draw apart.
CHUNK_BYTES = 256 * 2**20

#: No probability of a draw is below this: doubles must not lose an edge, nor a path of several.
SMALLEST_PROBABILITY = 1e-30

_MOST_AT_A_TIME = 2_048  # more gain nothing: they only leave the cache
_BLOCK = 64
_BLOCK_ENTRIES = 2**20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChainPosterior:
    """Independent Dirichlet distributions over the rows of a chain and over its start.

    Attributes:
        chain: its edges are those of every draw; a row or start without a concentration is as it is in the chain.
        concentrations: of each entry of ``chain.transitions``, shape (entries,); zero in rows that are fixed.
        start: the concentration of each initial probability, shape (n,); zero where no run starts; None if it is fixed.
    """

    chain: MarkovChain
    concentrations: Floats
    start: Floats | None

    @classmethod
    def of_fit(cls, fit: ChainFit) -> ChainPosterior:
        """The posterior behind a fit: its prior, support, censoring policy, weights and start."""
        chain, rows = fit.chain, fit.row_counts()
        m, unit = len(fit.alpha), float(rows.unit)
        widths = np.diff(chain.transitions.indptr)
        totals = np.zeros(chain.n_states)
        seen = np.asarray(rows.counts.sum(axis=1)).ravel() * unit
        totals[:m] = seen + np.array([float(a) for a in fit.alpha]) * widths[:m]
        # probability times the row's total is count + alpha, entry by entry
        concentrations = chain.transitions.data * np.repeat(totals, widths)
        return cls(chain=chain, concentrations=concentrations, start=_start_concentrations(fit))

    def mean(self) -> ChainStack:
        """The one chain of the posterior means, which is the fit to the same counts."""
        P = self.chain.transitions
        random = self.concentrations > 0
        totals = np.repeat(np.add.reduceat(self.concentrations, P.indptr[:-1]), np.diff(P.indptr))
        entries = np.where(random, self.concentrations / np.where(random, totals, 1.0), P.data)
        initial = self.chain.initial if self.start is None else self.start / self.start.sum()
        return ChainStack(self.chain, entries[:, None], initial[:, None])

    def draws(self, number: int, seed: int) -> Iterator[ChainStack]:
        """So many draws, in chunks that fit into memory; the first draws are the same however many are asked for.

        Raises:
            UsageError: for no draw at all.
        """
        if number < 1:
            raise UsageError(f"a posterior needs at least one draw, not {number}")
        block = max(1, min(_BLOCK, _BLOCK_ENTRIES // max(1, len(self.concentrations))))
        at_a_time = max(1, min(_MOST_AT_A_TIME, CHUNK_BYTES // self._bytes_per_draw()) // block) * block
        for first in range(0, number, at_a_time):
            chunk = min(at_a_time, number - first)
            entries = np.empty((len(self.concentrations), chunk))
            initial = np.empty((self.chain.n_states, 1 if self.start is None else chunk))
            initial[:] = self.chain.initial[:, None]
            for begin in range(0, chunk, block):
                end = min(begin + block, chunk)
                key = (first + begin) // block
                rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
                entries[:, begin:end] = self._rows(block, rng)[:, : end - begin]
                if self.start is not None:
                    initial[:, begin:end] = self._starts(block, rng)[:, : end - begin]
            yield ChainStack(self.chain, entries, initial)

    def _bytes_per_draw(self) -> int:
        n = self.chain.n_states
        dense = 6 * n * n if n <= DENSE_STATES else 0
        return 8 * (8 * len(self.concentrations) + dense + 64 * n)

    def _rows(self, number: int, rng: np.random.Generator) -> Floats:
        P = self.chain.transitions
        drawn = _dirichlet(self.concentrations, P.indptr, number, rng)
        fixed = self.concentrations == 0
        drawn[fixed] = P.data[fixed, None]
        return drawn

    def _starts(self, number: int, rng: np.random.Generator) -> Floats:
        assert self.start is not None  # noqa: S101 - asked only with a start
        support = np.flatnonzero(self.start)
        initial = np.zeros((self.chain.n_states, number))
        initial[support] = _dirichlet(self.start[support], np.array([0, len(support)]), number, rng)
        return initial


def _start_concentrations(fit: ChainFit) -> Floats | None:
    if not isinstance(fit.start, str):
        return None
    rows = fit.row_counts()
    counts = rows.starts * float(rows.unit)
    start = np.zeros(fit.chain.n_states)
    start[: len(counts)] = counts
    if fit.start == "smoothed":
        allowed = np.flatnonzero(fit.chain.initial > 0)
        start[allowed] += float(concentration_of(fit.prior, len(allowed)))
    return start


def log_gammas(shapes: Floats, rng: np.random.Generator) -> Floats:
    """Logarithms of independent gamma variables of these shapes, all above zero.

    That of a small shape is often too small for a double itself: with a below one, ``log G(a) = log G(a + 1) +
    log(U) / a`` (Stuart 1962).
    """
    small = shapes < 1
    logs = np.log(rng.standard_gamma(np.where(small, shapes + 1, shapes)))
    logs[small] -= rng.standard_exponential(int(np.count_nonzero(small))) / shapes[small]
    return np.asarray(logs)


def _dirichlet(concentrations: Floats, indptr: NDArray[np.integer], number: int, rng: np.random.Generator) -> Floats:
    """Draws of independent Dirichlet vectors laid end to end, shape (entries, number); zeros where none are drawn."""
    if not len(concentrations):
        return np.empty((0, number))
    random = concentrations > 0
    logs = log_gammas(np.broadcast_to(np.where(random, concentrations, 1.0), (number, len(concentrations))), rng).T
    sizes = np.diff(indptr)
    first = indptr[:-1]
    logs -= np.repeat(np.maximum.reduceat(logs, first, axis=0), sizes, axis=0)
    gammas = np.exp(logs)
    gammas /= np.repeat(np.add.reduceat(gammas, first, axis=0), sizes, axis=0)
    np.maximum(gammas, SMALLEST_PROBABILITY, out=gammas)
    gammas[~random] = 0
    return gammas
