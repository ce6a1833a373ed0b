"""Cluster-robust logistic regression: an own sandwich, separation, guards, and the test for few clusters."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from tracebridge.confidence.cluster_logit import Coefficient, fit_cluster_logit
from tracebridge.confidence.cluster_score_test import score_test_p_values
from tracebridge.confidence.regression_design import MAX_LEVELS, RegressionDesign, indicators, regression_design


def sample(n: int = 400, clusters: int = 40, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, clusters, n)
    a, b = rng.normal(size=n) + rng.normal(size=clusters)[cluster], rng.uniform(size=n)
    y = (rng.uniform(size=n) < expit(0.8 * a - 0.5 + rng.normal(size=clusters)[cluster])).astype(float)
    return {"y": y, "a": a, "b": b, "cluster": cluster}


def design_of(data: dict[str, np.ndarray], **options: object) -> RegressionDesign:
    columns = {name: data[name] for name in data if name not in ("y", "cluster")}
    return regression_design(
        "m", "passed", "rows", y=data["y"], columns=columns, cluster=data["cluster"], **options  # type: ignore[arg-type]
    )  # fmt: skip


def test_against_an_own_fit_and_an_own_sandwich() -> None:
    data = sample()
    fit = fit_cluster_logit(design_of(data))
    X, y, cluster = np.column_stack([np.ones(400), data["a"], data["b"]]), data["y"], data["cluster"]

    def loss(beta: np.ndarray) -> float:
        return float(np.logaddexp(0, X @ beta).sum() - y @ X @ beta)

    beta = minimize(loss, np.zeros(3), jac=lambda beta: X.T @ (expit(X @ beta) - y), method="BFGS", tol=1e-10).x
    p = expit(X @ beta)
    bread = np.linalg.inv(X.T @ ((p * (1 - p))[:, None] * X))
    meat = np.zeros((3, 3))
    for g in np.unique(cluster):
        score = (X * (y - p)[:, None])[cluster == g].sum(axis=0)
        meat += np.outer(score, score)
    G = len(np.unique(cluster))
    covariance = G / (G - 1) * 399 / 397 * bread @ meat @ bread
    assert [c.estimate for c in fit.coefficients] == pytest.approx(beta, abs=1e-6)
    assert [c.standard_error for c in fit.coefficients] == pytest.approx(np.sqrt(np.diag(covariance)), abs=1e-6)
    slope = fit["a"]
    assert (slope.upper - slope.lower) / slope.standard_error / 2 == pytest.approx(1.959964, abs=1e-6)
    assert slope.p_value == pytest.approx(math.erfc(abs(slope.z) / math.sqrt(2)))
    assert fit.log_likelihood == pytest.approx(-loss(beta), abs=1e-8)
    share = y.mean()
    null = 400 * (share * math.log(share) + (1 - share) * math.log(1 - share))
    assert fit.mcfadden == pytest.approx(1 - fit.log_likelihood / null)
    assert (fit.n, fit.n_clusters, fit.estimator, fit.separated) == (400, G, "maximum likelihood", False)
    r2 = np.corrcoef(data["a"], data["b"])[0, 1] ** 2
    assert slope.variance_inflation == pytest.approx(1 / (1 - r2))
    assert fit.to_dict()["coefficients"][1]["odds_ratio"] == pytest.approx(math.exp(slope.estimate))


def test_separated_rows_are_fitted_by_firth_and_flagged() -> None:
    """With one 0/1 column Firth's estimates are log odds of the counts with 1/2 added to each cell."""
    x = np.repeat([0.0, 1.0], [40, 40])
    y = np.where(x == 1, 1.0, np.arange(80) % 2)  # 20 of 40, and all of 40
    fit = fit_cluster_logit(design_of({"y": y, "x": x, "cluster": np.arange(80)}))
    assert fit.separated
    assert fit.estimator == "Firth"
    assert any("separate" in remark for remark in fit.remarks)
    assert fit["intercept"].estimate == pytest.approx(math.log(20.5 / 20.5), abs=1e-7)
    assert fit["x"].estimate == pytest.approx(math.log(40.5 / 0.5), abs=1e-6)
    assert math.isfinite(fit["x"].standard_error)


def test_perfect_separation_too() -> None:
    x = np.linspace(-1, 1, 60)
    fit = fit_cluster_logit(design_of({"y": (x > 0).astype(float), "x": x, "cluster": np.arange(60)}))
    assert fit.separated
    assert 0 < fit["x"].estimate < 100


def test_columns_that_say_nothing_are_dropped_with_a_reason() -> None:
    data = sample()
    n = len(data["y"])
    design = design_of(
        {**data, "one": np.ones(n), "sum": data["a"] + 2 * data["b"] + 3, "never": np.full(n, np.nan)},
        products=[("a", "b"), ("a", "never")],
    )
    assert design.columns == ("a", "b", "a:b")
    assert dict(design.dropped) == {
        "never": "it is not known for any row",
        "a:never": "one of its factors is dropped",
        "one": "it is constant",
        "sum": "it follows from the columns before it",
    }
    assert fit_cluster_logit(design).status == "ok"


def test_rows_with_an_unknown_value_are_left_out_before_columns_are_standardised() -> None:
    data = sample()
    data["a"][:10] = np.nan
    design = design_of(data, standardised=["a"], n_left_out=5)
    assert (len(design.y), design.n_left_out) == (390, 15)
    assert design.X[:, 0].mean() == pytest.approx(0, abs=1e-12)
    assert design.X[:, 0].std() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"y": np.ones(400)}, "passed is 1 for all 400"),
        ({"cluster": np.zeros(400, dtype=int)}, "one cluster"),
        ({"a": np.ones(400), "b": np.ones(400)}, "no column is left: a: it is constant"),
    ],
)
def test_what_cannot_be_fitted_is_undefined_with_the_reason(change: dict[str, np.ndarray], reason: str) -> None:
    fit = fit_cluster_logit(design_of({**sample(), **change}))
    assert fit.status == "undefined"
    assert reason in fit.reason
    assert math.isnan(fit.mcfadden)


def test_no_rows_and_too_few_rows() -> None:
    data = sample()
    assert "no rows" in fit_cluster_logit(design_of({name: column[:0] for name, column in data.items()})).reason
    few = {name: column[np.argsort(data["y"])][[0, 1, -1]] for name, column in data.items()}
    assert "too few" in fit_cluster_logit(design_of(few)).reason


def test_clusters_that_are_alike_have_no_standard_error_to_speak_of() -> None:
    data = sample(n=60)
    twice = {name: np.concatenate([column, column]) for name, column in data.items()}
    fit = fit_cluster_logit(design_of({**twice, "cluster": np.repeat([0, 1], 60)}))
    assert not fit.separated
    assert all(coefficient.standard_error < 1e-8 for coefficient in fit.coefficients)


def test_few_clusters_get_the_score_test() -> None:
    fit = fit_cluster_logit(design_of(sample(clusters=8)))
    assert any("8 clusters" in remark for remark in fit.remarks)
    assert all(0 < coefficient.few_clusters_p <= 1 for coefficient in fit.coefficients)
    assert math.isnan(fit_cluster_logit(design_of(sample()))["a"].few_clusters_p)


def test_the_score_test_is_exact_over_all_signs() -> None:
    """An intercept alone, and clusters of one row: the score is y - 1/2, and its sign patterns are a binomial."""
    y = np.array([1.0] * 7 + [0.0] * 1)
    (p,) = score_test_p_values(np.ones((8, 1)), y, np.arange(8))
    assert p == pytest.approx(2 * (8 + 1) / 2**8)
    y = np.repeat([1.0, 0.0], [20, 4])
    (p,) = score_test_p_values(np.ones((24, 1)), y, np.arange(24), seed=3)
    exact = 2 * sum(math.comb(24, j) for j in range(5)) / 2**24
    assert abs(p - exact) < 5 * math.sqrt(exact / 10_000) + 1e-4  # five standard errors of 9,999 flips


def test_odds_ratios_are_printed_with_three_digits_and_do_not_overflow() -> None:
    base = {"standard_error": 1.0, "z": 1.0, "p_value": 0.3, "lower": 0.0, "upper": 1.0, "variance_inflation": 1.0}
    printed = [Coefficient(term="x", estimate=beta, **base).odds_ratio_text for beta in (4.8, 1.3, -1.993, 800.0)]
    assert printed == ["122", "3.67", "0.136", "inf"]


def test_a_factor_of_too_many_levels_gets_no_columns() -> None:
    columns, dropped = indicators("agent", np.array([0, 2, 2, 1]), ["a", "b", "c"])
    assert {name: column.tolist() for name, column in columns.items()} == {
        "agent[b]": [0, 0, 0, 1],
        "agent[c]": [0, 1, 1, 0],
    }
    assert dropped == {}
    columns, dropped = indicators("agent", np.arange(MAX_LEVELS + 1), [str(k) for k in range(MAX_LEVELS + 1)])
    assert (columns, list(dropped)) == ({}, ["agent"])
