"""The ECE of calibrated confidence by chance: exactly where clusters are few, in distribution, and its test's size."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tracebridge.confidence import chance_calibration as module
from tracebridge.confidence.chance_calibration import chance_calibration
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.replicates import Resampling


def found(confidence, correct, cluster, **options):
    answers = RatedAnswers.of(np.asarray(confidence, dtype=float), np.asarray(correct))
    resampling = Resampling(**{"replicates": 400, **options})
    return chance_calibration(answers, np.asarray(cluster)[answers.kept], resampling=resampling)


def test_it_is_the_mean_over_all_signs_of_the_clusters():
    """Of 8 clusters there are 256 ways to turn them, all of them likely alike."""
    rng = np.random.default_rng(0)
    confidence, correct, cluster = rng.integers(0, 101, 30) / 100, rng.random(30) < 0.5, rng.permutation(30) % 8
    place = np.minimum((confidence * 10 + 1e-9).astype(int), 9)
    sums = np.zeros((8, 10))
    np.add.at(sums, (cluster, place), confidence - correct)
    every = np.array([np.abs(np.array(signs) @ sums).sum() / 30 for signs in itertools.product([-1, 1], repeat=8)])
    observed = np.abs(sums.sum(axis=0)).sum() / 30
    by_chance, p_value = found(confidence, correct, cluster, replicates=20_000)
    assert by_chance.value == pytest.approx(every.mean(), abs=5 * every.std() / 20_000**0.5)
    assert (by_chance.lower, by_chance.upper) == pytest.approx(
        np.quantile(every, [0.025, 0.975]), abs=0.2 * every.std()
    )
    share = np.mean(every >= observed - 1e-12)
    assert p_value.value == pytest.approx(share, abs=5 * (share * (1 - share) / 20_000) ** 0.5 + 1e-4)
    assert by_chance.reason == p_value.reason == "8 clusters: too few for a sure interval"


def test_many_clusters_are_drawn_as_what_they_add_up_to(monkeypatch):
    rng = np.random.default_rng(1)
    confidence, correct, cluster = rng.random(1_500), rng.random(1_500) < 0.6, np.arange(1_500) % 500
    turned = found(confidence, correct, cluster, replicates=4_000)[0]
    monkeypatch.setattr(module, "MANY_CLUSTERS", 100)
    drawn = found(confidence, correct, cluster, replicates=4_000)[0]
    assert drawn.value == pytest.approx(turned.value, rel=0.03)
    assert (drawn.lower, drawn.upper) == pytest.approx((turned.lower, turned.upper), rel=0.06)


def corpus(rng, n_clusters, lift):
    """Three answers to each question that are right or wrong together half of the time, calibrated but for ``lift``."""
    confidence = np.round(rng.random((n_clusters, 3)), 1)
    chance = np.where(rng.random((n_clusters, 1)) < 0.5, rng.random((n_clusters, 1)), rng.random((n_clusters, 3)))
    correct = chance < confidence - lift
    return confidence.ravel(), correct.ravel(), np.repeat(np.arange(n_clusters), 3)


def test_calibrated_confidence_is_rejected_as_often_as_is_said_and_overconfidence_is_found():
    """400 corpora of 30 questions: the standard errors of .05 and .2 are .011 and .02."""
    rng = np.random.default_rng(2)
    calibrated = np.array([found(*corpus(rng, 30, 0.0), replicates=199)[1].value for _ in range(400)])
    assert abs(np.mean(calibrated <= 0.05) - 0.05) < 0.04
    assert abs(np.mean(calibrated <= 0.2) - 0.2) < 0.07
    over = np.array([found(*corpus(rng, 30, 0.3), replicates=199)[1].value for _ in range(50)])
    assert np.mean(over <= 0.05) > 0.9


def test_what_tells_nothing_is_undefined():
    one = found([0.5, 0.7], [1, 0], [3, 3])
    none = found([np.nan], [1], [0])
    assert [metric.reason for metric in one] == ["one cluster has all answers, which tells no chance"] * 2
    assert [metric.status for metric in none] == ["undefined"] * 2
    assert none[0].n_dropped == 1


def test_order_and_names_of_clusters_are_of_no_matter():
    rng = np.random.default_rng(4)
    confidence, correct, cluster = corpus(rng, 12, 0.1)
    order = rng.permutation(len(cluster))
    plain, mixed = found(confidence, correct, cluster), found(confidence[order], correct[order], cluster[order] * 7)
    assert [m.value for m in plain] == pytest.approx([m.value for m in mixed], abs=1e-12)
