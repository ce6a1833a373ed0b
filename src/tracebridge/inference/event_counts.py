"""EventCounts: how often each state was followed by what, apart by a context, in sparse integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import FitError, ModelError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Keys are products of four sizes and must stay within int64.
_MAX_CELLS = 2**62
#: Sums stay exact in doubles, in which they are added up.
_MAX_TOTAL = 2**53
#: A place for each possible key takes less time than sorting, up to so many for each key that is given.
_PLACES_PER_KEY = 8


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventCounts:
    """Counts of events (corpus, context, state, next): corpora side by side, so that many are counted at once.

    Over m states, ``next`` is a state, or m for success, or m + 1 for failure.

    Attributes:
        n_corpora, n_contexts, n_states: the sizes.
        keys: ``((corpus * n_contexts + context) * m + state) * (m + 2) + next``, ascending, unique, int64.
        counts: the number of events with each key, positive, int64.

    Raises:
        FitError: if there are too many possible events to number them.
        ModelError: for keys or counts that break this, or a total of 2^53 or more.
    """

    n_corpora: int
    n_contexts: int
    n_states: int
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        require_countable(self.n_corpora, self.n_contexts, self.n_states)
        if self.keys.shape != self.counts.shape or self.keys.ndim != 1:
            raise ModelError(f"{self.keys.shape} keys, but {self.counts.shape} counts")
        if len(self.keys) and (
            self.keys[0] < 0
            or self.keys[-1] >= self.n_cells
            or (np.diff(self.keys) <= 0).any()
            or self.counts.min() < 1
        ):
            raise ModelError("events need ascending keys within their sizes and positive counts")
        if self.counts.sum(dtype=np.float64) >= _MAX_TOTAL:
            raise ModelError("the counts are too large: their sum must stay below 2^53")
        for array in (self.keys, self.counts):
            array.flags.writeable = False

    @classmethod
    def of(
        cls,
        contexts: ArrayLike,
        states: ArrayLike,
        following: ArrayLike,
        counts: ArrayLike | None = None,
        *,
        n_contexts: int,
        n_states: int,
    ) -> EventCounts:
        """The events of one corpus, given as arrays of one length; equal ones add up. ``counts`` is 1 by default."""
        require_countable(1, n_contexts, n_states)
        contexts, states, following = (np.asarray(part, dtype=np.int64) for part in (contexts, states, following))
        keys = (contexts * n_states + states) * (n_states + 2) + following
        weights = None if counts is None else np.asarray(counts, dtype=np.int64)
        return cls.of_keys(keys, weights, n_corpora=1, n_contexts=n_contexts, n_states=n_states)

    @classmethod
    def of_keys(
        cls,
        keys: NDArray[np.int64],
        counts: NDArray[np.int64] | None = None,
        *,
        n_corpora: int,
        n_contexts: int,
        n_states: int,
    ) -> EventCounts:
        """From keys in any order, each with its count or counting once."""
        keys, counts = _tally(keys, counts, n_corpora * n_contexts * n_states * (n_states + 2))
        return cls(n_corpora=n_corpora, n_contexts=n_contexts, n_states=n_states, keys=keys, counts=counts)

    @property
    def n_cells(self) -> int:
        """The number of possible keys."""
        return self.n_corpora * self.n_contexts * self.n_states * (self.n_states + 2)

    @property
    def corpora(self) -> NDArray[np.int64]:
        """The corpus of each key."""
        return self.keys // (self.n_contexts * self.n_states * (self.n_states + 2))

    @property
    def contexts(self) -> NDArray[np.int64]:
        """The context of each key."""
        return self.keys // (self.n_states * (self.n_states + 2)) % self.n_contexts

    @property
    def states(self) -> NDArray[np.int64]:
        """The state of each key."""
        return self.keys // (self.n_states + 2) % self.n_states

    @property
    def following(self) -> NDArray[np.int64]:
        """What followed, for each key."""
        return self.keys % (self.n_states + 2)

    @property
    def totals(self) -> NDArray[np.int64]:
        """Events in each corpus, shape (n_corpora,)."""
        return np.bincount(self.corpora, weights=self.counts, minlength=self.n_corpora).astype(np.int64)

    def __add__(self, other: EventCounts) -> EventCounts:
        if not isinstance(other, EventCounts):
            return NotImplemented
        if (self.n_corpora, self.n_contexts, self.n_states) != (other.n_corpora, other.n_contexts, other.n_states):
            raise ModelError("events over different corpora, contexts or states do not add up")
        keys = np.concatenate([self.keys, other.keys])
        counts = np.concatenate([self.counts, other.counts])
        sizes = {"n_corpora": self.n_corpora, "n_contexts": self.n_contexts, "n_states": self.n_states}
        return EventCounts.of_keys(keys, counts, **sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventCounts):
            return NotImplemented
        sizes = (self.n_corpora, self.n_contexts, self.n_states)
        return (
            sizes == (other.n_corpora, other.n_contexts, other.n_states)
            and np.array_equal(self.keys, other.keys)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.n_corpora, self.n_contexts, self.n_states, len(self.keys)))

    def where(self, kept: NDArray[np.bool_]) -> EventCounts:
        """Only the keys where ``kept``, one a key, is true."""
        return EventCounts(
            n_corpora=self.n_corpora,
            n_contexts=self.n_contexts,
            n_states=self.n_states,
            keys=self.keys[kept],
            counts=self.counts[kept],
        )

    def pooled(self) -> EventCounts:
        """The same events in one context."""
        keys = (self.corpora * self.n_states + self.states) * (self.n_states + 2) + self.following
        return EventCounts.of_keys(keys, self.counts, n_corpora=self.n_corpora, n_contexts=1, n_states=self.n_states)


def require_countable(n_corpora: int, n_contexts: int, n_states: int) -> None:
    """Raise FitError unless every (corpus, context, state, next) has a number in int64."""
    if n_corpora * n_contexts * n_states * (n_states + 2) >= _MAX_CELLS:
        raise FitError(f"{n_states} states are too many to count events in {n_contexts} contexts")


def _tally(
    keys: NDArray[np.int64], counts: NDArray[np.int64] | None, n_cells: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct keys, ascending, with the sum of their counts; each counts once by default.

    Args:
        keys: of ``n_cells`` possible ones, from 0. counts: one a key, positive, with a sum below 2^53.
    """
    if _are_dense(keys, counts, n_cells):
        sums = np.bincount(keys, weights=counts)
        found = np.flatnonzero(sums)
        return found, sums[found].astype(np.int64)
    if counts is None:
        keys = np.sort(keys)
    else:
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
    if not len(keys):
        return keys.astype(np.int64), np.empty(0, dtype=np.int64)
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    if counts is None:
        return keys[first], np.diff(np.append(first, len(keys)))
    return keys[first], np.add.reduceat(counts, first)


def _are_dense(keys: NDArray[np.int64], counts: NDArray[np.int64] | None, n_cells: int) -> bool:
    """Whether keys are many for their number of places, and all that they should be."""
    if not len(keys) or n_cells > _PLACES_PER_KEY * len(keys):
        return False
    return bool(keys.min() >= 0 and keys.max() < n_cells and (counts is None or counts.min() > 0))
