"""Ranges of constants, as PRISM's -const writes them."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import UsageError
from tracebridge.pctl.experiment import MAX_POINTS, Experiment


def test_several_ranges_give_their_product_in_order() -> None:
    experiment = Experiment.parse(["d=1:3", "p=0.1:0.2:0.5", "k=3", "strict=true"])
    assert experiment.varying == ("d", "p")
    points = list(experiment.points())
    assert len(points) == len(experiment) == 9
    assert points[0] == {"d": 1, "p": Fraction(1, 10), "k": 3, "strict": True}
    assert [(point["d"], point["p"]) for point in points[1:4]] == [
        (1, Fraction(3, 10)),
        (1, Fraction(1, 2)),
        (2, Fraction(1, 10)),
    ]
    assert list(points[-1]) == ["d", "p", "k", "strict"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1:5", [1, 2, 3, 4, 5]),
        ("1:5:50", [1, 6, 11, 16, 21, 26, 31, 36, 41, 46]),
        ("0:0.25:1", [0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), 1]),
        ("0.1:0.1:0.3", [Fraction(1, 10), Fraction(2, 10), Fraction(3, 10)]),
        ("1/3:1/3:1", [Fraction(1, 3), Fraction(2, 3), 1]),
        ("-2:1:0", [-2, -1, 0]),
        ("3:3", [3]),
        ("1e-3", [Fraction(1, 1000)]),
        (".5", [Fraction(1, 2)]),
        ("false", [False]),
        (" 1 : 2 ", [1, 2]),
    ],
)
def test_values(text: str, values: list[Fraction | int]) -> None:
    assert Experiment.parse([f"d={text}"]).values == {"d": tuple(values)}


@given(
    st.fractions(-50, 50, max_denominator=20),
    st.fractions(Fraction(1, 20), 5, max_denominator=20),
    st.fractions(0, 50, max_denominator=20),
)
def test_a_range_holds_exactly_the_steps_from_its_start_to_its_end(
    start: Fraction, step: Fraction, length: Fraction
) -> None:
    values = Experiment.parse([f"x={start}:{step}:{start + length}"]).values["x"]
    assert values[0] == start
    assert all(second - first == step for first, second in pairwise(values))
    assert values[-1] <= start + length < values[-1] + step


def test_nothing_given_is_one_point() -> None:
    assert list(Experiment.parse([]).points()) == [{}]
    assert Experiment.parse(["k=3"]).varying == ()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["d"], "--const d: write name=value, as in d=8, or a range, as in d=1:50"),
        (["1d=3"], "write name=value"),
        (["d=1", "d=2"], "--const d is given twice"),
        (["d=1:2:3:4"], "a range is start:end or start:step:end"),
        (["d=1:0:5"], "the step 0 must be positive"),
        (["d=5:-1:1"], "the step -1 must be positive"),
        (["d=5:1"], "the end 1 lies before the start 5"),
        (["d=x"], "'x' is no number, true or false"),
        (["d=true:false"], "'true' is no number"),
        (["d=1/0"], "'1/0' is no number"),
        (["d=nan"], "'nan' is no number"),
        (["d="], "'' is no number"),
        (["d=1:1000000"], "more than 100,000 values"),
        (["d=1:1e-9:2"], "more than 100,000 values"),
        (["a=1:400", "b=1:400"], "more than 100,000 combinations"),
        (["d=1e9999"], "more than 14,000 bits"),
        (["d=" + "9" * 100_000], "is no number"),
    ],
)
def test_what_is_no_experiment(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        Experiment.parse(texts)
    assert len(str(caught.value)) < 300


def test_the_largest_experiment() -> None:
    experiment = Experiment.parse([f"d=1:{MAX_POINTS}"])
    assert len(experiment) == MAX_POINTS
