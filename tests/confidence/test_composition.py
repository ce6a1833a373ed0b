"""Composed answers: supports, majority, posterior and gated choices, and what they must not depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.composition import best_single_stream, fit_composition, single_stream
from tracebridge.confidence.composition_evaluation import composition_quality, mean_difference, weighted_f1
from tracebridge.confidence.composition_gate import GatedFusion, fit_gated_fusion
from tracebridge.confidence.composition_pools import Pool, SharedDependence
from tracebridge.confidence.composition_streams import (
    Streams,
    calibrated_streams,
    fitting_questions,
    sampled_support,
    stated_support,
)
from tracebridge.confidence.metric_value import ratio
from tracebridge.confidence.table import UNKNOWN
from tracebridge.errors import FitError, InputError, UsageError

INDEPENDENT = Pool(name="sum", base_rate=0.5, dependence=SharedDependence(rho=0.0, n_fit=0))


def corpus(n_questions: int = 400, seed: int = 0, n: int = 3) -> Streams:
    """Closed questions with four options, the right one 0; streams right with chance .5 + .4 of their confidence."""
    rng = np.random.default_rng(seed)
    confidence = rng.integers(5, 100, (n_questions, n)) / 100
    right = rng.random((n_questions, n)) < 0.3 + 0.6 * confidence
    answer = np.where(right, 0, rng.integers(1, 4, (n_questions, n)))
    names = [f"q{i}" for i in range(n_questions)]
    return Streams.of(names, answer, confidence, right, n_options=4, gold=np.zeros(n_questions, dtype=int))


def one(answer: list[int], confidence: list[float], n_options: int = 0) -> Streams:
    return Streams.of(
        ["q"], np.array([answer]), np.array([confidence]), np.array([[UNKNOWN] * len(answer)]), n_options=n_options
    )


def test_a_stream_leaves_to_other_answers_what_its_confidence_leaves() -> None:
    closed = stated_support(one([0, 0, 1], [0.8, 0.6, 0.7], n_options=4))[0]
    assert closed == pytest.approx(np.array([[0.8, 0.6, 0.1], [0.8, 0.6, 0.1], [0.2 / 3, 0.4 / 3, 0.7]]))
    opened = stated_support(one([0, 0, 1], [0.8, 0.6, 0.7]))[0]  # two given answers and all others
    assert opened == pytest.approx(np.array([[0.8, 0.6, 0.15], [0.8, 0.6, 0.15], [0.1, 0.2, 0.7]]))
    absent = stated_support(one([0, UNKNOWN], [1.0, 0.5]))[0]
    assert absent[0, 0] == 0.999
    assert np.isnan(absent.ravel()[1:]).all()


def test_supports_of_a_closed_question_sum_to_one_over_its_answers() -> None:
    support = stated_support(one([0, 1, 2], [0.5, 0.6, 0.7], n_options=3))[0]
    assert support.sum(axis=0) == pytest.approx([1, 1, 1])


def test_support_from_samples_is_smoothed() -> None:
    assert sampled_support(np.array([0, 3, 5]), 5) == pytest.approx([0.5 / 6, 3.5 / 6, 5.5 / 6])
    with pytest.raises(UsageError):
        sampled_support(np.array([6]), 5)


def test_the_majority_answers_and_ties_go_to_the_larger_support() -> None:
    composition = fit_composition(corpus(), "sum", base_rate=0.5)
    assert composition(one([7, 7, 9], [0.3, 0.3, 0.99], n_options=4)).answer.tolist() == [7]
    assert composition(one([7, 9], [0.6, 0.7], n_options=4)).answer.tolist() == [9]
    assert composition(one([UNKNOWN, UNKNOWN], [0.6, 0.7])).answer.tolist() == [UNKNOWN]


def test_the_posterior_may_overrule_the_majority() -> None:
    """Two at .3 for an answer and one at .99 for another, of two options: odds (3/7)**2 / 99 against."""
    composition = fit_composition(corpus(), "sum", choice="posterior", base_rate=0.5)
    found = composition(one([7, 7, 9], [0.3, 0.3, 0.99], n_options=2))
    assert found.answer.tolist() == [9]
    odds = 99 * (0.7 / 0.3) ** 2
    assert found.confidence == pytest.approx([odds / (1 + odds)])


@given(st.permutations(range(3)), st.sampled_from(["majority", "posterior", "gated"]), st.integers(0, 3))
@settings(max_examples=25)
def test_the_order_of_streams_does_not_matter(order: list[int], rule: str, seed: int) -> None:
    streams = corpus(60, seed)
    shuffled = Streams.of(
        streams.questions,
        streams.answer[:, order],
        streams.confidence[:, order],
        streams.correct[:, order],
        n_options=4,
    )
    results = []
    for given_streams in (streams, shuffled):
        if rule == "gated":
            results.append(GatedFusion(pool=INDEPENDENT, threshold=0.6)(given_streams))
        else:
            results.append(fit_composition(given_streams, "discount", choice=rule)(given_streams))
    assert np.array_equal(results[0].answer, results[1].answer)
    assert results[0].confidence == pytest.approx(results[1].confidence, abs=1e-9)
    assert np.array_equal(results[0].correct, results[1].correct)


@given(st.integers(0, 20))
@settings(max_examples=20)
def test_discounting_leaves_answers_and_ranking_as_in_the_sum(seed: int) -> None:
    streams = corpus(80, seed)
    plain, discounted = (
        fit_composition(streams, pool, choice="posterior", base_rate=0.5)(streams) for pool in ("sum", "discount")
    )
    assert np.array_equal(plain.answer, discounted.answer)
    order = np.argsort(plain.confidence, kind="stable")
    assert (np.diff(discounted.confidence[order]) >= -1e-9).all()


def test_an_agreed_answer_passes_the_gate_whatever_its_confidence() -> None:
    gate = GatedFusion(pool=INDEPENDENT, threshold=0.9, base_rate=0.5)
    found = gate(one([7, 7], [0.2, 0.3], n_options=4))
    assert found.answer.tolist() == [7]
    assert found.confidence == pytest.approx([(0.2 * 0.3) / (0.2 * 0.3 + 0.8 * 0.7)])
    uniform = GatedFusion(pool=INDEPENDENT, threshold=0.9)(one([7, 7], [0.25, 0.25], n_options=4))
    assert uniform.confidence == pytest.approx([0.25])  # streams that know nothing leave one in four


def test_only_streams_above_the_threshold_are_fused() -> None:
    gate = GatedFusion(pool=INDEPENDENT, threshold=0.6, base_rate=0.5)
    found = gate(one([7, 7, 9], [0.55, 0.55, 0.7], n_options=2))
    assert found.answer.tolist() == [9]
    assert found.confidence == pytest.approx([0.7])


def test_where_no_stream_passes_the_most_confident_answers_for_itself() -> None:
    found = GatedFusion(pool=INDEPENDENT, threshold=0.9, base_rate=0.5)(one([7, 7, 9], [0.55, 0.5, 0.6], n_options=2))
    assert found.answer.tolist() == [9]
    assert found.confidence == pytest.approx([0.6])


def test_the_threshold_has_the_best_area_of_those_tried() -> None:
    streams = corpus(300)
    gate = fit_gated_fusion(streams, "sum")
    assert 0 <= gate.threshold < 1

    def area(threshold: float) -> float:
        found = GatedFusion(pool=gate.pool, threshold=threshold)(streams)
        return composition_quality(found, found).stated["AUARC"].value

    assert (
        area(gate.threshold)
        >= max(area(float(t)) for t in np.quantile(streams.confidence, [0, 0.25, 0.5, 0.75])) - 1e-12
    )
    with pytest.raises(UsageError, match="needs all of them"):
        fit_gated_fusion(streams, "full")


def test_a_question_keeps_its_side_of_the_split_whatever_others_there_are() -> None:
    names = [f"q{i}" for i in range(4_000)]
    side = fitting_questions(names)
    assert np.array_equal(fitting_questions(names[:100]), side[:100])
    assert side.mean() == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / 4_000))
    assert not np.array_equal(side, fitting_questions(names, seed=1))


def test_streams_are_calibrated_apart_and_composition_beats_them() -> None:
    streams = corpus(1_500)
    fit = fitting_questions(streams.questions)
    calibrated, calibrators = calibrated_streams(streams[fit], streams)
    assert len(calibrators) == 3
    composition = fit_composition(calibrated[fit], "discount")
    held_out = composition(calibrated[~fit])
    quality = composition_quality(composition(calibrated[fit]), held_out)
    alone = single_stream(calibrated[~fit], best_single_stream(calibrated[fit]))
    reference = composition_quality(single_stream(calibrated[fit], 0), alone)
    assert quality.stated["accuracy"].value > reference.stated["accuracy"].value
    assert quality.stated["AUARC"].value > reference.stated["AUARC"].value
    assert quality.stated["ECE"].value < 0.1
    fitted = fit_composition(calibrated[fit], "discount", base_rate="fitted")(calibrated[~fit])
    assert composition_quality(fitted, fitted).stated["gap"].value < -0.3  # supports are of one answer in four
    assert quality.weighted_f1.denominator == int((~fit).sum())


def test_weighted_f1_is_that_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score

    rng = np.random.default_rng(0)
    gold, answer = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    assert weighted_f1(answer, gold).value == pytest.approx(f1_score(gold, answer, average="weighted"))
    assert weighted_f1(answer, np.full(200, UNKNOWN)).status == "undefined"


def test_differences_are_taken_by_group_and_then_averaged() -> None:
    values = {"a": ratio("x", 3, 4, "n"), "b": ratio("x", 1, 4, "n"), "c": ratio("x", 0, 0, "n")}
    references = {"a": ratio("x", 1, 2, "n"), "b": ratio("x", 1, 2, "n"), "c": ratio("x", 1, 2, "n")}
    found = mean_difference("gain", values, references)
    assert (found.value, found.denominator, found.n_dropped) == (0.0, 2.0, 1)
    with pytest.raises(UsageError):
        mean_difference("gain", values, {})


def test_contradictory_streams_are_refused() -> None:
    with pytest.raises(InputError, match="one answer has two labels"):
        Streams.of(["q"], np.array([[1, 1]]), np.array([[0.5, 0.5]]), np.array([[0, 1]]))
    with pytest.raises(InputError, match="more answers than its 2 options"):
        Streams.of(["q"], np.array([[1, 2, 3]]), np.full((1, 3), 0.5), np.zeros((1, 3)), n_options=2)
    with pytest.raises(InputError, match="outside"):
        one([1, 2], [0.5, 1.5])
    with pytest.raises(UsageError, match="shape"):
        Streams.of(["q"], np.array([[1, 2]]), np.array([[0.5]]), np.array([[0, 1]]))
    with pytest.raises(UsageError, match="too many to compose"):
        one([0] * 9_000, [0.5] * 9_000)
    with pytest.raises(UsageError, match="one stream or more"):
        one([], [])
    with pytest.raises(FitError, match="no question"):
        fit_composition(one([1, 2], [0.5, 0.6]))
    with pytest.raises(UsageError, match="base rate"):
        fit_composition(corpus(20), base_rate="flat")
    with pytest.raises(FitError, match="no stream"):
        best_single_stream(one([1, 2], [0.5, 0.6]))
