"""The numbers of a chain as messages to the Storm process carry them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tracebridge.checking.storm_worker import protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.rational import RationalVector
    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.checking.storm_worker.protocol import Numbers


def entries_of(chain: MarkovChain, *, exact: bool) -> Numbers:
    """The stored entries of P; exact ones in the same places as the doubles."""
    if not exact:
        doubles: bytes = chain.transitions.data.astype("<f8").tobytes()
        return doubles
    matrix = chain.exact_transitions()
    bottoms = matrix.denominators[matrix.row_of_entry].tolist()
    return [protocol.pack_rational(Fraction(a, b)) for a, b in zip(matrix.numerators.tolist(), bottoms, strict=True)]


def reward_numbers(structure: RewardStructure, *, exact: bool) -> protocol.RewardNumbers:
    """The state and action rewards of a structure."""

    def numbers(doubles: NDArray[np.float64], rationals: RationalVector | None) -> Numbers:
        if not exact:
            return doubles.astype("<f8").tobytes()
        fractions = rationals.to_fractions() if rationals else [Fraction(value) for value in doubles.tolist()]
        return [protocol.pack_rational(value) for value in fractions]

    action = None if structure.action is None else numbers(structure.action, structure.exact_action)
    return protocol.RewardNumbers(state=numbers(structure.state, structure.exact_state), action=action)


def rational_of(text: Any) -> Fraction | float:
    """A number of an exact answer."""
    return float("inf") if text == "inf" else protocol.unpack_rational(text)
