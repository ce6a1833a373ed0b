"""Drawing runs from a chain, all of them one step at a time together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.copies import category_copies
from tracebridge.chain.expanded.naming import TASK_CLASS
from tracebridge.chain.markov import MarkovChain
from tracebridge.errors import UsageError
from tracebridge.traces.model import Outcome, Step, Trace

if TYPE_CHECKING:
    from numpy.typing import NDArray


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


def sample_traces(
    chain: MarkovChain, n_runs: int, *, seed: int = 0, max_steps: int = 10_000, trials: int = 1
) -> list[Trace]:
    """Draw runs as traces: steps named after transient states, the outcome after the absorber's label.

    A state that remembers more than the category of its step is named after the category. A run that ends in an
    absorber labelled neither ``success`` nor ``failure``, or is not absorbed, is censored.

    Args:
        chain, n_runs, seed, max_steps: with one trial the runs are those of `sample_paths`.
        trials: runs of each task, one after the other; in a chain with classes of tasks they share the class. Without
            such classes runs are independent, and name no task unless there are several trials.

    Raises:
        UsageError: for no trial, or what is no chain.
    """
    if not isinstance(chain, MarkovChain):
        raise UsageError(f"sample_traces takes a chain, such as fit.chain, not a {type(chain).__name__}")
    if trials < 1:
        raise UsageError(f"a task has one trial or more, not {trials}")
    known = category_copies(chain)
    classed = bool(known) and TASK_CLASS in chain.variables
    if classed and trials > 1:
        paths = _paths_of_tasks(chain, n_runs, trials, seed=seed, max_steps=max_steps)
    else:
        paths = list(sample_paths(chain, n_runs, seed=seed, max_steps=max_steps))
    absorbing = chain.absorbing
    success = chain.label("success") if chain.has_label("success") else np.zeros(chain.n_states, dtype=np.bool_)
    failure = chain.label("failure") if chain.has_label("failure") else np.zeros(chain.n_states, dtype=np.bool_)
    names = list(chain.states)
    for category, copies in known.items():
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
        named = classed or trials > 1
        traces.append(
            Trace(
                trace_id=f"sample-{run}",
                outcome=outcome,
                steps=steps,
                termination=termination,
                task_id=f"task-{run // trials}" if named else None,
                trial=str(run % trials) if trials > 1 else None,
            )
        )
    return traces


def _paths_of_tasks(
    chain: MarkovChain, n_runs: int, trials: int, *, seed: int, max_steps: int
) -> list[NDArray[np.int64]]:
    """Runs of tasks whose class is drawn once for each task; a run without a step is as likely in all classes."""
    class_of_state = chain.variables[TASK_CLASS]
    at_once = np.where(chain.absorbing, chain.initial, 0.0)
    classes = np.unique(class_of_state[~chain.absorbing & (chain.initial > 0)])
    starts = np.array([np.where(~chain.absorbing & (class_of_state == k), chain.initial, 0.0) for k in classes])
    weights = starts.sum(axis=1)
    streams = np.random.SeedSequence(seed).spawn(len(classes) + 1)
    tasks = -(-n_runs // trials)
    drawn = np.random.default_rng(streams[0]).choice(len(classes), size=tasks, p=weights / weights.sum())
    of_run = np.repeat(drawn, trials)[:n_runs]
    paths: list[NDArray[np.int64]] = [np.empty(0, dtype=np.int64)] * n_runs
    for k, stream in enumerate(streams[1:]):
        runs = np.flatnonzero(of_run == k).tolist()
        if runs:
            initial = starts[k] * (weights.sum() / weights[k]) + at_once
            alone = replace(chain, initial=initial / initial.sum(), rationals=None, initial_rationals=None)
            of_class = sample_paths(alone, len(runs), seed=int(stream.generate_state(1)[0]), max_steps=max_steps)
            for run, path in zip(runs, of_class, strict=True):
                paths[run] = path
    return paths
