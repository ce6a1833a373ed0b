"""The third outcome: runs that never end.

A chain fitted without a prior may hold states that no run was seen to leave for good, because its censored runs stopped
there. From such states no end can be reached, so that ``I - Q`` is singular and the closed forms of absorbing chains
have no answer, though for runs from elsewhere there is one: they succeed, fail, or get stuck.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.graph import recurrent_classes
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import ModelError

STUCK = "stuck"


def stuck_as_outcome(chain: MarkovChain) -> MarkovChain:
    """The chain with one absorbing state ``stuck``, its last, for all closed classes but single absorbing states.

    Every run then ends: with the outcomes of the chain, whose probabilities within every budget stay as they are, or
    stuck from its first step into such a class on, where it earns nothing more. A state ``stuck`` that is there already
    is part of the new one. Variables are left out. A chain without such a class is returned as it is.

    Raises:
        ModelError: for a state ``stuck`` that can be left.
    """
    n = chain.n_states
    absorbing = chain.absorbing
    closed = [members for members in recurrent_classes(chain.transitions) if not absorbing[members[0]]]
    if not closed:
        return chain
    merged = np.zeros(n, dtype=np.bool_)
    merged[np.concatenate(closed)] = True
    if STUCK in chain.states:
        place = chain.index(STUCK)
        if not (absorbing[place] or merged[place]):
            raise ModelError(f"the state {STUCK!r} can be left: it is not what is meant here by that word")
        merged[place] = True
    kept = np.flatnonzero(~merged)
    m = len(kept)
    position = np.full(n, m)
    position[kept] = np.arange(m)

    labels = {name: np.append(held[kept], False) for name, held in chain.labels.items() if name != STUCK}
    if "absorbed" in labels:
        labels["absorbed"][m] = True
    return MarkovChain(
        states=(*(chain.states[i] for i in kept.tolist()), STUCK),
        transitions=_merged_rows(chain, kept, position),
        initial=_merged_start(chain, position, m + 1),  # type: ignore[arg-type]
        labels=labels | {STUCK: np.arange(m + 1) == m},
        rewards={name: _restricted(reward, kept) for name, reward in chain.rewards.items()},
        constants=chain.constants,
    )


def _merged_rows(
    chain: MarkovChain, kept: NDArray[np.int64], position: NDArray[np.int64]
) -> csr_array | RationalMatrix:
    m = len(kept)
    if chain.rationals is None:
        entries = chain.transitions[kept].tocoo()
        own, following = entries.coords
        coordinates = np.append(own, m), np.append(position[following], m)
        return csr_array((np.append(entries.data, 1.0), coordinates), shape=(m + 1, m + 1))
    rows: list[dict[int, Fraction]] = []
    for i in kept.tolist():
        row: dict[int, Fraction] = {}
        for j, value in chain.rationals.row(i).items():
            row[int(position[j])] = row.get(int(position[j]), Fraction(0)) + value
        rows.append(row)
    return RationalMatrix.from_rows([*rows, {m: Fraction(1)}])


def _merged_start(chain: MarkovChain, position: NDArray[np.int64], size: int) -> NDArray[np.float64] | RationalVector:
    if chain.initial_rationals is None:
        return np.bincount(position, weights=chain.initial, minlength=size).astype(np.float64)
    start = [Fraction(0)] * size
    for target, value in zip(position.tolist(), chain.exact_initial(), strict=True):
        start[target] += value
    return RationalVector.from_fractions(start)


def _restricted(reward: RewardStructure, kept: NDArray[np.int64]) -> RewardStructure:
    """The reward of the kept states, and none of the one after them."""
    action = None if reward.action is None else np.append(reward.action[kept], 0.0)
    exact = {}
    for name in ("exact_state", "exact_action"):
        vector: RationalVector | None = getattr(reward, name)
        if vector is not None:
            exact[name] = RationalVector(np.append(vector.numerators[kept], 0), vector.denominator)
    return RewardStructure(state=np.append(reward.state[kept], 0.0), action=action, **exact)
