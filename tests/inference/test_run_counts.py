import numpy as np
import pytest
from hypothesis import given, settings
from tests.inference.runs import NAMES, as_traces, laid_out, runs

from tracebridge.chain import TransitionCounts, fit_chain, fit_counts
from tracebridge.errors import FitError, UsageError
from tracebridge.inference.run_counts import RunCounts
from tracebridge.states.features import OUTCOMES


@pytest.mark.parametrize("policy", ["censored", "failure", "drop"])
@given(chosen=runs())
@settings(max_examples=30, deadline=None)
def test_runs_add_up_to_the_counts_of_the_corpus(policy, chosen):
    codes, offsets, outcomes = laid_out(chosen)
    table = RunCounts.of_paths(NAMES, codes, offsets, outcomes, policy=policy).table
    total = np.asarray(table.sum(axis=0)).ravel().reshape(len(NAMES) + 1, len(NAMES) + 2)
    names = [([NAMES[code] for code in path], OUTCOMES[outcome]) for path, outcome in chosen]
    # one more run visits every state, so that all names are there
    every = TransitionCounts.from_paths([*names, (NAMES, "success")]).under(policy)
    extra = RunCounts.of_paths(NAMES, np.arange(len(NAMES)), np.array([0, len(NAMES)]), np.array([0])).table
    total += extra.toarray().reshape(total.shape)
    np.testing.assert_array_equal(total[:-1], every.counts.toarray())
    np.testing.assert_array_equal(total[-1], every.starts)


def test_traces_are_counted_by_the_map_of_the_fit():
    chosen = [((0, 1, 1), 0), ((2,), 1), ((), 0), ((0, 3), 2)]
    traces = as_traces(chosen, task_id=["x", "y", "x", None])
    fit = fit_chain(traces)
    counted = RunCounts.of_traces(fit, iter(traces))
    assert counted.n_runs == 4
    assert counted.tasks.tolist() == [0, 1, 0, -1]
    assert counted.task_names == ("x", "y")
    assert counted.lengths.tolist() == [3, 1, 0, 2]


def test_tasks_keep_their_numbers_over_batches(monkeypatch):
    chosen = [((0,), 0)] * 5
    traces = as_traces(chosen, task_id=["c", "a", "b", None, "a"])
    fit = fit_chain(traces)
    whole = RunCounts.of_traces(fit, traces)
    monkeypatch.setattr("tracebridge.inference.run_counts._BATCH_RUNS", 2)
    parts = RunCounts.of_traces(fit, traces)
    assert parts.tasks.tolist() == whole.tasks.tolist() == [2, 0, 1, -1, 0]
    np.testing.assert_array_equal(parts.table.toarray(), whole.table.toarray())


def test_other_runs_than_those_of_the_fit_are_refused():
    traces = as_traces([((0, 1), 0), ((1,), 1)])
    fit = fit_chain(traces)
    with pytest.raises(FitError, match="do not add up"):
        RunCounts.of_traces(fit, traces[:1] * 2)
    with pytest.raises(FitError, match="no run"):
        RunCounts.of_traces(fit, [])
    plain = fit_counts(TransitionCounts.from_paths([(("a",), "success")]))
    with pytest.raises(UsageError, match="no map"):
        RunCounts.of_traces(plain, traces)
