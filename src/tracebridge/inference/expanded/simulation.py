"""Corpora drawn from a chain that remembers more than categories, with the censoring of the real one, as whole runs.

All runs of all corpora take their steps together, but each corpus has a stream of random numbers of its own, so that
it does not matter which of them are drawn side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.states.expansion import Context
from tracebridge.states.run_paths import CENSORED, RunPaths

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.expanded.model import ExpandedModel

    Codes = NDArray[np.int64]
    Floats = NDArray[np.float64]

#: No drawn run goes on beyond this many times the length up to which runs are cut, or this many steps.
_LONGEST_TIMES, _LONGEST_STEPS = 20, 1_000
# A row's number plus a number below this does not round up to the next row, with up to 2^20 rows.
_BELOW_ONE = 1 - 2.0**-32


class ModelSimulation:
    """Draws runs of a model.

    Args:
        model: what is drawn from.
        hazard: the share cut at d among the runs that go on after step d, shape (longest + 1,); see
            `censoring_hazard`. None are cut without it.
    """

    def __init__(self, model: ExpandedModel, hazard: Floats | None = None) -> None:
        self._model = model
        self._hazard = np.zeros(1) if hazard is None else hazard
        self._max_steps = max(_LONGEST_TIMES * len(self._hazard), _LONGEST_STEPS)
        self._starts = _Draw(model.start.reshape(1, -1))
        classes = [model.rows_of_class(k) for k in range(len(model.class_weights))]
        self._rows = _Draw(np.stack(classes).reshape(-1, model.n_states + 2))
        self._advance = _Draw(model.advance.reshape(-1, model.form.phases))
        self._classes = _Draw(model.class_weights[None])

    def corpora(
        self, n_runs: int, seeds: Sequence[np.random.SeedSequence], blocks: Codes | None = None
    ) -> tuple[RunPaths, Codes]:
        """One corpus of ``n_runs`` runs for each seed, end to end, and the corpus of each run.

        A run far longer than any real one is stopped, and is censored there.

        Args:
            blocks: what runs are trials of, shape (n_runs,); runs of one block share their class. Each run has a class
                of its own without them.
        """
        model, space = self._model, self._model.space
        m, phases = model.n_states, model.form.phases
        streams = [np.random.default_rng(seed) for seed in seeds]
        corpora = np.repeat(np.arange(len(streams)), n_runs)

        def uniform(runs: Codes, number: int) -> Floats:
            """Random numbers for these runs, in ascending order, shape (number, runs); each from its own corpus."""
            sizes = np.bincount(corpora[runs], minlength=len(streams))
            drawn = [rng.random((number, size)) for rng, size in zip(streams, sizes.tolist(), strict=True)]
            return np.concatenate([np.empty((number, 0)), *drawn], axis=1)

        runs = np.arange(len(corpora))
        u = uniform(runs, 2)
        group, phase, state = np.unravel_index(self._starts(np.zeros_like(runs), u[0]), model.start.shape)
        class_ = self._classes(np.zeros_like(runs), u[1])
        if blocks is not None and len(model.class_weights) > 1:
            _, firsts, numbers = np.unique(blocks, return_index=True, return_inverse=True)
            class_ = class_.reshape(len(streams), n_runs)[:, firsts[numbers]].ravel()
        groups = group.astype(np.int64)
        outcomes = np.where(state >= m, state - m, CENSORED).astype(np.int8)
        lengths = np.zeros(len(runs), dtype=np.int64)
        visited: list[tuple[Codes, Codes]] = []
        none = np.zeros_like(runs)
        previous = np.full_like(runs, m) if model.form.previous else none
        context = space.codes(Context(groups, none, none, previous))
        going = state < m
        time = 0
        while going.any():
            runs, class_, phase, context, state = (part[going] for part in (runs, class_, phase, context, state))
            visited.append((runs, state))
            lengths[runs] += 1
            u = uniform(runs, 3)
            after = self._rows(((class_ * phases + phase) * space.size + context) * m + state, u[0])
            phase = self._advance(phase * m + state, u[1])
            time += 1
            going = after < m
            ended = ~going
            outcomes[runs[ended]] = after[ended] - m
            cut = self._hazard[time] if time < len(self._hazard) else 0.0
            going &= (u[2] >= cut) & (time < self._max_steps)
            context = space.next_context(context, state, np.minimum(after, m - 1), np.full_like(state, time))
            state = after
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        codes = np.empty(int(offsets[-1]), dtype=np.int32)
        for step, (runs, states) in enumerate(visited):
            codes[offsets[runs] + step] = states
        drawn = RunPaths(
            states=model.states,
            codes=codes,
            offsets=offsets,
            outcomes=outcomes,
            tasks=np.full(len(corpora), -1, dtype=np.int64),
            groups=groups,
            group_names=model.groups,
        )
        return drawn, corpora

    def stopped(self, paths: RunPaths) -> int:
        """How many of drawn runs were stopped because they were far longer than any real one."""
        return int(((paths.lengths >= self._max_steps) & (paths.outcomes == CENSORED)).sum())


class _Draw:
    """Draws from distributions, the rows of a matrix; all rows form one increasing ladder, row i in (i, i + 1]."""

    def __init__(self, rows: Floats) -> None:
        above = np.cumsum(rows, axis=1)
        self._width = rows.shape[1]
        self._ladder = (np.arange(len(rows))[:, None] + above / above[:, -1:]).ravel()

    def __call__(self, rows: Codes, uniform: Floats) -> Codes:
        """One draw for each of these rows, from as many numbers in [0, 1)."""
        if self._width == 1:
            return np.zeros_like(rows)
        place = np.searchsorted(self._ladder, rows + _BELOW_ONE * uniform, side="right")
        return np.asarray(place - rows * self._width, dtype=np.int64)
