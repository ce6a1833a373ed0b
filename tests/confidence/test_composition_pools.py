"""Pools against the formula by hand, the discriminant analysis they stand for, and a published simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tracebridge.confidence.composition_pools import Pool, SharedDependence, fit_pool, shared_dependence
from tracebridge.confidence.confidence_quality import confidence_quality
from tracebridge.errors import UsageError


def gaussian_streams(
    n_questions: int, seed: int, *, n: int = 3, rho: float = 0.5, d2: float = 3.0, share: float = 0.6
) -> tuple[np.ndarray, np.ndarray]:
    """Supports whose logits are equally correlated normals with unit slope, so that each alone is calibrated."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n_questions) < share).astype(np.int8)
    noise = math.sqrt(rho) * rng.normal(size=(n_questions, 1)) + math.sqrt(1 - rho) * rng.normal(size=(n_questions, n))
    logits = math.sqrt(d2) * noise + np.where(y > 0, d2 / 2, -d2 / 2)[:, None] + logit(share)
    return np.clip(expit(logits), 1e-9, 1 - 1e-9), y


@pytest.mark.parametrize(
    ("rho", "weight", "pooled"),
    [(0.0, 1.0, 0.984615), (0.25, 0.6667, 0.941176), (0.5, 0.5, 0.888889), (1.0, 0.3333, 0.8)],
)
def test_three_streams_at_eight_tenths(rho: float, weight: float, pooled: float) -> None:
    pool = Pool(name="discount", base_rate=0.5, dependence=SharedDependence(rho=rho, n_fit=10))
    assert pool.weight(np.array(3)) == pytest.approx(weight, abs=5e-5)
    assert pool(np.array([0.8, 0.8, 0.8])) == pytest.approx(pooled, abs=5e-7)


def test_the_base_rate_is_counted_once() -> None:
    """Streams that say the base rate leave it as it is, whatever the weight."""
    for name in ("sum", "mean", "discount"):
        pool = Pool(name=name, base_rate=0.7, dependence=SharedDependence(rho=0.3, n_fit=10))
        assert pool(np.full((2, 4), 0.7)) == pytest.approx(0.7)
    pool = Pool(name="sum", base_rate=0.7, dependence=SharedDependence(rho=0.3, n_fit=10))
    assert logit(pool(np.array([0.9, 0.6]))) == pytest.approx(logit(0.9) + logit(0.6) - logit(0.7))


def test_correlated_streams_are_overconfident_in_sum_and_calibrated_when_discounted() -> None:
    """The published simulation, 4,000 questions; four Monte-Carlo errors are .011 (Brier), .016 (AUROC, AUARC, ECE)."""
    fit, evaluate = gaussian_streams(4_000, 0), gaussian_streams(4_000, 1)
    quality = {
        name: confidence_quality(fit_pool(name, *fit)(evaluate[0]), evaluate[1]) for name in ("sum", "mean", "discount")
    }
    assert fit_pool("discount", *fit).dependence.rho == pytest.approx(0.5, abs=0.04)
    for name, error, brier in (("sum", 0.071, 0.1053), ("discount", 0.011, 0.0972), ("mean", 0.055, 0.1009)):
        assert quality[name]["ECE"].value == pytest.approx(error, abs=0.016)
        assert quality[name]["Brier"].value == pytest.approx(brier, abs=0.011)
        assert quality[name]["AUROC"].value == pytest.approx(0.9372, abs=0.016)
        assert quality[name]["AUARC"].value == pytest.approx(0.8742, abs=0.016)
        assert quality[name]["AUROC"].value == pytest.approx(quality["sum"]["AUROC"].value, abs=1e-12)
        assert quality[name]["AUARC"].value == pytest.approx(quality["sum"]["AUARC"].value, abs=1e-12)
    assert quality["discount"]["Brier"].value < min(quality["sum"]["Brier"].value, quality["mean"]["Brier"].value)


def test_every_trained_pool_is_calibrated_on_streams_of_its_model() -> None:
    fit, evaluate = gaussian_streams(4_000, 2), gaussian_streams(4_000, 3)
    best = confidence_quality(fit_pool("discount", *fit)(evaluate[0]), evaluate[1])["Brier"].value
    for name in ("scale", "full", "logistic", "beta"):
        found = confidence_quality(fit_pool(name, *fit)(evaluate[0]), evaluate[1])
        assert found["Brier"].value == pytest.approx(best, abs=0.003), name
    assert fit_pool("scale", *fit).parameters[0] == pytest.approx(0.5, abs=0.05)


def test_the_dependence_is_a_mean_of_within_class_correlations() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(50, 3)) @ rng.normal(size=(3, 3)), np.arange(50) % 2
    centred = np.concatenate([X[y == c] - X[y == c].mean(axis=0) for c in (0, 1)])
    correlation = np.corrcoef(centred.T)
    expected = float(np.clip((correlation[0, 1] + correlation[0, 2] + correlation[1, 2]) / 3, 0, 1))
    assert shared_dependence(X, y).rho == pytest.approx(expected, abs=1e-12)


def test_the_diagonal_pool_is_discriminant_analysis_without_covariances() -> None:
    q, y = gaussian_streams(500, 5, rho=0.0)
    pool = fit_pool("diagonal", q, y)
    x = logit(q)
    variance = sum(((x[y == c] - x[y == c].mean(axis=0)) ** 2).sum(axis=0) for c in (0, 1)) / 498
    slopes = (x[y == 1].mean(axis=0) - x[y == 0].mean(axis=0)) / variance
    middle = (x[y == 1].mean(axis=0) + x[y == 0].mean(axis=0)) / 2
    assert logit(pool(q)) == pytest.approx((x - middle) @ slopes + logit(y.mean()), abs=1e-9)


def test_the_full_pool_is_discriminant_analysis_where_there_is_much_to_fit_to() -> None:
    q, y = gaussian_streams(20_000, 6)
    other = LinearDiscriminantAnalysis(solver="lsqr").fit(logit(q), y).predict_proba(logit(q[:100]))[:, 1]
    assert fit_pool("full", q, y)(q[:100]) == pytest.approx(other, abs=2e-3)


def test_absent_streams_leave_the_others() -> None:
    pool = Pool(name="discount", base_rate=0.5, dependence=SharedDependence(rho=0.25, n_fit=10))
    assert pool(np.array([0.8, math.nan, 0.7])) == pytest.approx(pool(np.array([0.8, 0.7])))
    assert math.isnan(pool(np.array([math.nan, math.nan])))
    assert math.isnan(fit_pool("full", *gaussian_streams(50, 7))(np.array([0.8, math.nan, 0.7])))


def test_a_single_stream_is_itself() -> None:
    q, y = gaussian_streams(60, 8, n=1)
    pool = fit_pool("discount", q, y)
    assert pool.dependence.rho == 0
    assert pool(q) == pytest.approx(q[:, 0])


@pytest.mark.parametrize(
    ("support", "correct", "why"),
    [
        (np.full((4, 2), 0.8), [1, 1, 0, 0], "do not vary within the classes"),
        (np.array([[0.8, 0.7], [0.6, 0.5], [0.3, 0.4]]), [1, 1, 0], "two of either kind"),
    ],
)
def test_without_a_dependence_the_mean_stands_in_and_says_so(support: np.ndarray, correct: list[int], why: str) -> None:
    pool = fit_pool("discount", support, np.array(correct), base_rate=0.5)
    assert pool.status == "replaced"
    assert why in pool.reason
    assert pool(np.array([0.8, 0.8])) == pytest.approx(0.8)
    assert pool.to_dict()["rho"] is None


def test_what_is_no_pool_is_refused() -> None:
    q, y = gaussian_streams(10, 9)
    for job in (
        lambda: fit_pool("geometric", q, y),
        lambda: fit_pool("sum", q, y[:5]),
        lambda: fit_pool("sum", np.ones((10, 3)), y),
        lambda: fit_pool("sum", q, y, base_rate=1.0),
    ):
        with pytest.raises(UsageError):
            job()
