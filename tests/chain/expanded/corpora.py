"""Corpora of named runs, and forms without hidden parts, drawn by hypothesis."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tracebridge.states.model_form import ModelForm
from tracebridge.states.run_paths import RunPaths

OUTCOMES = ("success", "failure", "censored")

runs = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=8), st.sampled_from(OUTCOMES), st.sampled_from("xy")),
    min_size=1,
    max_size=8,
)
forms = st.builds(
    ModelForm,
    previous=st.booleans(),
    dwell=st.integers(1, 3),
    clock=st.sets(st.integers(1, 7), max_size=3).map(lambda bins: (0, *sorted(bins))),
    group=st.none() | st.just("model"),
)


def as_paths(drawn, states: str = "abc") -> RunPaths:
    """The drawn runs, with their group and no task."""
    return RunPaths.of_names([run[:2] for run in drawn], groups=[run[2] for run in drawn], states=states)


def walks(rows: np.ndarray, start: np.ndarray, n: int, rng: np.random.Generator, longest: int = 200) -> list:
    """Runs (names, outcome) of a second-order chain: ``rows[previous, state]`` over m states, success, failure."""
    m = rows.shape[1]
    found = []
    for _ in range(n):
        previous, state, path = m, int(rng.choice(m, p=start)), []
        while state < m and len(path) < longest:
            path.append("abcdefgh"[state])
            previous, state = state, int(rng.choice(m + 2, p=rows[previous, state]))
        found.append((path, OUTCOMES[max(0, state - m)] if state >= m else "censored"))
    return found
