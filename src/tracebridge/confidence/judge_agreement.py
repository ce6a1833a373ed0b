"""Do two judges of the equivalence of answers agree? Over the residual pairs, which canonical equality leaves open.

With a both divergent, b the first alone, c the second alone, d neither, of N pairs decided by both: agreement
p_o = (a + d) / N, chance agreement p_e = ((a + b)(a + c) + (c + d)(b + d)) / N^2, kappa = (p_o - p_e) / (1 - p_e)
(Cohen 1960), PABAK = 2 p_o - 1, and the directional rate b / (b + c), 1/2 without a lean, which McNemar's test is of.
Its variance b + c is that of independent pairs. Where pairs come in clusters, the sum of (b_g - c_g)^2 over these takes
its place (as in Durkalski et al. 2003, Statistics in Medicine 22, with all pairs of one weight), which is the same
where no cluster has two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.bootstrap import quotient, totals_intervals
from tracebridge.confidence.commitment import verdicts_of
from tracebridge.confidence.metric_value import MetricValue
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.bootstrap import Resampling
    from tracebridge.confidence.table import ConfidenceTable

    Floats = NDArray[np.float64]

MEASURES = ("agreement", "kappa", "pabak", "directional_rate")
_BOUNDS = ((0.0, 1.0), (-1.0, 1.0), (-1.0, 1.0), (0.0, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeAgreement:
    """How two judges agree.

    Attributes:
        first, second: their names.
        confusion: both divergent, first alone, second alone, neither.
        n_undecided: residual pairs that one of them, or both, left undecided.
        metrics: `MEASURES`, with cluster bootstrap intervals where they come from a table.
        kappa_error: the large-sample standard error of kappa for independent pairs (Fleiss, Cohen and Everitt 1969);
            NaN where undefined.
        mcnemar, mcnemar_p: McNemar's statistic without correction, and its p-value; NaN where the judges never differ.
        mcnemar_cluster_p: the p-value that allows for clusters; NaN without a table.
    """

    first: str
    second: str
    confusion: tuple[int, int, int, int]
    n_undecided: int
    metrics: tuple[MetricValue, ...]
    kappa_error: float
    mcnemar: float
    mcnemar_p: float
    mcnemar_cluster_p: float = math.nan

    def __getitem__(self, name: str) -> MetricValue:
        return self.metrics[MEASURES.index(name)]

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "first": self.first,
            "second": self.second,
            "confusion": dict(zip(("both", "first_alone", "second_alone", "neither"), self.confusion, strict=True)),
            "n_undecided": self.n_undecided,
            "metrics": [metric.to_dict() for metric in self.metrics],
            "kappa_error": number_to_json(self.kappa_error),
            "mcnemar": number_to_json(self.mcnemar),
            "mcnemar_p": number_to_json(self.mcnemar_p),
            "mcnemar_cluster_p": number_to_json(self.mcnemar_cluster_p),
        }


def agreement_of_counts(
    first: str, second: str, confusion: tuple[int, int, int, int], *, n_undecided: int = 0
) -> JudgeAgreement:
    """The agreement behind a table of counts, in the order of `JudgeAgreement.confusion`; without intervals.

    Raises:
        InputError: a negative count.
    """
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.inter_rater import cohens_kappa

    if min(confusion) < 0:
        raise InputError(f"counts of verdicts cannot be negative: {confusion}")
    table = np.array(confusion, dtype=np.float64)
    measures = dict(zip(MEASURES, _measures(table[None, :])[0].tolist(), strict=True))
    error, statistic, p_value = math.nan, math.nan, math.nan
    if not math.isnan(measures["kappa"]):
        error = float(cohens_kappa(table.reshape(2, 2)).std_kappa)
    if confusion[1] + confusion[2]:
        test = mcnemar(table.reshape(2, 2), exact=False, correction=False)
        statistic, p_value = float(test.statistic), float(test.pvalue)
    return JudgeAgreement(
        first=first,
        second=second,
        confusion=confusion,
        n_undecided=n_undecided,
        metrics=tuple(_metric(name, value, confusion, n_undecided) for name, value in measures.items()),
        kappa_error=error,
        mcnemar=statistic,
        mcnemar_p=p_value,
    )


def compare_judges(
    table: ConfidenceTable, first: str, second: str, *, resampling: Resampling | None = None
) -> JudgeAgreement:
    """The agreement of two judges of a corpus on its residual pairs.

    Raises:
        UsageError: there is no such judge.
    """
    verdicts = np.column_stack([verdicts_of(table, judge) for judge in (first, second)])
    residual = table.speaks.residual
    decided = residual & np.all(verdicts != UNKNOWN, axis=1)
    kind = 3 - 2 * verdicts[decided, 0].astype(np.int64) - verdicts[decided, 1]
    both, alone, other, neither = np.bincount(kind, minlength=4).tolist()
    found = agreement_of_counts(
        first, second, (both, alone, other, neither), n_undecided=int((residual & ~decided).sum())
    )
    cluster = table.cluster_of_block[table.speaks.block[decided]]
    found = replace(found, mcnemar_cluster_p=_mcnemar_of_clusters(verdicts[decided], cluster))
    if resampling is None:
        return found
    intervals = totals_intervals(
        np.eye(4)[kind],
        _measures,
        cluster,
        table.n_clusters,
        resampling=resampling,
        bounds=_BOUNDS,
    )
    metrics = tuple(interval.attached_to(metric) for interval, metric in zip(intervals, found.metrics, strict=True))
    return replace(found, metrics=metrics)


def _mcnemar_of_clusters(verdicts: NDArray[np.int8], cluster: NDArray[np.int64]) -> float:
    """The p-value for verdicts (n, 2) and their clusters (n,); NaN where no cluster leans."""
    lean = np.bincount(cluster, weights=verdicts[:, 0].astype(np.float64) - verdicts[:, 1])
    variance = float((lean**2).sum())
    return float(chi2.sf(float(lean.sum()) ** 2 / variance, 1)) if variance else math.nan


def judge_pairs(table: ConfidenceTable) -> tuple[tuple[str, str], ...]:
    """Every two judges of a corpus, in order."""
    return tuple(combinations(table.judges, 2))


def _measures(counts: Floats) -> Floats:
    """From confusions, shape (r, 4), the four measures, shape (r, 4)."""
    a, b, c, d = counts.T
    n = counts.sum(axis=1)
    observed = quotient(a + d, n)
    chance = quotient((a + b) * (a + c) + (c + d) * (b + d), n**2)
    return np.column_stack([observed, quotient(observed - chance, 1 - chance), 2 * observed - 1, quotient(b, b + c)])


def _metric(name: str, value: float, confusion: tuple[int, int, int, int], n_undecided: int) -> MetricValue:
    directional = name == "directional_rate"
    n = confusion[1] + confusion[2] if directional else sum(confusion)
    among = "pairs on which the judges differ" if directional else "residual pairs decided by both judges"
    if math.isnan(value):
        reason = "both judges give one and the same verdict throughout" if n else f"there are no {among}"
        return MetricValue.undefined(
            name, reason, denominator=n, denominator_name=among, n_dropped=0 if directional else n_undecided
        )
    whole = {"agreement": confusion[0] + confusion[3], "directional_rate": confusion[1]}
    return MetricValue(
        name=name,
        value=value,
        numerator=float(whole.get(name, math.nan)),
        denominator=float(n),
        denominator_name=among,
        n_dropped=n_undecided,
    )
