"""Filters: PRISM's meaning, and bounds where rounding leaves the states or their values open."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checking.test_evaluate import Told, exactly, within

from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.filters import Range, of_numbers, of_truths
from tracebridge.checking.result import MAX_LISTED, CheckResult, Verdict
from tracebridge.checking.truths import Truths
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import PropertyError
from tracebridge.pctl import ast, parse_properties

F = Fraction


def walk_of(n: int) -> MarkovChain:
    """A cycle of n states that starts in the first two, with a variable and a label."""
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows([{(i + 1) % n: F(1)} for i in range(n)]),
        initial=RationalVector.from_fractions([F(1, 2), F(1, 2), *[0] * (n - 2)]),
        labels={"low": np.arange(n) < 2, "last": np.arange(n) == n - 1},
        variables={"x": np.arange(n), "odd": np.arange(n) % 2 == 1, "half": np.arange(n) / 2},
    )


def run(text: str, values: EnclosureVector, n: int = 4) -> CheckResult:
    (property_,) = parse_properties(text).properties
    return PropertyChecker(walk_of(n), Told(values)).check(property_)


P = 'P=? [ F "low" ]'
VALUES = exactly(F(1, 2), F(1, 4), 1, 0)


@pytest.mark.parametrize(
    ("filter_", "value"),
    [
        (f"filter(min, {P})", 0),
        (f"filter(max, {P})", 1),
        (f"filter(sum, {P})", F(7, 4)),
        (f"filter(+, {P})", F(7, 4)),
        (f"filter(avg, {P})", F(7, 16)),
        (f'filter(max, {P}, "low")', F(1, 2)),
        (f'filter(avg, {P}, !"low")', F(1, 2)),
        (f'filter(state, {P}, "last")', 0),
        (f'filter(first, {P}, !"low")', 1),
        (f"filter(first, {P}, x>0)", F(1, 4)),
        ('filter(count, P>=0.25 [ F "low" ])', 3),
        ('filter(count, P>=0.25 [ F "low" ], odd)', 1),
        ('filter(count, "low")', 2),
        (f"filter(max, {P}) - filter(min, {P})", 1),
        (f"filter(max, 2*{P} + x)", 4),
        ("filter(sum, half)", 3),
        ("filter(max, pow(x, 2), odd)", 9),
    ],
)
def test_numbers(filter_: str, value: Fraction | int) -> None:
    result = run(filter_, VALUES)
    assert result.value == Enclosure.exactly(F(value))
    assert result.verdict is None


@pytest.mark.parametrize(
    ("filter_", "verdict"),
    [
        ('filter(forall, P>=0 [ F "low" ])', Verdict.SATISFIED),
        ('filter(forall, P>0 [ F "low" ])', Verdict.VIOLATED),
        ('filter(&, P>0 [ F "low" ], "low")', Verdict.SATISFIED),
        ('filter(exists, P>=1 [ F "low" ])', Verdict.SATISFIED),
        ('filter(|, P>=1 [ F "low" ], "low")', Verdict.VIOLATED),
        ('filter(state, P>=1 [ F "low" ], x=2)', Verdict.SATISFIED),
        ('filter(first, P>=1 [ F "low" ], x>0)', Verdict.VIOLATED),
        ("filter(forall, odd | !odd)", Verdict.SATISFIED),
        ('filter(forall, "low" => half < 1)', Verdict.SATISFIED),
        (f"filter(max, {P}) >= 1", Verdict.SATISFIED),
        ('filter(argmax, P=? [ F "low" ])', Verdict.VIOLATED),  # s2, where no run starts
        ('filter(argmin, P=? [ F "low" ], x=0 | x=2)', Verdict.UNDECIDED),  # s0, one of two start states
        ('filter(argmin, P=? [ F "low" ], "low") | x = 0', Verdict.UNDECIDED),
        ("filter(argmax, x*0)", Verdict.SATISFIED),  # a tie of all states
    ],
)
def test_truths(filter_: str, verdict: Verdict) -> None:
    assert run(filter_, VALUES).verdict is verdict


def test_a_filter_has_the_same_value_everywhere() -> None:
    (property_,) = parse_properties(f"filter(min, filter(max, {P}) - {P})").properties
    checker = PropertyChecker(walk_of(4), Told(VALUES))
    assert checker.check(property_).value == Enclosure.exactly(F(0))


def test_a_range_is_two_numbers_and_no_operand() -> None:
    result = run(f'filter(range, {P}, "low")', VALUES)
    assert result.range == (Enclosure.exactly(F(1, 4)), Enclosure.exactly(F(1, 2)))
    assert (result.value, result.verdict) == (None, None)
    assert [end["value"] for end in result.to_dict()["range"]] == ["1/4", "1/2"]
    with pytest.raises(PropertyError):
        run(f"filter(range, {P}) + 1", VALUES)


def test_lists_of_values() -> None:
    printed = run(f"filter(print, {P})", VALUES)
    assert printed.value == Enclosure.exactly(F(3, 8))  # the mean of the two start states
    (listing,) = printed.listings
    assert [state for state, _ in listing.entries] == ["s0", "s1", "s2"]  # PRISM leaves zeros out
    (listing,) = run(f"filter(printall, {P}, x>=2)", VALUES).listings
    assert listing.entries == (("s2", Enclosure.exactly(F(1))), ("s3", Enclosure.exactly(F(0))))
    (listing,) = run(f"filter(argmax, {P})", VALUES).listings
    assert listing.entries == (("s2", Enclosure.exactly(F(1))),)
    truths = run('filter(print, P>=0.5 [ F "low" ])', VALUES)
    assert truths.listings[0].entries == (("s0", True), ("s2", True))
    assert truths.truth is False  # the mean at the start is 3/8
    document = run(f"filter(values, {P}, x=2)", VALUES).to_dict()["listings"]
    assert document == [
        {
            "filter": f"filter(values, {P}, x = 2)",
            "values": {"s2": {"value": "1", "lower": "1", "upper": "1"}},
            "total": 1,
        }
    ]


def test_a_long_list_is_cut_and_says_how_long_it_is() -> None:
    n = MAX_LISTED + 5
    (listing,) = run("filter(printall, x)", exactly(*[1] * n), n).listings
    assert (len(listing.entries), listing.total) == (MAX_LISTED, n)


@pytest.mark.parametrize(
    ("filter_", "message"),
    [
        (f'filter(max, {P}, "low" & "last")', "over no state"),
        ('filter(forall, "low", false)', "over no state"),
        (f"filter(state, {P}, odd)", "2 are meant"),
    ],
)
def test_filters_that_mean_nothing_are_refused(filter_: str, message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        run(filter_, VALUES)


def test_kinds_need_their_type() -> None:
    everywhere = Truths(np.ones(4, dtype=np.bool_), np.ones(4, dtype=np.bool_))
    with pytest.raises(PropertyError, match="needs a truth value"):
        of_numbers(ast.Filter("count", ast.Label("low")), VALUES, everywhere)
    with pytest.raises(PropertyError, match="needs a number"):
        of_truths(ast.Filter("max", ast.Label("low")), everywhere, everywhere)


# ---------------------------------------------------------------- what rounding leaves open


def test_the_bounds_of_the_values_become_those_of_the_result() -> None:
    values = within((0.5, 0.4, 0.6), (0.55, 0.5, 0.7), (0.1, 0.0, 0.2), (0.3, 0.3, 0.3))
    assert run(f"filter(max, {P})", values).value == Enclosure(0.55, 0.5, 0.7)
    assert run(f"filter(min, {P})", values).value == Enclosure(0.1, 0.0, 0.2)
    total = run(f"filter(sum, {P})", values).value
    assert total is not None
    assert (total.lower, total.upper) == (pytest.approx(1.2), pytest.approx(1.8))
    assert run('filter(count, P>=0.45 [ F "low" ])', values).verdict is Verdict.UNDECIDED  # 1 or 2
    assert run('filter(count, P>=0.8 [ F "low" ])', values).value == Enclosure(0.0, 0.0, 0.0)
    assert run('filter(forall, P>=0.45 [ F "low" ], "low")', values).verdict is Verdict.UNDECIDED
    assert run('filter(forall, P>=0.45 [ F "low" ])', values).verdict is Verdict.VIOLATED
    assert run('filter(exists, P>=0.45 [ F "low" ])', values).verdict is Verdict.SATISFIED
    listing = run('filter(argmax, P=? [ F "low" ])', values).listings[0]
    assert [state for state, _ in listing.entries] == ["s0", "s1"]  # either may be the largest


@st.composite
def uncertain(draw: st.DrawFn) -> tuple[list[float], list[tuple[float, float]], list[bool], list[bool], list[bool]]:
    """True numbers with bounds around them, and a true set between a sure and a possible one."""
    n = draw(st.integers(1, 5))
    numbers = draw(st.lists(st.integers(-8, 8).map(float), min_size=n, max_size=n))
    bounds = [(x - draw(st.integers(0, 2)) / 2, x + draw(st.integers(0, 2)) / 2) for x in numbers]
    members = draw(st.lists(st.booleans(), min_size=n, max_size=n).filter(any))
    sure = [inside and draw(st.booleans()) for inside in members]
    possible = [inside or draw(st.booleans()) for inside in members]
    return numbers, bounds, members, sure, possible


@given(uncertain())
def test_the_result_for_the_true_states_and_values_is_enclosed(drawn: tuple) -> None:
    numbers, bounds, members, sure, possible = drawn
    lower, upper = (np.array(side) for side in zip(*bounds, strict=True))
    values = EnclosureVector.from_bounds(np.array(numbers), lower, upper)
    states = Truths(np.array(sure), np.array(possible))
    meant = [x for x, inside in zip(numbers, members, strict=True) if inside]

    def made(kind: ast.FilterKind):
        return of_numbers(ast.Filter(kind, ast.Number(F(0), integer=True)), values, states)

    assert min(meant) in made("min")
    assert max(meant) in made("max")
    assert sum(meant) in made("sum")
    mean = made("avg")
    assert float(mean.lower) <= sum(meant) / len(meant) <= float(mean.upper)
    assert meant[0] in made("first")
    extent = made("range")
    assert isinstance(extent, Range)
    assert min(meant) in extent.least
    assert max(meant) in extent.greatest
    for kind, extreme in (("argmin", min(meant)), ("argmax", max(meant))):
        attained = made(kind)
        assert isinstance(attained, Truths)
        for i, (x, inside) in enumerate(zip(numbers, members, strict=True)):
            truly = inside and x == extreme
            assert truly or not attained.surely[i]
            assert attained.possibly[i] or not truly


@given(uncertain())
def test_the_truth_for_the_true_states_and_truths_is_enclosed(drawn: tuple) -> None:
    numbers, bounds, members, sure, possible = drawn
    holds = Truths(np.array([low > 0 for low, _ in bounds]), np.array([high > 0 for _, high in bounds]))
    states = Truths(np.array(sure), np.array(possible))
    meant = [x > 0 for x, inside in zip(numbers, members, strict=True) if inside]
    for kind, truly in (("forall", all(meant)), ("exists", any(meant)), ("first", meant[0])):
        made = of_truths(ast.Filter(kind, ast.Truth(value=True)), holds, states)
        assert isinstance(made, Truths)
        assert truly or not made.surely[0]
        assert made.possibly[0] or not truly
    least, most = of_truths(ast.Filter("count", ast.Truth(value=True)), holds, states)
    assert least <= sum(meant) <= most


def test_infinite_and_undefined_values() -> None:
    everything = Truths(np.ones(2, dtype=np.bool_), np.ones(2, dtype=np.bool_))
    node = ast.Filter("sum", ast.Number(F(0), integer=True))
    assert of_numbers(node, EnclosureVector.from_fractions([F(1), math.inf]), everything) == Enclosure.exactly(math.inf)
    undefined = EnclosureVector.from_fractions([F(1), math.nan])
    for kind in ("min", "max", "sum", "avg"):
        made = of_numbers(ast.Filter(kind, node.operand), undefined, everything)
        assert isinstance(made, Enclosure)
        assert made.undefined
    huge = EnclosureVector.from_floats(np.array([1.7e308, 1.7e308]))
    total = of_numbers(node, huge, everything)
    assert isinstance(total, Enclosure)
    assert F(17 * 10**307) * 2 in total
