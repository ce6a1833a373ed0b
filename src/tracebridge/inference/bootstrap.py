"""Resampled corpora: runs, or whole tasks, drawn again with replacement, and the unsmoothed chain of each resample.

A second opinion on the posterior: it does not assume that runs are Markov, and drawing tasks does not assume that runs
of one task are independent. Each resample is a vector of multinomial weights, and its counts one product with the table
of what each run adds: of whole numbers far below 2^53, which doubles add up exactly in any order. It has no prior, so
where nothing ever went wrong it believes that nothing can.

The edges are those of the corpus; what a resample did not see has probability zero in it. A state that a resample does
not leave, or from which it shows no way to an end because all such runs were censored, keeps the row of the corpus; a
resample in which no run starts keeps its start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.fit import fit_counts
from tracebridge.chain.graph import recurrent_classes
from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.errors import UsageError
from tracebridge.inference.run_counts import require_counts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.resampling_units import ResamplingUnits, Unit

    Floats = NDArray[np.float64]

DEFAULT_RESAMPLES = 2_000

_BLOCK_CELLS = 2**22
#: A table of which one entry in so many is not zero takes less time dense.
_DENSE_FROM = 1 / 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bootstrap:
    """Resamples of a corpus, as stacks of chains.

    Attributes:
        chain: the unsmoothed chain of the corpus itself.
        table: what each unit adds, CSR, shape (units, cells); see `RunCounts`.
        unit: whether runs or tasks are drawn, one by one or in random groups.
        fixed_start: the start was given, and is no matter of the corpus.
    """

    chain: MarkovChain
    table: csr_array
    unit: Unit
    fixed_start: bool

    @classmethod
    def of_units(cls, fit: ChainFit, units: ResamplingUnits, unit: Unit = "trace") -> Bootstrap:
        """The bootstrap of the corpus behind a fit, whose prior and support it leaves aside.

        Raises:
            UsageError: for a fit with weights. FitError: the runs are not those of the fit, or as
                `ResamplingUnits.of_kind`.
        """
        if fit.weighted is not None:
            raise UsageError("runs with weights are not drawn again: their sampling design is not known")
        require_counts_of(fit, units.states, units.runs.table)
        table = units.of_kind(unit).table
        chain = unsmoothed_chain(fit)
        kept = _cells_of_chain(units.states, chain)
        fixed = not isinstance(fit.start, str)
        return cls(chain=chain, table=csr_array(table[:, kept]), unit=unit, fixed_start=fixed)

    def resamples(self, number: int, seed: int) -> Iterator[ChainStack]:
        """So many resamples, in chunks; the first are the same however many are asked for."""
        if number < 1:
            raise UsageError(f"a bootstrap needs at least one resample, not {number}")
        units = self.table.shape[0]
        block = max(1, min(256, _BLOCK_CELLS // max(units, self.table.shape[1])))
        shares = np.full(units, 1 / units)
        added = _for_products(self.table)
        for key, first in enumerate(range(0, number, block)):
            rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key,)))
            weights = rng.multinomial(units, shares, size=block)
            yield self._stack(np.asarray(added @ np.ascontiguousarray(weights[: number - first].T, dtype=np.float64)))

    def _stack(self, counts: Floats) -> ChainStack:
        """The unsmoothed chains of summed counts, shape (cells, resamples)."""
        P, n, m = self.chain.transitions, self.chain.n_states, _n_transient(self.chain)
        resamples = counts.shape[1]
        by_row = counts.reshape(m + 1, m + 2, resamples)
        row = np.repeat(np.arange(n), np.diff(P.indptr))
        corpus = np.repeat(P.data[:, None], resamples, axis=1)
        counted = (row < m) & (P.indices < m + 2)
        left = by_row[:m].sum(axis=1)
        totals = left[row[counted]]
        entries = corpus.copy()
        shares = by_row[row[counted], P.indices[counted]] / np.maximum(totals, 1)
        entries[counted] = np.where(totals > 0, shares, entries[counted])
        lost = ~_ending(self.chain, entries)
        entries = np.where(lost[row], corpus, entries)
        initial = self.chain.initial[:, None]
        if not self.fixed_start:
            initial = np.zeros((n, resamples))
            initial[: m + 2] = by_row[m] / np.maximum(by_row[m].sum(axis=0), 1)
            initial = np.where(by_row[m].any(axis=0), initial, self.chain.initial[:, None])
        return ChainStack(self.chain, entries, initial)


def _for_products(table: csr_array) -> csr_array | Floats:
    """What each unit adds, shape (cells, units): dense where that is faster and no larger than a block of resamples."""
    size = table.shape[0] * table.shape[1]
    added = table.T.astype(np.float64)
    return added.toarray() if size <= _BLOCK_CELLS and table.nnz >= _DENSE_FROM * size else added.tocsr()


def unsmoothed_chain(fit: ChainFit) -> MarkovChain:
    """The maximum-likelihood chain of the corpus behind a fit, with its censoring policy, weights and given start."""
    return fit_counts(
        fit.weighted or fit.counts,
        prior="none",
        policy=fit.policy,
        start="observed" if isinstance(fit.start, str) else fit.start,
        abstraction=fit.abstraction,
        vocabulary=fit.vocabulary,
    ).chain


def _n_transient(chain: MarkovChain) -> int:
    """The states of a fit before ``success``, ``failure`` and, where there is one, ``stuck``."""
    return chain.n_states - 2 - ("stuck" in chain.states)


def _cells_of_chain(states: tuple[str, ...], chain: MarkovChain) -> NDArray[np.int64]:
    """The cells of a table over ``states`` that make up the table of the chain's transient states, row by row."""
    m = len(states)
    mine = {name: i for i, name in enumerate(states)}
    order = [mine[name] for name in chain.states[: _n_transient(chain)]]
    rows, columns = np.array([*order, m]), np.array([*order, m, m + 1])
    return np.asarray((rows[:, None] * (m + 2) + columns).ravel())


def _ending(chain: MarkovChain, entries: Floats) -> NDArray[np.bool_]:
    """From which states of each resample a recurrent state of the corpus' chain can be reached, shape (n, resamples).

    Those states themselves are left out: their rows must not lose an edge either.
    """
    P = chain.transitions
    recurrent = np.zeros(chain.n_states, dtype=np.bool_)
    recurrent[np.concatenate(recurrent_classes(P))] = True
    positive = entries > 0
    found = np.repeat(recurrent[:, None], entries.shape[1], axis=1)
    while True:
        leading = np.logical_or.reduceat(positive & found[P.indices], P.indptr[:-1], axis=0)
        wider = found | leading
        if np.array_equal(wider, found):
            break
        found = wider
    return np.asarray(found & ~recurrent[:, None])
