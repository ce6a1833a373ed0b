"""Counting for bootstrap and certificate in one pass: the same as in passes of their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from tests.inference.runs import as_traces, runs

from tracebridge import fit_chain
from tracebridge.chain.survival import LengthCounts
from tracebridge.errors import FitError, NothingToCheckError
from tracebridge.inference import RunCounts, certify, path_counts
from tracebridge.inference.run_evidence import count_runs, varying_covariates

CHOSEN = [((0, 1), 0), ((0, 0, 1), 1), ((1,), 0), ((0, 1, 1), 2), ((), 1)] * 3


@pytest.mark.parametrize("batch", [1, 5, 65_536])
def test_one_pass_counts_what_two_would(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("tracebridge.inference.run_evidence._BATCH_STEPS", batch)
    traces = as_traces(CHOSEN, task_id=[f"t{i % 4}" for i in range(len(CHOSEN))])
    fit = fit_chain(traces)
    counted = count_runs(fit, iter(traces), ["task_id", "model"])
    alone, paths = RunCounts.of_traces(fit, traces), counted.paths
    assert np.array_equal(counted.units.runs.table.toarray(), alone.table.toarray())
    assert counted.lengths == LengthCounts.from_traces(traces)
    assert paths.to_dict() == path_counts(fit, traces, covariates=["task_id", "model"]).to_dict()
    assert varying_covariates(paths) == ("task_id",)


def test_a_covariate_needs_several_values_and_several_runs_of_one() -> None:
    n = len(CHOSEN)
    traces = as_traces(CHOSEN, task_id=[f"t{i}" for i in range(n)], trial=[i % 2 for i in range(n)], model=["m"] * n)
    counted = count_runs(fit_chain(traces), traces, ["task_id", "trial", "model"])
    assert varying_covariates(counted.paths) == ("trial",)


def test_runs_that_have_changed_are_refused() -> None:
    traces = as_traces(CHOSEN)
    with pytest.raises(FitError, match="not the runs of the fit"):
        count_runs(fit_chain(traces), traces[:-2], [])


@given(runs())
@settings(max_examples=40)
def test_any_corpus_with_a_chain_has_a_certificate(chosen) -> None:
    traces = as_traces(chosen)
    try:
        fit = fit_chain(traces, prior="none")
    except NothingToCheckError:
        return
    if all((outcome == 2 and len(path) < 2) or not path for path, outcome in chosen):
        with pytest.raises(NothingToCheckError, match="nothing to certify"):
            certify(fit, traces, replicates=19)
        return
    certificate = certify(fit, traces, replicates=19)
    if certificate.verdict == "accept":
        assert all(each.resolution is None or each.n_events for each in certificate.statistics)
