"""Counting for bootstrap and certificate in one pass: the same as in passes of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from tests.inference.runs import as_traces, runs

from tracebridge import fit_chain
from tracebridge.chain import LengthCounts
from tracebridge.errors import FitError, NothingToCheckError
from tracebridge.inference import RunCounts, path_counts
from tracebridge.inference.run_evidence import count_runs, shows_memory, varying_covariates

CHOSEN = [((0, 1), 0), ((0, 0, 1), 1), ((1,), 0), ((0, 1, 1), 2), ((), 1)] * 3


@pytest.mark.parametrize("batch", [1, 5, 65_536])
def test_one_pass_counts_what_two_would(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("tracebridge.inference.run_evidence._BATCH_STEPS", batch)
    traces = as_traces(CHOSEN, task_id=[f"t{i % 4}" for i in range(len(CHOSEN))])
    fit = fit_chain(traces)
    counted, paths = count_runs(fit, iter(traces), ["task_id", "model"])
    alone = RunCounts.of_traces(fit, traces)
    assert np.array_equal(counted.table.toarray(), alone.table.toarray())
    assert np.array_equal(counted.lengths, alone.lengths)
    assert paths.to_dict() == path_counts(fit, traces, covariates=["task_id", "model"]).to_dict()
    assert varying_covariates(paths) == ("task_id",)


def test_a_covariate_needs_several_values_and_several_runs_of_one() -> None:
    n = len(CHOSEN)
    traces = as_traces(CHOSEN, task_id=[f"t{i}" for i in range(n)], trial=[i % 2 for i in range(n)], model=["m"] * n)
    _, paths = count_runs(fit_chain(traces), traces, ["task_id", "trial", "model"])
    assert varying_covariates(paths) == ("trial",)


def test_runs_that_have_changed_are_refused() -> None:
    traces = as_traces(CHOSEN)
    with pytest.raises(FitError, match="not the runs of the fit"):
        count_runs(fit_chain(traces), traces[:-2], [])


@given(runs())
def test_memory_shows_exactly_where_a_step_has_one_before_it_and_something_after(chosen) -> None:
    traces = as_traces(chosen)
    try:
        fit = fit_chain(traces, prior="none")
    except NothingToCheckError:
        return
    events = 0
    for path, outcome in chosen:
        followed = len(path) - (outcome == 2)  # steps of which it was seen what followed
        events += max(followed - 1, 0)
    assert shows_memory(LengthCounts.from_traces(traces).under(fit.policy)) is (events > 0)
