"""Scores on held-out runs, against loops over runs, and what is chosen by them."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.chain.expanded.corpora import as_paths, forms, runs, walks

from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.forward import log_likelihood
from tracebridge.errors import FitError, ModelError, NothingToCheckError, UsageError
from tracebridge.inference.expanded.cross_validation import HeldOutScore, choose_model, cross_validate, folds_of
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths


@settings(max_examples=25)
@given(runs, forms, st.floats(0.2, 20), st.integers(0, 5))
def test_scores_are_those_of_a_loop_over_runs(drawn, form, kappa, seed):
    assume(len(drawn) >= 2 and all(path for path, *_ in drawn))
    paths = as_paths(drawn)
    folds = folds_of(paths, 2, seed)
    (score,) = cross_validate(paths, form, [kappa], n_folds=2, seed=seed)
    for fold in range(2):
        model = estimate(paths.take(np.flatnonzero(folds != fold)), form, kappa)
        for run in np.flatnonzero(folds == fold):
            alone = paths.take(np.array([run]))
            contexts = model.space.of_paths(alone.codes, alone.offsets, alone.groups)
            seen = zip(contexts, alone.codes, alone.following, strict=True)
            # What is numbered 5 was not seen, but for it being none of the two ends.
            expected = sum(log(model.rows[0, g, c, x] if x < 5 else model.rows[0, g, c, :3].sum()) for g, c, x in seen)
            assert score.log_likelihoods[run] == pytest.approx(expected, abs=1e-9)
            assert log_likelihood(model, alone, given_first=True)[0] == pytest.approx(expected, abs=1e-9)


def test_tasks_are_held_out_whole():
    tasks = [f"t{i % 7}" if i % 5 else None for i in range(40)]
    paths = RunPaths.of_names([(["a"], "success")] * 40, tasks=tasks)
    folds = folds_of(paths, 3, seed=1)
    for task in {*tasks} - {None}:
        assert len({folds[i] for i in range(40) if tasks[i] == task}) == 1
    blocks = [len({paths.blocks[i] for i in np.flatnonzero(folds == fold)}) for fold in range(3)]
    assert sorted(blocks) == [5, 5, 5]  # 7 tasks and 8 runs without one
    np.testing.assert_array_equal(folds, folds_of(paths, 3, seed=1))
    assert (folds != folds_of(paths, 3, seed=2)).any()
    with pytest.raises(NothingToCheckError, match="2 tasks or runs cannot be held out in 3 folds"):
        folds_of(paths.take(np.array([1, 1, 6])), 3)
    with pytest.raises(UsageError, match="two folds"):
        folds_of(paths, 1)


def scored(values: np.ndarray, blocks: np.ndarray) -> HeldOutScore:
    return HeldOutScore(form=ModelForm(), kappa=1.0, log_likelihoods=values, timings=2 * values, blocks=blocks)


def test_standard_errors_are_over_blocks():
    rng = np.random.default_rng(5)
    values, alone = rng.normal(size=12), np.arange(12)
    score = scored(values, alone)
    assert score.standard_error == pytest.approx(values.std(ddof=1) / sqrt(12))
    # Each run four times over is no more information.
    copies = scored(np.repeat(values, 4), np.repeat(alone, 4))
    assert copies.standard_error == pytest.approx(score.standard_error)
    assert copies.mean == pytest.approx(values.mean())
    shifted = scored(values + 2, alone)
    assert shifted.gain_over(score) == (pytest.approx(2), pytest.approx(0, abs=1e-12))
    assert shifted.gain_over(score, "timing") == (pytest.approx(4), pytest.approx(0, abs=1e-12))
    with pytest.raises(ModelError, match="other runs"):
        copies.gain_over(score)


def order2_rows() -> np.ndarray:
    """After a stay the run moves on, after a change it stays: nothing that one step back alone could tell."""
    rows = np.full((4, 3, 5), 0.05)
    for previous in range(4):
        for state in range(3):
            following = (state + 1) % 3 if previous == state else state
            rows[previous, state, following] = 0.75
            rows[previous, state, 3:] = 0.1 if state else 0.05
    return rows / rows.sum(axis=-1, keepdims=True)


def test_the_order_of_the_truth_is_found():
    rng = np.random.default_rng(3)
    paths = RunPaths.of_names(walks(order2_rows(), np.array([1, 0, 0]), 300, rng))
    scores = {name: cross_validate(paths, parse_model(name))[0] for name in ("first-order", "order2", "clock:log")}
    for other in ("first-order", "clock:log"):
        gain, error = scores["order2"].gain_over(scores[other])
        assert gain > 5 * error
    # With 300 runs and a strong effect rows of their own do better than rows that are shrunk hard.
    assert choose_model(paths, parse_model("order2")).kappa < 64


def test_a_first_order_truth_wants_hard_shrinkage():
    rng = np.random.default_rng(4)
    rows = np.broadcast_to(rng.dirichlet(np.ones(5), size=3), (4, 3, 5))
    paths = RunPaths.of_names(walks(rows, np.array([0.5, 0.5, 0]), 150, rng))
    choice = choose_model(paths, parse_model("order2+clock:0,1,2,3"))
    assert choice.kappa == 64
    first = choose_model(paths, ModelForm())
    assert (first.kappa, len(first.tried)) == (1.0, 1)


def clocked(n: int, rng: np.random.Generator, hazards: list[float]) -> list:
    """Runs of one state that end at step i with these probabilities; the last one is kept."""
    found = []
    for _ in range(n):
        length = next((i for i, hazard in enumerate(hazards, start=1) if rng.random() < hazard), len(hazards))
        found.append((["a"] * length, "success" if rng.random() < 0.7 else "failure"))
    return found


def test_the_family_of_the_clock_is_found():
    """Odd and even steps differ: only a clock that tells all of them apart sees that."""
    paths = RunPaths.of_names(clocked(400, np.random.default_rng(6), [0.02, 0.5] * 8))
    choice = choose_model(paths, parse_model("clock"), seed=1)
    assert choice.score.form.clock == "unrolled"
    assert {score.form.clock for score in choice.tried} == {"log", "quantiles", "steps", "unrolled"}
    for family in ("log", "quantiles", "steps"):
        best = max((score for score in choice.tried if score.form.clock == family), key=lambda score: score.mean)
        gain, error = choice.score.gain_over(best)
        assert gain > 2 * error
    assert choice.form.bins == tuple(range(len(choice.form.bins)))


def test_the_bound_on_unrolled_clocks_is_that_of_all_runs():
    """Of 19 runs of 20 steps and 2 of 21, a fold leaves 12 and 2, of which 90 % have up to 21 steps: 1,050 states."""
    states = [f"s{i:02}" for i in range(50)]
    lengths = [20] * 19 + [21] * 2
    paths = RunPaths.of_names([(["s00"] * length, "success") for length in lengths], states=states)
    (score,) = cross_validate(paths, parse_model("clock:unrolled"))
    assert np.isfinite(score.mean)
    paths = RunPaths.of_names([(["s00"] * 21, "success")] * 3, states=states)
    with pytest.raises(FitError, match="21 steps of 50 states"):
        cross_validate(paths, parse_model("clock:unrolled"))


def test_phases_are_scored_given_the_first_step():
    paths = RunPaths.of_names(clocked(60, np.random.default_rng(8), [0.01] * 4 + [0.6] * 6))
    form = parse_model("phases:3")
    phased, stronger = cross_validate(paths, form, [1.0, 4.0])
    (plain,) = cross_validate(paths, ModelForm())
    assert np.isfinite(phased.log_likelihoods).all()
    gain, error = phased.gain_over(plain)
    assert gain > 2 * error
    assert not np.array_equal(phased.log_likelihoods, stronger.log_likelihoods)


def test_a_clock_that_is_to_be_chosen_has_no_score():
    with pytest.raises(UsageError, match="choose_model"):
        cross_validate(RunPaths.of_names([(["a"], "success")] * 3), parse_model("clock"))
    with pytest.raises(NothingToCheckError, match="no clock"):
        choose_model(RunPaths.of_names([([], "success")] * 3), parse_model("clock"))
