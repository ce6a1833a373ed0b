"""Bins with exact edges, and calibration errors against loops, invariants and Murphy's identity."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.calibration import BrierPartition, ReliabilityBins, bin_of_confidence, equal_mass_error
from tracebridge.confidence.ranking import ConfidenceRanking
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import InputError, UsageError

ANSWERS = st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=60)


def rated(pairs: list[tuple[int, bool]]) -> RatedAnswers:
    scores, labels = zip(*pairs, strict=True)
    return RatedAnswers.of(np.array(scores) / 100, np.array(labels))


def test_multiples_of_ten_fall_into_the_bins_of_the_decimals() -> None:
    """The indices of the scores 10..100 under both conventions; comparison with np.linspace edges gives others."""
    tens = np.arange(10, 101, 10) / 100
    assert bin_of_confidence(tens, closed="left").tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]
    assert bin_of_confidence(tens, closed="right").tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert bin_of_confidence(np.array([0.0]), closed="right").tolist() == [0]


@given(st.integers(1, 10_000), st.integers(1, 40), st.data())
@settings(max_examples=40)
def test_bins_are_those_of_integer_arithmetic(maximum: int, n_bins: int, data: st.DataObject) -> None:
    score = data.draw(st.integers(0, maximum))
    exact = Fraction(score * n_bins, maximum)
    left = bin_of_confidence(np.array([score / maximum]), n_bins, "left")[0]
    right = bin_of_confidence(np.array([score / maximum]), n_bins, "right")[0]
    assert left == min(n_bins - 1, math.floor(exact))
    assert right == max(0, math.ceil(exact) - 1)


def test_the_convention_decides_about_the_example_of_four_heaped_scores() -> None:
    scores = np.repeat([60, 65, 70, 75], 100)
    correct = np.concatenate([np.arange(100) < right for right in (70, 55, 60, 85)])
    answers = RatedAnswers.of(scores / 100, correct)
    assert ReliabilityBins.of(answers, closed="left").expected_error() == pytest.approx(0.0, abs=1e-12)
    assert ReliabilityBins.of(answers, closed="right").expected_error() == pytest.approx(0.1, abs=1e-12)


def test_certainty_has_no_bin_of_its_own() -> None:
    """Correct at .95 and wrong at 1: one bin, with mean confidence .975 and accuracy .5."""
    answers = RatedAnswers.of([0.95, 1.0], [1, 0])
    assert ReliabilityBins.of(answers).expected_error() == pytest.approx(0.475)
    assert ReliabilityBins.of(RatedAnswers.of([1.0], [0])).expected_error() == 1.0
    assert ReliabilityBins.of(RatedAnswers.of([0.0], [1])).expected_error() == 1.0


@given(ANSWERS, st.integers(1, 12), st.sampled_from(["left", "right"]))
@settings(max_examples=40)
def test_errors_are_those_of_a_loop_over_bins(pairs: list[tuple[int, bool]], n_bins: int, closed: str) -> None:
    answers = rated(pairs)
    bins = ReliabilityBins.of(answers, n_bins, closed)
    cells: dict[int, list[tuple[int, bool]]] = {}
    for score, label in pairs:
        place = Fraction(score * n_bins, 100)
        k = math.floor(place) if closed == "left" else math.ceil(place) - 1
        cells.setdefault(min(max(k, 0), n_bins - 1), []).append((score, label))
    gaps = {k: abs(sum(Fraction(s, 100) - y for s, y in cell)) / len(cell) for k, cell in cells.items()}
    expected = sum(gap * len(cells[k]) for k, gap in gaps.items()) / len(pairs)
    assert bins.expected_error() == pytest.approx(float(expected), abs=1e-12)
    assert bins.maximum_error() == pytest.approx(float(max(gaps.values())), abs=1e-12)
    assert bins.expected_error() >= abs(bins.signed_gap()) - 1e-12
    assert sum(row["n"] for row in bins.to_records()) == len(pairs)


@given(ANSWERS)
@settings(max_examples=40)
def test_murphys_partition_adds_up(pairs: list[tuple[int, bool]]) -> None:
    answers = rated(pairs)
    partition = BrierPartition.of(answers)
    assert partition.brier == pytest.approx(np.mean((answers.confidence - answers.correct) ** 2), abs=1e-12)
    assert min(partition.reliability, partition.resolution, partition.uncertainty) >= 0
    assert partition.resolution <= partition.uncertainty + 1e-12
    assert partition.reliability >= ReliabilityBins.of(answers).expected_error() ** 2 - 1e-12  # Jensen


@given(ANSWERS, st.integers(1, 12))
@settings(max_examples=40)
def test_equal_mass_bins_keep_ties_together(pairs: list[tuple[int, bool]], n_bins: int) -> None:
    answers = rated(pairs)
    ranking = ConfidenceRanking.of(answers)
    found = equal_mass_error(ranking.confidence, ranking.count, ranking.correct, n_bins)
    scores = [score for score, _ in pairs]
    cells: dict[int, Fraction] = {}
    for score in sorted(set(scores)):
        middle = Fraction(2 * sum(s < score for s in scores) + scores.count(score), 2 * len(scores))
        signed = sum(Fraction(s, 100) - y for s, y in pairs if s == score)
        k = min(n_bins - 1, math.floor(middle * n_bins))
        cells[k] = cells.get(k, Fraction(0)) + signed
    assert found == pytest.approx(float(sum(map(abs, cells.values())) / len(pairs)), abs=1e-12)
    signed_gap = ReliabilityBins.of(answers).signed_gap()
    assert found >= abs(signed_gap) - 1e-12


def test_the_debiased_error_of_calibrated_answers_is_zero_on_average() -> None:
    """1,000 samples of 50 answers; the plain squared error is the sum of the variances in its two bins over 50."""
    rng = np.random.default_rng(0)
    confidence = np.repeat([0.25, 0.55], [30, 20])
    plain, debiased = [], []
    for _ in range(1_000):
        bins = ReliabilityBins.of(RatedAnswers.of(confidence, rng.random(50) < confidence))
        debiased.append(float(bins.debiased_squared_error()))
        gaps = (bins.confidence - bins.correct)[bins.count > 0] / bins.count[bins.count > 0]
        plain.append(float((bins.count[bins.count > 0] * gaps**2).sum() / 50))
    error = np.std(debiased) / math.sqrt(1_000)
    assert abs(np.mean(debiased)) < 4 * error
    assert np.mean(plain) == pytest.approx((0.25 * 0.75 + 0.55 * 0.45) / 50, abs=4 * error)


def test_answers_without_confidence_or_label_are_counted_as_dropped() -> None:
    answers = RatedAnswers.of([0.5, math.nan, 0.7, 0.1], [1, 1, UNKNOWN, 0])
    assert (answers.n, answers.n_dropped, answers.kept.tolist()) == (2, 2, [0, 3])


def test_no_answers_have_no_error() -> None:
    bins = ReliabilityBins.of(RatedAnswers.of([], []))
    for value in (bins.expected_error(), bins.maximum_error(), bins.signed_gap(), bins.debiased_squared_error()):
        assert math.isnan(value)
    assert math.isnan(BrierPartition.of(RatedAnswers.of([], [])).brier)


@pytest.mark.parametrize(
    ("confidence", "label", "message"),
    [
        (1.0000001, 1, "place 1 is 1.0000001"),
        (-0.1, 1, "outside"),
        (math.inf, 1, "outside"),
        (0.5, 2, "label at place"),
    ],
)
def test_what_is_no_confidence_or_label_is_refused(confidence: float, label: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RatedAnswers.of([0.5, confidence], [1, label])


def test_bins_must_exist() -> None:
    for job in (
        lambda: bin_of_confidence(np.array([0.5]), 0),
        lambda: bin_of_confidence(np.array([0.5]), 10_001),
        lambda: bin_of_confidence(np.array([0.5]), closed="both"),
        lambda: equal_mass_error(np.ones(1), np.ones(1), np.ones(1), 0),
        lambda: RatedAnswers.of([0.5], [1, 0]),
    ):
        with pytest.raises(UsageError):
            job()
