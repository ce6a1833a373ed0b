"""The files that PRISM is given: the chain with the sets of states and the reward of one question, and the question.

In doubles the chain goes as explicit files, of which PRISM keeps every state, reachable or not, and whose rows it
checks to 1e-8 only. In rationals it goes as PRISM text, because PRISM (4.10) loses the labels of explicit files there;
of text it keeps the states that can be reached, so that its initial state is one that leads to all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.export.explicit import write_explicit
from tracebridge.export.prism import write_prism

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    Mask = NDArray[np.bool_]

#: File names, in the folder of a run.
MODEL, PROPERTIES, STATES, VECTOR, RESULTS = "model.prism", "question.props", "states.sta", "vector.txt", "results.csv"


def write_in_doubles(
    chain: MarkovChain, folder: Path, masks: Sequence[Mask], reward: RewardStructure | None
) -> list[str]:
    """Write explicit files; the arguments that have PRISM import them.

    State i of the chain is ``s=i``; the masks are the labels ``a0``, ``a1``, ...
    """
    start = np.zeros(chain.n_states)
    start[0] = 1.0
    held = None if reward is None else RewardStructure(state=reward.state)
    asked = _asked(chain, chain.transitions, start, masks, held)
    write_explicit(asked, folder / "model.tra", dialect="prism", exact=False)
    files = "model.tra,sta,lab" + ("" if reward is None else ",srew")
    return ["-importmodel", files, "-dtmc"]


def write_in_rationals(
    chain: MarkovChain, folder: Path, masks: Sequence[Mask], reward: RewardStructure | None
) -> list[str]:
    """Write PRISM text; the arguments that have PRISM read it. States and labels are those of `write_in_doubles`.

    Raises:
        UsageError: a rational too long for PRISM.
    """
    n = chain.n_states
    everywhere = RationalVector(np.ones(n, dtype=np.int64), n)
    asked = _asked(chain, chain.exact_transitions(), everywhere, masks, reward)
    write_prism(asked, folder / MODEL, max_states=None)
    return [MODEL]


def _asked(
    chain: MarkovChain,
    transitions: csr_array | RationalMatrix,
    initial: NDArray[np.float64] | RationalVector,
    masks: Sequence[Mask],
    reward: RewardStructure | None,
) -> MarkovChain:
    return MarkovChain(
        states=tuple([f"q{i}" for i in range(chain.n_states)]),
        transitions=transitions,
        initial=initial,  # type: ignore[arg-type]  # the constructor takes rationals too
        labels={f"a{i}": mask for i, mask in enumerate(masks)},
        rewards={} if reward is None else {"r": reward},
    )
