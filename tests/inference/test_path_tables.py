from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.runs import NAMES, laid_out, runs

from tracebridge.errors import FitError
from tracebridge.inference import path_tables
from tracebridge.inference.path_tables import STEP_BINS, PathTables

M = len(NAMES)


def bin_of(number: int) -> int:
    bounds = {0: [0], 1: [1], 2: [2, 3], 3: [4, 5, 6, 7]}
    return next((code for code, numbers in bounds.items() if number in numbers), 4)


def by_hand(chosen) -> dict[str, Counter]:
    """The tables by the definition, one step at a time."""
    found = {"previous": Counter(), "clock": Counter(), "dwell": Counter(), "starts": Counter(), "ends": Counter()}
    for path, outcome in chosen:
        found["ends"][outcome, len(path)] += 1
        if path:
            found["starts"][path[0]] += 1
        for t, state in enumerate(path):
            last = t + 1 == len(path)
            if last and outcome == 2:
                continue
            following = M + outcome if last else path[t + 1]
            stay = 0
            while stay < t and path[t - stay - 1] == state:
                stay += 1
            found["previous"][path[t - 1] if t else M, state, following] += 1
            found["clock"][bin_of(t), state, following] += 1
            found["dwell"][bin_of(stay), state, following] += 1
    return found


@given(runs())
def test_tables_are_what_their_definition_says(chosen):
    tables = PathTables.of_paths(*laid_out(chosen), M)
    expected = by_hand(chosen)
    for name in ("previous", "clock", "dwell"):
        table = getattr(tables, name)
        columns = (table.contexts, table.states, table.following, table.counts)
        found = {(g, i, j): n for g, i, j, n in zip(*(column.tolist() for column in columns), strict=True)}
        assert found == expected[name], name
    assert {i: n for i, n in enumerate(tables.starts[0].tolist()) if n} == expected["starts"]
    assert {(int(o), int(d)): int(tables.ends[0, o, d]) for o, d in np.argwhere(tables.ends[0])} == expected["ends"]
    assert tables.n_runs.tolist() == [len(chosen)]
    assert tables.longest.tolist() == [max((len(path) for path, _ in chosen), default=0)]


@given(runs(), runs())
def test_shards_add_up(ours, theirs):
    both = PathTables.of_paths(*laid_out(ours + theirs), M)
    assert PathTables.of_paths(*laid_out(ours), M) + PathTables.of_paths(*laid_out(theirs), M) == both
    assert both + PathTables.none(M) == both


@given(runs(), st.permutations(range(M + 1)))
def test_relabelling_the_tables_is_relabelling_the_states(chosen, order):
    targets = order[:M]
    codes, offsets, outcomes = laid_out(chosen)
    moved = np.array(targets)[codes] if len(codes) else codes
    tables = PathTables.of_paths(codes, offsets, outcomes, M)
    assert tables.relabelled(targets, M + 1) == PathTables.of_paths(moved, offsets, outcomes, M + 1)


def test_bins_are_named_by_what_is_in_them():
    assert STEP_BINS == ("0", "1", "2-3", "4-7", "8+")
    steps = np.array([0, 1, 2, 3, 4, 7, 8, 10**6])
    assert path_tables.step_bin(steps).tolist() == [bin_of(step) for step in steps.tolist()]


def test_a_run_beyond_all_curves_is_refused(monkeypatch):
    monkeypatch.setattr(path_tables, "MAX_RUN_LENGTH", 3)
    with pytest.raises(FitError, match="a run of 4 steps is too long"):
        PathTables.of_paths(*laid_out([((0, 0, 0, 0), 0)]), M)
