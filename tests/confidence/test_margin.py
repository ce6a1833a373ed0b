"""MARGIN against its numbers by hand and the properties that it claims."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.margin import Margin
from tracebridge.errors import InputError, UsageError

OUTCOMES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 100).map(lambda s: s / 100), st.booleans()), max_size=60
)


def fed(outcomes: list[tuple[str, float, bool]], **settings: float) -> Margin:
    margin = Margin(**settings)
    for model, confidence, correct in outcomes:
        margin.observe(model, confidence, correct)
    return margin


def test_three_outcomes_give_the_published_factors() -> None:
    margin = fed([("a", 0.9, False), ("a", 0.9, True), ("a", 0.5, True)])
    assert fed([("a", 0.9, False), ("a", 0.9, True), ("a", 0.5, True)], n_bands=1).factor("a", 0.3) == pytest.approx(
        0.893574, abs=5e-7
    )
    assert margin.factor("a", 0.9) == pytest.approx(0.887168, abs=5e-7)
    assert margin.corrected("a", 0.9) == pytest.approx(0.798451, abs=5e-7)
    assert margin.factor("a", 0.5) == pytest.approx(0.904528, abs=5e-7)
    assert margin.corrected("a", 0.5) == pytest.approx(0.452264, abs=5e-7)


@given(OUTCOMES, st.integers(1, 5), st.floats(0, 1))
@settings(max_examples=25)
def test_the_factor_is_that_of_weighted_sums(
    outcomes: list[tuple[str, float, bool]], n_bands: int, confidence: float
) -> None:
    """An average that starts at 0 is a sum with weights rate * (1 - rate)**age, and the rate cancels in the ratio."""
    margin = fed(outcomes, n_bands=n_bands, model_shrinkage=7.0)
    mine = [(s, y) for model, s, y in outcomes if model == "a"]
    band = min(n_bands - 1, int(round(n_bands * confidence, 9)))
    banded = [(s, y) for s, y in mine if min(n_bands - 1, int(round(n_bands * s, 9))) == band]

    def weighted(pairs: list[tuple[float, bool]], otherwise: float) -> float:
        ages = 0.96 ** np.arange(len(pairs))[::-1]
        top, bottom = float(ages @ [y for _, y in pairs]), float(ages @ [s for s, _ in pairs])
        return top / bottom if bottom > 0 else otherwise

    of_model = (len(mine) * (weighted(mine, 1.0) if mine else 1.0) + 7) / (len(mine) + 7)
    w = len(banded) / (len(banded) + 100)
    expected = w * (weighted(banded, of_model) if banded else 0.0) + (1 - w) * of_model
    assert margin.factor("a", confidence) == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert 0 <= margin.corrected("a", confidence) <= 1


@given(OUTCOMES, st.permutations(["a", "b", "c"]), st.floats(0, 1))
@settings(max_examples=25)
def test_names_of_models_do_not_matter(
    outcomes: list[tuple[str, float, bool]], names: list[str], confidence: float
) -> None:
    renamed = dict(zip("abc", names, strict=True))
    other = fed([(renamed[model], s, y) for model, s, y in outcomes])
    margin = fed(outcomes)
    for model in "abc":
        assert other.corrected(renamed[model], confidence) == margin.corrected(model, confidence)


@given(OUTCOMES, st.floats(0, 1))
@settings(max_examples=25)
def test_without_feedback_of_its_own_a_model_keeps_its_confidence(
    outcomes: list[tuple[str, float, bool]], confidence: float
) -> None:
    assert fed(outcomes).corrected("d", confidence) == confidence


@given(OUTCOMES, st.floats(0, 1))
@settings(max_examples=25)
def test_a_state_continues_from_its_document(outcomes: list[tuple[str, float, bool]], confidence: float) -> None:
    margin = fed(outcomes, model_shrinkage=10.0)
    again = Margin.from_dict(json.loads(json.dumps(margin.to_dict())))
    for each in (margin, again):
        each.observe("a", 0.7, True)
    assert again.corrected("a", confidence) == margin.corrected("a", confidence)
    assert again.to_dict() == margin.to_dict()


@pytest.mark.parametrize(("stated", "share"), [(0.9, 0.6), (0.5, 0.8), (0.2, 0.1)])
def test_a_steady_model_is_corrected_to_its_accuracy(stated: float, share: float) -> None:
    """The mean of f s after 300 outcomes of 100 models, whose average has the variance p (1 - p) rate / (2 - rate)."""
    rng = np.random.default_rng(0)
    corrected = []
    for _ in range(100):
        margin = fed([("a", stated, bool(y)) for y in rng.random(300) < share])
        corrected.append(margin.corrected("a", stated))
    error = np.sqrt(share * (1 - share) * 0.04 / 1.96 / 100)
    assert np.mean(corrected) == pytest.approx(share, abs=4 * error)


def test_bands_are_corrected_apart_when_there_is_enough_of_each() -> None:
    """Wrong when sure, right when not: the bands' order is turned around, and said to be."""
    margin = fed([("a", 0.9, False), ("a", 0.4, True)] * 400)
    assert margin.corrected("a", 0.4) > margin.corrected("a", 0.9)
    assert margin.inversions() == [("a", 2)]
    assert fed([("a", 0.9, True)] * 7).inversions() == []


@given(OUTCOMES, st.integers(0, 2), st.floats(0, 0.33), st.floats(0, 0.33))
@settings(max_examples=25)
def test_order_is_kept_within_a_band(
    outcomes: list[tuple[str, float, bool]], band: int, low: float, high: float
) -> None:
    margin = fed(outcomes)
    low, high = sorted((band / 3 + low, band / 3 + high))
    if margin.band(low) == margin.band(high):
        assert margin.corrected("a", low) <= margin.corrected("a", high)


def test_one_early_failure_makes_a_model_worthless_unless_it_is_shrunk() -> None:
    assert fed([("a", 0.9, False)]).corrected("a", 0.9) == 0
    assert fed([("a", 0.9, False)], model_shrinkage=10.0).corrected("a", 0.9) > 0.8


def test_a_model_that_was_forgotten_starts_anew() -> None:
    margin = fed([("a", 0.9, False)])
    margin.forget("a")
    margin.forget("never heard of")
    assert margin.corrected("a", 0.9) == 0.9


def test_what_is_no_confidence_state_or_setting_is_refused() -> None:
    margin = fed([("a", 0.9, True)])
    for confidence in (1.0000001, -0.1, float("nan")):
        with pytest.raises(InputError, match="a confidence lies"):
            margin.observe("a", confidence, True)
        with pytest.raises(InputError, match="a confidence lies"):
            margin.corrected("b", confidence)
    for wrong in ({"n_bands": 0}, {"rate": 1.0}, {"band_shrinkage": -1.0}, {"model_shrinkage": float("inf")}):
        with pytest.raises(UsageError):
            Margin(**wrong)
    document = margin.to_dict()
    for change in ({"models": {"a": {"overall": [0.1, 0.2, 3], "bands": []}}}, {"models": {"a": {}}}, {"models": 3}):
        with pytest.raises(InputError):
            Margin.from_dict({**document, **change})
    with pytest.raises(InputError, match="moving averages"):
        Margin.from_dict({**document, "models": {"a": {"overall": [2.0, 0.2, 3], "bands": [[0, 0, 0]] * 3}}})
