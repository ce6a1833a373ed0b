"""Random interval chains, chains drawn from inside them, and all their extreme chains."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain.interval import IntervalChain
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.batched.chain_stack import ChainStack

EIGHTH = 0.125  # bounds are multiples of it, so that their sums are exact and often meet one


@st.composite
def interval_rows(draw: st.DrawFn, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds around a distribution in eighths; lower bounds of zero and degenerate rows are common."""
    successors = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=min(n, 3), unique=True))
    if len(successors) == 1:
        return np.eye(n)[successors[0]], np.eye(n)[successors[0]]
    cuts = sorted(draw(st.lists(st.integers(0, 8), min_size=len(successors) - 1, max_size=len(successors) - 1)))
    eighths = np.diff([0, *cuts, 8])
    lower, upper = np.zeros(n), np.zeros(n)
    for target, share in zip(successors, eighths.tolist(), strict=True):
        lower[target] = max(share - draw(st.integers(0, 3)), 0) * EIGHTH
        upper[target] = min(share + draw(st.integers(0, 3)), 8) * EIGHTH
    alone = np.flatnonzero(upper)
    return (upper, upper) if len(alone) == 1 else (lower, upper)


@st.composite
def interval_chains(draw: st.DrawFn, max_states: int = 4) -> IntervalChain:
    """Labels ``a`` and ``b``, and the reward ``r`` with zeros."""
    n = draw(st.integers(2, max_states))
    bounds = [draw(interval_rows(n)) for _ in range(n)]
    masks = {name: np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))) for name in "ab"}
    rewards = np.array(draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.5]), min_size=n, max_size=n)))
    return IntervalChain(
        states=tuple(f"s{i}" for i in range(n)),
        lower=csr_array(np.array([low for low, _ in bounds])),
        upper=csr_array(np.array([high for _, high in bounds])),
        initial=np.eye(n)[0],
        labels=masks,
        rewards={"r": RewardStructure(state=rewards, action=rewards[::-1].copy() if draw(st.booleans()) else None)},
    )


def extreme_rows(chain: IntervalChain, state: int) -> list[np.ndarray]:
    """The vertices of a row's polytope: all entries but one at a bound, and that one between its own."""
    low, high = chain.lower.toarray()[state], chain.upper.toarray()[state]
    support = np.flatnonzero(high)
    found = {}
    for free in support:
        others = [j for j in support if j != free]
        for sides in product((0, 1), repeat=len(others)):
            row = np.zeros(len(low))
            row[others] = [(low, high)[side][j] for side, j in zip(sides, others, strict=True)]
            row[free] = 1 - row.sum()  # exact in eighths
            if low[free] <= row[free] <= high[free]:
                found[tuple(row)] = row
    return list(found.values())


def with_rows(chain: IntervalChain, rows: np.ndarray) -> MarkovChain:
    """The chain with these rows."""
    return MarkovChain(
        states=chain.states, transitions=rows, initial=chain.initial, labels=chain.labels, rewards=chain.rewards
    )


def mixed(chain: IntervalChain, rng: np.random.Generator, number: int) -> list[MarkovChain]:
    """Chains whose rows are random mixtures of the extreme ones, often extreme themselves."""
    vertices = [np.array(extreme_rows(chain, state)) for state in range(chain.n_states)]

    def row(corners: np.ndarray) -> np.ndarray:
        if rng.random() < 0.3:
            return corners[rng.integers(len(corners))]
        return rng.dirichlet(np.full(len(corners), 0.4)) @ corners

    return [with_rows(chain, np.array([row(corners) for corners in vertices])) for _ in range(number)]


def drawn_inside(chain: IntervalChain, number: int, seed: int) -> ChainStack:
    """Chains whose entries lie between the bounds: a random point of the box, moved onto the rows that sum to one."""
    rng = np.random.default_rng(seed)
    low, high, indptr = chain.lower.data[:, None], chain.upper.data[:, None], chain.upper.indptr
    sizes = np.diff(indptr)
    x = low + (high - low) * rng.beta(0.3, 0.3, size=(len(low), number))  # often near a bound

    def totals(values):
        return np.repeat(np.add.reduceat(values, indptr[:-1], axis=0), sizes, axis=0)

    missing = 1 - totals(x)
    up, down = totals(high - x), totals(x - low)
    share = np.where(missing > 0, missing / np.where(up > 0, up, 1), -missing / np.where(down > 0, down, 1))
    x = x + share * np.where(missing > 0, high - x, low - x)
    return ChainStack(chain.member, np.clip(x, low, high), chain.initial[:, None])
