"""Numbers and values in tables."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracebridge import check, compare
from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector
from tracebridge.inference.intervals import Interval
from tracebridge.report.table import format_number, interval_text, verdict_rows


@given(st.integers(10**12, 10**13 - 1), st.integers(-5_000, 5_000), st.booleans(), st.integers(1, 12))
@example(10**12, 388, False, 6)
@example(999_999_999_999_9, 488, False, 6)
@example(10**12, -5_000, True, 1)
def test_rationals_of_any_size_are_shown_within_half_a_digit(
    mantissa: int, exponent: int, negative: bool, digits: int
) -> None:
    number = Fraction(-mantissa if negative else mantissa) * Fraction(10) ** exponent
    shown = format_number(number, digits)
    if "/" in shown:
        assert Fraction(shown) == number
        return
    with localcontext(prec=50):
        error = abs(Decimal(shown) / (Decimal(number.numerator) / Decimal(number.denominator)) - 1)
    assert error <= Decimal(10) ** (1 - digits) / 2 + Decimal("1e-15")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Fraction(10**400), "1e+400"),
        (Fraction(10**500), "1e+500"),
        (Fraction(999 * 10**497), "9.99e+499"),
        (Fraction(9_999_999 * 10**493), "1e+500"),
        (Fraction(-1, 10**400), "-1e-400"),
        (Fraction(2**1024), "1.79769e+308"),
        (Fraction(2) ** 3_000_000, "9.70492e+903089"),  # 10 ** (3_000_000 * log10(2))
        (Fraction(1, 3), "1/3"),
        (Fraction(0), "0"),
        (math.inf, "infinity"),
        (-0.0, "0"),
        (math.nan, "undefined"),
    ],
)
def test_numbers(number: Fraction | float, text: str) -> None:
    assert format_number(number, 6) == text


def test_a_value_that_rounding_leaves_open_is_shown_by_its_bounds() -> None:
    rows = [{1: Fraction(1, 3), 2: Fraction(2, 3)}, {1: Fraction(1)}, {2: Fraction(1)}]
    chain = MarkovChain(
        states=("start", "success", "failure"),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([1, 0, 0]),
    )
    text = 'floor(log(1000, 10)); pow(2, 1e308); -pow(2, 1e308); floor(P=? [ X "success" ] * 3); 1e500;'
    table = verdict_rows(compare(check(chain, text, engines=["closed-form"])))
    assert [row[1:3] for row in table] == [
        ["undecided", "2..3"],
        ["undecided", "at least 1.79769e+308"],
        ["undecided", "at most -1.79769e+308"],
        ["answered", "1"],
        ["answered", "1e+500"],
    ]


@pytest.mark.parametrize(
    ("lower", "upper", "text"),
    [
        (0.25, 0.5, "[0.25, 0.5]"),
        (0.0, 1e-30, "[0, <1e-12]"),
        (1e-30, 0.5, "[<1e-12, 0.5]"),
        (1e-12, math.inf, "[1e-12, infinity]"),
        (-1e-30, 1.0, "[-1e-30, 1]"),
    ],
)
def test_ends_that_only_the_cut_off_of_draws_made_are_below_a_bound(lower: float, upper: float, text: str) -> None:
    assert interval_text(Interval(lower=lower, upper=upper, level=0.95, method="m")) == text
    assert interval_text(None) == "-"
