from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.errors import ModelError
from tracebridge.states.flow import RunFlow

law = settings(deadline=None, max_examples=60)

paths = st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=8)


def flow_of(runs, size=4):
    codes = np.array([code for run in runs for code in run], dtype=np.int64)
    offsets = np.cumsum([0, *map(len, runs)])
    return RunFlow.from_paths(codes, offsets, size)


@law
@given(paths)
def test_counts_are_those_of_a_plain_loop(runs):
    transitions = np.zeros((4, 4), dtype=int)
    starts, ends, visits, empty = np.zeros(4, int), np.zeros(4, int), np.zeros(4, int), 0
    for run in runs:
        for a, b in pairwise(run):
            transitions[a, b] += 1
        for a in run:
            visits[a] += 1
        if run:
            starts[run[0]] += 1
            ends[run[-1]] += 1
        else:
            empty += 1
    flow = flow_of(runs)
    np.testing.assert_array_equal(flow.transitions.toarray(), transitions)
    np.testing.assert_array_equal(flow.starts, starts)
    np.testing.assert_array_equal(flow.ends, ends)
    np.testing.assert_array_equal(flow.visits, visits)
    assert (flow.n_empty, flow.n_runs, flow.n_steps) == (empty, len(runs), visits.sum())


@law
@given(paths, paths)
def test_flows_add_as_their_runs_do(first, second):
    assert flow_of(first) + flow_of(second) == flow_of([*first, *second]) == flow_of(second) + flow_of(first)
    assert flow_of(first) + RunFlow.none(4) == flow_of(first)
    assert hash(flow_of(first)) == hash(flow_of(first[::-1]))


@law
@given(paths, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_relabelling_a_flow_is_relabelling_its_runs(runs, targets):
    assert flow_of(runs).relabelled(targets, 3) == flow_of([[targets[code] for code in run] for run in runs], 3)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1], [0, 0]], "place 0: entries minus departures is -1"),
        ([[-1, 0], [0, 0]], "negative"),
        ([[0, 0, 0], [0, 0, 0]], "square"),
        ([[2**59, 0], [0, 2**59]], "too large"),
    ],
)
def test_refusals(matrix, message):
    with pytest.raises(ModelError, match=message):
        RunFlow(csr_array(np.array(matrix, dtype=np.int64)))


def test_the_given_matrix_is_not_shared():
    matrix = csr_array(np.array([[0, 1], [1, 0]]))
    flow = RunFlow(matrix)
    matrix.data[:] = 9
    assert flow.n_runs == 1
    with pytest.raises(ValueError, match="read-only"):
        flow.passages.data[0] = 5
    assert flow != 3
    with pytest.raises(TypeError):
        flow + 3
