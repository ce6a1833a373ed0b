"""Where a run is in a chain whose states remember more than their step: the chances of each copy of the state.

Of a prefix the steps are known, and of what the chain remembers beside them only what follows from these: with memory
or a clock all of it, with hidden phases or classes of tasks its conditional distribution, by the forward recursion of
hidden Markov chains (Rabiner 1989). Where the chain gives a prefix no probability every copy is as likely as another.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.copies import category_copies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.expanded.fit import ExpandedFit

    Floats = NDArray[np.float64]


class StateCopies:
    """The copies of the states of a first-order chain in a chain that was expanded from it.

    Attributes:
        positions: of the copies of each state of the first-order chain, ends included, ascending.
        state_of: the state of the first-order chain that each state of the expanded chain is a copy of, shape (n,).
    """

    def __init__(self, fit: ExpandedFit) -> None:
        chain, known = fit.chain, category_copies(fit.chain)
        self.positions: list[NDArray[np.int64]] = []
        self.state_of = np.full(chain.n_states, -1, dtype=np.int64)
        for i, name in enumerate(fit.base.chain.states):
            at = known.get(name)
            if at is None:  # an end, which is one state
                at = np.flatnonzero(chain.label(name) if chain.has_label(name) else np.zeros(chain.n_states, np.bool_))
            self.positions.append(at)
            self.state_of[at] = i
        self._chain = chain
        self._blocks: dict[tuple[int, int], Floats] = {}

    def first(self, state: int) -> tuple[Floats, float]:
        """The chances of the copies of the first state, and the logarithm of its probability."""
        return _normalised(self._chain.initial[self.positions[state]])

    def following(self, state: int, chances: Floats, target: int) -> tuple[Floats, float]:
        """The chances of the copies of the next state, and the logarithm of its probability after those before it."""
        block = self._blocks.get((state, target))
        if block is None:
            rows = self._chain.transitions[self.positions[state]]
            block = self._blocks[state, target] = rows[:, self.positions[target]].toarray()
        return _normalised(chances @ block)

    def log_likelihoods(self, paths: NDArray[np.int64]) -> Floats:
        """Of paths over the expanded chain, the log-likelihood of what is seen of them.

        Args:
            paths: states by time, shape (n_runs, times).

        Returns:
            The log-likelihood of the states up to each time, shape (n_runs, times).
        """
        seen = self.state_of[paths]
        chances = np.broadcast_to(self._chain.initial, (len(paths), self._chain.n_states))
        logs = np.empty(paths.shape)
        for t in range(paths.shape[1]):
            if t:
                chances = np.asarray((self._chain.transitions.T @ chances.T).T)
            chances = chances * (self.state_of == seen[:, t, None])
            total = chances.sum(axis=1, keepdims=True)
            logs[:, t] = np.log(total[:, 0])
            chances = chances / total
        return np.cumsum(logs, axis=1)


def _normalised(chances: Floats) -> tuple[Floats, float]:
    total = float(chances.sum())
    if not total:
        return np.full(len(chances), 1 / max(1, len(chances))), -math.inf
    return chances / total, math.log(total)
