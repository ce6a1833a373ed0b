"""Responses corrected before their outcomes are known: the queue, the selection, the baselines and their evaluation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.bootstrap import Resampling
from tracebridge.confidence.margin import Margin
from tracebridge.confidence.online import ResponseStream, best_answer, prequential_confidence, selected_responses
from tracebridge.confidence.online_baselines import (
    ONLINE_CALIBRATORS,
    ForgettingBins,
    OnlinePlatt,
    StatedConfidence,
    WindowedCalibrator,
)
from tracebridge.confidence.online_evaluation import compare_online, online_quality
from tracebridge.confidence.online_workload import DriftingWorkload
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import InputError, UsageError

FEW = Resampling(replicates=50)


class Recorder:
    """Leaves confidence as it is and writes down what happens."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, float]] = []

    def corrected(self, model: str, confidence: float) -> float:
        self.events.append(("predict", model, confidence))
        return confidence

    def observe(self, model: str, confidence: float, correct: bool) -> None:
        self.events.append(("observe", model, confidence))


def responses(rows: list[tuple[int, int, int, float, int, int]]) -> ResponseStream:
    """Rows of round, model, answer, confidence, correct, delay."""
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return ResponseStream(
        models=("a", "b", "c"),
        round=columns[0],
        model=columns[1],
        answer=columns[2],
        confidence=columns[3].astype(np.float64),
        correct=columns[4].astype(np.int8),
        delay=columns[5],
    )


def test_an_outcome_is_known_when_its_delay_has_passed_and_not_before() -> None:
    stream = responses(
        [
            (0, 0, 0, 0.1, 1, 2),
            (0, 1, 0, 0.2, 1, 0),
            (1, 0, 0, 0.3, 1, UNKNOWN),
            (2, 0, 0, 0.4, 1, 0),
            (3, 0, 0, 0.5, 1, 0),
        ]
    )
    recorder = Recorder()
    prequential_confidence(recorder, stream)
    assert [(what, confidence) for what, _, confidence in recorder.events] == [
        ("predict", 0.1),
        ("predict", 0.2),
        ("observe", 0.2),
        ("predict", 0.3),
        ("predict", 0.4),
        ("observe", 0.1),
        ("observe", 0.4),
        ("predict", 0.5),
    ]


def test_the_answer_with_the_largest_sum_wins_then_the_largest_confidence_then_the_first() -> None:
    assert best_answer([7, 9, 7], [0.3, 0.55, 0.3]) == 0
    assert best_answer([7, 9, 7], [0.3, 0.6, 0.3]) == 1
    assert best_answer([7, 9], [0.5, 0.5]) == 0
    assert best_answer([9, 7, 7], [0.3, 0.1, 0.2]) == 0  # .1 + .2 is not .3 in doubles
    with pytest.raises(UsageError):
        best_answer([], [])


def test_a_round_without_responses_selects_none() -> None:
    stream = responses([(0, 0, 5, 0.4, 1, 0), (2, 1, 5, 0.4, 0, 0)])
    assert selected_responses(stream, stream.confidence).tolist() == [0, UNKNOWN, 1]


@pytest.mark.parametrize("name", list(ONLINE_CALIBRATORS))
def test_without_feedback_every_calibrator_leaves_confidence_as_it_is(name: str) -> None:
    stream = DriftingWorkload(n_rounds=40, shifts=(), observed=0.0).responses()
    assert prequential_confidence(ONLINE_CALIBRATORS[name](), stream) == pytest.approx(stream.confidence, abs=1e-12)


@pytest.mark.parametrize("name", list(ONLINE_CALIBRATORS))
def test_the_order_of_models_does_not_matter_to_any_calibrator(name: str) -> None:
    stream = DriftingWorkload(n_rounds=60, n_models=3, shifts=(30,), delay=2).responses()
    order = np.lexsort([(stream.model + 1) % 3, stream.round])
    rotated = ResponseStream(
        models=stream.models,
        round=stream.round[order],
        model=stream.model[order],
        answer=stream.answer[order],
        confidence=stream.confidence[order],
        correct=stream.correct[order],
        delay=stream.delay[order],
    )
    one, other = (prequential_confidence(ONLINE_CALIBRATORS[name](), each) for each in (stream, rotated))
    assert np.array_equal(one[order], other)


@pytest.mark.parametrize("name", [name for name in ONLINE_CALIBRATORS if name != "stated"])
def test_every_calibrator_learns_a_steady_overconfident_model(name: str) -> None:
    """Stated at .9 and right six times in ten; after 1,000 outcomes within four standard errors of a short memory."""
    calibrator = ONLINE_CALIBRATORS[name]()
    rng = np.random.default_rng(0)
    for y in rng.random(1_000) < 0.6:
        calibrator.observe("a", 0.9, bool(y))
    assert calibrator.corrected("a", 0.9) == pytest.approx(0.6, abs=4 * math.sqrt(0.24 / 50))


def test_a_forgetting_bin_is_a_weighted_share_beside_its_prior() -> None:
    bins = ForgettingBins(memory=0.5, prior=2.0)
    for y in (True, True, False):
        bins.observe("a", 0.85, y)
    assert bins.corrected("a", 0.8) == pytest.approx((2 * 0.8 + 0.75) / (2 + 1.75))
    assert bins.corrected("a", 0.7) == pytest.approx(0.7)


def test_a_step_of_online_platt_is_one_of_the_gradient() -> None:
    platt = OnlinePlatt(step=0.1)
    platt.observe("a", 0.8, False)
    x = math.log(4)
    slope, intercept = 1 - 0.1 * 0.8 * x, -0.1 * 0.8
    assert platt.corrected("a", 0.8) == pytest.approx(1 / (1 + math.exp(-(slope * x + intercept))))


def test_a_window_forgets() -> None:
    calibrator = WindowedCalibrator("isotonic", window=20, refit_every=5)
    for y in [True, False] * 20:
        calibrator.observe("a", 0.5, y)
    assert calibrator.corrected("a", 0.5) == pytest.approx(0.5)
    for y in [True] * 15 + [False] * 5:
        calibrator.observe("a", 0.5, y)
    assert calibrator.corrected("a", 0.5) == pytest.approx(0.75)


@given(st.integers(0, 30))
@settings(max_examples=15)
def test_pairs_and_selections_are_those_of_loops(seed: int) -> None:
    stream = DriftingWorkload(n_rounds=30, shifts=(), seed=seed, present={0: (5, 20)}).responses()
    quality = online_quality("stated", stream, stream.confidence, resampling=FEW).metrics
    wins = pairs = right = 0.0
    for t in range(30):
        rows = np.flatnonzero(stream.round == t)
        sums: dict[int, list[float]] = {}
        for i in rows:
            sums.setdefault(int(stream.answer[i]), []).append(round(100 * stream.confidence[i]))
        best = max(sums, key=lambda answer: (sum(sums[answer]), max(sums[answer])))
        right += best == 0
        for i in rows[stream.correct[rows] == 1]:
            for j in rows[stream.correct[rows] == 0]:
                pairs += 1
                wins += (stream.confidence[i] > stream.confidence[j]) + (
                    stream.confidence[i] == stream.confidence[j]
                ) / 2
    assert quality["pairwise resolution"].value == pytest.approx(wins / pairs)
    assert quality["pairwise resolution"].denominator == pairs
    assert quality["selection accuracy"].value == pytest.approx(right / 30)
    assert quality["gain over stated confidence"].value == 0


def test_after_a_shift_margin_is_nearer_to_the_truth_than_stated_confidence() -> None:
    workload = DriftingWorkload(n_rounds=600, shifts=(300,), seed=3)
    calibrators = {"stated": StatedConfidence, "margin": lambda: Margin(model_shrinkage=10)}
    stated, margin = compare_online(workload.responses(), calibrators=calibrators, shifts=(300,), resampling=FEW)
    for measure in ("ECE", "ECE after shifts"):
        assert margin.metrics[measure].value < stated.metrics[measure].value
    assert margin.metrics["ECE after shifts"].denominator == 4 * 200
    assert margin.metrics["ECE"].lower < margin.metrics["ECE"].upper
    assert stated.metrics["gain over stated confidence"].value == 0


def test_without_a_shift_there_is_no_error_after_one() -> None:
    stream = DriftingWorkload(n_rounds=20, shifts=()).responses()
    assert (
        online_quality("stated", stream, stream.confidence, resampling=FEW).metrics["ECE after shifts"].status
        == "undefined"
    )


def test_a_stream_without_responses_is_undefined_throughout() -> None:
    none = np.zeros(0, dtype=np.int64)
    stream = ResponseStream(
        models=(), round=none, model=none, answer=none, confidence=np.zeros(0), correct=none.astype(np.int8), delay=none
    )
    (quality,) = compare_online(stream, calibrators={"margin": Margin}, resampling=FEW)
    assert {metric.status for metric in quality.metrics.values()} == {"undefined"}


def test_a_workload_is_as_it_was_asked_for() -> None:
    workload = DriftingWorkload(n_rounds=400, shifts=(200,), observed=0.5, delay=7, present={1: (100, 300)}, seed=2)
    stream = workload.responses()
    assert stream.n_rounds == 400
    assert np.array_equal(np.unique(stream.round[stream.model == 1]), np.arange(100, 300))
    assert set(stream.delay.tolist()) == {7, UNKNOWN}
    assert (stream.delay == 7).mean() == pytest.approx(0.5, abs=4 * 0.5 / math.sqrt(len(stream.delay)))
    assert np.array_equal(stream.correct == 1, stream.answer == 0)
    assert np.array_equal(stream.confidence, np.round(stream.confidence, 2))
    again = workload.responses()
    assert np.array_equal(again.confidence, stream.confidence)


def test_a_ramp_ends_in_the_same_regime_as_a_step() -> None:
    step, ramp = (DriftingWorkload(n_rounds=100, shifts=(40,), ramp=length).responses() for length in (0, 20))
    apart = step.confidence != ramp.confidence
    assert step.round[apart].min() >= 40
    assert step.round[apart].max() < 60


def test_what_is_no_stream_workload_or_calibrator_is_refused() -> None:
    good = (0, 0, 0, 0.5, 1, 0)
    for rows in ([(1, 0, 0, 0.5, 1, 0), good], [good, good], [(0, 3, 0, 0.5, 1, 0)], [(0, 0, 0, 0.5, 1, -2)]):
        with pytest.raises(UsageError):
            responses(rows)
    for rows in ([(0, 0, 0, 1.5, 1, 0)], [(0, 0, 0, 0.5, UNKNOWN, 0)]):
        with pytest.raises(InputError):
            responses(rows)
    for job in (
        lambda: DriftingWorkload(n_options=1),
        lambda: DriftingWorkload(shifts=(1_000,)),
        lambda: DriftingWorkload(observed=2.0),
        lambda: WindowedCalibrator("isotonic", window=0),
        lambda: OnlinePlatt(step=0.0),
        lambda: ForgettingBins(memory=0.0),
        lambda: online_quality("x", responses([good]), np.zeros(2)),
        lambda: online_quality("x", responses([good]), np.zeros(1), window=0),
    ):
        with pytest.raises(UsageError):
            job()
    for calibrator in (OnlinePlatt(), ForgettingBins(), WindowedCalibrator("temperature")):
        with pytest.raises(InputError):
            calibrator.observe("a", 1.5, True)
