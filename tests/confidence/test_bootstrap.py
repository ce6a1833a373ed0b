"""The cluster bootstrap against a loop that draws clusters, against formulas, and in its undefined cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit
from scipy.stats import binomtest

from tracebridge.confidence.bootstrap import (
    Resampling,
    cluster_weights,
    ratio_interval,
    ratio_intervals,
    totals_intervals,
)
from tracebridge.confidence.confidence_quality import confidence_quality
from tracebridge.confidence.metric_value import ratio
from tracebridge.errors import UsageError
from tracebridge.inference.few_units import few_units_factor


def all_weights(n_clusters: int, replicates: int, seed: int) -> NDArray[np.int64]:
    return np.concatenate(list(cluster_weights(n_clusters, replicates, seed)))


@given(st.integers(1, 300), st.integers(1, 700), st.integers(0, 5))
@settings(max_examples=20)
def test_every_replicate_draws_as_many_clusters_as_there_are(n_clusters: int, replicates: int, seed: int) -> None:
    weights = all_weights(n_clusters, replicates, seed)
    assert weights.shape == (replicates, n_clusters)
    assert (weights.sum(axis=1) == n_clusters).all()
    assert (weights >= 0).all()


def test_the_first_replicates_do_not_depend_on_how_many_are_asked_for() -> None:
    assert np.array_equal(all_weights(50, 1_000, 3)[:300], all_weights(50, 300, 3))
    assert not np.array_equal(all_weights(50, 300, 3), all_weights(50, 300, 4))


@pytest.mark.parametrize("n_clusters", [40, 70_000])
def test_multiplicities_have_the_moments_of_a_multinomial(n_clusters: int) -> None:
    weights = all_weights(n_clusters, 2_000 if n_clusters < 100 else 3, 0)
    error = 1 / math.sqrt(weights.size)  # multiplicities are nearly Poisson(1), whose fourth central moment is 4
    assert abs(weights.var() - (1 - 1 / n_clusters)) < 4 * math.sqrt(3) * error


@pytest.mark.parametrize("kinds", [60, 2], ids=["clusters are drawn", "kinds of clusters are drawn"])
def test_an_interval_is_that_of_a_loop_over_drawn_clusters(kinds: int) -> None:
    """With 1,000 and 4,000 replicates; the ends of the former have Monte-Carlo errors of .08 standard errors."""
    rng = np.random.default_rng(0)
    cluster = np.arange(240) % 60
    numerator, denominator = 2.0 + cluster % kinds, 1.0 + (cluster % kinds) ** 2
    found = ratio_interval(numerator, denominator, cluster, 60, resampling=Resampling(replicates=4_000))
    units_of = [np.flatnonzero(cluster == c) for c in range(60)]
    values = []
    for _ in range(1_000):
        units = np.concatenate([units_of[c] for c in rng.integers(60, size=60)])
        values.append(numerator[units].sum() / denominator[units].sum())
    spread = np.std(values)
    assert found.standard_error == pytest.approx(spread, rel=0.1)  # the error is 1 / sqrt(2 * 1000) = .022
    lower, upper = np.quantile(values, [0.025, 0.975])
    assert found.interval.lower == pytest.approx(lower, abs=0.35 * spread)
    assert found.interval.upper == pytest.approx(upper, abs=0.35 * spread)


def test_independent_units_have_the_standard_error_of_a_share_and_no_design_effect() -> None:
    n = 1_000
    correct = (np.arange(n) < 300).astype(float)
    found = ratio_interval(correct, np.ones(n), np.arange(n), n)
    assert found.standard_error == pytest.approx(math.sqrt(0.3 * 0.7 / n), rel=0.06)  # 1 / sqrt(2 * 2000) is .016
    assert found.design_effect == pytest.approx(1, abs=0.12)
    assert found.status == "ok"


def test_copies_within_clusters_have_their_number_as_design_effect() -> None:
    correct = np.repeat((np.arange(300) < 120).astype(float), 4)
    found = ratio_interval(correct, np.ones(1_200), np.repeat(np.arange(300), 4), 300)
    assert found.design_effect == pytest.approx(4, rel=0.13)


def test_duplicating_every_trace_within_its_cluster_changes_nothing_but_the_design_effect() -> None:
    rng = np.random.default_rng(1)
    cluster, y = rng.integers(30, size=200), (rng.random(200) < 0.4).astype(float)
    once = ratio_interval(y, np.ones(200), cluster, 30)
    twice = ratio_interval(np.tile(y, 2), np.ones(400), np.tile(cluster, 2), 30)
    assert twice.interval == once.interval
    assert twice.standard_error == pytest.approx(once.standard_error, rel=1e-12)
    assert twice.design_effect == pytest.approx(2 * once.design_effect, rel=1e-9)


def test_ratios_together_are_ratios_apart() -> None:
    rng = np.random.default_rng(2)
    cluster = rng.integers(25, size=300)
    denominator = (rng.random((300, 3)) < 0.5) * rng.random((300, 3))
    denominator[:25] = 0.5  # all have units in every cluster
    cluster[:25] = np.arange(25)
    numerator = denominator * rng.random((300, 3))
    together = ratio_intervals(numerator, denominator, cluster, 25)
    for m in range(3):
        apart = ratio_interval(numerator[:, m], denominator[:, m], cluster, 25)
        assert together[m].interval.lower == pytest.approx(apart.interval.lower, rel=1e-12)
        assert together[m].design_effect == pytest.approx(apart.design_effect, rel=1e-9)


def test_sparse_tables_give_what_dense_ones_give() -> None:
    rng = np.random.default_rng(3)
    table, cluster = rng.random((80, 4)) * (rng.random((80, 4)) < 0.3), rng.integers(15, size=80)
    dense, sparse = (
        totals_intervals(t, lambda sums: sums[:, :2] / (1 + sums[:, 2:]), cluster, 15)
        for t in (table, csr_array(table))
    )
    for one, other in zip(dense, sparse, strict=True):
        assert one.interval.lower == pytest.approx(other.interval.lower, rel=1e-12)
        assert one.interval.upper == pytest.approx(other.interval.upper, rel=1e-12)


def test_a_corrected_interval_of_a_linear_symmetric_metric_is_near_the_percentile_one() -> None:
    y = np.tile([0.0, 1.0], 100)
    plain, corrected = (
        ratio_interval(y, np.ones(200), np.arange(200), 200, resampling=Resampling(method=method)).interval
        for method in ("percentile", "bca")
    )
    assert corrected.lower == pytest.approx(plain.lower, abs=0.01)
    assert corrected.upper == pytest.approx(plain.upper, abs=0.01)
    assert corrected.method == "cluster bootstrap (bca)"


def test_a_corrected_interval_is_that_of_scipy() -> None:
    """Of the mean of exponential draws; both ends with Monte-Carlo errors of .04 standard errors."""
    from scipy.stats import bootstrap

    sample = np.random.default_rng(5).exponential(size=60)
    found = ratio_interval(
        sample, np.ones(60), np.arange(60), 60, resampling=Resampling(method="bca", replicates=5_000)
    )
    other = bootstrap((sample,), np.mean, n_resamples=5_000, method="BCa", rng=np.random.default_rng(6))
    tolerance = 0.2 * found.standard_error
    assert found.interval.lower == pytest.approx(other.confidence_interval.low, abs=tolerance)
    assert found.interval.upper == pytest.approx(other.confidence_interval.high, abs=tolerance)


def test_a_basic_interval_is_the_percentile_one_mirrored_in_the_value() -> None:
    y, cluster = np.arange(200.0) ** 2, np.arange(200)
    plain, basic = (
        ratio_interval(y, np.ones(200), cluster, 200, resampling=Resampling(method=method))
        for method in ("percentile", "basic")
    )
    factor = few_units_factor(200, 0.95)
    assert basic.interval.lower == pytest.approx(y.mean() - (plain.interval.upper - y.mean()) / factor)
    assert basic.interval.upper == pytest.approx(y.mean() + (y.mean() - plain.interval.lower) / factor)
    assert basic.end_errors == plain.end_errors[::-1]


def test_biased_replicates_are_told() -> None:
    """Answers whose accuracy is their confidence have no error; nearly every replicate of them has some."""
    confidence, correct = np.repeat([0.25, 0.75], 100), np.tile([1, 0, 0, 0] * 25, 2)
    correct[100:] = 1 - correct[100:]
    found = confidence_quality(confidence, correct, cluster_of_unit=np.arange(200), n_clusters=200)["ECE"]
    assert found.value == 0
    assert found.lower == 0
    assert found.reason.startswith("interval unsure: its replicates lie +0.0")
    assert "from the value, whose standard error is 0.0" in found.reason
    raw = confidence_quality(confidence / 2, correct, cluster_of_unit=np.arange(200), n_clusters=200)["ECE"]
    assert raw.reason == ""


def test_intervals_of_rankings_and_of_distances_cover() -> None:
    """30 clusters of four answers, one in twenty wrong (AUROC) or overconfident (the reliability part of Brier).

    150 corpora each. Percentiles alone cover .87 and .81 of them, the true coverage of .95 stays above .89 with
    probability .998.
    """
    rng, levels = np.random.default_rng(7), np.array([0.2, 0.5, 0.7, 0.8, 0.9, 1.0])

    def drawn(clusters: int, easiness: float) -> tuple[np.ndarray, np.ndarray]:
        hard = rng.normal(size=(clusters, 1))
        felt = 0.8 * hard + 0.6 * rng.normal(size=(clusters, 4))
        right = rng.random((clusters, 4)) < expit(hard + 0.4 * felt + easiness)
        return levels[np.searchsorted([-1.0, -0.5, 0.0, 0.5, 1.0], felt)].ravel(), right.ravel()

    for name, easiness in (("AUROC", 3.5), ("reliability", -0.3)):
        truth, held = confidence_quality(*drawn(20_000, easiness))[name].value, []
        while len(held) < 150:
            found = confidence_quality(
                *drawn(30, easiness),
                cluster_of_unit=np.repeat(np.arange(30), 4),
                n_clusters=30,
                resampling=Resampling(replicates=200),
            )[name]
            if found.status == "ok":
                held.append(found.lower <= truth <= found.upper)
        assert np.mean(held) > 0.89, name


@given(
    st.integers(2, 400), st.sampled_from([0.5, 0.9, 0.95, 0.99]), st.floats(0, 1), st.sampled_from([(0, 1), (-1, 2)])
)
@settings(max_examples=30)
def test_alike_clusters_are_no_certainty(n: int, level: float, value: float, bounds: tuple[float, float]) -> None:
    """At a bound the interval is that of Clopper and Pearson for none of n, elsewhere in proportion to either bound."""
    found = ratio_interval(
        np.full(n, value), np.ones(n), np.arange(n), n, resampling=Resampling(replicates=20, level=level), bounds=bounds
    )
    others = 1 - binomtest(n, n).proportion_ci(level, method="exact").low
    least, most = bounds
    assert found.interval.lower == pytest.approx(value - others * (value - least), abs=1e-12)
    assert found.interval.upper == pytest.approx(value + others * (most - value), abs=1e-12)
    unbounded = ratio_interval(np.full(n, value), np.ones(n), np.arange(n), n, resampling=Resampling(replicates=20))
    assert unbounded.interval.lower == unbounded.interval.upper == pytest.approx(value, abs=1e-12)
    assert unbounded.status == "unsure"
    assert unbounded.reason.startswith(f"all {n} clusters are alike, which tells no variation")


@pytest.mark.parametrize(("n_clusters", "share"), [(8, 0.1), (8, 0.5), (25, 0.03), (25, 0.4)])
def test_intervals_of_a_share_cover_it_also_where_clusters_are_few_or_alike(n_clusters: int, share: float) -> None:
    """Clusters of two answers that agree; 400 corpora, so that a coverage of .95 is found above .91."""
    rng, held = np.random.default_rng(11), 0
    cluster = np.repeat(np.arange(n_clusters), 2)
    for _ in range(400):
        right = np.repeat((rng.random(n_clusters) < share).astype(float), 2)
        found = ratio_interval(
            right, np.ones(2 * n_clusters), cluster, n_clusters, resampling=Resampling(replicates=400), bounds=(0, 1)
        ).interval
        held += found.lower <= share <= found.upper
    assert held / 400 > 0.91


def test_few_clusters_are_told() -> None:
    few = ratio_interval(np.arange(4.0), np.ones(4), np.arange(4), 4)
    assert (few.status, few.reason) == ("unsure", "4 clusters: too few for a sure interval")


def test_one_cluster_has_no_interval() -> None:
    found = ratio_interval(np.ones(5), np.ones(5), np.zeros(5, dtype=int), 3)
    assert found.status == "undefined"
    assert math.isnan(found.interval.lower)
    metric = found.attached_to(ratio("CRA", 5, 5, "blocks"))
    assert metric.status == "ok"
    assert metric.reason == "interval undefined: one cluster has all units of it, which tells no variation"


def test_undefined_replicates_are_left_out_and_their_share_is_told() -> None:
    """With 2 of 20 clusters counted, a replicate has neither with chance .9**20 = .1216."""
    counted = (np.arange(20) < 2).astype(float)
    found = ratio_interval(
        counted * np.arange(20), counted, np.arange(20), 20, resampling=Resampling(replicates=4_000), bounds=(0, 1)
    )
    assert found.undefined_share == pytest.approx(0.9**20, abs=4 * math.sqrt(0.1216 * 0.8784 / 4_000))
    assert found.status == "unstable"
    assert (found.interval.lower, found.interval.upper) == (0.0, 1.0)
    nowhere = ratio_interval(np.zeros(20), np.zeros(20), np.arange(20), 20)
    assert nowhere.status == "undefined"


@pytest.mark.parametrize(
    "job",
    [
        lambda: next(cluster_weights(0, 5, 0)),
        lambda: Resampling(replicates=1),
        lambda: Resampling(level=1.0),
        lambda: Resampling(method="studentised"),
        lambda: ratio_interval(np.ones(3), np.ones(3), np.array([0, 1, 2]), 2),
        lambda: ratio_interval(np.ones(3), np.ones(3), np.array([0, 1]), 2),
        lambda: ratio_interval(np.array([np.nan, 1]), np.ones(2), np.array([0, 1]), 2),
        lambda: ratio_interval(np.ones(3), np.ones(2), np.array([0, 1]), 2),
    ],
)
def test_what_cannot_be_drawn_is_refused(job: object) -> None:
    assert callable(job)
    with pytest.raises(UsageError):
        job()
