"""What a model says about whole runs, phase path by phase path, straight from its definition."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.states.run_paths import RunPaths

Runs = dict[tuple[tuple[int, ...], int], float]


def run_probabilities(model: ExpandedModel, longest: int) -> Runs:
    """The probability of every run of at most so many steps: by its categories and its end (0 success, 1 failure)."""
    m, found = model.n_states, defaultdict(float)

    def follow(path: tuple[int, ...], group: int, phase: int, p: float, rows: np.ndarray) -> None:
        codes, offsets, groups = np.array(path), np.array([0, len(path)]), np.array([group])
        row = rows[phase, model.space.of_paths(codes, offsets, groups)[-1], path[-1]]
        for end in (0, 1):
            found[path, end] += p * row[m + end]
        if len(path) < longest:
            for x in range(m):
                for after, move in enumerate(model.advance[phase, path[-1]]):
                    if move:
                        follow((*path, x), group, after, p * row[x] * move, rows)

    for k, weight in enumerate(model.class_weights):
        rows = model.rows_of_class(k)
        for (group, phase, x), p in np.ndenumerate(model.start):
            if x >= m:
                found[(), x - m] += weight * p
            elif p:
                follow((x,), group, phase, weight * p, rows)
    return dict(found)


def split(paths: RunPaths) -> list[tuple[tuple[int, ...], int]]:
    """The runs one by one: categories and outcome."""
    return [
        (tuple(paths.codes[a:b].tolist()), int(outcome))
        for a, b, outcome in zip(paths.offsets[:-1], paths.offsets[1:], paths.outcomes, strict=True)
    ]
