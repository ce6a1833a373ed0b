"""What an engine is: something that evaluates one operator in every state of a chain.

Everything else about a property - truth values, thresholds, arithmetic, the mean over the start - is `evaluate`'s and
the same for all engines, so that a property is checked twice even where a tool's own language cannot say it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tracebridge.checking.result import Note
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.pctl.ast import Formula, Operator, Probability, Quantile

#: Tells the states in which an operand of an operator holds, shape (n,).
Holds = Callable[[Formula], NDArray[np.bool_]]

CLOSED_FORM = "closed form"
STORM = "Storm"
PRISM = "PRISM"

#: The engines by the names the command line uses.
ENGINE_NAMES = {"closed-form": CLOSED_FORM, "storm": STORM, "prism": PRISM}


class EngineSession(Protocol):
    """An engine with a chain loaded."""

    @property
    def name(self) -> str:
        """The engine's name as reports show it."""

    @property
    def exact(self) -> bool:
        """Whether values are rationals."""

    @property
    def notes(self) -> list[Note]:
        """What a reader should know about the answers given since the list was cleared."""

    def evaluate(self, operator: Operator, holds: Holds) -> EnclosureVector:
        """The value of the operator in every state, shape (n,); its threshold is not looked at.

        Step bounds and other constants of the operator are `Number` nodes; ``holds`` is asked for its operands. The
        value of ``A`` and ``E`` is 1 where they hold and 0 elsewhere.

        Raises:
            UnsupportedError: this engine cannot evaluate this operator, or not at this size.
            EngineError: the engine failed, timed out or crashed.
        """

    def evaluate_quantile(
        self, quantile: Quantile, holds: Holds, weights: Sequence[Fraction]
    ) -> tuple[EnclosureVector, Enclosure]:
        """The quantile in every state, shape (n,), and that of the mean under the weights.

        Args:
            quantile: bounds that are no variables of it are `Number` nodes. weights: shape (n,), sum one.

        Raises:
            UnsupportedError, EngineError: as for `evaluate`.
        """


@runtime_checkable
class OptimisingSession(EngineSession, Protocol):
    """An engine with a decision process loaded, that optimises over its schedulers."""

    def evaluate_start_under_condition(self, operator: Probability, holds: Holds) -> Enclosure:
        """The optimum under a condition over the runs of all start states.

        It is no mean of the optima of each: under other schedulers other shares of their runs meet the condition.

        Raises:
            UnsupportedError, EngineError: as for `evaluate`.
        """
