"""Long-run averages. Kemeny and Snell, Finite Markov Chains, chapter 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.reward_graph import reference_states

if TYPE_CHECKING:
    from tracebridge.closedform.arithmetic import Arithmetic


def long_run_average(arithmetic: Arithmetic, per_step: EnclosureVector) -> EnclosureVector:
    """The long-run average of ``per_step``: of each recurrent class, weighted by the probability of ending in it.

    In a class it is the expected reward of a cycle through a reference state over the expected length of that cycle
    (renewal reward theorem); neither aperiodicity nor a distribution over the class is needed. All classes are solved
    at once.
    """
    of_class, class_of, recurrent, references = reference_states(arithmetic.chain.transitions)
    zero, one = arithmetic.vector(np.zeros_like(recurrent)), arithmetic.vector(np.ones_like(recurrent))
    inner = recurrent & ~references
    reward, length = (
        arithmetic.iterate(arithmetic.solve(inner, zero, gain), 1, references, gain=gain).take(of_class)
        for gain in (per_step, one)
    )
    average = reward / length
    if not average.exact:  # an average lies between the extremes of what is averaged
        least, most = np.full(len(of_class), np.inf), np.full(len(of_class), -np.inf)
        np.minimum.at(least, class_of[recurrent], per_step.lower[recurrent])
        np.maximum.at(most, class_of[recurrent], per_step.upper[recurrent])
        average = EnclosureVector.from_bounds(
            average.value, np.maximum(average.lower, least), np.minimum(average.upper, most)
        )
    boundary = EnclosureVector.where(recurrent, average.take(class_of), zero)
    return arithmetic.solve(~recurrent, boundary)
