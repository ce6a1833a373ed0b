from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from tests.chain.expanded.random_models import random_model

from tracebridge import check, fit_chain, read_traces
from tracebridge.agreement import compare
from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.errors import EngineError, FitError, UsageError
from tracebridge.inference.expanded.task_classes import (
    LARGEST_TILT,
    Endings,
    choose_classes,
    class_rates,
    class_reliabilities,
    pass_hat_k,
    pass_hat_k_property,
    task_counts,
    with_classes,
    without_classes,
)
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths

PLAIN = ["first-order", "order2", "dwell2+clock:0,3", "phases:3", "group:model+clock:0,1+phases:2:full"]


def chain_of(model):
    return ExpandedStructure.of_model(model).chain(model)


def trials(counts, *, path=("a",)) -> RunPaths:
    """Tasks given by their successes and trials; every run takes the same way."""
    runs, tasks = [], []
    for number, (successes, n) in enumerate(counts):
        runs += [(path, "success" if i < successes else "failure") for i in range(n)]
        tasks += [f"task {number:04d}"] * n
    return RunPaths.of_names(runs, tasks=tasks)


def drawn_trials(rates, weights, n_tasks: int, n: int, seed: int):
    draw = np.random.default_rng(seed)
    p = np.array(rates)[draw.choice(len(rates), p=weights, size=n_tasks)]
    return [(int(c), n) for c in draw.binomial(n, p)]


# ---------------------------------------------------------------- in the chain


@pytest.mark.parametrize("name", PLAIN)
def test_ends_are_those_of_the_chain_for_every_tilt(name):
    model = random_model(name, seed=3)
    ends = Endings.of(model)
    assert ends.at_once + ends.success.sum() + ends.failure.sum() + model.start[:, :, -1].sum() == pytest.approx(1)
    for tilt in (-3.0, 0.0, 1.5):
        tilted = replace(model, form=replace(model.form, classes=2), class_weights=[0.5, 0.5], class_tilts=[tilt, tilt])
        assert ends.reliability(tilt) == pytest.approx(long_run_reliability(chain_of(tilted)), rel=1e-12)


@pytest.mark.parametrize("name", PLAIN)
def test_each_class_has_its_pass_rate_and_runs_as_long_as_before(name):
    # no category of the model matters: rates are those of the trials, here 1 of 5 and 4 of 5
    model = random_model(name, seed=5)
    found = with_classes(model, trials([(1, 5)] * 30 + [(4, 5)] * 10), 2)
    weights, rates = class_rates(trials([(1, 5)] * 30 + [(4, 5)] * 10), 2)
    assert found.class_weights == pytest.approx(weights[0])
    assert class_reliabilities(found) == pytest.approx(rates[0], rel=1e-10)
    length = mean_time_to_absorption(chain_of(model)).overall
    assert mean_time_to_absorption(chain_of(found)).overall == pytest.approx(length, rel=1e-10)


def test_runs_that_hardly_end_are_refused():
    model = random_model("first-order", m=1)
    rows = np.array([[[[1 - 2e-30, 1e-30, 1e-30]]]])
    with pytest.raises(EngineError, match="too long to tell"):
        Endings.of(replace(model, rows=rows))


def test_classes_are_replaced_and_taken_away():
    model = random_model("clock:0,1+classes:3", seed=1)
    paths = trials([(0, 5), (1, 5), (1, 5), (5, 5), (3, 5)])
    assert with_classes(model, paths).form == model.form
    assert with_classes(model, paths, 2).form == parse_model("clock:0,1+classes:2")
    assert with_classes(model, paths, 1).form == without_classes(model).form == parse_model("clock:0,1")


def test_a_class_that_never_failed_keeps_the_edge_to_failure():
    found = with_classes(random_model("first-order"), trials([(0, 5)] * 9 + [(5, 5)] * 9), 2)
    assert found.class_tilts.tolist() == [-LARGEST_TILT, LARGEST_TILT]
    low, high = class_reliabilities(found)
    start = found.start[:, :, -2].sum()
    assert start < low < start + 1e-4
    assert 1 - found.start[:, :, -1].sum() - 1e-4 < high < 1
    structure = ExpandedStructure.of_model(found)
    assert structure.chain(found).transitions.nnz == structure.n_transitions


def test_too_few_trials_are_refused():
    model = random_model("first-order")
    with pytest.raises(FitError, match="3 completed trials or more, and the most that one has is 2"):
        with_classes(model, trials([(1, 2), (2, 2)]), 2)
    with pytest.raises(FitError, match="too few different tasks"):
        with_classes(model, trials([(2, 5), (2, 5)]), 2)
    with pytest.raises(UsageError, match="one class of tasks at least"):
        with_classes(model, trials([(1, 2)]), 0)


def test_counts_of_tasks():
    runs = [(("a",), "success"), (("a",), "failure"), (("a",), "censored"), ((), "success"), (("a",), "failure")]
    found = task_counts(RunPaths.of_names(runs, tasks=["x", "x", "x", "y", None]))
    assert (found.tasks, found.successes, found.trials) == (("x", "y"), (1, 1), (2, 1))
    assert (found.n_censored, found.n_without_task) == (1, 1)


# ---------------------------------------------------------------- the mixture


def test_samples_are_fitted_as_if_each_were_the_corpus():
    counts = drawn_trials([0.2, 0.9], [0.6, 0.4], 40, 5, seed=2)
    paths = trials(counts)
    times = np.random.default_rng(0).multinomial(40, np.full(40, 1 / 40), size=3)
    weights, rates = class_rates(paths, 2, times.astype(float))
    for i, sample in enumerate(times):
        again = trials([pair for pair, number in zip(counts, sample, strict=True) for _ in range(number)])
        expected = class_rates(again, 2)
        assert weights[i] == pytest.approx(expected[0][0], abs=2e-3)  # replicates stop at a coarser gain
        assert rates[i] == pytest.approx(expected[1][0], abs=2e-3)


def test_a_sample_without_a_counted_task_has_the_classes_of_all():
    paths = trials([(0, 3), (1, 3), (3, 3), (3, 3)])
    weights, rates = class_rates(paths, 2, np.array([[0.0] * 4, [1.0] * 4]))
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(rates[0], rates[1])


@pytest.mark.parametrize(("rates", "classes"), [([0.5, 0.5], 1), ([0.2, 0.8], 2)])
def test_classes_are_chosen_where_tasks_differ(rates, classes):
    paths = trials(drawn_trials(rates, [0.5, 0.5], 100, 6, seed=4))
    choice = choose_classes(paths, most=2)
    assert choice.classes == classes
    assert (choice.gains[0] > choice.errors[0]) == (classes == 2)


def test_classes_that_trials_cannot_tell_apart_are_not_tried():
    assert choose_classes(trials([(1, 2), (2, 2), (0, 2)] * 5)).classes == 1
    assert choose_classes(trials([(1, 3)])).classes == 1
    with pytest.raises(UsageError, match="two folds"):
        choose_classes(trials([(1, 3)]), folds=1)


# ---------------------------------------------------------------- pass^k


def test_pass_hat_k_of_a_known_truth():
    """300 tasks of two kinds, six trials each: pass^6 is known, and R^6 is far from it."""
    rates, weights = [0.3, 0.95], [0.6, 0.4]
    paths = trials(drawn_trials(rates, weights, 300, 6, seed=7), path=("a", "b"))
    model = with_classes(estimate(paths, ModelForm()), paths, 2)
    p6 = np.array(rates) ** 6
    truth = float(np.dot(weights, p6))
    # the standard error of pass^6 over 300 tasks, from the moments of p^6 and one binomial trial of it
    error = np.sqrt(truth * (1 - truth) / 300)
    assert abs(pass_hat_k(model, 6) - truth) < 3 * error
    alone = pass_hat_k(without_classes(model), 6)
    assert alone == pytest.approx(np.dot(weights, rates) ** 6, abs=0.02)
    assert truth - alone > 5 * error


@pytest.mark.parametrize("d", [None, 0, 1, 4])
@pytest.mark.parametrize("name", ["classes:2", "group:model+order2+clock:0,1+phases:2+classes:2"])
def test_the_property_says_the_same(name, d):
    model = random_model(name, seed=8)
    with_ends = pass_hat_k(model, 3, d)
    (found,) = check(chain_of(model), pass_hat_k_property(model, 3, d) + ";", engines=["closed-form"])
    assert with_ends == pytest.approx(float(found.value.value), rel=1e-10)
    start = np.array(model.start)
    start[:, :, -2:] = 0
    without = replace(model, start=start / start.sum())
    (found,) = check(chain_of(without), pass_hat_k_property(without, 3, d) + ";", engines=["closed-form"])
    assert pass_hat_k(without, 3, d) == pytest.approx(float(found.value.value), rel=1e-10, abs=1e-300)


def test_the_property_of_one_class_is_a_power():
    model = random_model("clock:0,2", seed=2)
    assert pass_hat_k_property(model, 4) == 'pow(P=? [ F "success" ], 4)'
    assert pass_hat_k(model, 4, 3) == pytest.approx(reliability(chain_of(model), 3) ** 4)
    with pytest.raises(UsageError, match="one or more"):
        pass_hat_k_property(model, 0)


@pytest.mark.storm
@pytest.mark.parametrize("empty_runs", [False, True])
def test_both_engines_agree_on_pass_hat_k(empty_runs):
    model = random_model("clock:0,1+classes:2", seed=9)
    if not empty_runs:
        start = np.array(model.start)
        start[:, :, -2:] = 0
        model = replace(model, start=start / start.sum())
    text = "\n".join(f'"pass {k} {d}": {pass_hat_k_property(model, k, d)};' for k, d in product((1, 4), (None, 3)))
    agreements = compare(check(chain_of(model), text))
    for agreement, (k, d) in zip(agreements, product((1, 4), (None, 3)), strict=True):
        assert agreement.agree
        assert len(agreement.results) == 2
        for result in agreement.results:
            assert float(result.value.value) == pytest.approx(pass_hat_k(model, k, d), rel=1e-9)


# ---------------------------------------------------------------- tau-bench


@pytest.fixture(scope="module")
def airline(shared_data) -> RunPaths:
    traces = list(read_traces(shared_data / "traces" / "tau_bench" / "gpt-4o-airline.json"))
    return RunPaths.of_traces(fit_chain(traces, top=8).abstraction, traces)


def maximised_mixture(c, n) -> float:
    """pass^4 of the two-class mixture of greatest likelihood, found by a general optimiser from many starts."""

    def loss(x):
        w, p, q = expit(x)
        return -np.log(w * p**c * (1 - p) ** (n - c) + (1 - w) * q**c * (1 - q) ** (n - c)).sum()

    starts = np.random.default_rng(0).normal(size=(12, 3))
    best = min((minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6}) for start in starts), key=_fun)
    w, p, q = expit(best.x)
    return w * p**4 + (1 - w) * q**4


def _fun(result):
    return result.fun


@pytest.mark.shared_data
def test_pass_hat_4_of_tau_bench(airline):
    assert choose_classes(airline).classes == 2
    plain = estimate(airline, ModelForm())
    counts = task_counts(airline)
    found = pass_hat_k(with_classes(plain, airline, 2), 4)
    assert found == pytest.approx(maximised_mixture(np.array(counts.successes), np.array(counts.trials)), abs=1e-3)
    assert found == pytest.approx(0.2, abs=0.02)  # ten of fifty tasks passed four times, and one class says .035
    assert pass_hat_k(plain, 4) == pytest.approx(0.035, abs=0.002)


@pytest.mark.shared_data
def test_held_out_tasks_are_foretold_as_well_as_other_tasks_do(airline):
    """Half of the tasks against the other half, six splits: root of the mean squared error of pass^4."""
    tasks = len(airline.task_names)
    errors = {"classes": [], "tasks": [], "one class": []}
    passed = np.zeros(tasks)
    np.add.at(passed, airline.tasks, airline.outcomes == 0)
    for seed in range(6):
        first = np.isin(np.arange(tasks), np.random.default_rng(seed).permutation(tasks)[: tasks // 2])
        train = airline.take(np.flatnonzero(first[airline.tasks]))
        truth = (passed[~first] == 4).mean()
        plain = estimate(train, ModelForm())
        errors["classes"].append(pass_hat_k(with_classes(plain, train, 2), 4) - truth)
        errors["one class"].append(pass_hat_k(plain, 4) - truth)
        errors["tasks"].append((passed[first] == 4).mean() - truth)
    found = {name: float(np.sqrt(np.mean(np.square(each)))) for name, each in errors.items()}
    assert found["classes"] <= 1.1 * found["tasks"]
    assert found["one class"] > 1.5 * found["classes"]
