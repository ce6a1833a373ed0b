"""The shared path from operators to verdicts, with an engine whose answers are laid down."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracebridge.agreement import compare_property
from tracebridge.chain import MarkovChain, RationalMatrix, RationalVector, RewardStructure
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.result import Note, Verdict
from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
from tracebridge.errors import EngineError, ModelError, PropertyError, UnsupportedError
from tracebridge.pctl import ast, parse_properties

THIRD = Fraction(1, 3)


def chain() -> MarkovChain:
    """Two start states, a (1/3) and b (2/3), that end in c."""
    rows = [{2: Fraction(1)}, {2: Fraction(1)}, {2: Fraction(1)}]
    return MarkovChain(
        states=("a", "b", "c"),
        transitions=RationalMatrix.from_rows(rows),
        initial=RationalVector.from_fractions([THIRD, 2 * THIRD, 0]),
        labels={"early": np.array([True, True, False])},
    )


class Told:
    """An engine that answers every operator with the same values, and remembers what it was asked."""

    name = "told"

    def __init__(self, values: EnclosureVector | Exception) -> None:
        self.values = values
        self.exact = isinstance(values, EnclosureVector) and values.exact
        self.notes: list[Note] = []
        self.asked: list[list[list[bool]]] = []

    def evaluate(self, operator, holds):
        if isinstance(self.values, Exception):
            raise self.values
        path = getattr(operator, "path", operator)
        operands = [getattr(path, name) for name in ("left", "right", "operand") if hasattr(path, name)]
        self.asked.append([holds(operand).tolist() for operand in operands])
        return self.values


def exactly(*values: Fraction | int) -> EnclosureVector:
    return EnclosureVector.from_fractions([Fraction(value) for value in values])


def within(*bounds: tuple[float, float, float]) -> EnclosureVector:
    value, lower, upper = (np.array(column) for column in zip(*bounds, strict=True))
    return EnclosureVector.from_bounds(value, lower, upper)


def run(text: str, values: EnclosureVector | Exception):
    engine = Told(values)
    (property_,) = parse_properties(text).properties
    return PropertyChecker(chain(), engine).check(property_), engine


def test_a_top_level_value_is_the_mean_over_the_start():
    result, _ = run('P=? [ F "c" ]', exactly(Fraction(1, 2), Fraction(1, 4), 1))
    assert result.verdict is None
    assert result.value is not None
    assert result.value.value == THIRD * Fraction(1, 2) + 2 * THIRD * Fraction(1, 4)


def test_arithmetic_acts_on_the_mean_and_not_in_each_state():
    result, _ = run('pow(P=? [ F "c" ], 2)', exactly(1, 0, 1))
    assert result.value is not None
    assert result.value.value == THIRD**2  # the mean of squares would be 1/3


@pytest.mark.parametrize(
    ("bound", "verdict"),
    [
        (">=1/3", Verdict.SATISFIED),
        (">1/3", Verdict.VIOLATED),
        ("<=1/3", Verdict.SATISFIED),
        ("<1/3", Verdict.VIOLATED),
    ],
)
def test_a_threshold_is_judged_on_the_exact_mean(bound, verdict):
    result, _ = run(f'P{bound} [ F "c" ]', exactly(1, 0, 1))
    assert result.verdict is verdict
    assert result.value is not None
    assert result.value.value == THIRD


def test_a_threshold_inside_the_bounds_is_undecided():
    result, _ = run('P>=0.5 [ F "c" ]', within((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), (1, 1, 1)))
    assert result.verdict is Verdict.UNDECIDED
    result, _ = run('P>=0.3 [ F "c" ]', within((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), (1, 1, 1)))
    assert result.verdict is Verdict.SATISFIED


def test_nested_operators_are_per_state():
    _, engine = run('P=? [ F P>=0.5 [ X "c" ] ]', exactly(1, 0, Fraction(1, 2)))
    assert engine.asked[0] == [[False, False, True]]  # the inner operand "c"
    assert engine.asked[1] == [[True, False, True]]  # where the inner value is at least 1/2, not its mean


def test_an_undecided_inner_threshold_bounds_the_outer_value_from_both_sides():
    _, engine = run('P=? [ F P>=0.5 [ X "c" ] ]', within((0.5, 0.4, 0.6), (0, 0, 0), (1, 1, 1)))
    assert engine.asked[1:] == [[[False, False, True]], [[True, False, True]]]


class Choosing:
    """An engine whose nested operators are uncertain in the first state, and which records the outer operands."""

    name = "choosing"
    exact = False

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.asked: list[list[list[bool]]] = []

    def evaluate(self, operator, holds):
        if operator.path == ast.Next(ast.Label("c")):
            return within((0.5, 0.4, 0.6), (0, 0, 0), (1, 1, 1))
        paths = [operator.path] if operator.condition is None else [operator.path, operator.condition]
        self.asked.append([holds(operand).tolist() for path in paths for operand in ast.state_formulas(path)])
        return within((0.3, 0.3, 0.3), (0.2, 0.2, 0.2), (0.1, 0.1, 0.1))

    def evaluate_quantile(self, quantile, holds, weights):
        return self.evaluate(quantile.operator, holds), Enclosure(7.0, 7.0, 7.0)


def chosen(text: str):
    engine = Choosing()
    (property_,) = parse_properties(text).properties
    return PropertyChecker(chain(), engine).check(property_), engine.asked


INNER = 'P>=0.5 [ X "c" ]'
LOW, HIGH = [False, False, True], [True, False, True]


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        (f'"a" U {INNER}', [[[True, False, False], LOW], [[True, False, False], HIGH]]),
        (f"!(F {INNER})", [[HIGH], [LOW]]),
        (f"(F {INNER}) => (G {INNER})", [[HIGH, LOW], [LOW, HIGH]]),
        (f"!((F {INNER}) & !(X {INNER}))", [[HIGH, LOW], [LOW, HIGH]]),
    ],
)
def test_what_stands_negated_is_bounded_from_the_other_side(path, asked):
    result, found = chosen(f"P=? [ {path} ]")
    assert found == asked
    assert result.verdict is Verdict.UNDECIDED  # the value hangs on the nested threshold
    assert result.operators[-1].states.upper.max() == 0.3


@pytest.mark.parametrize(
    "path", [f'(F "a") <=> (F {INNER})', f'F "a" || F {INNER}', f'(F "a") & ((F "b") <=> !(X {INNER}))']
)
def test_where_nothing_is_monotone_the_value_may_be_anything(path):
    result, _ = chosen(f"P=? [ {path} ]")
    states = result.operators[-1].states
    assert (states.lower.tolist(), states.upper.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert result.verdict is Verdict.UNDECIDED
    assert "nested threshold" in (result.reason or "")
    assert chosen(f"P>=0 [ {path} ]")[0].verdict is Verdict.SATISFIED


def test_a_formula_that_stands_plain_and_negated_is_not_monotone():
    inner = ast.Probability(ast.Next(ast.Label("c")), ast.Threshold(">=", ast.Number(Fraction(1, 2), integer=False)))
    path = ast.PathBinary("&", ast.Eventually(inner), ast.PathNot(ast.Next(inner)))  # one object in two places
    result = PropertyChecker(chain(), Choosing()).check(ast.Property(formula=ast.Probability(path)))
    assert result.operators[-1].states.upper.tolist() == [1, 1, 1]


def test_a_quantile_at_the_start_is_the_engines_own():
    result, _ = chosen('quantile(min B, P>0.3 [ F<=B "c" ])')
    assert result.value == Enclosure(7.0, 7.0, 7.0)  # not the mean of the states' quantiles


def test_branching_time_is_true_at_the_start_if_in_all_start_states():
    for values, verdict in (
        ((1, 1, 0), Verdict.SATISFIED),
        ((0, 0, 1), Verdict.VIOLATED),
        ((1, 0, 1), Verdict.UNDECIDED),
    ):
        result, _ = run('E [ F "c" ]', exactly(*values))
        assert (result.verdict, result.value) == (verdict, None)
    _, engine = run('P=? [ X (A [ G "c" ]) ]', exactly(1, 0, 1))
    assert engine.asked[1] == [[True, False, True]]


def test_variables_and_constants_of_the_model():
    model = replace(
        chain(),
        variables={"x": np.array([3, 3, 5]), "up": np.array([True, False, True]), "half": np.array([0.5, 0.25, 0])},
        constants={"N": Fraction(7, 3), "on": True},
    )

    def value_of(text: str, *, exact: bool = True):
        engine = Told(exactly(0, 0, 0) if exact else within((0, 0, 0), (0, 0, 0), (0, 0, 0)))
        (property_,) = parse_properties(text).properties
        return PropertyChecker(model, engine).check(property_)

    assert value_of("x + N").value.value == Fraction(16, 3)  # both start states have x = 3
    assert Fraction(16, 3) in value_of("x + N", exact=False).value
    assert value_of("half").reason == "the value is undefined (such as 0/0)"  # they differ in it
    assert value_of("filter(max, mod(x, 2) * x)").value.value == 5
    assert value_of("x = 3 & on").verdict is Verdict.SATISFIED
    assert value_of("up").verdict is Verdict.UNDECIDED
    assert value_of("up | x = 3", exact=False).verdict is Verdict.SATISFIED
    assert value_of("filter(count, half < 0.3)", exact=False).value.value == 2
    with pytest.raises(PropertyError, match="'y' is neither"):
        value_of("y = 1")
    large = replace(model, variables={"x": np.array([2**53 + 1] * 3)})
    (property_,) = parse_properties(f"x = {2**53 + 1}").properties
    result = PropertyChecker(large, Told(within((0, 0, 0), (0, 0, 0), (0, 0, 0)))).check(property_)
    assert result.verdict is Verdict.UNDECIDED  # no double is that number


def test_an_unnamed_reward_structure_comes_with_a_warning_if_there_are_several():
    structures = {name: RewardStructure.from_fractions([1, 1, 1]) for name in ("steps", "cost", "tokens")}
    (property_,) = parse_properties("R=? [ C<=2 ]").properties
    result = PropertyChecker(replace(chain(), rewards=structures), Told(exactly(1, 1, 1))).check(property_)
    (note,) = result.notes
    assert note.kind == "warning"
    assert note.text == 'R without a name takes the first reward structure, "steps", and not "cost", "tokens"'
    single = replace(chain(), rewards={"steps": structures["steps"]})
    assert PropertyChecker(single, Told(exactly(1, 1, 1))).check(property_).notes == ()


def test_booleans_are_three_valued():
    unsure = within((0.5, 0.4, 0.6), (0.5, 0.4, 0.6), (1, 1, 1))
    assert run('P>=0.5 [ F "c" ] | P>=0.1 [ F "c" ]', unsure)[0].verdict is Verdict.SATISFIED
    assert run('P>=0.5 [ F "c" ] & P<0.1 [ F "c" ]', unsure)[0].verdict is Verdict.VIOLATED
    assert run('P>=0.5 [ F "c" ] & P>=0.1 [ F "c" ]', unsure)[0].verdict is Verdict.UNDECIDED
    assert run('!(P>=0.5 [ F "c" ])', unsure)[0].verdict is Verdict.UNDECIDED
    assert run('P>=0.5 [ F "c" ] => P>=0.1 [ F "c" ]', unsure)[0].verdict is Verdict.SATISFIED
    assert run('P>=0.2 [ F "c" ] <=> P>=0.1 [ F "c" ]', unsure)[0].verdict is Verdict.SATISFIED


def test_a_label_at_the_start_needs_all_start_states():
    values = exactly(1, 1, 1)
    assert run('"early"', values)[0].verdict is Verdict.SATISFIED
    assert run('"c"', values)[0].verdict is Verdict.VIOLATED
    assert run('"a"', values)[0].verdict is Verdict.UNDECIDED
    assert run('"init"', values)[0].verdict is Verdict.SATISFIED
    assert run('"a" | "b"', values)[0].verdict is Verdict.SATISFIED
    assert run('"a" & "b"', values)[0].verdict is Verdict.VIOLATED
    assert run('"a" <=> !"b"', values)[0].verdict is Verdict.SATISFIED
    assert run('"early" ? "a" : "c"', values)[0].verdict is Verdict.UNDECIDED
    assert run('"a" | "b" | P>=1 [ F "c" ]', values)[0].verdict is Verdict.SATISFIED


def test_conditionals_and_functions():
    values = exactly(Fraction(1, 4), Fraction(1, 4), 1)
    assert run('P>=0.2 [ F "c" ] ? 1 : 0', values)[0].value.value == 1
    assert run('max(P=? [ F "c" ], 1/2) + min(1, 2, 3)', values)[0].value.value == Fraction(3, 2)
    assert run('1 - pow(1 - P=? [ F "c" ], 2)', values)[0].value.value == 1 - Fraction(9, 16)


def test_dividing_by_zero_is_undefined_and_not_zero():
    result, _ = run('P=? [ F "c" ] / P=? [ F "a" ]', exactly(0, 0, 0))
    assert result.verdict is Verdict.UNDECIDED
    assert result.value is not None
    assert result.value.undefined
    compared, _ = run('P=? [ F "c" ] / P=? [ F "a" ] > 0', exactly(0, 0, 0))
    assert compared.truth is None
    assert result.reason == compared.reason == "the value is undefined (such as 0/0)"
    agreement = compare_property([result, result])
    assert (agreement.agree, agreement.gap) == (True, None)


def test_engine_failures_become_results_that_say_so():
    result, _ = run('P=? [ F "c" ]', UnsupportedError("not here"))
    assert (result.verdict, result.reason) == (Verdict.UNSUPPORTED, "not here")
    result, _ = run('P=? [ F "c" ]', EngineError("crashed"))
    assert (result.verdict, result.reason) == (Verdict.ERROR, "crashed")


def test_an_unknown_label_names_its_neighbours():
    with pytest.raises(ModelError, match='did you mean "early"'):
        run('P=? [ F "earlz" ]', exactly(1, 1, 1))


def pair(one: EnclosureVector, other: EnclosureVector, text: str = 'P=? [ F "c" ]'):
    (property_,) = parse_properties(text).properties
    return compare_property([PropertyChecker(chain(), Told(values)).check(property_) for values in (one, other)])


def test_equal_rationals_agree_and_unequal_ones_do_not_however_close():
    agreement = pair(exactly(1, 0, 1), exactly(1, 0, 1))
    assert (agreement.agree, agreement.gap, agreement.exit_code) == (True, 0.0, 0)
    near = Fraction(1) - Fraction(1, 10**40)
    agreement = pair(exactly(1, 0, 1), exactly(near, 0, 1))
    assert agreement.agree is False
    assert agreement.gap is not None
    assert agreement.gap > 0
    assert agreement.exit_code == 6


def test_doubles_agree_if_their_bounds_meet_in_every_state():
    one = within((0.5, 0.5, 0.5), (0.0, 0.0, 0.0), (1, 1, 1))
    close = within((0.5 + 1e-12, 0.5 - 1e-9, 0.5 + 1e-9), (0.0, 0.0, 0.0), (1, 1, 1))
    agreement = pair(one, close)
    assert agreement.agree is True
    assert agreement.gap == pytest.approx(1e-12, rel=1e-3)
    away = within((0.5, 0.5, 0.5), (0.0, 0.0, 0.0), (0.9, 0.9, 0.9))  # differs only in a state without initial mass
    assert pair(one, away).agree is False


def test_a_rational_is_held_against_the_other_engines_bounds():
    assert pair(exactly(THIRD, 0, 1), within((1 / 3, 0.333, 0.334), (0.0, 0.0, 0.0), (1, 1, 1))).agree is True
    assert pair(exactly(THIRD, 0, 1), within((0.34, 0.339, 0.341), (0.0, 0.0, 0.0), (1, 1, 1))).agree is False


def test_infinite_rewards_are_equal():
    infinite = within((np.inf, np.inf, np.inf), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    assert pair(infinite, infinite).gap == 0.0


def test_one_engine_alone_is_said():
    (property_,) = parse_properties('P>=0.1 [ F "c" ]').properties
    checked = [
        PropertyChecker(chain(), Told(values)).check(property_) for values in (exactly(1, 1, 1), UnsupportedError("no"))
    ]
    agreement = compare_property(checked)
    assert agreement.verdict is Verdict.SATISFIED
    assert agreement.agree is None
    assert "single engine" in (agreement.reason or "")


def test_a_failed_engine_does_not_pass():
    (property_,) = parse_properties('P>=0.1 [ F "c" ]').properties
    checked = [
        PropertyChecker(chain(), Told(values)).check(property_) for values in (exactly(1, 1, 1), EngineError("no"))
    ]
    assert compare_property(checked).exit_code == 4


def test_credible_without_counts_is_undecided():
    text = '//@ credible 0.95\n"x": P>=0.1 [ F "c" ];'
    agreement = pair(exactly(1, 1, 1), exactly(1, 1, 1), text)
    assert agreement.verdict is Verdict.UNDECIDED
    assert "credible 0.95" in (agreement.reason or "")


def test_engines_must_agree_on_where_a_value_is_undefined():
    half = Fraction(1, 2)
    defined, undefined = exactly(half, half, 1), EnclosureVector.from_fractions([half, half, float("nan")])
    assert pair(undefined, undefined).agree is True
    assert pair(undefined, undefined).gap == 0
    assert pair(defined, undefined).agree is False
    floats = within((0.5, 0.4, 0.6), (0.5, 0.5, 0.5), (np.nan, -np.inf, np.inf))
    assert pair(undefined, floats).agree is True
    assert pair(defined, floats).agree is False


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ('floor(P=? [ F "c" ] * 10)', "between 6 and 7"),
        ('ceil(P=? [ F "c" ] * 10)', "between 7 and 8"),
        ('round(P=? [ F "c" ] * 5)', "between 3 and 4"),
        ('mod(floor(P=? [ F "c" ] * 10), 7)', "between 0 and 7"),
        ('P>0.7 [ F "c" ] ? 1 : 0', "between 0 and 1"),
        ('(P=? [ F "c" ] > 0.7 ? 1 : 0) + 5', "between 5 and 6"),
        ('filter(range, floor(P=? [ F "c" ] * 10))', "between 6 and 7"),
        ('filter(printall, floor(P=? [ F "c" ] * 10))', "between 6 and 7"),
        ('pow(10, 400) * P=? [ F "c" ]', "at least 1.25839e+308"),
        ('pow(10, 400) * -P=? [ F "c" ]', "at most -1.25839e+308"),
    ],
)
def test_a_query_across_a_step_or_beyond_doubles_is_undecided_with_its_bounds(text, ends):
    result, _ = run(text, within(*[(0.7, 0.7 - 1e-15, 0.7 + 1e-15)] * 2, (1, 1, 1)))
    assert result.verdict is Verdict.UNDECIDED
    assert ends in (result.reason or "")
    assert "--exact may give it" in (result.reason or "")


@pytest.mark.parametrize(
    ("radius", "verdict"), [(1e-15, None), (1e-8, None), (1e-5, Verdict.UNDECIDED), (0.2, Verdict.UNDECIDED)]
)
def test_a_query_is_answered_where_its_bounds_are_close(radius, verdict):
    result, _ = run('P=? [ F "c" ]', within(*[(0.7, 0.7 - radius, 0.7 + radius)] * 3))
    assert result.verdict is verdict


def test_a_difference_that_cancels_to_rounding_is_answered():
    result, _ = run('P=? [ F "c" ] - P=? [ F "c" ]', within(*[(0.7, 0.7 - 1e-15, 0.7 + 1e-15)] * 3))
    assert result.verdict is None


WHOLE = st.integers(-(10**40), 10**40)


@given(WHOLE, WHOLE, st.integers(1, 10**20))
@example(9007199254740993, 9007199254740992, 2)
def test_arithmetic_of_constants_is_exact_for_an_engine_in_doubles(a, b, m):
    doubles = within((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), (1, 1, 1))
    expected = {
        f"{a} - ({b})": a - b,
        f"mod({a} - ({b}), {m})": (a - b) % m,
        f"floor(({a}) / {m})": a // m,
        f"ceil(0.1 * 3 * {m})": -(-3 * m // 10),
        f"round(({a}) / {m})": (2 * a + m) // (2 * m),
        f"max({a}, {b}) - min({a}, {b})": abs(a - b),
    }
    for text, number in expected.items():
        result, _ = run(text, doubles)
        assert result.verdict is None
        assert result.value is not None
        assert number in result.value
        assert result.value.width <= Fraction(abs(number), 2**51)  # rounded once
    for comparison, holds in {"=": a == b, "<": a < b, ">=": a >= b}.items():
        result, _ = run(f"{a} {comparison} {b}", doubles)
        assert result.truth is holds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e500", Fraction(10**500)),
        ("-pow(10, 400)", Fraction(-(10**400))),
        ("pow(10, 308) * 10", Fraction(10**309)),
        ("pow(10, 400) / pow(10, 399)", 10),
        ("log(pow(10, 400), 10)", 400),
        ("pow(1, pow(2, 65536))", 1),
        ("pow(-1, pow(2, 65536) + 1)", -1),
    ],
)
@pytest.mark.parametrize("exact", [False, True])
def test_constants_beyond_doubles(text, value, exact):
    result, _ = run(text, exactly(0, 0, 1) if exact else within((0, 0, 0), (0, 0, 0), (1, 1, 1)))
    assert result.verdict is None
    assert result.value is not None
    assert value in result.value
    assert result.value.width < 1e-12


@pytest.mark.parametrize("text", ["pow(2, pow(2, 65536))", "pow(2, pow(2, 1023))", "pow(2, 1e308)", "pow(3, 1e9)"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_power_that_is_too_large_for_rationals_is_never_infinite(text, sign):
    doubles = within((0, 0, 0), (0, 0, 0), (1, 1, 1))
    result, _ = run(sign + text, doubles)
    assert result.verdict is Verdict.UNDECIDED
    assert "may be beyond the largest double" in (result.reason or "")
    assert "--exact" not in (result.reason or "")  # rationals were tried
    assert result.value is not None
    assert 1e308 < abs(result.value.value) < float("inf")
    result, _ = run(f"{sign}{text} > 0", doubles)
    assert result.truth is (sign == "")
    result, _ = run(text, exactly(0, 0, 1))
    assert result.verdict is Verdict.UNSUPPORTED
    assert "too large for exact arithmetic" in (result.reason or "")


HUGE = st.integers(10**400, 10**420)


@given(HUGE, HUGE)
def test_rationals_beyond_doubles_are_compared(first, second):
    for shrink in (Fraction(1), Fraction(1, 10**800)):
        one, _ = run('R{"steps"}=? [ F "c" ]', exactly(*[first * shrink] * 3))
        other, _ = run('R{"steps"}=? [ F "c" ]', exactly(*[second * shrink] * 3))
        alike = compare_property([one, replace(one, engine="other")])
        assert (alike.agree, alike.gap) == (True, 0)
        found = compare_property([one, replace(other, property=one.property)])
        assert found.agree is (first == second)
        assert found.gap is not None
        assert (found.gap > 0) is (first != second)
        assert "<td>" in found._repr_html_()
        assert found.to_dict()["gap"] == found.gap
