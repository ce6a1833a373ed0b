"""Ranking measures against every order of the answers, and what must not change them."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.confidence_quality import MEASURES, confidence_quality, quality_difference
from tracebridge.confidence.ranking import ConfidenceRanking
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.errors import UsageError

FEW = st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=6)
MANY = st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=60)


def ranking(pairs: list[tuple[int, bool]], top: int = 20) -> ConfidenceRanking:
    scores, labels = zip(*pairs, strict=True)
    return ConfidenceRanking.of(RatedAnswers.of(np.array(scores) / top, np.array(labels)))


def orders(pairs: list[tuple[int, bool]]) -> list[list[bool]]:
    """The labels in every order of the answers that does not rise in confidence."""
    every = permutations(range(len(pairs)))
    return [
        [pairs[i][1] for i in order] for order in every if all(pairs[a][0] >= pairs[b][0] for a, b in pairwise(order))
    ]


@given(FEW)
@settings(max_examples=40)
def test_auarc_is_the_mean_over_every_order_of_ties(pairs: list[tuple[int, bool]]) -> None:
    areas = [
        sum(Fraction(sum(labels[:k]), k) for k in range(1, len(labels) + 1)) / len(labels) for labels in orders(pairs)
    ]
    assert ranking(pairs).auarc() == pytest.approx(float(sum(areas) / len(areas)), abs=1e-12)


@given(FEW, st.fractions(Fraction(1, 20), 1, max_denominator=20))
@settings(max_examples=40)
def test_selective_accuracy_cuts_a_tie_in_expectation(pairs: list[tuple[int, bool]], coverage: Fraction) -> None:
    """The whole answers kept, and a fraction of the next, over every order of ties."""
    wanted = coverage * len(pairs)
    whole = math.floor(wanted)
    values = [
        (sum(labels[:whole]) + (wanted - whole) * sum(labels[whole : whole + 1])) / wanted for labels in orders(pairs)
    ]
    found = ranking(pairs).selective_accuracy(float(coverage))
    assert found == pytest.approx(float(sum(values) / len(values)), abs=1e-9)


@given(MANY)
@settings(max_examples=40)
def test_auroc_is_the_share_of_pairs_won(pairs: list[tuple[int, bool]]) -> None:
    right = [score for score, label in pairs if label]
    wrong = [score for score, label in pairs if not label]
    found = ranking(pairs).auroc()
    if not right or not wrong:
        assert math.isnan(found)
        return
    wins = sum(Fraction(1, 2) if r == w else Fraction(int(r > w)) for r in right for w in wrong)
    assert found == pytest.approx(float(wins / (len(right) * len(wrong))), abs=1e-12)


@given(MANY, st.permutations(range(60)))
@settings(max_examples=40)
def test_neither_order_nor_a_monotone_map_matters(pairs: list[tuple[int, bool]], order: list[int]) -> None:
    shuffled = [pairs[i] for i in order if i < len(pairs)]
    mapped = [(score**2, label) for score, label in pairs]
    for other in (ranking(shuffled), ranking(mapped, 400)):
        for measure in (ConfidenceRanking.auroc, ConfidenceRanking.auarc):
            assert measure(other) == pytest.approx(measure(ranking(pairs)), abs=1e-12, nan_ok=True)


@given(MANY)
@settings(max_examples=40)
def test_the_excess_is_none_for_the_best_ranking_and_never_below(pairs: list[tuple[int, bool]]) -> None:
    assert ranking(pairs).auarc_and_excess()[1] >= -1e-12
    best = ranking([(int(label), label) for _, label in pairs])
    assert best.auarc_and_excess()[1] == pytest.approx(0, abs=1e-12)


def test_a_tie_of_a_right_and_a_wrong_answer_has_the_same_area_in_both_orders() -> None:
    """A running mean over sorted answers gives .75 or .25."""
    assert ranking([(1, True), (1, False)]).auarc() == pytest.approx(0.5)
    assert ranking([(1, False), (1, True)]).auarc() == pytest.approx(0.5)


def test_the_curve_ends_at_the_accuracy_of_all() -> None:
    curve = ranking([(20, True), (10, False), (10, True), (5, False)]).risk_coverage()
    assert curve.to_records() == [
        {"threshold": 1.0, "coverage": 0.25, "risk": 0.0},
        {"threshold": 0.5, "coverage": 0.75, "risk": pytest.approx(1 / 3)},
        {"threshold": 0.25, "coverage": 1.0, "risk": 0.5},
    ]


def test_a_single_class_and_no_answers_are_undefined() -> None:
    one = confidence_quality([0.5, 0.7], [1, 1])
    assert one["AUROC"].status == "undefined"
    assert one["AUROC"].reason == "the answers are all correct or all wrong"
    assert one["AUARC"].value == 1
    none = confidence_quality([math.nan], [1])
    assert {metric.status for metric in none.metrics.values()} == {"undefined"}
    assert none["ECE"].n_dropped == 1


def test_quality_names_every_measure_and_agrees_with_its_parts() -> None:
    rng = np.random.default_rng(0)
    scores, correct = rng.integers(0, 101, 200), rng.random(200) < 0.6
    found = confidence_quality(scores / 100, correct)
    assert tuple(found.metrics) == MEASURES
    assert found["ECE"].value == pytest.approx(float(found.bins.expected_error()), abs=1e-12)
    assert found["mean confidence"].value == pytest.approx(scores.mean() / 100)
    assert found["accuracy"].value == correct.mean()
    assert found["Brier"].value == pytest.approx(np.mean((scores / 100 - correct) ** 2))
    assert found["AURC"].value == pytest.approx(1 - found["AUARC"].value)
    assert found["ECE"].denominator == 200


def test_intervals_of_all_measures_are_those_of_replicated_answers() -> None:
    """Two replicates drawn by hand: each measure of the answers repeated as often as their cluster was drawn.

    Intervals mirrored in the value are neither widened nor cut.
    """
    from tracebridge.confidence.bootstrap import Resampling, cluster_weights

    rng = np.random.default_rng(1)
    scores, correct, cluster = rng.integers(0, 101, 90), rng.random(90) < 0.6, np.arange(90) % 9
    weights = next(iter(cluster_weights(9, 2, 5)))
    by_hand = [confidence_quality(np.repeat(scores / 100, w[cluster]), np.repeat(correct, w[cluster])) for w in weights]
    found = confidence_quality(
        scores / 100,
        correct,
        cluster_of_unit=cluster,
        n_clusters=9,
        resampling=Resampling(replicates=2, seed=5, method="basic"),
    )
    for name in MEASURES:
        ends = sorted(2 * found[name].value - quality[name].value for quality in by_hand)
        assert [found[name].lower, found[name].upper] == pytest.approx(ends, abs=1e-9), name


def test_duplicated_answers_have_the_same_calibration_and_auroc() -> None:
    """AUARC is a mean over whole numbers of answers, and so depends on how many there are."""
    rng = np.random.default_rng(2)
    scores, correct = rng.integers(0, 101, 50) / 100, rng.random(50) < 0.6
    once, twice = confidence_quality(scores, correct), confidence_quality(np.tile(scores, 2), np.tile(correct, 2))
    for name in MEASURES:
        same = once[name].value == pytest.approx(twice[name].value, abs=1e-12)
        assert same == (name not in ("AUARC", "AURC", "E-AURC")), name


def test_a_corpus_without_answers_has_no_interval_either() -> None:
    found = confidence_quality([], [], cluster_of_unit=np.zeros(0, dtype=np.int64), n_clusters=0)
    assert found["ECE"].status == "undefined"
    assert found["ECE"].reason.startswith("there are no answers")


def test_a_difference_is_paired_question_by_question() -> None:
    """Of the same answers it is 0 in every replicate; of others it is the difference of their measures."""
    rng = np.random.default_rng(3)
    correct, cluster = rng.random(120) < 0.6, np.arange(120) % 20
    scores = np.round(rng.random(120), 2)
    mapped = np.where(np.arange(120) == 5, math.nan, scores / 2)
    same = quality_difference((scores, correct), (scores, correct), cluster_of_unit=cluster, n_clusters=20)
    assert {(metric.value, metric.lower, metric.upper) for metric in same.values()} == {(0.0, 0.0, 0.0)}
    found = quality_difference((scores, correct), (mapped, correct), cluster_of_unit=cluster, n_clusters=20)
    both = np.isfinite(mapped)
    for name in MEASURES:
        parts = [confidence_quality(side[both], correct[both])[name].value for side in (scores, mapped)]
        assert found[name].value == pytest.approx(parts[0] - parts[1], abs=1e-12)
        assert found[name].n_dropped == 1
    assert found["AUROC"].lower == found["AUROC"].upper == 0  # a monotone map
    assert found["mean confidence"].lower > 0
    with pytest.raises(UsageError, match="cannot be compared"):
        quality_difference((scores, correct), (scores[1:], correct[1:]))
    with pytest.raises(UsageError, match="clusters of shape"):
        confidence_quality(scores, correct, cluster_of_unit=cluster[1:], n_clusters=20)


def test_a_coverage_lies_above_zero_and_up_to_one() -> None:
    for coverage in (0.0, 1.1, math.nan):
        with pytest.raises(UsageError, match="coverage"):
            ranking([(1, True)]).selective_accuracy(coverage)
