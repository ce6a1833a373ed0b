"""ParameterDraws: the parameters of many models of one form, draws along the last axis, and their transitions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.structure import ExpandedStructure

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ParameterDraws:
    """Parameters as in `ExpandedModel`, each with an axis of D draws at its end.

    Attributes:
        start: shape (G, Z, m + 2, D). rows: shape (Z, C, m, m + 2, D). advance: shape (Z, m, Z, D).
        class_weights, class_tilts: shape (K, D).
    """

    start: Floats
    rows: Floats
    advance: Floats
    class_weights: Floats
    class_tilts: Floats

    @classmethod
    def of_first_axis(cls, start: Floats, rows: Floats, advance: Floats) -> ParameterDraws:
        """Of arrays with the draws in front, and one class of tasks."""
        parts = (np.ascontiguousarray(np.moveaxis(part, 0, -1)) for part in (start, rows, advance))
        draws = len(start)
        return cls(
            **dict(zip(("start", "rows", "advance"), parts, strict=True)),
            class_weights=np.ones((1, draws)),
            class_tilts=np.zeros((1, draws)),
        )

    @property
    def draws(self) -> int:
        """The number of draws D."""
        return int(self.rows.shape[-1])

    def with_classes(self, weights: Floats, tilts: Floats) -> ParameterDraws:
        """The same with classes of tasks, shape (K, D) both."""
        return replace(self, class_weights=weights, class_tilts=tilts)

    def transitions(self, structure: ExpandedStructure) -> tuple[Floats, Floats]:
        """The probabilities of the transitions of the chains, (n_transitions, D), and of their starts, (n + 2, D)."""
        return (
            structure.entries(self.rows, self.advance, self.class_tilts),
            structure.initial(self.start, self.class_weights),
        )
