"""PathTables: all that the certificate asks of a corpus, in integers that add up.

Every event (a step and what followed it) is counted apart by the state before it, by the steps before it in the run,
and by the steps before it in the same stay in its state; and every run by its length and end. Memory is bounded by
distinct events and the length of the longest run, never by the number of runs or steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import FitError, ModelError
from tracebridge.inference.event_counts import EventCounts
from tracebridge.states.features import OUTCOMES
from tracebridge.traces.model import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

#: Bins of a number of earlier steps: 0, 1, 2-3, 4-7, 8 or more.
STEP_BINS = ("0", "1", "2-3", "4-7", "8+")
#: Longer runs cannot be timed: curves have an entry for each step.
MAX_RUN_LENGTH = 1_000_000

_BIN_OF = np.array([0, 1, 2, 2, 3, 3, 3, 3, 4], dtype=np.int64)
SUCCESS, FAILURE, CENSORED = (OUTCOMES.index(Outcome(word)) for word in ("success", "failure", "censored"))


def step_bin(earlier: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bin, 0 to 4, of a number of earlier steps."""
    return _BIN_OF[np.minimum(earlier, 8)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PathTables:
    """The tables of one or more corpora side by side, over m states; corpora of equal shape add up.

    The end of a censored run is no event: what followed its last step was not seen.

    Attributes:
        previous: events by the state before, m contexts, and one more for the first step of a run.
        clock: the same events by the number of earlier steps, in `STEP_BINS`.
        dwell: the same events by the number of earlier steps of the same stay, in `STEP_BINS`.
        starts: runs by their first state, shape (g, m).
        ends: runs by outcome (success, failure, censored) and length, shape (g, 3, longest + 1); length 0 is a run
            without a step.

    Raises:
        ModelError: for tables of different shapes, or that are not of the same events.
    """

    previous: EventCounts
    clock: EventCounts
    dwell: EventCounts
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __post_init__(self) -> None:
        g, m = self.starts.shape
        contexts = {"previous": m + 1, "clock": len(STEP_BINS), "dwell": len(STEP_BINS)}
        for name, n_contexts in contexts.items():
            table = getattr(self, name)
            if (table.n_corpora, table.n_contexts, table.n_states) != (g, n_contexts, m):
                raise ModelError(f"the table {name!r} is not over {g} corpora, {n_contexts} contexts and {m} states")
        if self.ends.ndim != 3 or self.ends.shape[:2] != (g, len(OUTCOMES)) or not self.ends.shape[2]:
            raise ModelError(f"runs by outcome and length have shape {self.ends.shape}, not ({g}, 3, longest + 1)")
        for array in (self.starts, self.ends):
            array.flags.writeable = False

    @classmethod
    def none(cls, n_states: int) -> PathTables:
        """One corpus without a run."""
        return cls.of_paths(
            *(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)), np.empty(0, dtype=np.int8), n_states
        )

    @classmethod
    def of_paths(
        cls,
        codes: NDArray[np.integer],
        offsets: NDArray[np.integer],
        outcomes: NDArray[np.integer],
        n_states: int,
    ) -> PathTables:
        """Count runs laid end to end: run ``r`` visits ``codes[offsets[r]:offsets[r + 1]]``, ends as ``outcomes[r]``.

        Args:
            codes: states, shape (n_steps,). offsets: shape (n_runs + 1,).
            outcomes: positions in success, failure, censored, shape (n_runs,).
            n_states: m.

        Raises:
            FitError: for a run longer than `MAX_RUN_LENGTH`, or too many states.
        """
        m = n_states
        codes = np.asarray(codes, dtype=np.int64)
        lengths = np.diff(offsets)
        longest = int(lengths.max(initial=0))
        if longest > MAX_RUN_LENGTH:
            raise FitError(f"a run of {longest} steps is too long: the certificate times runs of {MAX_RUN_LENGTH}")
        ends = np.zeros((len(OUTCOMES), longest + 1), dtype=np.int64)
        np.add.at(ends, (outcomes, lengths), 1)

        runs = np.flatnonzero(lengths)  # with a step
        firsts, lasts = offsets[runs], offsets[runs + 1] - 1
        place = np.arange(len(codes))
        before = np.empty_like(codes)
        before[1:] = codes[:-1]
        before[firsts] = m
        after = np.empty_like(codes)
        after[:-1] = codes[1:]
        after[lasts] = m + outcomes[runs]
        clock = place - np.repeat(firsts, lengths[runs])
        stay = place - np.maximum.accumulate(np.where(before != codes, place, 0)) if len(codes) else place
        seen = after != m + CENSORED
        states, following = codes[seen], after[seen]
        return cls(
            previous=EventCounts.of(before[seen], states, following, n_contexts=m + 1, n_states=m),
            clock=EventCounts.of(step_bin(clock[seen]), states, following, n_contexts=len(STEP_BINS), n_states=m),
            dwell=EventCounts.of(step_bin(stay[seen]), states, following, n_contexts=len(STEP_BINS), n_states=m),
            starts=np.bincount(codes[firsts], minlength=m).astype(np.int64)[None],
            ends=ends[None],
        )

    @property
    def n_corpora(self) -> int:
        """The number of corpora g."""
        return len(self.starts)

    @property
    def n_states(self) -> int:
        """The number of states m."""
        return int(self.starts.shape[1])

    @property
    def n_runs(self) -> NDArray[np.int64]:
        """Runs in each corpus, shape (g,)."""
        return np.asarray(self.ends.sum(axis=(1, 2)))

    @property
    def longest(self) -> NDArray[np.int64]:
        """The length of the longest run of each corpus, 0 where there is none; shape (g,)."""
        seen = self.ends.sum(axis=1) > 0
        last = self.ends.shape[2] - 1 - np.argmax(seen[:, ::-1], axis=1)
        return np.where(seen.any(axis=1), last, 0)

    def __add__(self, other: PathTables) -> PathTables:
        if not isinstance(other, PathTables):
            return NotImplemented
        longest = max(self.ends.shape[2], other.ends.shape[2])
        return PathTables(
            previous=self.previous + other.previous,
            clock=self.clock + other.clock,
            dwell=self.dwell + other.dwell,
            starts=self.starts + other.starts,
            ends=padded(self.ends, longest) + padded(other.ends, longest),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PathTables):
            return NotImplemented
        longest = max(self.ends.shape[2], other.ends.shape[2])
        return (
            self.previous == other.previous
            and self.clock == other.clock
            and self.dwell == other.dwell
            and np.array_equal(self.starts, other.starts)
            and self.n_corpora == other.n_corpora
            and np.array_equal(padded(self.ends, longest), padded(other.ends, longest))
        )

    def __hash__(self) -> int:
        return hash((self.previous, self.clock, self.dwell))

    def relabelled(self, targets: Sequence[int], n_states: int) -> PathTables:
        """One corpus after state ``i`` became ``targets[i]`` among ``n_states``; targets are distinct."""
        m = self.n_states
        moved = np.array([*targets, n_states, n_states + 1], dtype=np.int64)

        def move(table: EventCounts, contexts: NDArray[np.int64], n_contexts: int) -> EventCounts:
            states, following = moved[table.states], moved[table.following]
            return EventCounts.of(contexts, states, following, table.counts, n_contexts=n_contexts, n_states=n_states)

        starts = np.zeros((1, n_states), dtype=np.int64)
        starts[:, moved[:m]] = self.starts
        return PathTables(
            previous=move(self.previous, moved[self.previous.contexts], n_states + 1),
            clock=move(self.clock, self.clock.contexts, len(STEP_BINS)),
            dwell=move(self.dwell, self.dwell.contexts, len(STEP_BINS)),
            starts=starts,
            ends=self.ends,
        )


def padded(ends: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Runs by length with zeros up to ``size`` lengths."""
    return np.pad(ends, ((0, 0), (0, 0), (0, size - ends.shape[2])))
