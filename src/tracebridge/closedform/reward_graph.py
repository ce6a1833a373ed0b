"""What the graph alone decides of rewards: where they are infinite, and the cycles that a long run averages over.

It is the same in every arithmetic: rationals, enclosed doubles, stacks of chains, and tapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tracebridge.chain.graph import reaching, recurrent_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


def not_surely_reached(matrix: csr_array, target: Mask) -> Mask:
    """Where a target is missed with a positive probability: a reward until then is infinite."""
    return reaching(matrix, ~reaching(matrix, target), through=~target)


class TotalReward(NamedTuple):
    """Where a total reward is infinite, and where it is still to be collected; it is 0 elsewhere. Shape (n,) each."""

    endless: Mask
    collecting: Mask


def total_reward_regions(matrix: csr_array, earns: Mask) -> TotalReward:
    """Endless is what reaches a recurrent class in which some state ``earns``."""
    recurrent, earning = np.zeros_like(earns), np.zeros_like(earns)
    for states in recurrent_classes(matrix):
        recurrent[states] = True
        earning[states] = earns[states].any()
    endless = reaching(matrix, earning)
    return TotalReward(endless=endless, collecting=~endless & ~recurrent)


class ReferenceStates(NamedTuple):
    """One state of each recurrent class, which every cycle in that class is cut at.

    Attributes:
        of_class: the reference states, in the order of `recurrent_classes`, shape (classes,). class_of: the class of
            each state, 0 for those that are in none, shape (n,). recurrent, references: which states are, shape (n,).
    """

    of_class: Indices
    class_of: Indices
    recurrent: Mask
    references: Mask


def reference_states(matrix: csr_array) -> ReferenceStates:
    """The first state of each recurrent class."""
    classes = recurrent_classes(matrix)
    n = matrix.shape[0]
    class_of = np.zeros(n, dtype=np.int64)
    recurrent, references = np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_)
    of_class = np.array([states[0] for states in classes], dtype=np.int64)
    members = np.concatenate(classes)
    class_of[members] = np.repeat(np.arange(len(classes)), [len(states) for states in classes])
    recurrent[members] = True
    references[of_class] = True
    return ReferenceStates(of_class=of_class, class_of=class_of, recurrent=recurrent, references=references)
