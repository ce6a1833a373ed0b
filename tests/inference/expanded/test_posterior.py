"""Draws behind fits of every form, and the intervals that rest on them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.inference.expanded.test_resampling import corpus

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.errors import UsageError
from tracebridge.inference.expanded import posterior as expanded_posterior
from tracebridge.inference.expanded.fitting import fit_model
from tracebridge.inference.expanded.posterior import MOST_RESAMPLES, ExpandedPosterior, FitDraws
from tracebridge.inference.expanded.task_classes import pass_hat_k, pass_hat_k_property
from tracebridge.inference.figure_uncertainty import figure_uncertainty
from tracebridge.inference.second_opinion import second_opinions
from tracebridge.inference.uncertainty import property_uncertainty
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths

ASKED = 'P=? [ F "success" ]; P=? [ F<=3 "success" ]; R{"steps"}=? [ F "absorbed" ]'


def fitted(name: str, *, truth: str = "order2", n: int = 120, tasks: int | None = None) -> ExpandedFit:
    paths = corpus(truth, n=n, tasks=tasks)
    names = paths.states
    runs = [
        (tuple(names[c] for c in paths.codes[a:b]), ("success", "failure")[outcome])
        for a, b, outcome in zip(paths.offsets, paths.offsets[1:], paths.outcomes, strict=False)
    ]
    return fit_model(fit_counts(TransitionCounts.from_paths(runs)), paths, parse_model(name), kappa=1.0)


def test_without_memory_intervals_are_those_of_the_first_order_posterior():
    fit = fitted("first-order")
    ours = property_uncertainty(fit, ASKED, draws=4_000)
    theirs = property_uncertainty(fit.base, ASKED, draws=4_000, seed=1)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.draws == 4_000
        assert mine.point == pytest.approx(other.point)
        for end in ("lower", "upper"):
            errors = np.hypot(max(mine.quantile_errors), max(other.quantile_errors))
            assert abs(getattr(mine.interval, end) - getattr(other.interval, end)) < 5 * errors


@pytest.mark.parametrize("name", ["order2+clock:0,2", "phases:2", "clock:0,1+classes:2"])
def test_the_first_draws_are_the_same_however_many_are_asked_for(name):
    fit = fitted(name, tasks=24)
    source = ExpandedPosterior.of_fit(fit)
    few, many = (list(source.draws(number, 7)) for number in (3, source.source.at_a_time + 2))
    assert [stack.draws for stack in few] == [3]
    assert [stack.draws for stack in many] == [source.source.at_a_time, 2]
    assert np.array_equal(few[0].entries, many[0].entries[:, :3])
    assert np.array_equal(few[0].initial, many[0].initial[:, :3])
    for stack in many:
        drawn = stack.chain_at(0)  # its constructor refuses rows that are no distributions
        assert np.array_equal(drawn.transitions.indices, fit.chain.transitions.indices)
    assert not np.array_equal(next(source.draws(1, 8)).entries, few[0].entries[:, :1])
    with pytest.raises(UsageError, match="at least one draw"):
        next(source.draws(0, 1))


@pytest.mark.parametrize(
    ("name", "tasks", "method"),
    [
        ("order2", 24, "Bayesian bootstrap of transitions, equal-tailed"),
        ("phases:2", 24, "task bootstrap, refitted, equal-tailed"),
        ("phases:2", None, "trace bootstrap, refitted, equal-tailed"),
        ("order2+classes:2", 24, "task bootstrap, refitted, equal-tailed"),
    ],
)
def test_the_method_is_named_and_the_estimate_lies_within(name, tasks, method):
    for found in property_uncertainty(fitted(name, tasks=tasks), ASKED, draws=300):
        assert found.interval.method == method
        assert found.interval.lower < found.point < found.interval.upper
        assert found.draws == (300 if "Bayesian" in method else MOST_RESAMPLES)
        assert any("200 draws and not 300: each is a refit" in note for note in found.notes) == ("refitted" in method)


def test_large_chains_are_drawn_less_often(monkeypatch):
    fit = fitted("order2+clock:0,2")
    monkeypatch.setattr(expanded_posterior, "_MOST_TRANSITIONS", 10)
    monkeypatch.setattr(expanded_posterior, "FEWEST_DRAWS", 20)
    (found,) = property_uncertainty(fit, 'P>=0.5 [ F "success" ]', draws=50)
    assert found.draws == 20
    assert found.notes[-1] == f"20 draws and not 50: the chain has {fit.chain.n_states} states"


def test_pass_hat_k_has_an_interval_of_resampled_tasks():
    fit = fitted("order2+classes:2", tasks=24)
    (found,) = property_uncertainty(fit, pass_hat_k_property(fit.model, 4))
    assert found.point == pytest.approx(pass_hat_k(fit.model, 4))
    assert found.interval.lower < found.point < found.interval.upper
    assert found.interval.method.startswith("task bootstrap")


@pytest.mark.parametrize(
    ("name", "tasks", "methods"),
    [
        ("order2", None, ["trace bootstrap, refitted, percentile"]),
        ("order2", 24, ["trace bootstrap, refitted, percentile", "task bootstrap, refitted, percentile"]),
        ("phases:2", 24, ["trace bootstrap, refitted, percentile"]),
        ("phases:2", None, []),
        ("order2+classes:2", 24, []),
    ],
)
def test_second_opinions_are_by_other_methods(name, tasks, methods):
    fit = fitted(name, tasks=tasks)
    reach, within, steps = second_opinions(fit, ASKED, resamples=40)
    assert [each.method for each in reach.intervals] == [*methods, "Wilson score"]
    assert [each.method for each in within.intervals] == methods
    assert [each.method for each in steps.intervals] == methods


def test_every_headline_number_has_an_interval():
    fit = fitted("order2+clock:0,2")
    found = figure_uncertainty(fit, [2, 5], draws=60, resamples=20, horizon_gap=Fraction(1, 100))
    assert set(found) == {"R_inf", "MTTA", "steps_per_failure", "R(2)", "R(5)", "horizon", "median", "deviation"}
    for each in found.values():
        assert each.posterior is not None
        assert each.posterior.method.startswith("Bayesian bootstrap of transitions")


def test_a_fit_without_its_runs_has_no_draws():
    fit = fitted("order2")
    with pytest.raises(UsageError, match="fit the model to the traces again"):
        FitDraws.of_fit(replace(fit, paths=None))


def test_the_structure_is_that_of_the_chain():
    fit = fitted("order2+phases:2", n=60)
    source = ExpandedPosterior.of_fit(fit)
    assert source.structure.n_transitions == ExpandedStructure.of_model(fit.model).n_transitions
    assert source.chain is fit.chain


@pytest.mark.parametrize("name", ["group:model+order2", "group:model+phases:2"])
def test_groups_are_drawn_apart(name):
    """Runs of one group succeed far more often; their start and rows are their own in every draw."""
    draw = np.random.default_rng(0)
    runs, groups = [], []
    for i in range(80):
        good = i % 2 == 0
        path = ("a",) * int(draw.integers(1, 4)) + ("b",) * int(draw.integers(1, 3))
        runs.append((path, "success" if draw.random() < (0.9 if good else 0.2) else "failure"))
        groups.append("good" if good else "poor")
    base = fit_counts(TransitionCounts.from_paths(runs))
    fit = fit_model(base, RunPaths.of_names(runs, groups=groups), parse_model(name), kappa=1.0)
    rates = 'filter(avg, P=? [ F "success" ], init & group=0) - filter(avg, P=? [ F "success" ], init & group=1)'
    (found,) = property_uncertainty(fit, rates.replace("init", '"init"'), draws=100)
    assert 0.4 < found.interval.lower < found.point < found.interval.upper < 0.95
