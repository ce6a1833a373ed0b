"""Corpora drawn from a fitted chain, with the censoring of the real one, counted as they are drawn.

All runs take their steps together; paths are never stored. What a step needs to know of its past is the state before
it, the time, and the length of the stay. Many runs are drawn as numbers of runs, few one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.inference.event_counts import EventCounts
from tracebridge.inference.grouped_runs import GroupedRuns
from tracebridge.inference.path_tables import CENSORED, FAILURE, STEP_BINS, SUCCESS, PathTables, step_bin
from tracebridge.inference.smoothed_chain import SmoothedChain, censoring_hazard
from tracebridge.states.features import OUTCOMES

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: About so many events are kept before they are added up: 24 bytes each, and as much again to sort them.
_BLOCK_EVENTS = 2_000_000
#: So many of them wait to be numbered.
_EVENTS_AT_ONCE = 100_000
#: No drawn run goes on beyond this many times the longest real one, or this many steps.
_LONGEST_TIMES, _LONGEST_STEPS = 20, 1_000
#: Runs are drawn as numbers of runs where there are so many for each passage of three states that was seen, while there
#: are so many in a situation, of corpora with at most so many cells.
_RUNS_OF_PASSAGE, _RUNS_OF_SITUATION, _MOST_CELLS = 2, 8, 4_000_000


class Simulation:
    """Draws corpora like those given, from the one chain that is estimated from all of them.

    Args:
        corpora: tables of one corpus each, over the same states; each is replicated with its number of runs. Runs that
            were cut before their first step tell nothing and are left out.

    Attributes:
        draws_groups: whether runs are drawn as numbers of runs, as is faster for many; the law is the same.
        n_stopped: drawn runs that were stopped because they were far longer than any real one.
    """

    def __init__(self, corpora: Sequence[PathTables]) -> None:
        pooled = corpora[0]
        for other in corpora[1:]:
            pooled += other
        self._m = pooled.n_states
        self._chain = SmoothedChain(pooled)
        self._sampler = self._chain.sampler()
        self._hazard = censoring_hazard(pooled)
        self._max_steps = max(_LONGEST_TIMES * int(pooled.longest[0]), _LONGEST_STEPS)
        self._n_runs = [int(corpus.starts.sum() + corpus.ends[0, [SUCCESS, FAILURE], 0].sum()) for corpus in corpora]
        self._events_of_run = max(int(pooled.clock.totals[0]) / max(sum(self._n_runs), 1), 1.0)
        self._cells = (self._m + 1) * self._m * (self._m + 2)
        many = min(self._n_runs) >= _RUNS_OF_PASSAGE * len(pooled.previous.keys)
        self.draws_groups = many and 0 < self._cells <= _MOST_CELLS
        self.n_stopped = 0

    def replicates(self, number: int, seed: np.random.SeedSequence) -> Iterator[tuple[PathTables, ...]]:
        """So many replicates of each corpus, some of them side by side at a time."""
        if self.draws_groups:
            together = _MOST_CELLS // self._cells
        else:
            together = int(_BLOCK_EVENTS / (self._events_of_run * max(sum(self._n_runs), 1)))
        together = max(1, min(together, 2**61 // max(self._cells, 1)))
        firsts = range(0, number, together)
        draw = self._draw_in_groups if self.draws_groups else self._draw
        for first, child in zip(firsts, seed.spawn(len(firsts)), strict=True):
            rng = np.random.default_rng(child)
            yield tuple(draw(min(together, number - first), n_runs, rng) for n_runs in self._n_runs)

    def _draw_in_groups(self, g: int, n_runs: int, rng: np.random.Generator) -> PathTables:
        """``g`` corpora of so many runs, as numbers of runs until few are left of them."""
        start, rows = self._chain.start[0], self._chain.dense_rows()[0]
        groups = GroupedRuns(start, rows, n_corpora=g, n_runs=n_runs, rng=rng)
        while groups.n_going >= _RUNS_OF_SITUATION * max(groups.n_occupied, 1):
            length = groups.time + 1
            cut = groups.step(self._hazard_at(length))
            if length >= self._max_steps:
                self.n_stopped += cut
        total = groups.tables()
        corpora, before, state, stay = groups.going()
        for part in self._blocks(len(state)):
            runs = corpora[part], before[part], state[part], stay[part]
            total += self._follow(*runs, g, rng, time=groups.time)
        return total

    def _draw(self, g: int, n_runs: int, rng: np.random.Generator) -> PathTables:
        """``g`` corpora of so many runs, some runs at a time if even one corpus is large."""
        corpora = np.repeat(np.arange(g), n_runs)
        parts = iter(self._blocks(len(corpora)))
        total = self._draw_runs(corpora[next(parts)], g, rng)
        for part in parts:
            total += self._draw_runs(corpora[part], g, rng)
        return total

    def _blocks(self, n_runs: int) -> list[slice]:
        block = max(1, int(_BLOCK_EVENTS / self._events_of_run))
        return [slice(first, first + block) for first in range(0, max(n_runs, 1), block)]

    def _draw_runs(self, corpora: NDArray[np.int64], g: int, rng: np.random.Generator) -> PathTables:
        """One run for each entry of ``corpora``, which says whose it is."""
        m = self._m
        state = self._sampler.starts(len(corpora), rng)
        instantly = state >= m
        at_once = _by_corpus(corpora[instantly], state[instantly] - m, g)
        corpora, state = corpora[~instantly], state[~instantly]
        starts = np.bincount(corpora * m + state, minlength=g * m).reshape(g, m)
        before, stay = np.full(len(state), m), np.zeros(len(state), dtype=np.int64)
        drawn = self._follow(corpora, before, state, stay, g, rng)
        ends = np.concatenate([at_once[:, :, None], drawn.ends[:, :, 1:]], axis=2)
        return replace(drawn, starts=starts, ends=ends)

    def _follow(
        self,
        corpora: NDArray[np.int64],
        before: NDArray[np.int64],
        state: NDArray[np.int64],
        stay: NDArray[np.int64],
        g: int,
        rng: np.random.Generator,
        *,
        time: int = 0,
    ) -> PathTables:
        """What runs do from their step at a time on, one by one; their starts are not counted."""
        m, bins = self._m, len(STEP_BINS)
        events = _Events(m)
        none_ended = np.zeros((g, len(OUTCOMES)), dtype=np.int64)
        ends = [none_ended] * (time + 1)
        while len(state):
            after = self._sampler.following(state, rng)
            going = after < m
            cut = self._cut(going, time + 1, rng)
            events.add(time, corpora, before, state, stay, after, cut)
            stay = np.where(after == state, stay + 1, 0)
            before, state = state, after
            if cut is not None or not going.all():
                outcome = after - m
                if cut is not None:
                    outcome = np.where(cut, CENSORED, outcome)
                    going &= ~cut
                ends.append(_by_corpus(corpora[~going], outcome[~going], g))
                stay, corpora, before, state = stay[going], corpora[going], before[going], state[going]
            else:
                ends.append(none_ended)
            time += 1
        sizes = (m + 1, bins, bins)
        previous, clock, dwell = (
            EventCounts.of_keys(column, n_corpora=g, n_contexts=size, n_states=m)
            for column, size in zip(events.keys(), sizes, strict=True)
        )
        none_started = np.zeros((g, m), dtype=np.int64)
        return PathTables(previous=previous, clock=clock, dwell=dwell, starts=none_started, ends=np.stack(ends, axis=2))

    def _hazard_at(self, length: int) -> float:
        """The share of the runs going on that is cut at this length."""
        if length >= self._max_steps:
            return 1.0
        return float(self._hazard[length]) if length < len(self._hazard) else 0.0

    def _cut(self, going: NDArray[np.bool_], length: int, rng: np.random.Generator) -> NDArray[np.bool_] | None:
        """Which of the runs that go on are cut at this length; None for none."""
        hazard = self._hazard_at(length)
        if length >= self._max_steps:
            self.n_stopped += int(going.sum())
            return going.copy()
        return going & (rng.random(len(going)) < hazard) if hazard else None


class _Events:
    """Passages of drawn runs, numbered by their contexts: many steps at once, for few runs make little of one step."""

    def __init__(self, n_states: int) -> None:
        self._m = n_states
        self._waiting: list[tuple[NDArray[np.int64], ...]] = []
        self._times: list[int] = []
        self._n_waiting = 0
        self._keys: tuple[list[NDArray[np.int64]], ...] = ([], [], [])

    def add(
        self,
        time: int,
        corpora: NDArray[np.int64],
        before: NDArray[np.int64],
        state: NDArray[np.int64],
        stay: NDArray[np.int64],
        after: NDArray[np.int64],
        cut: NDArray[np.bool_] | None,
    ) -> None:
        """What the runs do at a time; all but those that are cut."""
        columns = (corpora, before, state, stay, after)
        self._waiting.append(columns if cut is None else tuple(column[~cut] for column in columns))
        self._times.append(time)
        self._n_waiting += len(state)
        if self._n_waiting >= _EVENTS_AT_ONCE:
            self._number()

    def keys(self) -> list[NDArray[np.int64]]:
        """By the state before, by the time and by the length of the stay."""
        self._number()
        return [np.concatenate([np.empty(0, dtype=np.int64), *column]) for column in self._keys]

    def _number(self) -> None:
        if not self._waiting:
            return
        corpora, before, state, stay, after = (np.concatenate(column) for column in zip(*self._waiting, strict=True))
        times = np.repeat(self._times, [len(columns[0]) for columns in self._waiting])
        m, bins = self._m, len(STEP_BINS)
        event = state * (m + 2) + after
        contexts = (corpora * (m + 1) + before, corpora * bins + step_bin(times), corpora * bins + step_bin(stay))
        for column, context in zip(self._keys, contexts, strict=True):
            column.append(context * (m * (m + 2)) + event)
        self._waiting, self._times, self._n_waiting = [], [], 0


def _by_corpus(corpora: NDArray[np.int64], outcomes: NDArray[np.int64], g: int) -> NDArray[np.int64]:
    """Runs by corpus and outcome, shape (g, 3)."""
    kinds = len(OUTCOMES)
    return np.bincount(corpora * kinds + outcomes, minlength=g * kinds).reshape(g, kinds)
