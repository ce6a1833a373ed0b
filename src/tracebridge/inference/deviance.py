"""Standardised deviance: does what follows a state depend on a context, at any number of events per cell?

The likelihood ratio ``G2 = 2 sum n log(n / E)`` has its textbook chi-square law only where every expectation is large;
here most cells are nearly empty, and G2 depends on the unknown probabilities of rare events so much that a bootstrap
from an estimate of them is wrong too. Given the margins of the table, however, its mean is known, since the counts are
hypergeometric, and its variance nearly: each cell adds that of the deviance of a Poisson count with expectation E,
times ``(1 - row share)(1 - column share)`` (McCullagh, 1986, Journal of the American Statistical Association 81,
104-107, on conditioning; Koehler, 1986, ibid., 483-493, on sparse tables). What is left after both are taken out hardly
depends on the unknown probabilities, so that a bootstrap of it can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from tracebridge.inference.event_counts import EventCounts

#: At most about so many cells are worked on at once.
_SLICE = 2_000_000
# Variances are tabulated at these logarithms of expectations; beyond them they hardly change.
_LOWEST, _SPACING, _GRID = np.log(1e-9), 0.02, 1_400
# From this expectation on, a series for E[k log k] is exact to a part in a thousand of what a cell adds.
_SERIES_FROM = 20.0
_LONGEST_TABLE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deviance:
    """G2 of what follows against the context, by corpus and state, with its moments given the margins.

    Attributes:
        g2, mean, variance: shape (g, m); all three add up over states. The mean is exact, the variance is not.
        n_by_state: events, shape (g, m).
    """

    g2: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    n_by_state: NDArray[np.float64]

    @property
    def n_events(self) -> NDArray[np.float64]:
        """Events in each corpus, shape (g,)."""
        return np.asarray(self.n_by_state.sum(axis=1))

    @property
    def z(self) -> NDArray[np.float64]:
        """Standardised G2 of each corpus, shape (g,); zero where nothing can depend on anything."""
        return _standardised((self.g2 - self.mean).sum(axis=1), self.variance.sum(axis=1))

    @property
    def z_by_state(self) -> NDArray[np.float64]:
        """Standardised G2 of each state, shape (g, m)."""
        return _standardised(self.g2 - self.mean, self.variance)

    @property
    def nats(self) -> NDArray[np.float64]:
        """Information about what follows that the context adds to the state, in nats an event, bias removed; (g,).

        Scatters around zero, and is negative as often as not, where it adds none.
        """
        return np.asarray((self.g2 - self.mean).sum(axis=1) / (2 * np.maximum(self.n_events, 1)))


class Cell(NamedTuple):
    """Cells of the tables of all states: every context that a state was in, with all that ever followed the state.

    Attributes:
        place: which of the asked pairs of a context and a state it belongs to.
        row: corpus * m + state. context, following: codes.
        total, in_context, nexts: events of the state, in this context, with this next.
    """

    place: NDArray[np.int64]
    row: NDArray[np.int64]
    context: NDArray[np.int64]
    following: NDArray[np.int64]
    total: NDArray[np.float64]
    in_context: NDArray[np.float64]
    nexts: NDArray[np.float64]

    @property
    def expected(self) -> NDArray[np.float64]:
        """What the margins predict."""
        return self.in_context * self.nexts / self.total

    @property
    def freedom(self) -> NDArray[np.float64]:
        """``(1 - row share)(1 - column share)``: adds up to the degrees of freedom."""
        return (1 - self.in_context / self.total) * (1 - self.nexts / self.total)


def deviance(table: EventCounts) -> Deviance:
    """G2 of what follows each state against the context, from the events alone."""
    g, m = table.n_corpora, table.n_states
    size = g * m
    margins = _Margins(table)
    inside = _add(margins.event_rows, xlogy(margins.events, margins.events), size)
    margin = (
        _add(margins.context_rows, xlogy(margins.in_context, margins.in_context), size)
        + _add(margins.next_rows, xlogy(margins.nexts, margins.nexts), size)
        - xlogy(margins.totals, margins.totals)
    )
    distinct, alike = margins.distinct_contexts()
    means, variances = np.zeros(len(distinct)), np.zeros(len(distinct))
    tabulated = _poisson_deviance_variances()
    for cell in margins.cells(distinct):
        means += _add(cell.place, mean_xlogx(cell.total, cell.in_context, cell.nexts), len(distinct))
        entry = np.clip((np.log(cell.expected) - _LOWEST) / _SPACING, 0, _GRID - 1)
        variances += _add(cell.place, cell.freedom * tabulated[entry.astype(np.int64)], len(distinct))
    mean, variance = (_add(margins.context_rows, part[alike], size) for part in (means, variances))
    return Deviance(
        g2=np.maximum(2 * (inside - margin), 0.0).reshape(g, m),
        mean=np.maximum(2 * (mean - margin), 0.0).reshape(g, m),
        variance=variance.reshape(g, m),
        n_by_state=margins.totals.reshape(g, m),
    )


def cells(table: EventCounts) -> Iterator[tuple[Cell, NDArray[np.int64]]]:
    """All cells, some at a time, each with its count, which may be zero."""
    m = table.n_states
    margins = _Margins(table)
    for cell in margins.cells(np.arange(len(margins.in_context))):
        corpora, states = cell.row // m, cell.row % m
        keys = ((corpora * table.n_contexts + cell.context) * m + states) * (m + 2) + cell.following
        place = np.minimum(np.searchsorted(table.keys, keys), len(table.keys) - 1)
        yield cell, np.where(table.keys[place] == keys, table.counts[place], 0)


class _Margins:
    """Totals by (corpus, context, state), by (corpus, state, next) and by (corpus, state) = row."""

    def __init__(self, table: EventCounts) -> None:
        m = table.n_states
        pooled = table.pooled()
        self._g, self._m = table.n_corpora, m
        self.events = table.counts.astype(np.float64)
        self.event_rows = table.corpora * m + table.states
        within = table.keys // (m + 2)  # ascending: (corpus, context, state)
        first = np.flatnonzero(np.diff(within, prepend=-1))
        within = within[first]
        self.in_context = np.add.reduceat(self.events, first) if len(first) else np.empty(0)
        self.contexts = within // m % table.n_contexts
        self.context_rows = within // (table.n_contexts * m) * m + within % m
        self.nexts = pooled.counts.astype(np.float64)
        self.following = pooled.following
        self.next_rows = pooled.corpora * m + pooled.states
        size = table.n_corpora * m
        self.totals = _add(self.next_rows, self.nexts, size)
        self._n_nexts = np.bincount(self.next_rows, minlength=size)
        self._first_next = np.cumsum(self._n_nexts) - self._n_nexts

    def distinct_contexts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs (context, state) that differ in their margins, and for every pair which of them it is like.

        Margins of permuted corpora are the same in all of them; contexts with as many events of a state are alike.
        """
        profile = self.context_rows % self._m if self._are_shared() else self.context_rows
        order = np.lexsort((self.in_context, profile))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(profile[order]) != 0) | (np.diff(self.in_context[order]) != 0)
        alike = np.empty(len(order), dtype=np.int64)
        alike[order] = np.cumsum(new) - 1
        return order[new], alike

    def _are_shared(self) -> bool:
        """Whether every corpus has the same events by state and next."""
        if len(self.nexts) % max(self._g, 1):
            return False
        columns = (self.next_rows % self._m, self.following, self.nexts)
        return all((column == column[0]).all() for column in (each.reshape(self._g, -1) for each in columns))

    def cells(self, pairs: NDArray[np.int64]) -> Iterator[Cell]:
        """Those of some pairs (context, state), some at a time."""
        width = self._n_nexts[self.context_rows[pairs]]  # cells of each
        above = np.cumsum(width)
        begin = 0
        while begin < len(width):
            end = max(begin + 1, int(np.searchsorted(above, above[begin] - width[begin] + _SLICE, side="right")))
            part = np.arange(begin, end)
            place = np.repeat(part, width[part])
            position = np.arange(len(place)) - np.repeat(
                above[part] - width[part] - (above[begin] - width[begin]), width[part]
            )
            source = pairs[place]
            row = self.context_rows[source]
            column = self._first_next[row] + position
            yield Cell(
                place=place,
                row=row,
                context=self.contexts[source],
                following=self.following[column],
                total=self.totals[row],
                in_context=self.in_context[source],
                nexts=self.nexts[column],
            )
            begin = end


def mean_xlogx(
    total: NDArray[np.float64], in_context: NDArray[np.float64], nexts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``E[k log k]`` for hypergeometric counts k: of ``in_context`` events among ``total``, ``nexts`` of them marked.

    Summed term by term where the expectation is small, and a series around it where it is not.
    """
    expected = in_context * nexts / total
    rest = (1 - in_context / total) * (1 - nexts / total)
    variance = expected * rest * total / np.maximum(total - 1, 1)
    skew = variance * (1 - 2 * in_context / total) * (1 - 2 * nexts / total)
    result = (
        xlogy(expected, expected)
        + variance / (2 * expected)
        - skew / (6 * expected**2)
        + (3 * variance**2 + variance) / (12 * expected**3)
    )
    low = np.maximum(in_context + nexts - total, 0.0)
    high = np.minimum(np.minimum(in_context, nexts), np.floor(expected + 10 * np.sqrt(expected) + 20))
    terms = (high - low).astype(np.int64)
    small = np.flatnonzero(expected < _SERIES_FROM)
    small = small[np.argsort(-terms[small], kind="stable")]  # so that those with terms left come first
    n, a, b, low, terms = total[small], in_context[small], nexts[small], low[small], terms[small]
    log_factorial = _log_factorials(int(n.max(initial=0)))

    def log_choose(of: NDArray[np.float64], chosen: NDArray[np.float64]) -> NDArray[np.float64]:
        return log_factorial(of) - log_factorial(chosen) - log_factorial(of - chosen)

    weight = np.exp(log_choose(b, low) + log_choose(n - b, a - low) - log_choose(n, a))
    sums = weight * xlogy(low, low)
    for step in range(1, int(terms.max(initial=0)) + 1):
        active = int(np.searchsorted(-terms, -step, side="right"))
        k = low[:active] + step
        weight = weight[:active] * (a[:active] - k + 1) * (b[:active] - k + 1) / (k * (n - a - b)[:active] + k * k)
        sums[:active] += weight * k * np.log(k)
    result[small] = sums
    return np.asarray(result)


def _log_factorials(largest: int) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The function ``log k!`` of whole numbers up to the largest, from a table unless that would be long."""
    if largest > _LONGEST_TABLE:
        return lambda k: np.asarray(gammaln(k + 1))
    table = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, largest + 1)))])
    return lambda k: np.asarray(table[k.astype(np.int64)])


@cache
def _poisson_deviance_variances() -> NDArray[np.float64]:
    """Variance of ``2 (k log(k / E) - k + E)`` for a Poisson count k, on a grid of log E."""
    variances = np.empty(_GRID)
    for i in range(_GRID):
        expected = np.exp(_LOWEST + i * _SPACING)
        spread = 12 * np.sqrt(expected) + 30
        k = np.arange(max(0, int(expected - spread)), int(expected + spread))
        weight = np.exp(xlogy(k, expected) - expected - gammaln(k + 1))
        value = 2 * (xlogy(k, k / expected) - k + expected)
        variances[i] = weight @ np.square(value - weight @ value)
    return variances


def _standardised(excess: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(variance > 0, excess / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)


def _add(keys: NDArray[np.int64], weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.asarray(np.bincount(keys, weights=weights, minlength=size), dtype=np.float64)
