"""Each calibrator against an optimum found another way, and its limits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit
from sklearn.isotonic import IsotonicRegression

from tracebridge.confidence.calibrators import DEFAULT_CLIP, Calibrator, fit_calibrator
from tracebridge.confidence.logistic import logistic_fit
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import UsageError

PAIRS = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=4, max_size=60)


def overconfident(n: int = 400, seed: int = 0) -> RatedAnswers:
    """Answers whose logits are 2.5 times what they should be."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0.3, 1.0, n)
    return RatedAnswers.of(expit(2.5 * logits), rng.random(n) < expit(logits))


@given(PAIRS)
@settings(max_examples=50)
def test_the_temperature_minimises_the_log_loss(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = zip(*pairs, strict=True)
    answers = RatedAnswers.of(np.array(scores) / 100, np.array(labels))
    fitted = fit_calibrator("temperature", answers)
    if answers.one_class:
        assert fitted.status == "undefined"
        assert np.array_equal(fitted(answers.confidence), answers.confidence)
        return
    logits = logit(np.clip(answers.confidence, DEFAULT_CLIP, 1 - DEFAULT_CLIP))

    def loss(log_temperature: float) -> float:
        eta = logits / math.exp(log_temperature)
        return float(np.mean(np.logaddexp(0, eta) - answers.correct * eta))

    other = minimize_scalar(loss, bounds=(math.log(0.05), math.log(50)), method="bounded", options={"xatol": 1e-9})
    assert loss(math.log(fitted.parameters[0])) <= other.fun + 1e-9
    assert (fitted.status == "at bound") == (fitted.parameters[0] in (0.05, 50.0))


def test_overconfident_answers_are_cooled() -> None:
    """T within four of its standard errors, about .2 here, of 2.5."""
    fitted = fit_calibrator("temperature", overconfident(4_000), clip=1e-6)
    assert fitted.status == "ok"
    assert fitted.parameters[0] == pytest.approx(2.5, abs=0.5)


def test_a_temperature_divides_the_logit() -> None:
    """The published temperature and mean confidence: sigmoid(logit(.79) / 4.35) = .5756."""
    assert Calibrator(name="temperature", parameters=(4.35,))(np.array([0.79])) == pytest.approx(0.575562, abs=5e-7)


def test_answers_without_information_reach_the_bound() -> None:
    fitted = fit_calibrator("temperature", RatedAnswers.of([0.9, 0.9, 0.1, 0.1], [1, 0, 1, 0]))
    assert (fitted.status, fitted.parameters) == ("at bound", (50.0,))


@given(PAIRS)
@settings(max_examples=50)
def test_isotonic_is_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    scores, labels = zip(*pairs, strict=True)
    answers = RatedAnswers.of(np.array(scores) / 100, np.array(labels))
    if answers.one_class:
        return
    other = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(answers.confidence, answers.correct)
    fitted = fit_calibrator("isotonic", answers)
    everywhere = np.linspace(0, 1, 301)
    assert fitted(everywhere) == pytest.approx(other.predict(everywhere), abs=1e-9)
    assert fitted(answers.confidence).mean() == pytest.approx(answers.correct.mean())


@pytest.mark.parametrize("name", ["platt", "beta"])
def test_parametric_maps_minimise_the_loss_of_platts_targets(name: str) -> None:
    answers = overconfident()
    fitted = fit_calibrator(name, answers)
    p = np.clip(answers.confidence, DEFAULT_CLIP, 1 - DEFAULT_CLIP)
    n1 = answers.correct.sum()
    targets = np.where(answers.correct > 0, (n1 + 1) / (n1 + 2), 1 / (answers.n - n1 + 2))
    columns = [logit(p)] if name == "platt" else [np.log(p), -np.log1p(-p)]
    X = np.column_stack([*columns, np.ones(len(p))])

    def loss(beta: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0, X @ beta) - targets * (X @ beta)))

    bounds = [(0, None)] * len(columns) + [(None, None)]
    other = minimize(loss, np.zeros(X.shape[1]), bounds=bounds, method="L-BFGS-B")
    assert fitted.parameters == pytest.approx(other.x, abs=2e-3)
    assert loss(np.array(fitted.parameters)) <= other.fun + 1e-12


def test_a_beta_map_never_decreases() -> None:
    """Answers that are the likelier correct the less confident: what would decrease is left out."""
    confidence = np.linspace(0.02, 0.98, 200)
    fitted = fit_calibrator("beta", RatedAnswers.of(confidence, np.random.default_rng(0).random(200) > confidence))
    assert min(fitted.parameters[:2]) >= 0
    assert (np.diff(fitted(confidence)) >= -1e-12).all()


def test_separable_answers_keep_a_finite_platt_map() -> None:
    fitted = fit_calibrator("platt", RatedAnswers.of([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1]))
    assert np.isfinite(fitted.parameters).all()
    assert fitted.parameters[0] > 0


def test_certainty_is_mapped_to_a_finite_logit() -> None:
    fitted = fit_calibrator("temperature", overconfident())
    assert 0 < fitted(np.array([0.0]))[0] < fitted(np.array([1.0]))[0] < 1
    assert math.isnan(fitted(np.array([math.nan]))[0])


def test_a_penalised_regression_minimises_its_loss() -> None:
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(60, 3)), np.ones(60)])
    targets = (rng.random(60) < 0.5).astype(float)
    penalty = np.array([0.3, 0.3, 0.3, 0.0])
    beta, converged = logistic_fit(X, targets, penalty=penalty)

    def loss(b: np.ndarray) -> float:
        return float(np.mean(np.logaddexp(0, X @ b) - targets * (X @ b)) + (penalty * b**2).sum() / 2)

    assert converged
    assert beta == pytest.approx(minimize(loss, np.zeros(4), tol=1e-12).x, abs=1e-5)


def test_unknown_calibrators_and_clips_are_refused() -> None:
    for name, clip in (("histogram", 0.01), ("platt", 0.0), ("platt", 0.5)):
        with pytest.raises(UsageError):
            fit_calibrator(name, overconfident(), clip=clip)
