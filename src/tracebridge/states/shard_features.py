"""Passages between feature vectors in a part of a corpus, and their sum over all parts.

A part numbers its vectors as they come. The sum renumbers them, and gives the `FeatureCounts` of the whole corpus: the
same whatever the parts are and in whatever order they are added.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import Location, Problem, TraceError
from tracebridge.states.features import (
    CODE_BITS,
    CODE_MASK,
    MAX_VECTORS,
    OUTCOMES,
    FeatureCounts,
    FeatureVector,
    PassageCounter,
)
from tracebridge.states.flow import MAX_TOTAL

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShardFeatures:
    """The passages of some runs, over the vectors that occur in them.

    Attributes:
        vectors: distinct, in any order; U of them.
        keys: distinct passages as in `PassageCounter`, ascending, over codes 0 (outside) and 1..U; int64, shape (P,).
        counts: how often each was passed, int64, shape (P,).

    Raises:
        ValueError: for keys or counts that break this. That every place is left as often as it is entered is seen when
            the counts of the corpus are made.
    """

    vectors: tuple[FeatureVector, ...]
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(set(self.vectors)) != len(self.vectors) or not all(v.kind and v.name for v in self.vectors):
            raise ValueError("feature vectors must be distinct and name what they are of")
        if self.keys.shape != self.counts.shape or self.keys.ndim != 1:
            raise ValueError("every passage needs a count")
        if not len(self.keys):
            return
        outcomes, sources, targets = _parts(self.keys)
        if self.keys[0] < 0 or (np.diff(self.keys) <= 0).any() or outcomes.max() >= len(OUTCOMES):
            raise ValueError("passages must be distinct, ascending, and of runs with a known outcome")
        if max(sources.max(), targets.max()) > len(self.vectors):
            raise ValueError("a passage is between vectors that are not there")
        if self.counts.min() < 1 or self.counts.sum(dtype=np.float64) >= MAX_TOTAL:
            raise ValueError("counts of passages lie between 1 and 2^60")

    @classmethod
    def of(cls, counter: PassageCounter, table: list[FeatureVector]) -> ShardFeatures:
        """What a counter has counted; ``table[c]`` is the vector of code ``c``. Vectors that do not occur are left."""
        keys, counts = counter.passages()
        outcomes, sources, targets = _parts(keys)
        used = np.unique(sources)
        used = used[used > 0]
        position = np.zeros(len(table) + 1, dtype=np.int64)
        position[used] = np.arange(1, len(used) + 1)  # ascending, so that keys stay ascending
        moved = _key(outcomes, position[sources], position[targets])
        return cls(vectors=tuple(table[code - 1] for code in used.tolist()), keys=moved, counts=counts)


class FeatureTotal:
    """The sum of the features of shards, in the memory of the distinct vectors and passages of the corpus."""

    def __init__(self) -> None:
        self._codes: dict[FeatureVector, int] = {}
        self._counter = PassageCounter()

    def add(self, part: ShardFeatures) -> None:
        """Add the passages of one more part.

        Raises:
            TraceError: for more than `MAX_VECTORS` distinct vectors.
        """
        codes = self._codes
        position = np.array([0, *(codes.setdefault(v, len(codes)) + 1 for v in part.vectors)], dtype=np.int64)
        if len(codes) > MAX_VECTORS:
            raise TraceError(
                Problem(
                    location=Location(),
                    message=f"the steps are of more than {MAX_VECTORS} different kinds",
                    hint="names must be categories, such as tools, not free text",
                )
            )
        outcomes, sources, targets = _parts(part.keys)
        self._counter.add_keys(_key(outcomes, position[sources], position[targets]), part.counts)

    def counts(self) -> FeatureCounts:
        """The counts of all parts so far.

        Raises:
            ModelError: for passages that no runs can have.
        """
        return self._counter.counts(list(self._codes))


def _parts(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    return keys >> (2 * CODE_BITS), (keys >> CODE_BITS) & CODE_MASK, keys & CODE_MASK


def _key(outcomes: NDArray[np.int64], sources: NDArray[np.int64], targets: NDArray[np.int64]) -> NDArray[np.int64]:
    return (outcomes << (2 * CODE_BITS)) | (sources << CODE_BITS) | targets
