"""Logistic regression with cluster-robust standard errors, and with guards where maximum likelihood has no answer.

Wald inference is normal: z = beta / SE. The covariance is the cluster sandwich with the correction
G / (G - 1) * (N - 1) / (N - k) (CR1). Where the data separate, so that maximum likelihood runs off to infinity, the fit
is Firth's (1993), which penalises with Jeffreys' prior and always has a finite maximum, and says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri, xlogy

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.bootstrap import quotient
from tracebridge.confidence.cluster_logit_estimate import estimate_logit, log_likelihood
from tracebridge.confidence.cluster_score_test import score_test_p_values
from tracebridge.inference.intervals import require_level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracebridge.confidence.regression_design import RegressionDesign

FEW_CLUSTERS = 30
"""With fewer, the sandwich is too small and its normal quantiles are too optimistic."""

DESCRIPTIVE = "descriptive: response and predictors are of the same traces; no coefficient is an effect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """One term of a fit.

    Attributes:
        term: its name. estimate: beta, on the scale of the column. standard_error: cluster-robust.
        z, p_value: of beta = 0; NaN where clusters are so alike that the standard error is 0.
        lower, upper: the ends of the Wald interval of beta.
        variance_inflation: of its column; NaN for the intercept.
        few_clusters_p: the p-value of the cluster score test, where clusters are few; NaN where they are not.
    """

    term: str
    estimate: float
    standard_error: float
    z: float
    p_value: float
    lower: float
    upper: float
    variance_inflation: float
    few_clusters_p: float = math.nan

    @property
    def odds_ratio(self) -> float:
        """exp(beta); infinite where that is beyond the largest number."""
        with np.errstate(over="ignore"):
            return float(np.exp(np.float64(self.estimate)))

    @property
    def odds_ratio_text(self) -> str:
        """The odds ratio with three significant digits, as it is printed."""
        return f"{self.odds_ratio:.3g}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        numbers = {name: number_to_json(getattr(self, name)) for name in self.__slots__ if name != "term"}
        return {"term": self.term, **numbers, "odds_ratio": number_to_json(self.odds_ratio)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogit:
    """A fit, or why there is none.

    Attributes:
        model, response, unit: as in the design. n, n_clusters: rows and clusters fitted to.
        coefficients: the intercept first.
        log_likelihood, null_log_likelihood: of the fit, and with an intercept alone on the same rows.
        estimator: ``maximum likelihood`` or ``Firth``. separated: the former has no maximum.
        level: of the intervals.
        dropped: columns left out, with reasons. n_left_out: rows left out.
        status, reason: ``undefined`` without a fit, and why. remarks: what is to be known about it.
    """

    model: str
    response: str
    unit: str
    n: int
    n_clusters: int
    coefficients: tuple[Coefficient, ...] = ()
    log_likelihood: float = math.nan
    null_log_likelihood: float = math.nan
    estimator: str = ""
    separated: bool = False
    level: float = math.nan
    dropped: Mapping[str, str]
    n_left_out: int
    status: Literal["ok", "undefined"] = "ok"
    reason: str = ""
    remarks: tuple[str, ...] = ()

    def __getitem__(self, term: str) -> Coefficient:
        for coefficient in self.coefficients:
            if coefficient.term == term:
                return coefficient
        raise KeyError(term)

    @property
    def mcfadden(self) -> float:
        """McFadden's pseudo R^2, 1 - LL / LL0; NaN without a fit."""
        return 1 - self.log_likelihood / self.null_log_likelihood

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        numbers = ("log_likelihood", "null_log_likelihood", "level")
        document = {name: getattr(self, name) for name in self.__slots__}
        document |= {name: number_to_json(document[name]) for name in numbers}
        document |= {"coefficients": self.to_records(), "dropped": dict(self.dropped), "remarks": list(self.remarks)}
        return {**document, "mcfadden": number_to_json(self.mcfadden)}

    def to_records(self) -> list[dict[str, Any]]:
        """One record a term."""
        return [coefficient.to_dict() for coefficient in self.coefficients]


def fit_cluster_logit(design: RegressionDesign, *, level: float = 0.95, seed: int = 0) -> ClusterLogit:
    """Fit a design; undefined, with the reason, where it has too few rows, one class or one cluster.

    The ``seed`` is of the score test that is made where clusters are few.

    Raises:
        UsageError: a level outside (0, 1).
    """
    require_level(level)
    n, k = design.X.shape
    reason = _why_not(design)
    if reason:
        return _fit_of(design, status="undefined", reason=reason)
    X = np.column_stack([np.ones(n), design.X])
    found = estimate_logit(X, design.y, design.cluster)
    beta, errors = found.beta, np.sqrt(np.diag(found.covariance))
    z = quotient(beta, errors)
    quantile = float(ndtri((1 + level) / 2))
    inflation = np.concatenate([[math.nan], design.variance_inflation()])
    remarks = list(design.remarks)
    if found.separated:
        remarks.append("the rows separate the classes, and maximum likelihood has no finite answer: Firth's fit")
    few = design.n_clusters < FEW_CLUSTERS
    by_score = score_test_p_values(X, design.y, design.cluster, seed=seed) if few else np.full(k + 1, math.nan)
    if few:
        remarks.append(
            f"{design.n_clusters} clusters are fewer than {FEW_CLUSTERS}: standard errors are too small, and the "
            "p-values of the cluster score test are to be preferred"
        )
    terms = ("intercept", *design.columns)
    ones = int(design.y.sum())
    return _fit_of(
        design,
        coefficients=tuple(
            Coefficient(
                term=terms[j],
                estimate=float(beta[j]),
                standard_error=float(errors[j]),
                z=float(z[j]),
                p_value=wald_p_value(float(z[j])),
                lower=float(beta[j] - quantile * errors[j]),
                upper=float(beta[j] + quantile * errors[j]),
                variance_inflation=float(inflation[j]),
                few_clusters_p=float(by_score[j]),
            )
            for j in range(k + 1)
        ),
        log_likelihood=log_likelihood(X @ beta, design.y),
        null_log_likelihood=float(xlogy(ones, ones / n) + xlogy(n - ones, 1 - ones / n)),
        estimator="Firth" if found.separated else "maximum likelihood",
        separated=found.separated,
        level=level,
        remarks=tuple(remarks),
    )


def wald_p_value(z: float) -> float:
    """Two-sided, of a standard normal."""
    return math.erfc(abs(z) / math.sqrt(2))


def _why_not(design: RegressionDesign) -> str:
    n, k = design.X.shape
    if n == 0:
        return f"there are no {design.unit}"
    if design.y.min() == design.y.max():
        return f"the response {design.response} is {design.y[0]:.0f} for all {n} {design.unit}"
    if k == 0:
        return "no column is left: " + "; ".join(f"{name}: {why}" for name, why in design.dropped.items())
    if n <= k + 1:
        return f"{n} {design.unit} are too few for {k + 1} coefficients"
    if design.n_clusters < 2:
        return "there is one cluster, and the sandwich needs two"
    return ""


def _fit_of(design: RegressionDesign, **found: Any) -> ClusterLogit:
    return ClusterLogit(
        **{
            "model": design.model,
            "response": design.response,
            "unit": design.unit,
            "n": len(design.y),
            "n_clusters": design.n_clusters,
            "dropped": design.dropped,
            "n_left_out": design.n_left_out,
            "remarks": design.remarks,
            **found,
        }
    )
