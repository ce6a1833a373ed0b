"""Scales are read, said or told from the scores, and never guessed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.confidence.score_scale import (
    ScoreSightings,
    confidences,
    is_percentage,
    parse_scale,
    parse_score,
    tied,
)
from tracebridge.confidence.table import ScoreScale
from tracebridge.errors import InputError, Location, UsageError


def sightings(*scores: float) -> ScoreSightings:
    seen = ScoreSightings()
    for line, score in enumerate(scores, 1):
        seen.add(score, Location(path="f.csv", line=line))
    return seen


@pytest.mark.parametrize(
    ("scores", "maximum", "integer"),
    [
        ((0.2, 1, 0), 1, False),
        ((1, 0, 1), 1, False),
        ((20, 100, 0), 100, True),
        ((20, 1, 90), 100, True),
        ((20.5, 90), 100, False),
    ],
)
def test_a_scale_is_told_from_scores(scores: tuple[float, ...], maximum: float, integer: bool) -> None:
    scale = sightings(*scores).scale()
    assert (scale.minimum, scale.maximum, scale.integer) == (0, maximum, integer)
    assert scale.origin == "inferred from the scores"


@pytest.mark.parametrize(
    ("scores", "lines", "message"),
    [
        ((0.95, 0.9, 95), [3], "scores of two scales: 2 strictly between 0 and 1 and 1 above 1"),
        ((95, 90, 0.9), [3], "this one is of the fewer: 0.9"),
        ((0.3, 1.0000001), [2], "1.0000001"),
        ((0.3, -0.1), [2], "below 0"),
        ((30, 101, 102), [2, 3], "above 100"),
        ((3, 5, 1), [1], "the scale may end at 5, 10 or 100"),
        ((), [None], "no score can be read"),
    ],
)
def test_scores_that_no_one_scale_explains_are_refused_with_their_lines(
    scores: tuple[float, ...], lines: list[int | None], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        sightings(*scores).scale()
    assert [problem.location.line for problem in caught.value.problems] == lines


def test_only_the_first_places_are_kept() -> None:
    with pytest.raises(InputError) as caught:
        sightings(*[0.5] * 1000, *[50] * 2000).scale()
    assert len(caught.value.problems) == 4
    assert "997 more scores" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("87", 87),
        (" 0.5 ", 0.5),
        ("1e2", 100),
        (90, 90),
        (0.25, 0.25),
        ("Unparseable", None),
        ("NaN", None),
        ("inf", None),
        ("87%", 87),
        (" 12.5 % ", 12.5),
        ("%", None),
        ("8%%", None),
        ("87 percent", None),
        ("1_0", None),
        ("", None),
        (None, None),
        (True, None),
        (math.nan, None),
        ([1], None),
        (10**400, None),
        ("9" * 1000, None),
    ],
)
def test_a_score_is_a_finite_number_or_nothing(text: object, value: float | None) -> None:
    found = parse_score(text)
    assert found == value
    assert type(found) is type(value)


def test_percentages_say_their_scale_however_small_they_are() -> None:
    def seen(*texts: str) -> ScoreSightings:
        found = ScoreSightings()
        for text in texts:
            score = parse_score(text)
            assert score is not None
            found.add(score, Location(path="polls.csv"), percentage=is_percentage(text))
        return found

    for texts in (("0.5%", "0.9%"), ("1%",), ("0%", "3%"), ("90%", "12")):
        assert seen(*texts).scale().maximum == 100
    assert seen("1").scale().maximum == 1
    with pytest.raises(InputError, match="scores of two scales"):
        seen("90%", "0.9").scale()
    with pytest.raises(InputError, match=r"0\.5% is a percentage, and the scale that was stated ends at 1"):
        seen("12", "0.5%").on(parse_scale("0-1"))
    assert seen("0.5%").on(parse_scale("0-100")).maximum == 100


def test_a_scale_is_written_by_its_ends() -> None:
    scale = parse_scale("1-100")
    assert (scale.minimum, scale.maximum) == (1, 100)
    assert sightings(50, 60).on(scale).integer
    assert not sightings(0.5).on(parse_scale("0-1")).integer
    for wrong in ("", "1", "5-5", "9-1", "-1-1", "0-NaN"):
        with pytest.raises(UsageError):
            parse_scale(wrong)


def test_a_confidence_is_a_score_of_the_scale_over_its_maximum() -> None:
    scores = np.array([0, 1, 50, 50.5, 100, 101, math.nan])
    whole = confidences(scores, ScoreScale(minimum=1, maximum=100, integer=True))
    np.testing.assert_array_equal(whole, [math.nan, 0.01, 0.5, math.nan, 1, math.nan, math.nan])
    unit = confidences(np.array([1.0, 1.0000001, -1e-9]), ScoreScale(minimum=0, maximum=1))
    np.testing.assert_array_equal(unit, [1, math.nan, math.nan])


def test_scores_too_large_to_round_stay() -> None:
    scores = np.array([1e308, 1e307, -1e308, 0.1 + 0.2, 0.3])
    np.testing.assert_array_equal(tied(scores, 1e-9), [1e308, 1e307, -1e308, 0.3, 0.3])


@settings(max_examples=50)
@given(st.lists(st.integers(0, 20), min_size=1))
def test_ties_are_exact_up_to_the_resolution(tenths: list[int]) -> None:
    # the same tenth, reached by other sums, is another double
    scores = np.array(
        [math.fsum([value / 10]) if place % 2 else sum([0.1] * value) for place, value in enumerate(tenths)]
    )
    found = tied(np.append(scores, math.nan), 1e-9)
    assert math.isnan(found[-1])
    assert all(
        (a == b) == (x == y) for a, x in zip(found, tenths, strict=False) for b, y in zip(found, tenths, strict=False)
    )
    assert set(found[:-1]) <= set(scores)
    np.testing.assert_allclose(found[:-1], scores, atol=1e-9)
