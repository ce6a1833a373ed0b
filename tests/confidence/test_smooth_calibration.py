"""The smooth calibration error against sums over a reflected kernel, and where it is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from tracebridge.confidence.rated_answers import RatedAnswers
from tracebridge.confidence.smooth_calibration import smooth_calibration_error


def by_kernel(confidence: np.ndarray, correct: np.ndarray, width: float) -> float:
    """The integral by midpoints, the kernel reflected as often as matters."""
    t = (np.arange(4_000) + 0.5) / 4_000
    images = [2 * k + sign * confidence for k in range(-4, 5) for sign in (-1, 1)]
    kernel = sum(norm.pdf(t[:, None], image[None, :], width) for image in images)
    return float(np.abs(kernel @ (confidence - correct)).mean() / len(confidence))


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), min_size=1, max_size=30))
@settings(max_examples=15)
def test_the_width_of_the_kernel_is_the_error_that_it_gives(pairs: list[tuple[int, bool]]) -> None:
    confidence = np.array([score for score, _ in pairs]) / 100
    correct = np.array([label for _, label in pairs]).astype(float)
    found = smooth_calibration_error(RatedAnswers.of(confidence, correct))
    assert found >= abs((confidence - correct).mean()) - 1e-6
    if found > 0.01:
        assert by_kernel(confidence, correct, found) == pytest.approx(found, abs=2e-4)


def test_one_confidence_has_its_gap_as_error() -> None:
    answers = RatedAnswers.of(np.full(10, 0.8), np.arange(10) < 6)
    assert smooth_calibration_error(answers) == pytest.approx(0.2, abs=1e-8)
    assert smooth_calibration_error(RatedAnswers.of([1.0, 1.0], [0, 0])) == pytest.approx(1, abs=1e-8)
    assert smooth_calibration_error(RatedAnswers.of([0.0], [1])) == pytest.approx(1, abs=1e-8)


def test_no_excess_is_no_error_and_no_answers_have_none() -> None:
    assert smooth_calibration_error(RatedAnswers.of([0.5, 0.5], [1, 0])) == 0
    assert smooth_calibration_error(RatedAnswers.of([1.0, 0.0], [1, 0])) == 0
    assert math.isnan(smooth_calibration_error(RatedAnswers.of([], [])))


def test_two_close_confidences_are_not_told_apart() -> None:
    """At .5 +- .001, all right and all wrong: bins that part them find an error of a half, smoothing finds little."""
    answers = RatedAnswers.of(np.repeat([0.499, 0.501], 50), np.repeat([1, 0], 50))
    assert smooth_calibration_error(answers) < 0.03
