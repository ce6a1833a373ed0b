"""The closed-form engine: linear algebra of our own, in doubles with rigorous bounds or in rationals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.checking.engine import CLOSED_FORM, Holds
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.modelcheck import evaluate_operator, evaluate_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.checking.result import Note
    from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
    from tracebridge.pctl.ast import Operator, Quantile


class ClosedFormSession:
    """An `EngineSession` over one chain."""

    name = CLOSED_FORM

    def __init__(self, chain: MarkovChain, *, exact: bool = False) -> None:
        self.exact = exact
        self.notes: list[Note] = []
        self._arithmetic = ExactArithmetic(chain) if exact else FloatArithmetic(chain)

    def evaluate(self, operator: Operator, holds: Holds) -> EnclosureVector:
        """The value of the operator in every state; see `EngineSession.evaluate`."""
        return evaluate_operator(self._arithmetic, operator, holds)

    def evaluate_quantile(
        self, quantile: Quantile, holds: Holds, weights: Sequence[Fraction]
    ) -> tuple[EnclosureVector, Enclosure]:
        """The quantile in every state, and that of the mean; see `EngineSession.evaluate_quantile`."""
        return evaluate_quantile(self._arithmetic, quantile, holds, weights)
