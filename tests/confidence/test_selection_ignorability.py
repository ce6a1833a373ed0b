"""The test of selection-ignorability: its size where clusters matter, its power, and when it cannot tell."""

import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from tests.confidence.random_deliberations import random_deliberations

from tracebridge.confidence.commitment import commitment_pairs
from tracebridge.confidence.deliberation import Deliberations
from tracebridge.confidence.routing_pools import block_pools
from tracebridge.confidence.selection_ignorability import independence_test, selection_ignorability


def clustered(rng, effect, n_clusters=80):
    """Two groups and three outcomes in two strata; outcomes and groups both vary between clusters."""
    size = rng.integers(3, 9, n_clusters)
    cluster = np.repeat(np.arange(n_clusters), size)
    stratum = rng.integers(2, size=len(cluster))
    group = (rng.random(len(cluster)) < rng.beta(1, 1, n_clusters)[cluster]).astype(int)
    chance = rng.dirichlet([1, 1, 1], n_clusters)[cluster]
    chance[:, 0] += effect * group + 0.3 * stratum
    chance /= chance.sum(axis=1, keepdims=True)
    what = (rng.random(len(cluster))[:, None] > np.cumsum(chance, axis=1)).sum(axis=1)
    return stratum, group, what, cluster


def p_value(columns):
    return independence_test(*columns, outcome="outcome", group_name="group").p_value


def test_its_size_is_the_nominal_one_where_units_of_a_cluster_are_alike():
    """300 corpora: the standard error of a rate of .05 is .013. The naive test must fail here, or nothing is tested."""
    rng = np.random.default_rng(0)
    robust, naive = [], []
    for _ in range(300):
        stratum, group, what, cluster = clustered(rng, effect=0.0)
        robust.append(p_value((stratum, group, what, cluster)) < 0.05)
        own = stratum == 0
        table = np.array([[np.sum(own & (group == g) & (what == k)) for k in range(3)] for g in range(2)])
        naive.append(chi2_contingency(table, correction=False).pvalue < 0.05)
    assert 0.015 <= np.mean(robust) <= 0.085
    assert np.mean(naive) > 0.085


def test_it_finds_a_dependence():
    rng = np.random.default_rng(1)
    assert np.mean([p_value(clustered(rng, effect=1.0)) < 0.05 for _ in range(60)]) > 0.9


def test_single_unit_clusters_give_the_usual_test():
    """With one unit a cluster and one stratum the statistic is that of Pearson, up to the estimate of the variance."""
    rng = np.random.default_rng(2)
    group, what = rng.integers(2, size=4000), rng.integers(3, size=4000)
    found = independence_test(np.zeros(4000, int), group, what, np.arange(4000), outcome="", group_name="")
    table = np.array([[np.sum((group == g) & (what == k)) for k in range(3)] for g in range(2)])
    assert found.degrees == 2
    assert found.statistic == pytest.approx(chi2_contingency(table, correction=False).statistic, rel=0.05)


def test_it_says_when_nothing_can_be_compared():
    same = np.zeros(20, dtype=int)
    found = independence_test(same, same, np.arange(20) % 2, np.arange(20), outcome="", group_name="")
    assert (found.degrees, found.n, found.note) == (0, 0, "no stratum has several groups and outcomes")
    assert math.isnan(found.p_value)
    none = independence_test(same[:0], same[:0], same[:0], same[:0], outcome="", group_name="")
    assert (none.n, none.n_clusters) == (0, 0)
    assert math.isnan(none.p_value)
    few = independence_test(same[:4], np.arange(4) % 2, np.arange(4) // 2, np.arange(4) * 0, outcome="", group_name="")
    assert math.isnan(few.p_value)
    assert "too few" in few.note


def test_routers_by_first_maximum_on_scores_at_random_are_ignorable():
    """Scores say nothing of what follows in these corpora: no p-value is tiny, and all four tests are there."""
    smallest = []
    for seed in range(6):
        table = random_deliberations(seed, n_traces=150)
        pools = block_pools(table)
        tests = selection_ignorability(pools, Deliberations.of(pools, commitment_pairs(table)))
        assert [(test.outcome, test.group) for test in tests] == [
            ("what is spoken", "tied or not"),
            ("what is spoken", "score band"),
            ("what comes next", "tied or not"),
            ("what comes next", "score band"),
        ]
        smallest.append(min(test.p_value for test in tests))
        assert min(test.p_holm for test in tests) == min(1.0, 4 * smallest[-1])
        assert all(test.p_value <= test.p_holm for test in tests)
    assert min(smallest) > 0.05 / 24 / 10
    assert max(smallest) > 0.05
