"""Runs to count: drawn by hypothesis, and laid end to end."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from tracebridge.traces import Outcome, Trace
from tracebridge.traces.model import Step

NAMES = ("a", "b", "c", "d")


def runs(max_runs: int = 12) -> st.SearchStrategy[list[tuple[tuple[int, ...], int]]]:
    """Lists of (states as codes, outcome code)."""
    path = st.lists(st.integers(0, len(NAMES) - 1), max_size=12).map(tuple)
    return st.lists(st.tuples(path, st.integers(0, 2)), max_size=max_runs)


def laid_out(chosen) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Codes, offsets and outcomes of such runs."""
    codes = np.array([code for path, _ in chosen for code in path], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(path) for path, _ in chosen])]).astype(np.int64)
    return codes, offsets, np.array([outcome for _, outcome in chosen], dtype=np.int64)


def as_traces(chosen, **fields) -> list[Trace]:
    """The same runs as traces; each field is a list with the value of each run."""
    outcomes = list(Outcome)
    return [
        Trace(
            trace_id=f"run-{i}",
            outcome=outcomes[outcome],
            steps=tuple(Step(name=NAMES[code]) for code in path),
            **{name: values[i] for name, values in fields.items()},
        )
        for i, (path, outcome) in enumerate(chosen)
    ]
