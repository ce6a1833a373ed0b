"""An engine over all chains between bounds: the value of an operator is enclosed by its extremes over all of them.

What is made of operators is the same as for every engine (`evaluation`): thresholds, Boolean and arithmetic
combinations and nested operators hold surely, possibly or not at all, over all chains at once. Where operators are
combined, each is taken at its own worst, so that a combination may be enclosed more widely than need be, never less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.closedform.robust import robust_values
from tracebridge.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tracebridge.chain.interval import IntervalChain
    from tracebridge.checking.engine import Holds
    from tracebridge.checking.result import Note
    from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
    from tracebridge.pctl.ast import Operator, Quantile


class RobustSession:
    """An `EngineSession` over the chains between the bounds of an interval chain."""

    name = "robust"
    exact = False

    def __init__(self, chain: IntervalChain) -> None:
        self.notes: list[Note] = []
        self._chain = chain

    def evaluate(self, operator: Operator, holds: Holds) -> EnclosureVector:
        """From the least to the greatest value in every state, shape (n,); see `robust_values`."""
        least, greatest = (robust_values(self._chain, operator, direction, holds) for direction in ("min", "max"))
        return least.hull(greatest)

    def evaluate_quantile(
        self,
        quantile: Quantile,  # noqa: ARG002
        holds: Holds,  # noqa: ARG002
        weights: Sequence[Fraction],  # noqa: ARG002
    ) -> tuple[EnclosureVector, Enclosure]:
        """Refused with UnsupportedError."""
        raise UnsupportedError("over an interval chain quantiles are not evaluated")
