"""Fits with what the form leaves open chosen from the runs, and their documents with phases and classes."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from tests.chain.expanded.corpora import walks
from tests.inference.expanded.test_cross_validation import clocked, order2_rows

from tracebridge.chain import AbsorbingChain, TransitionCounts, document_text, fit_chain, fit_counts, parse_document
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.closedform import long_run_outcomes
from tracebridge.errors import ModelError
from tracebridge.inference.expanded.cross_validation import choose_model
from tracebridge.inference.expanded.fitting import fit_model
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths
from tracebridge.traces import read_traces

TRIALS = clocked(60, np.random.default_rng(2), [0.02] * 3 + [0.5] * 8)
TASKS = [f"t{i // 4}" for i in range(60)]


def fitted(name: str, runs=TRIALS, tasks=TASKS, **options) -> ExpandedFit:
    base = fit_counts(TransitionCounts.from_paths(runs))
    return fit_model(base, RunPaths.of_names(runs, tasks=tasks), parse_model(name), **options)


def test_what_is_left_open_is_chosen_and_said():
    told: list[str] = []
    fit = fitted("clock", progress=told.append)
    choice = choose_model(fit.paths, parse_model("clock"))
    assert (fit.form, fit.kappa) == (choice.form, choice.kappa)
    bins = ",".join(map(str, fit.form.bins))
    (remark,) = fit.remarks
    assert f"over 15 tasks chose the clock {bins} ({choice.score.form.clock}, the best of log, quantiles" in remark
    assert f"kappa {choice.kappa:g} of 1, 4, 16, 64" in remark
    assert f"{choice.score.mean:.2f} nats a run" in remark
    assert remark in fit.notes
    assert any("clock:log" in message for message in told)
    assert fitted("clock").to_dict() == fit.to_dict()


def test_what_is_given_stays():
    fit = fitted("clock:0,3", kappa=2.5)
    assert (fit.form.bins, fit.kappa) == ((0, 3), 2.5)
    assert "chose" not in fit.remarks[0]


def test_a_few_runs_are_fitted_without_a_choice():
    fit = fitted("order2+clock", runs=[(["a", "b", "b"], "success"), (["a"], "failure")], tasks=None)
    assert (fit.form.bins, fit.kappa) == ((0, 1, 2), 1.0)
    assert "nothing was chosen" in fit.notes[0]


@pytest.mark.parametrize(
    "name", ["phases:2", "phases:2:full-shared+order2", "classes:2", "classes:2+phases:2+clock:0,2"]
)
def test_hidden_parts_in_a_document(name):
    fit = fitted(name, kappa=1.0)
    assert fit.form == parse_model(name)
    text = document_text(fit.to_dict())
    again = ExpandedFit.from_dict(parse_document(text))
    assert document_text(again.to_dict()) == text
    assert (again.chain.transitions != fit.chain.transitions).nnz == 0
    if fit.form.classes > 1:
        assert fit.model.class_weights.sum() == pytest.approx(1)
        assert fit.model.class_tilts[0] < fit.model.class_tilts[1]


def test_phases_that_no_iteration_led_to_are_refused():
    document = fitted("phases:2", kappa=1.0).to_dict()
    early = copy.deepcopy(document)
    m = 1
    early["parameters"]["advance"] = [0.5, 0.5, 0.0, 1.0]
    assert len(document["parameters"]["advance"]) == 4 * m
    with pytest.raises(ModelError, match="do not follow from the runs"):
        ExpandedFit.from_dict(early)


def test_rows_of_phases_are_those_of_the_runs():
    """Steps 1 to 3 hardly end a run, later ones do: so do the two phases."""
    fit = fitted("phases:2", kappa=1.0)
    ends = fit.model.rows[:, 0, 0, 1:].sum(axis=1)
    assert ends[0] < 0.1
    assert ends[1] > 0.35


@pytest.mark.shared_data
def test_real_trials(shared_data):
    """Held-out gains over the first-order chain on tau-bench airline: order 2 and a clock, each and together."""
    traces = list(read_traces(shared_data / "traces" / "tau_bench" / "gpt-4o-airline.json"))
    base = fit_chain(traces, top=8)
    assert base.abstraction is not None
    paths = RunPaths.of_traces(base.abstraction, traces)
    scores = {name: choose_model(paths, parse_model(name)).score for name in ("first-order", "clock", "order2")}
    both = choose_model(paths, parse_model("order2+clock")).score
    for name in ("clock", "order2"):
        gain, error = scores[name].gain_over(scores["first-order"])
        assert gain > 3 * error
        assert both.gain_over(scores[name])[0] > 0
    # Paths are shrunk hard, ends are not: the chain's pass rate stays that of the runs, as flow balance has it.
    passed = float(base.counts.pass_rate())
    for kappa in (1.0, 16.0, 64.0):
        chain = AbsorbingChain(chain=fit_model(base, paths, parse_model("order2"), kappa=kappa).chain)
        assert float(long_run_outcomes(chain)["success"]) == pytest.approx(passed, abs=0.01)


def test_a_second_order_truth_is_recovered():
    """With many runs the fitted rows are the true ones, up to twice their largest standard error."""
    rows = order2_rows()
    found = walks(rows, np.array([1.0, 0, 0]), 3000, np.random.default_rng(9))
    fit = fitted("order2", runs=found, tasks=None)
    for previous, state in ((0, 0), (0, 1), (1, 1), (1, 2)):
        # The previous state of a step may be none: number 3.
        np.testing.assert_allclose(fit.model.rows[0, previous, state], rows[previous, state], atol=0.05)
