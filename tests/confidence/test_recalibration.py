"""Held-out confidence is mapped by the other folds alone, in all its degenerate cases too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit

from tracebridge.confidence.calibrators import fit_calibrator
from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.recalibration import recalibrate, recalibration_table
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import UsageError


def corpus(n: int = 600) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits = rng.normal(0.3, 1.2, n)
    scores = np.clip(np.round(100 * expit(2.5 * logits)), 1, 100)
    return scores / 100, (rng.random(n) < expit(logits)).astype(np.int8), np.arange(n) % 2


@pytest.mark.parametrize("name", ["temperature", "platt", "beta", "isotonic"])
def test_no_answer_is_mapped_by_its_own_fold(name: str) -> None:
    confidence, correct, fold = corpus()
    found = recalibrate(name, confidence, correct, fold)
    for k in (0, 1):
        other = fit_calibrator(name, RatedAnswers.of(confidence[fold != k], correct[fold != k]))
        assert np.array_equal(found.confidence[fold == k], other(confidence[fold == k]))
    flipped = np.where(fold == 0, 1 - correct, correct)
    assert np.array_equal(
        recalibrate(name, confidence, flipped, fold).confidence[fold == 0], found.confidence[fold == 0]
    )


def test_recalibration_lowers_the_error_of_overconfident_answers_and_keeps_their_ranking() -> None:
    confidence, correct, fold = corpus(2_000)
    table = recalibration_table(confidence, correct, fold)
    raw = table["identity"][1]
    assert raw["ECE"].value > 0.1
    for name in ("temperature", "platt", "isotonic"):
        quality = table[name][1]
        assert quality["ECE"].value < raw["ECE"].value / 2
        assert quality["Brier"].value < raw["Brier"].value
        assert quality["AUROC"].value == pytest.approx(raw["AUROC"].value, abs=0.01)
    assert table["temperature"][0].remarks == ()


def test_answers_without_a_label_are_mapped_but_nothing_is_fitted_to_them() -> None:
    confidence, correct, fold = corpus()
    unknown = np.where(np.arange(len(correct)) < 100, UNKNOWN, correct)
    found = recalibrate("isotonic", confidence, unknown, fold)
    assert np.isfinite(found.confidence).all()
    without = recalibrate("isotonic", confidence[100:], correct[100:], fold[100:])
    assert np.array_equal(found.confidence[100:], without.confidence)
    assert math.isnan(recalibrate("isotonic", np.array([math.nan, 0.5]), [1, 0], [0, 1]).confidence[0])


def test_a_fold_of_a_single_class_leaves_the_other_as_it_was_and_says_so() -> None:
    confidence, _, fold = corpus(40)
    correct = np.where(fold == 0, 1, np.arange(40) % 4 == 1)
    found = recalibrate("temperature", confidence, correct, fold)
    assert np.array_equal(found.confidence[fold == 1], confidence[fold == 1])
    assert found.by_fold[1].status == "undefined"
    assert "fold 1: undefined, the answers are all correct or all wrong" in found.remarks


def test_a_map_for_each_tier_falls_back_where_a_tier_is_small_or_of_one_class() -> None:
    confidence, correct, fold = corpus()
    tier = np.where(np.arange(600) < 300, 0, np.where(np.arange(600) < 560, 1, 2))  # tier 2: 20 answers a fold
    correct[tier == 1] = 1
    found = recalibrate("isotonic", confidence, correct, fold, tier_of_unit=tier, per_tier=True)
    pooled = recalibrate("isotonic", confidence, correct, fold)
    assert set(found.by_fold_and_tier) == {(0, 0), (1, 0)}
    assert np.array_equal(found.confidence[tier > 0], pooled.confidence[tier > 0])
    first = (tier == 0) & (fold == 0)
    alike = (tier == 0) & (fold == 1)
    own = fit_calibrator("isotonic", RatedAnswers.of(confidence[alike], correct[alike]))
    assert np.array_equal(found.confidence[first], own(confidence[first]))


def test_maps_of_tiers_bring_in_their_base_rates() -> None:
    """Confidence without information: one map leaves the AUROC at a half, maps of tiers raise it."""
    rng = np.random.default_rng(3)
    tier, fold = np.repeat([0, 1], 400), np.arange(800) % 2
    correct = rng.random(800) < np.where(tier == 0, 0.9, 0.1)
    confidence = rng.integers(1, 101, 800) / 100
    areas = []
    for per_tier in (False, True):
        found = recalibrate("isotonic", confidence, correct, fold, tier_of_unit=tier, per_tier=per_tier)
        from tracebridge.confidence.confidence_quality import confidence_quality

        areas.append(confidence_quality(found.confidence, correct)["AUROC"].value)
    assert abs(areas[0] - 0.5) < 0.06
    assert areas[1] > 0.8


def test_what_cannot_be_held_out_is_refused() -> None:
    for job in (
        lambda: recalibrate("platt", [0.5, 0.6], [1, 0], np.array([0, 0])),
        lambda: recalibrate("platt", [0.5, 0.6], [1, 0], np.array([0, 1, 1])),
        lambda: recalibrate("platt", [0.5, 0.6], [1, 0], np.array([0, 1]), per_tier=True),
    ):
        with pytest.raises(UsageError):
            job()
