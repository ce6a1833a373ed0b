"""What the evaluator of operators optimises with: doubles with rigorous bounds, or rationals.

As with chains (`tracebridge.closedform.arithmetic`), operators are evaluated once against what both can do: the best of
all choices taken many times, and the solution of an optimality equation. See `exact_optimiser` and `float_optimiser`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.decision.choices import Choices
    from tracebridge.closedform.decision.equation import OptimalityEquation
    from tracebridge.closedform.enclosure import EnclosureVector

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


class Optimiser(Protocol):
    """What the evaluator of operators optimises with; vectors have one entry a state."""

    @property
    def process(self) -> DecisionProcess:
        """The process that is optimised over."""

    @property
    def choices(self) -> Choices:
        """Its choices as a graph."""

    @property
    def exact(self) -> bool:
        """Whether vectors are rational."""

    def over(self, process: DecisionProcess) -> Optimiser:
        """The same for another process."""

    def arithmetic(self, chain: MarkovChain) -> Arithmetic:
        """The same arithmetic for a chain."""

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """Rationals as a vector; a mask becomes zeros and ones."""

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        *,
        maximise: bool,
        gains: list[Fraction] | None = None,
    ) -> EnclosureVector:
        """``x <- opt_a (gain_a + p_a x)`` in the active states, so many times; the other entries stay as they are."""

    def solve(self, equation: OptimalityEquation) -> tuple[EnclosureVector, Indices]:
        """The solution in all states, and a policy that attains it (in doubles: up to rounding), shape (u,)."""


def first_choices(process: DecisionProcess, active: Mask) -> Indices:
    """Where the choices of each active state begin among the choices of all active states."""
    sizes = np.diff(process.choice_starts)[active]
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
