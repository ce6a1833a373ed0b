"""Long-run averages. Kemeny and Snell, Finite Markov Chains, chapter 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import recurrent_classes
from tracebridge.closedform.enclosure import EnclosureVector

if TYPE_CHECKING:
    from tracebridge.closedform.arithmetic import Arithmetic


def long_run_average(arithmetic: Arithmetic, per_step: EnclosureVector) -> EnclosureVector:
    """The long-run average of ``per_step``: of each recurrent class, weighted by the probability of ending in it.

    In a class it is the expected reward of a cycle through a reference state over the expected length of that cycle
    (renewal reward theorem); neither aperiodicity nor a distribution over the class is needed. All classes are solved
    at once.
    """
    classes = recurrent_classes(arithmetic.chain.transitions)
    members = np.concatenate(classes)
    sizes = np.array([len(states) for states in classes])
    first = np.cumsum(sizes) - sizes
    recurrent = np.zeros(len(per_step), dtype=np.bool_)
    recurrent[members] = True
    references = np.zeros_like(recurrent)
    references[members[first]] = True
    zero, one = arithmetic.vector(np.zeros_like(recurrent)), arithmetic.vector(np.ones_like(recurrent))
    inner = recurrent & ~references
    reward, length = (
        arithmetic.iterate(arithmetic.solve(inner, zero, gain), 1, references, gain=gain).take(members[first])
        for gain in (per_step, one)
    )
    average = reward / length
    if not average.exact:  # an average lies between the extremes of what is averaged
        average = EnclosureVector.from_bounds(
            average.value,
            np.maximum(average.lower, np.minimum.reduceat(per_step.lower[members], first)),
            np.minimum(average.upper, np.maximum.reduceat(per_step.upper[members], first)),
        )
    class_of_state = np.zeros(len(per_step), dtype=np.int64)
    class_of_state[members] = np.repeat(np.arange(len(classes)), sizes)
    boundary = EnclosureVector.where(recurrent, average.take(class_of_state), zero)
    return arithmetic.solve(~recurrent, boundary)
