"""How likely a prefix of a run is under a chain, and how many runs of the chain are less likely after as many steps."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.sample import sample_paths

if TYPE_CHECKING:
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.inference.online.state_copies import StateCopies

#: Runs that are drawn to know how likely runs usually are, and the least of them that an answer rests on.
DRAWN_RUNS = 4_000
LEAST_RUNS = 200
_DRAWN_EXPANDED = 1_000

_MOST_STEPS = 2_000
_SAME = 1e-9  # sums of the same logarithms differ by no more


class PrefixLikelihood:
    """Log-likelihoods of prefixes under a chain, and their lower tail.

    The tail is the share of the runs of the chain that, after as many steps, are at most as likely: of a going prefix
    of k steps among runs that have k steps or more, and of a run that ended with its k-th step among these with what
    followed that step. Small is unlike the corpus. It is estimated from drawn runs, as (1 + less likely) / (1 + drawn),
    with a standard error of at most ``1 / (2 sqrt(LEAST_RUNS))``, and NaN for a run longer than all but a few of them.

    Args:
        chain: the chain. seed: of the drawn runs. copies: of its states, where what is seen of a run is less than its
            states; `first` and `step` are then not to be asked.
    """

    def __init__(self, chain: MarkovChain, seed: int = 0, copies: StateCopies | None = None) -> None:
        with np.errstate(divide="ignore"):
            self.first: list[float] = np.log(chain.initial).tolist()
        self._matrix = chain.transitions
        self._rows: dict[int, dict[int, float]] = {}
        self._going: list[array[float]] = []
        self._ended: list[array[float]] = []
        if copies is None:
            self._draw(chain, seed)
        else:
            self._draw_seen(chain, seed, copies)

    def step(self, source: int, target: int) -> float:
        """The logarithm of a transition probability; minus infinity where the chain has no such transition."""
        row = self._rows.get(source)
        if row is None:
            begin, end = self._matrix.indptr[source : source + 2].tolist()
            with np.errstate(divide="ignore"):
                logs = np.log(self._matrix.data[begin:end]).tolist()
            row = self._rows[source] = dict(zip(self._matrix.indices[begin:end].tolist(), logs, strict=True))
        return row.get(target, -math.inf)

    def tail(self, log_likelihood: float, steps: int, *, ended: bool) -> float:
        """The share of runs that are at most as likely after so many steps, at least one; NaN where too few are known.

        Args:
            log_likelihood: of the prefix. steps: its length. ended: whether the last step was followed by the end.
        """
        known = self._ended if ended else self._going
        if not 1 <= steps <= len(known):
            return math.nan
        of_runs = known[steps - 1]
        return (1 + bisect_right(of_runs, log_likelihood + _SAME)) / (1 + len(of_runs))

    def _draw(self, chain: MarkovChain, seed: int) -> None:
        paths = sample_paths(chain, DRAWN_RUNS, seed=seed, max_steps=_MOST_STEPS)
        P = chain.transitions
        entries = np.repeat(np.arange(chain.n_states), np.diff(P.indptr)) * chain.n_states + P.indices  # ascending
        so_far = np.log(chain.initial[paths[:, 0]])
        for t in range(paths.shape[1] - 1):
            alive = ~chain.absorbing[paths[:, t]]
            paths, so_far = paths[alive], so_far[alive]
            if len(paths) < LEAST_RUNS:
                break
            self._going.append(array("d", np.sort(so_far)))
            entry = np.searchsorted(entries, paths[:, t] * chain.n_states + paths[:, t + 1])
            so_far = so_far + np.log(P.data[entry])
            self._ended.append(array("d", np.sort(so_far)))

    def _draw_seen(self, chain: MarkovChain, seed: int, copies: StateCopies) -> None:
        paths = sample_paths(chain, _DRAWN_EXPANDED, seed=seed, max_steps=_MOST_STEPS)
        logs = copies.log_likelihoods(paths)
        for t in range(paths.shape[1] - 1):
            going = ~chain.absorbing[paths[:, t]]
            if going.sum() < LEAST_RUNS:
                break
            self._going.append(array("d", np.sort(logs[going, t])))
            self._ended.append(array("d", np.sort(logs[going, t + 1])))
