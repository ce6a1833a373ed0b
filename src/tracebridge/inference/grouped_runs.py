"""Corpora of many runs drawn as numbers of runs: what a step costs does not depend on how many runs take it.

Runs of a corpus that are in the same state after the same state, for equally long, have the same past as far as the
tables know it. How many of them take which step is multinomial, so the counts have the very law of runs drawn one by
one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.path_tables import CENSORED, STEP_BINS, PathTables, step_bin
from tracebridge.states.features import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Longer stays than this many earlier steps are in one bin.
_LONGEST_STAY = 8


class GroupedRuns:
    """g corpora whose runs take their steps together, as numbers of runs by situation.

    A situation is a state, the state before it (m at the first step) and the number of earlier steps of the same stay.
    Those of stays of 0 and 1 are numbered ``before * m + state``; those of 2, ..., 8 come after these.

    Args:
        start: probabilities of the m states, success and failure at the start, shape (m + 2,).
        rows: probabilities of what follows a state, shape (m, m + 2).
        n_corpora: g. n_runs: runs of each.
    """

    def __init__(
        self,
        start: NDArray[np.float64],
        rows: NDArray[np.float64],
        *,
        n_corpora: int,
        n_runs: int,
        rng: np.random.Generator,
    ) -> None:
        m, g = len(rows), n_corpora
        self._m, self._g, self._rng = m, g, rng
        # The likeliest first, for a multinomial draw ends when no run is left.
        self._targets = np.argsort(-rows, axis=1, kind="stable")
        self._rows = np.take_along_axis(rows, self._targets, axis=1)
        near, stays = np.divmod(np.arange((m + 1) * m), m), np.repeat(np.arange(2, _LONGEST_STAY + 1), m)
        self._state = np.concatenate([near[1], np.tile(np.arange(m), len(stays) // max(m, 1))])
        self._before = np.concatenate([near[0], self._state[len(near[0]) :]])
        self._stay = np.concatenate([(near[0] == near[1]).astype(np.int64), stays])
        longer = np.minimum(self._stay + 1, _LONGEST_STAY)
        self._staying = np.where(longer == 1, self._state * (m + 1), (m + 1 + longer - 2) * m + self._state)

        first = rng.multinomial(n_runs, start, size=g)
        self._starts = first[:, :m]
        self._runs = np.zeros((g, len(self._state)), dtype=np.int64)
        self._runs[:, m * m : m * m + m] = self._starts
        self._ends = [np.pad(first[:, m:], ((0, 0), (0, 1)))]
        self._previous = np.zeros((g, m + 1, m, m + 2), dtype=np.int64)
        self._clock, self._dwell = (np.zeros((g, len(STEP_BINS), m, m + 2), dtype=np.int64) for _ in range(2))

    @property
    def time(self) -> int:
        """Steps that every run that goes on has before its present one."""
        return len(self._ends) - 1

    @property
    def n_going(self) -> int:
        """Runs that go on, of all corpora."""
        return int(self._runs.sum())

    @property
    def n_occupied(self) -> int:
        """Situations of all corpora in which some run is."""
        return int(np.count_nonzero(self._runs))

    def step(self, hazard: float) -> int:
        """Every run takes its step; each of those that go on after it is cut with probability ``hazard``.

        Returns:
            The number of runs cut, of all corpora.
        """
        m = self._m
        corpus, situation = np.nonzero(self._runs)
        state = self._state[situation]
        drawn = self._rng.multinomial(self._runs[corpus, situation], self._rows[state])
        group, rank = np.nonzero(drawn)
        n, corpus, situation, state = drawn[group, rank], corpus[group], situation[group], state[group]
        after = self._targets[state, rank]
        going = after < m
        ends = np.zeros((self._g, len(OUTCOMES)), dtype=np.int64)
        np.add.at(ends, (corpus[~going], after[~going] - m), n[~going])
        if hazard > 0:
            cut = np.where(going, self._rng.binomial(np.where(going, n, 0), min(hazard, 1.0)), 0)
            np.add.at(ends[:, CENSORED], corpus, cut)
            n = n - cut
        clock = int(step_bin(np.array(self.time)))
        np.add.at(self._previous, (corpus, self._before[situation], state, after), n)
        np.add.at(self._clock[:, clock], (corpus, state, after), n)
        np.add.at(self._dwell, (corpus, step_bin(self._stay[situation]), state, after), n)
        following = np.where(after == state, self._staying[situation], state * m + after)
        self._runs = np.zeros_like(self._runs)
        np.add.at(self._runs, (corpus[going], following[going]), n[going])
        self._ends.append(ends)
        return int(ends[:, CENSORED].sum())

    def going(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The runs that go on, one by one: corpus, state before, state, earlier steps of the stay (at most 8)."""
        corpus, situation = np.nonzero(self._runs)
        n = self._runs[corpus, situation]
        corpus, situation = np.repeat(corpus, n), np.repeat(situation, n)
        return corpus, self._before[situation], self._state[situation], self._stay[situation]

    def tables(self) -> PathTables:
        """What was counted so far."""
        return PathTables(
            previous=_events(self._previous),
            clock=_events(self._clock),
            dwell=_events(self._dwell),
            starts=self._starts.copy(),
            ends=np.stack(self._ends, axis=2),
        )


def _events(dense: NDArray[np.int64]) -> EventCounts:
    g, contexts, m, _ = dense.shape
    keys = np.flatnonzero(dense)
    return EventCounts(n_corpora=g, n_contexts=contexts, n_states=m, keys=keys, counts=dense.ravel()[keys])
