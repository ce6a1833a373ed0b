"""Interval arithmetic: it encloses, it is tight, and what is undefined says so."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tracebridge.closedform import directed
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import UnsupportedError

finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e6, 1e6)


@st.composite
def triples(draw: st.DrawFn, values: st.SearchStrategy[float] = finite) -> tuple[float, float, float]:
    lower, value, upper = sorted(draw(values) for _ in range(3))
    return value, lower, upper


def floats(*found: tuple[float, float, float]) -> EnclosureVector:
    value, lower, upper = (np.array(part) for part in zip(*found, strict=True))
    return EnclosureVector.from_bounds(value, lower, upper)


def exact(*numbers: Fraction | float) -> EnclosureVector:
    return EnclosureVector.from_fractions(numbers)


ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv]


class TestEnclosure:
    def test_order_is_kept(self) -> None:
        with pytest.raises(ValueError, match="does not lie"):
            Enclosure(2.0, 0.0, 1.0)
        with pytest.raises(ValueError, match="undefined"):
            Enclosure(math.nan, 0.0, 1.0)

    def test_exactness(self) -> None:
        assert Enclosure.exactly(Fraction(1, 3)).exact
        assert Enclosure.exactly(math.inf).exact
        assert not Enclosure(0.5, 0.5, 0.5).exact
        assert Enclosure.exactly(math.nan).undefined
        assert Fraction(1, 3) in Enclosure(0.3, 0.3, 0.4)


class TestDirectedRounding:
    @given(finite, finite)
    @example(5e-324, 5e-324)
    @example(1.7976931348623157e308, 1.7976931348623157e308)
    @example(1e-200, 1e-200)
    @settings(max_examples=400)
    def test_bounds_of_one_operation(self, a: float, b: float) -> None:
        x, y = np.array([a]), np.array([b])
        checks = [
            (directed.add_down(x, y), directed.add_up(x, y), Fraction(a) + Fraction(b)),
            (directed.multiply_down(x, y), directed.multiply_up(x, y), Fraction(a) * Fraction(b)),
        ]
        if b != 0:
            checks.append((directed.divide_down(x, y), directed.divide_up(x, y), Fraction(a) / Fraction(b)))
        for lower, upper, true in checks:
            assert lower[0] <= true <= upper[0]
            assert math.nextafter(math.nextafter(lower[0], math.inf), math.inf) >= upper[0]

    @given(
        st.floats(-1e100, 1e100).filter(lambda x: abs(x) > 1e-100),
        st.floats(-1e100, 1e100).filter(lambda x: abs(x) > 1e-100),
    )
    def test_they_are_the_nearest_doubles(self, a: float, b: float) -> None:
        x, y = np.array([a]), np.array([b])
        for lower, true in [
            (directed.add_down(x, y)[0], Fraction(a) + Fraction(b)),
            (directed.multiply_down(x, y)[0], Fraction(a) * Fraction(b)),
            (directed.divide_down(x, y)[0], Fraction(a) / Fraction(b)),
        ]:
            assert lower == directed.down(true)

    @given(st.fractions(), st.integers(-1000, 1000))
    def test_scalars(self, number: Fraction, exponent: int) -> None:
        scaled = number * Fraction(2) ** exponent
        assert directed.down(scaled) <= scaled <= directed.up(scaled)
        assert math.nextafter(directed.down(scaled), math.inf) >= directed.up(scaled)

    @given(st.integers(0, 2**200), st.integers(0, 1300))
    def test_scaled_integers(self, mantissa: int, bits: int) -> None:
        true = Fraction(mantissa, 2**bits)
        assert directed.scaled_down(mantissa, bits) == directed.down(true)
        assert directed.scaled_up(mantissa, bits) == directed.up(true)

    def test_beyond_doubles(self) -> None:
        huge = Fraction(10) ** 400
        assert directed.down(huge) == math.nextafter(math.inf, 0)
        assert directed.up(huge) == math.inf
        assert directed.scaled_down(2**1100, 0) == math.nextafter(math.inf, 0)
        assert directed.scaled_up(2**1100, 0) == math.inf


class TestArithmetic:
    @pytest.mark.parametrize("operation", ARITHMETIC)
    @given(a=triples(), b=triples())
    @settings(max_examples=150)
    def test_results_are_enclosed(
        self, operation: Callable[..., EnclosureVector], a: tuple[float, ...], b: tuple[float, ...]
    ) -> None:
        found = operation(floats(a), floats(b))[0]
        if operation is operator.truediv and b[1] <= 0 <= b[2]:
            assert found.undefined
            return
        for x in a:
            for y in b:
                assert found.lower <= operation(Fraction(x), Fraction(y)) <= found.upper

    @pytest.mark.parametrize("operation", ARITHMETIC)
    @given(a=st.fractions(), b=st.fractions())
    def test_rationals(self, operation: Callable[..., EnclosureVector], a: Fraction, b: Fraction) -> None:
        found = operation(exact(a), exact(b))
        assert found.exact
        if operation is operator.truediv and b == 0:
            assert found[0].undefined
        else:
            assert found[0].value == operation(a, b)

    @pytest.mark.parametrize("make", [exact, lambda *numbers: floats(*((float(x),) * 3 for x in numbers))])
    def test_infinities(self, make: Callable[..., EnclosureVector]) -> None:
        a = make(math.inf, math.inf, math.inf, math.inf, Fraction(1), Fraction(0))
        b = make(Fraction(1), math.inf, Fraction(0), Fraction(2), math.inf, Fraction(0))
        assert (a + b).value.tolist()[:1] == [math.inf]
        assert (a - b)[1].undefined
        product = a * b
        assert product[1].value == math.inf
        assert product[2].undefined
        assert product[3].value == math.inf
        quotient = a / b
        assert quotient[1].undefined
        assert quotient[4].value == 0
        assert quotient[5].undefined

    def test_huge_rationals_meet_infinity(self) -> None:
        huge = Fraction(10) ** 400
        assert (exact(huge) + exact(math.inf))[0].value == math.inf
        assert (exact(huge) * exact(-math.inf))[0].value == -math.inf

    def test_overflow_is_bounded(self) -> None:
        big = floats((1.7e308,) * 3)
        found = (big * big)[0]
        assert (found.lower, found.upper) == (math.nextafter(math.inf, 0), math.inf)

    def test_exact_operations_stay_points(self) -> None:
        one, half = floats((1.0,) * 3), floats((0.5,) * 3)
        for found in (one - half, one * half, half / one, -half, half + half):
            assert found.lower[0] == found.upper[0]

    def test_mixed_kinds_are_float(self) -> None:
        found = exact(Fraction(1, 3)) + floats((0.0, 0.0, 0.0))
        assert not found.exact
        assert found.lower[0] < Fraction(1, 3) < found.upper[0]


class TestPowers:
    @given(st.fractions(-20, 20), st.integers(-6, 6))
    def test_rationals(self, base: Fraction, k: int) -> None:
        found = exact(base) ** exact(Fraction(k))
        assert found.exact
        if base == 0 and k < 0:
            assert found[0].undefined
        else:
            assert found[0].value == base**k

    @given(triples(moderate), st.integers(-6, 6))
    @settings(max_examples=200)
    def test_whole_exponents(self, base: tuple[float, float, float], k: int) -> None:
        found = (floats(base) ** exact(Fraction(k)))[0]
        if k < 0 and base[1] <= 0 <= base[2]:
            assert found.undefined
            return
        for x in (*base, *((0.0,) if base[1] <= 0 <= base[2] else ())):
            assert found.lower <= Fraction(x) ** k <= found.upper

    @given(triples(st.floats(1e-9, 1e3)), triples(st.floats(-5, 5)))
    def test_any_exponent_of_a_positive_base(
        self, base: tuple[float, float, float], exponent: tuple[float, float, float]
    ) -> None:
        from flint import arb

        found = (floats(base) ** floats(exponent))[0]
        for x in base:
            for y in exponent:
                power = arb(x) ** arb(y)
                assert arb(found.lower) <= power.upper()
                assert power.lower() <= arb(found.upper)
        assert directed.power_bounds(2.0, 0.5)[0] < math.sqrt(2) + 1e-15

    def test_roots_of_rationals_are_float(self) -> None:
        found = exact(Fraction(2)) ** exact(Fraction(1, 2))
        assert not found.exact
        assert Fraction(found.lower[0]) ** 2 < 2 < Fraction(found.upper[0]) ** 2
        assert found[0].width <= 2**-51

    def test_edges(self) -> None:
        assert (exact(Fraction(0)) ** exact(Fraction(0)))[0].value == 1
        assert (floats((-1.0, -2.0, -0.5)) ** exact(Fraction(1, 2)))[0].undefined
        assert (exact(math.inf) ** exact(Fraction(-1)))[0].value == 0
        with pytest.raises(UnsupportedError, match="too large"):
            exact(Fraction(1, 3)) ** exact(Fraction(10**9))

    @given(
        st.sampled_from([2.0, 0.5, 10.0, 0.1, 1.0000001, 1 - 2**-53, -2.0, -0.5, 1e300, 5e-324]),
        st.integers(0, 70_000),
        st.integers(-3, 3),
    )
    @example(2.0, 65_536, 0)
    @example(0.5, 65_536, 0)
    @example(-2.0, 65_536, 0)
    @example(-2.0, 65_536, 1)
    @example(2.0, 1_023, 0)
    def test_huge_exponents(self, base: float, bits: int, offset: int) -> None:
        from flint import arb, fmpz

        exponent = 2**bits + offset
        found = (floats((base,) * 3) ** exact(Fraction(exponent)))[0]
        sign = -1 if base < 0 and exponent % 2 else 1
        assert math.copysign(1, found.value) == sign
        assert 0 < abs(found.value) < math.inf  # as the power is
        near, far = sorted((sign * found.lower, sign * found.upper))
        logarithm = arb(fmpz(exponent)) * arb(abs(base)).log()
        assert near == 0 or not arb(near).log() > logarithm
        assert far == math.inf or not arb(far).log() < logarithm

    def test_units_to_exponents_of_any_size(self) -> None:
        huge = 2**70_000
        assert (exact(Fraction(-1), Fraction(-1)) ** exact(Fraction(huge), Fraction(huge + 1))).value.tolist() == [
            1,
            -1,
        ]
        with pytest.raises(UnsupportedError, match="a power of 70001 bits"):
            exact(Fraction(2)) ** exact(Fraction(huge))


class TestFunctions:
    @given(triples(), triples())
    def test_extremes(self, a: tuple[float, ...], b: tuple[float, ...]) -> None:
        small, large = floats(a).minimum(floats(b))[0], floats(a).maximum(floats(b))[0]
        for x in a:
            for y in b:
                assert small.lower <= min(x, y) <= small.upper
                assert large.lower <= max(x, y) <= large.upper

    @given(finite)
    @example(0.49999999999999994)
    @example(-0.5)
    @example(4503599627370497.5)
    def test_rounding(self, number: float) -> None:
        whole = {
            "floor": math.floor(number),
            "ceil": math.ceil(number),
            "round": math.floor(Fraction(number) + Fraction(1, 2)),
        }
        for name, true in whole.items():
            assert getattr(floats((number,) * 3), name)()[0].value == true
            assert getattr(exact(Fraction(number)), name)()[0].value == true

    def test_rounding_of_an_infinity(self) -> None:
        assert exact(math.inf).round()[0].value == math.inf
        assert floats((math.inf,) * 3).round()[0].value == math.inf

    @given(st.integers(-50, 50), st.integers(-5, 9))
    def test_remainders(self, a: int, n: int) -> None:
        for make in (lambda k: exact(Fraction(k)), lambda k: floats((float(k),) * 3)):
            found = make(a).mod(make(n))[0]
            if n <= 0:
                assert found.undefined
            else:
                assert found.lower == found.upper == a % n

    def test_a_remainder_across_a_jump_may_be_anything(self) -> None:
        found = floats((6.0, 5.9, 6.1)).mod(exact(Fraction(3)))[0]
        assert (found.lower, found.upper) == (0, 3)

    @given(st.floats(1e-300, 1e300), st.floats(1.5, 1e6))
    def test_logarithms(self, number: float, base: float) -> None:
        from flint import arb

        found = floats((number,) * 3).log(floats((base,) * 3))[0]
        true = arb(number).log() / arb(base).log()
        assert arb(found.lower) <= true.upper()
        assert true.lower() <= arb(found.upper)
        assert found.width <= 1e-15 * abs(found.value) + 1e-300

    @given(st.integers(-20_000, 20_000), st.integers(2, 40))
    @example(400, 10)
    def test_logarithms_of_rationals_beyond_doubles(self, power: int, base: int) -> None:
        found = exact(Fraction(base) ** power).log(exact(Fraction(base)))[0]
        assert power in found
        assert found.width <= 1e-15 * abs(power)

    def test_logarithms_at_the_edge(self) -> None:
        two = exact(Fraction(2))
        assert exact(Fraction(1)).log(two)[0].value == 0
        assert exact(Fraction(0)).log(two)[0].value == -math.inf
        assert exact(Fraction(-1)).log(two)[0].undefined
        assert two.log(exact(Fraction(1)))[0].undefined


class TestComparison:
    @given(triples(st.sampled_from([0.0, 1.0, 2.0])), triples(st.sampled_from([0.0, 1.0, 2.0])))
    def test_sure_and_possible(self, a: tuple[float, ...], b: tuple[float, ...]) -> None:
        functions = {
            "<": operator.lt,
            "<=": operator.le,
            ">": operator.gt,
            ">=": operator.ge,
            "=": operator.eq,
            "!=": operator.ne,
        }
        for name, function in functions.items():
            surely, possibly = (mask[0] for mask in floats(a).compare(name, floats(b)))
            # Ends and points between decide: the numbers may be anywhere in their intervals.
            points = [*a[1:], *b[1:], (a[1] + a[2]) / 2, (b[1] + b[2]) / 2]
            between = [(x, y) for x in points for y in points]
            outcomes = {function(x, y) for x, y in between if a[1] <= x <= a[2] and b[1] <= y <= b[2]}
            assert surely == (outcomes == {True})
            assert possibly == (True in outcomes)

    def test_undefined_is_never_sure(self) -> None:
        for vector in (exact(math.nan), floats((math.nan,) * 3)):
            for name in ("<", "<=", ">", ">=", "=", "!="):
                surely, possibly = vector.compare(name, exact(Fraction(1)))
                assert (surely[0], possibly[0]) == (False, True)

    def test_rationals_decide_ties(self) -> None:
        third = exact(Fraction(1, 3))
        assert third.compare(">=", exact(Fraction(1, 3)))[0][0]
        assert not third.compare(">", exact(Fraction(1, 3)))[1][0]


class TestVectors:
    def test_constants(self) -> None:
        assert EnclosureVector.constant(2, Fraction(1, 3), exact=True).value.tolist() == [Fraction(1, 3)] * 2
        rounded = EnclosureVector.constant(2, Fraction(1, 3), exact=False)[1]
        assert rounded.lower < Fraction(1, 3) < rounded.upper
        assert EnclosureVector.constant(1, math.nan, exact=False)[0].undefined

    def test_choice(self) -> None:
        mask = np.array([True, False])
        chosen = EnclosureVector.where(mask, exact(Fraction(1, 3), Fraction(1)), exact(Fraction(2), math.inf))
        assert chosen.value.tolist() == [Fraction(1, 3), math.inf]
        mixed = EnclosureVector.where(
            mask, exact(Fraction(1, 3), Fraction(1)), floats((1.0, 0.0, 2.0), (5.0, 4.0, 6.0))
        )
        assert not mixed.exact
        assert mixed.upper[1] == 6

    def test_hull(self) -> None:
        found = floats((1.0, 0.0, 2.0)).hull(floats((5.0, 4.0, 6.0)))[0]
        assert (found.value, found.lower, found.upper) == (1, 0, 6)

    def test_one_array_stands_for_an_exact_vector(self) -> None:
        column = np.array([Fraction(1)], dtype=object)
        with pytest.raises(ValueError, match="one array"):
            EnclosureVector(column, column.copy(), column)

    @given(st.lists(st.tuples(triples(moderate), st.fractions(0, 10)), min_size=1, max_size=5))
    def test_weighted_means(self, pairs: list[tuple[tuple[float, float, float], Fraction]]) -> None:
        weights = [w for _, w in pairs]
        assume(any(weights))
        vector = floats(*(t for t, _ in pairs))
        found = vector.weighted_mean(weights)
        for part in range(3):
            mean = sum(w * Fraction(t[part]) for t, w in pairs) / sum(weights)
            assert found.lower <= mean <= found.upper
        assert exact(*(Fraction(t[0]) for t, _ in pairs)).weighted_mean(weights).exact

    def test_weighted_means_skip_what_has_no_weight(self) -> None:
        assert exact(Fraction(3), math.inf).weighted_mean([1, 0]).value == 3
        assert exact(Fraction(3), math.inf).weighted_mean([1, 2]).value == math.inf
        assert exact(math.nan, Fraction(1)).weighted_mean([1, 2]).undefined
        with pytest.raises(ValueError, match="not all zero"):
            exact(Fraction(3)).weighted_mean([0])

    def test_only_what_is_surely_infinite_is_shown_as_infinite(self) -> None:
        largest = np.finfo(float).max
        assert exact(Fraction(10**400)).to_float()[0] == Enclosure(largest, largest, math.inf)
        assert (floats((1e300,) * 3) * floats((-1e300,) * 3))[0] == Enclosure(-largest, -math.inf, -largest)
        assert floats((math.inf, 1.0, math.inf))[0].value == largest
        assert floats((math.inf,) * 3)[0].value == math.inf
        half = [Fraction(1, 2)] * 2
        assert floats((largest, largest, math.inf), (1.0, 1.0, 1.0)).weighted_mean(half).value < math.inf
        assert floats((math.inf,) * 3, (1.0, 1.0, 1.0)).weighted_mean(half).value == math.inf
