"""Rule-based features as columns of numbers: one a kind, one a name, one for errors, one for retries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.states.clustering import require_clusterable
from tracebridge.states.features import FeatureVector

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleColumns:
    """The columns of a corpus; a kind or name that is none of these has zeros there.

    Attributes:
        kinds, names: ascending.
    """

    kinds: tuple[str, ...]
    names: tuple[str, ...]
    _kind_at: Mapping[str, int] = field(init=False, repr=False, compare=False)
    _name_at: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_kind_at", {kind: i for i, kind in enumerate(self.kinds)})
        object.__setattr__(self, "_name_at", {name: i for i, name in enumerate(self.names, start=len(self.kinds))})

    @classmethod
    def of(cls, vectors: Iterable[FeatureVector]) -> RuleColumns:
        """The kinds and names of these vectors."""
        kinds, names = set(), set()
        for vector in vectors:
            kinds.add(vector.kind)
            names.add(vector.name)
        return cls(kinds=tuple(sorted(kinds)), names=tuple(sorted(names)))

    @property
    def width(self) -> int:
        """The number of columns p."""
        return len(self.kinds) + len(self.names) + 2

    def rows(self, vectors: Sequence[FeatureVector]) -> NDArray[np.float64]:
        """One row of zeros and ones a vector, shape (n, p)."""
        points = np.zeros((len(vectors), self.width))
        for row, vector in zip(points, vectors, strict=True):
            for column in (self._kind_at.get(vector.kind), self._name_at.get(vector.name)):
                if column is not None:
                    row[column] = 1
            row[-2:] = vector.error, vector.retry
        return points


def one_hot(vectors: Sequence[FeatureVector]) -> NDArray[np.float64]:
    """The rows of these vectors over their own columns, shape (n, p).

    Raises:
        FitError: for more than can be clustered.
    """
    columns = RuleColumns.of(vectors)
    require_clusterable(len(vectors), columns.width)
    return columns.rows(vectors)
