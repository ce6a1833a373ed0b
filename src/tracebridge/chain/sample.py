"""Drawing runs from a chain, all of them one step at a time together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.copies import category_copies
from tracebridge.traces.model import Outcome, Step, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain


def sample_paths(chain: MarkovChain, n_runs: int, *, seed: int = 0, max_steps: int = 10_000) -> NDArray[np.int64]:
    """Draw runs as state indices, shape (n_runs, longest + 1).

    Column t holds ``X_t``; an absorbed run stays in its absorber. A run that is not absorbed by ``max_steps`` stops
    there. The same chain and seed give the same runs.
    """
    rng = np.random.default_rng(seed)
    absorbing = chain.absorbing
    matrix = chain.transitions
    # One increasing sequence over all rows: row i owns (i, i + 1], so that a single search serves every state at once.
    within = np.cumsum(matrix.data) - np.repeat(
        np.concatenate([[0.0], np.cumsum(matrix.data)])[matrix.indptr[:-1]], np.diff(matrix.indptr)
    )
    row = np.repeat(np.arange(chain.n_states), np.diff(matrix.indptr))
    within[matrix.indptr[1:] - 1] = 1.0
    ladder = row + np.minimum(within, 1.0)
    current = np.searchsorted(np.minimum(np.cumsum(chain.initial), 1.0), rng.random(n_runs), side="right")
    current = np.minimum(current, np.flatnonzero(chain.initial)[-1])
    columns = [current]
    for _ in range(max_steps):
        moving = np.flatnonzero(~absorbing[current])
        if not len(moving):
            break
        current = current.copy()
        draws = current[moving] + rng.random(len(moving))
        place = np.searchsorted(ladder, draws, side="right")
        current[moving] = matrix.indices[np.minimum(place, matrix.indptr[current[moving] + 1] - 1)]
        columns.append(current)
    return np.stack(columns, axis=1)


def sample_traces(chain: MarkovChain, n_runs: int, *, seed: int = 0, max_steps: int = 10_000) -> list[Trace]:
    """The same runs as traces: steps named after transient states, the outcome after the absorber's label.

    A state that remembers more than the category of its step is named after the category.

    A run that ends in an absorber labelled neither ``success`` nor ``failure``, or is not absorbed, is censored.
    """
    paths = sample_paths(chain, n_runs, seed=seed, max_steps=max_steps)
    absorbing = chain.absorbing
    success = chain.label("success") if chain.has_label("success") else np.zeros(chain.n_states, dtype=np.bool_)
    failure = chain.label("failure") if chain.has_label("failure") else np.zeros(chain.n_states, dtype=np.bool_)
    names = list(chain.states)
    for category, copies in category_copies(chain).items():
        for i in copies.tolist():
            names[i] = category
    traces = []
    for run, path in enumerate(paths):
        steps = tuple(Step(name=names[i]) for i in path[~absorbing[path]].tolist())
        end = int(path[-1])
        if absorbing[end] and success[end]:
            outcome, termination = Outcome.SUCCESS, None
        elif absorbing[end] and failure[end]:
            outcome, termination = Outcome.FAILURE, None
        else:
            outcome, termination = Outcome.CENSORED, "step_cap" if not absorbing[end] else chain.states[end]
            steps = steps[:max_steps]
        traces.append(Trace(trace_id=f"sample-{run}", outcome=outcome, steps=steps, termination=termination))
    return traces
