"""Does what follows a selection depend on how the poll came to be selected? What every routing counterfactual rests on.

A chain in which another router selects takes what is spoken, and what comes next, from the selections that were
observed. That is sound if, given the pool and the kind of the selected poll, neither depends on whether the selection
was a tie nor on how high the score was. Both are tested; tests can reject the assumption, they cannot establish it.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import chi2

from tracebridge.checking.result import number_to_json
from tracebridge.confidence.deliberation import STATES
from tracebridge.confidence.routing_pools import at_rows
from tracebridge.inference.null_distribution import holm

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.confidence.deliberation import Deliberations
    from tracebridge.confidence.routing_pools import BlockPools
    from tracebridge.confidence.table import Codes

FEW_CLUSTERS = 30
_N_BANDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class IndependenceTest:
    """A cluster-robust score test that an outcome is independent of a group within strata.

    Attributes:
        outcome, group: what was compared, in words.
        statistic, degrees: chi-square and its degrees of freedom; 0 degrees where nothing could be compared.
        p_value: NaN where nothing could be compared. p_holm: adjusted for all tests that were made.
        n, n_clusters: selections in strata with several groups and outcomes, and their clusters.
        note: empty, or why the p-value is no good.
    """

    outcome: str
    group: str
    statistic: float
    degrees: int
    p_value: float
    n: int
    n_clusters: int
    note: str = ""
    p_holm: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            name: number_to_json(value) if isinstance(value, float) else value for name, value in asdict(self).items()
        }


def selection_ignorability(pools: BlockPools, deliberations: Deliberations) -> tuple[IndependenceTest, ...]:
    """What is spoken and what comes next, each against ties and score bands, for selected valid polls.

    Args:
        pools: of the corpus. deliberations: of these pools, not refined.
    """
    table, blocks = pools.table, deliberations.blocks
    codes = deliberations.codes.reshape(-1, 3)
    last = np.zeros(len(codes), dtype=np.bool_)
    ends = deliberations.offsets[1:] // 3
    last[ends[np.diff(deliberations.offsets) > 0] - 1] = True
    run = np.repeat(np.arange(len(deliberations.identifiers)), np.diff(deliberations.offsets) // 3)
    ending = np.array(["success", "failure", "censored"])
    outcome = np.array([ending.tolist().index(found.value) for found in deliberations.outcomes])
    following = np.append(codes[1:, 0], 0)
    comes_next = np.where(last, len(STATES) + outcome[run], following)
    known = ~(last & (outcome[run] == ending.tolist().index("censored")))
    selected = pools.selected[blocks]
    routed = at_rows(table.polls.valid, selected, False)
    cluster = table.cluster_of_block[blocks]
    score = at_rows(pools.score, selected, np.nan)
    tied = pools.top_tie[blocks].astype(np.int64)
    bands = np.unique(np.quantile(score[routed], np.arange(1, _N_BANDS) / _N_BANDS)) if routed.any() else np.zeros(0)
    band = np.searchsorted(bands, score, side="left")
    spoken_given = codes[:, 1]
    next_given = codes[:, 1] * len(STATES) + codes[:, 2]
    tests = [
        independence_test(
            stratum[chosen], group[chosen], what[chosen], cluster[chosen], outcome=outcome_name, group_name=group_name
        )
        for outcome_name, stratum, what, chosen in (
            ("what is spoken", spoken_given, codes[:, 2], routed),
            ("what comes next", next_given, comes_next, routed & known),
        )
        for group_name, group in (("tied or not", tied), ("score band", band))
    ]
    made = [place for place, test in enumerate(tests) if not math.isnan(test.p_value)]
    for place, adjusted in zip(made, holm([tests[place].p_value for place in made]), strict=True):
        tests[place] = replace(tests[place], p_holm=adjusted)
    return tuple(tests)


def independence_test(
    stratum: Codes, group: Codes, what: Codes, cluster: Codes, *, outcome: str, group_name: str
) -> IndependenceTest:
    """Whether ``what`` is independent of ``group`` within strata, with dependence within clusters allowed for.

    The score of each unit is the product of its centred indicators; scores are summed over strata, as Mantel and
    Haenszel do, and their covariance is that of the sums over clusters. The statistic is compared with chi-square.

    Args:
        stratum, group, what, cluster: (n,) codes.
    """
    stratum, group, what, cluster = (
        np.unique(codes, return_inverse=True)[1] for codes in (stratum, group, what, cluster)
    )
    groups, outcomes = _centred(group, stratum), _centred(what, stratum)
    n_scores = max(groups.shape[1] - 1, 0) * max(outcomes.shape[1] - 1, 0)
    scores = np.einsum("ng,nk->ngk", groups[:, 1:], outcomes[:, 1:]).reshape(len(stratum), n_scores)
    informative = np.abs(groups).max(axis=1, initial=0) * np.abs(outcomes).max(axis=1, initial=0) > 0
    n, clusters = int(informative.sum()), np.unique(cluster[informative])
    sums = np.zeros((int(cluster.max(initial=-1)) + 1, scores.shape[1]))
    np.add.at(sums, cluster, scores)
    total, covariance = sums.sum(axis=0), sums.T @ sums
    degrees = int(np.linalg.matrix_rank(covariance, hermitian=True)) if covariance.size else 0
    found = IndependenceTest(
        outcome=outcome, group=group_name, statistic=np.nan, degrees=0, p_value=np.nan, n=n, n_clusters=len(clusters)
    )
    if degrees == 0 or len(clusters) <= degrees:
        note = "no stratum has several groups and outcomes" if n == 0 else f"{len(clusters)} clusters are too few"
        return replace(found, note=note)
    statistic = float(total @ np.linalg.pinv(covariance, hermitian=True) @ total)
    few = f"only {len(clusters)} clusters: the p-value is rough" if len(clusters) < FEW_CLUSTERS else ""
    p_value = float(chi2.sf(statistic, degrees))
    return replace(found, statistic=statistic, degrees=degrees, p_value=p_value, note=few)


def _centred(codes: Codes, stratum: Codes) -> NDArray[np.float64]:
    """(n, k) indicators of the codes less their means in each stratum."""
    indicators = np.eye(int(codes.max(initial=-1)) + 1)[codes]
    sums = np.zeros((int(stratum.max(initial=-1)) + 1, indicators.shape[1]))
    np.add.at(sums, stratum, indicators)
    return np.asarray(indicators - (sums / np.bincount(stratum, minlength=len(sums))[:, None])[stratum])
