"""The two ways to compute with a chain: doubles with rigorous bounds, and rationals.

The evaluator of operators is written once against the protocol `Arithmetic`. It needs three things only: the transition
matrix applied many times, or once to a vector for each state, and the solution of ``x = gain + P x`` on a set of states
that is left almost surely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.closedform.enclosure import EnclosureVector

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]
    Limit = Callable[[], EnclosureVector]


class Arithmetic(Protocol):
    """What the evaluator of operators computes with; every vector has one entry a state."""

    @property
    def chain(self) -> MarkovChain:
        """The chain that is computed with."""

    @property
    def exact(self) -> bool:
        """Whether vectors are rational."""

    def on(self, chain: MarkovChain) -> Self:
        """The same arithmetic for another chain."""

    def vector(self, values: list[Fraction] | Mask) -> EnclosureVector:
        """Rationals as a vector of this arithmetic; a mask becomes zeros and ones."""

    def iterate(
        self,
        start: EnclosureVector,
        steps: int,
        active: Mask,
        gain: EnclosureVector | None = None,
        limit: Limit | None = None,
    ) -> EnclosureVector:
        """``x <- gain + P x`` on the active states, ``steps`` times; the other entries stay as they are.

        Where x only rises or only falls with the number of steps, ``limit`` gives what it tends to; it is called only
        if there are too many steps to take all of them.
        """

    def advance(
        self, sources: Sequence[EnclosureVector], source: Indices, gain: EnclosureVector | None = None
    ) -> EnclosureVector:
        """``gain + P x`` in the states i with ``source[i] >= 0``, which take x from ``sources[source[i]]``; else 0."""

    def solve(self, active: Mask, boundary: EnclosureVector, gain: EnclosureVector | None = None) -> EnclosureVector:
        """The x with ``x = gain + P x`` on the active states, which are left almost surely; else x = boundary."""
