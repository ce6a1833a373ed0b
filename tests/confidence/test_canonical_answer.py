"""Answers that are certainly the same have one form."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.confidence.canonical_answer import boxed_answer, canonical_answer

PIECES = st.sampled_from(
    ["\\boxed{", "\\text{", "}", "$", "$$", "\\(", "\\)", "1", "0", ".", "/", "e", "-", " ", "é", "{"]
)


@given(st.text(max_size=30) | st.lists(PIECES, max_size=12).map("".join))
def test_the_form_of_a_form_is_itself(text: str) -> None:
    once = canonical_answer(text)
    assert canonical_answer(once) == once


@given(st.fractions(max_denominator=1000).filter(lambda value: abs(value) < 10**9))
def test_all_writings_of_a_number_are_one(value: Fraction) -> None:
    forms = [f"{value.numerator}/{value.denominator}", f"$\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}$"]
    if value < 0:
        forms[1] = f"-\\dfrac{{{-value.numerator}}}{{{value.denominator}}}"
    if value.denominator == 1:
        forms += (
            [f"{value}.0", f" {value} ", f"\\boxed{{{value}}}", f"{value}e0", f"{value}0e-1"] if value else ["0", "-0"]
        )
    assert {canonical_answer(form) for form in forms} == {str(value)}


@given(st.decimals(-1000, 1000, places=3), st.decimals(-1000, 1000, places=3))
def test_decimals_are_equal_exactly_where_their_values_are(one: object, other: object) -> None:
    is_equal = Fraction(str(one)) == Fraction(str(other))
    assert (canonical_answer(str(one)) == canonical_answer(str(other))) == is_equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris", "  Paris\n"),
        ("a  b", "a\tb"),
        ("\\boxed{\\text{Paris}}", "Paris"),
        ("$x+1$", "x+1"),
        ("\\[ x \\]", "\\(x\\)"),
        ("0.5", ".50"),
        ("1e3", "1000"),
        ("e\u0301", "\u00e9"),
        ("", " \\boxed{ } "),
    ],
)
def test_the_same(one: str, other: str) -> None:
    assert canonical_answer(one) == canonical_answer(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris", "paris"),
        ("Paris", "Paris."),
        ("1,234", "1234"),
        ("007", "7"),
        ("50%", "0.5"),
        ("x^2", "x2"),
        ("x²", "x2"),
        ("$5$ or $6$", "5$ or $6"),
        ("1/0", "0"),
        ("\\boxed{1}{2}", "1}{2"),
    ],
)
def test_what_may_differ_is_left_alone(one: str, other: str) -> None:
    assert canonical_answer(one) != canonical_answer(other)


def test_hostile_answers_cost_little() -> None:
    assert canonical_answer("9" * 100_000) == "9" * 100_000
    assert canonical_answer("1e999") == "1e999"
    nested = "\\boxed{" * 100 + "7.0" + "}" * 100
    assert canonical_answer(nested) == "7"
    assert boxed_answer("\\boxed{" * 50_000) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so \\boxed{1} and \\boxed{\\frac{1}{2}}.", "\\frac{1}{2}"),
        ("\\boxed{1} \\boxed{2", "1"),
        ("nothing } here", None),
        ("\\boxed {x}", "x"),
    ],
)
def test_the_last_complete_box_is_the_answer(text: str, expected: str | None) -> None:
    assert boxed_answer(text) == expected
