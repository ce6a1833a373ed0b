"""SmoothedChain: first-order chains with a prior on full support, of many corpora side by side.

A row with counts c, n in total, over m states has the estimate ``(c + a/(m + 2)) / (n + a)`` for a prior of total mass
a, one by default: with probability ``n / (n + a)`` what was observed, else anything at all. Kept apart like this the
rows stay sparse, to step as to draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import splu

from tracebridge.inference.path_tables import CENSORED, FAILURE, SUCCESS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.inference.event_counts import EventCounts
    from tracebridge.inference.path_tables import PathTables


# Curves of at least so many steps are computed many steps at a time, if rows and blocks of steps have so few entries.
_LONG_CURVE, _MOST_ENTRIES = 128, 2**22

# A state plus a number below this does not round up to the next state, with up to 2^21 states.
_BELOW_ONE = 1 - 2.0**-32


class SmoothedChain:
    """The smoothed estimates of g corpora over m states.

    The start is as observed: a first step, or an end for a run without a step.

    Args:
        tables: the corpora. mass: total prior mass of each row, positive; m + 2 is the Laplace prior.
    """

    def __init__(self, tables: PathTables, *, mass: float = 1.0) -> None:
        events = tables.clock.pooled()
        self.n_corpora, self.n_states = tables.n_corpora, tables.n_states
        self._events, self._mass = events, mass
        rows = events.corpora * self.n_states + events.states
        totals = np.bincount(rows, weights=events.counts, minlength=self.n_corpora * self.n_states)
        self._totals = totals.astype(np.float64)
        columns = events.corpora * (self.n_states + 2) + events.following
        shape = (self.n_corpora * (self.n_states + 2), self.n_corpora * self.n_states)
        self._arrivals = csr_array((events.counts.astype(np.float64), (columns, rows)), shape=shape)
        empty = tables.ends[:, [SUCCESS, FAILURE], 0]
        self._starts = np.concatenate([tables.starts, empty], axis=1).astype(np.float64)

    @property
    def start(self) -> NDArray[np.float64]:
        """Distribution over the states, success and failure at the start; shape (g, m + 2), zero without a run."""
        return np.asarray(self._starts / np.maximum(self._starts.sum(axis=1, keepdims=True), 1))

    def step(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where ``weights`` on the states, shape (g, m), are one step later: shape (g, m + 2)."""
        parts = weights / (self._totals.reshape(weights.shape) + self._mass)
        observed = (self._arrivals @ parts.ravel()).reshape(self.n_corpora, self.n_states + 2)
        return np.asarray(observed + parts.sum(axis=1, keepdims=True) * (self._mass / (self.n_states + 2)))

    def end_curves(self, longest: int) -> NDArray[np.float64]:
        """Probabilities to have ended in success, and in failure, within 0, ..., longest steps: (g, 2, longest + 1)."""
        m = self.n_states
        if longest >= _LONG_CURVE and self.n_corpora * m * (m + 2) <= _MOST_ENTRIES:
            return self._end_curves_by_blocks(longest)
        curves = np.empty((self.n_corpora, 2, longest + 1))
        now = self.start
        curves[:, :, 0] = now[:, m:]
        for d in range(1, longest + 1):
            now = self.step(now[:, :m])
            curves[:, :, d] = curves[:, :, d - 1] + now[:, m:]
        return curves

    def _end_curves_by_blocks(self, longest: int) -> NDArray[np.float64]:
        """`end_curves` in about ``2 sqrt(longest)`` products, of dense rows.

        A block of B steps has the ends within 1, ..., B steps of each state, and where its runs are after B; one of 2 B
        steps follows from it, and the whole curve from one block after the other.
        """
        m, g = self.n_states, self.n_corpora
        rows = self.dense_rows()
        power, within = rows[:, :, :m], rows[:, :, m:, None]  # (g, m, m) and (g, m, 2, steps)
        while 4 * (steps := within.shape[3]) ** 2 <= longest and 4 * g * m * steps <= _MOST_ENTRIES:
            further = np.einsum("gij,gjkb->gikb", power, within)
            within = np.concatenate([within, within[:, :, :, -1:] + further], axis=3)
            power = power @ power
        curves = np.empty((g, 2, longest + 1))
        now = self.start[:, :m]
        curves[:, :, 0] = self.start[:, m:]
        for d in range(0, longest, within.shape[3]):
            added = np.einsum("gi,gikb->gkb", now, within[:, :, :, : longest - d])
            curves[:, :, d + 1 : d + 1 + added.shape[2]] = curves[:, :, d, None] + added
            now = (now[:, None] @ power)[:, 0]
        return curves

    def dense_rows(self) -> NDArray[np.float64]:
        """The estimates as they are: shape (g, m, m + 2)."""
        m, observed = self.n_states, self._arrivals.tocoo()
        arriving, leaving = observed.coords
        rows = np.full((self.n_corpora, m, m + 2), self._mass / (m + 2))
        rows[leaving // m, leaving % m, arriving % (m + 2)] += observed.data
        return rows / (self._totals.reshape(self.n_corpora, m, 1) + self._mass)

    def long_run(self) -> NDArray[np.float64]:
        """Probabilities to end in success, and in failure, ever, in the only corpus: shape (2,)."""
        m = self.n_states
        shrunk = 1 / (self._totals + self._mass)
        # Visits x solve x = start + Q'x, where Q' = (observed arrivals, shrunk) + (prior: equal arrivals everywhere).
        solve = splu(csc_array(eye_array(m) - self._arrivals[:m] * shrunk)).solve
        plain, spread = solve(self.start[0, :m]), solve(np.ones(m))
        everywhere = self._mass / (m + 2)
        share = everywhere * (shrunk @ plain) / (1 - everywhere * (shrunk @ spread))
        visits = plain + share * spread
        return np.asarray(self.start[0, m:] + self.step(visits[None])[0, m:])

    def sampler(self) -> Sampler:
        """Draws from the estimate of the only corpus."""
        return Sampler(self._events, self._totals, self._starts[0], self._mass)


class Sampler:
    """Draws starts and steps for many runs at once."""

    def __init__(
        self, events: EventCounts, totals: NDArray[np.float64], starts: NDArray[np.float64], mass: float
    ) -> None:
        m = self._m = events.n_states
        self._start_ladder = np.cumsum(starts)
        # Each row ends with an entry for "anything at all". All rows form one increasing ladder, row i in (i, i + 1].
        rows = np.concatenate([events.states, np.arange(m)])
        targets = np.concatenate([events.following, np.full(m, -1)])
        order = np.argsort(rows, kind="stable")
        self._targets = targets[order]
        weights = np.concatenate([events.counts, np.full(m, mass)])[order]
        above = np.cumsum(weights)
        before = np.concatenate([[0], np.cumsum(totals + mass)])
        rows = rows[order]
        self._ladder = rows + (above - before[rows]) / (totals[rows] + mass)

    def starts(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """First states, or m for success and m + 1 for failure without a step; shape (size,)."""
        return np.searchsorted(self._start_ladder, rng.integers(int(self._start_ladder[-1]), size=size), side="right")

    def following(self, states: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """What follows each state: a state, m for success, m + 1 for failure."""
        place = self._ladder.searchsorted(states + _BELOW_ONE * rng.random(len(states)), side="right")
        after: NDArray[np.int64] = self._targets[place]
        anything = after < 0
        if anything.any():
            after[anything] = rng.integers(self._m + 2, size=int(anything.sum()))
        return after


def censoring_hazard(tables: PathTables) -> NDArray[np.float64]:
    """The share cut at d among the runs of the only corpus that go on after step d, shape (longest + 1,).

    A cut run is known to have gone on: had its last step ended it, its end would have been seen. A step cap thus has
    hazard one at the cap. Runs that were cut before their first step tell nothing and do not count.
    """
    ended = tables.ends[0, [SUCCESS, FAILURE]].sum(axis=0)
    cut = tables.ends[0, CENSORED].copy()
    cut[0] = 0
    going_on = np.cumsum((ended + cut)[::-1])[::-1] - ended
    return np.asarray(cut / np.maximum(going_on, 1))
