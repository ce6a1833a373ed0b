"""Random formulas of the part of the language that DTMC engines evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

from tracebridge.pctl import ast

_COMPARISONS = st.sampled_from(["<", "<=", ">", ">="])
_ONE = ast.Number(Fraction(1), integer=True)


def numbers(low: int = 0, high: int = 12) -> st.SearchStrategy[ast.Formula]:
    """Whole numbers as the parser builds them."""
    return st.integers(low, high).map(lambda value: ast.Number(Fraction(value), integer=True))


def decimals() -> st.SearchStrategy[ast.Number]:
    """Numbers between 0 and 1 with up to six decimals."""
    return st.integers(0, 10**6).map(lambda value: ast.Number(Fraction(value, 10**6), integer=False))


def thresholds(values: st.SearchStrategy[ast.Formula] | None = None) -> st.SearchStrategy[ast.Threshold]:
    """Bounds of a probability, sometimes a quotient of whole numbers."""
    quotients = st.builds(lambda a, b: ast.Binary("/", a, b), numbers(0, 5), numbers(5, 9))
    return st.builds(ast.Threshold, _COMPARISONS, values or st.one_of(decimals(), quotients))


@st.composite
def step_bounds(draw: st.DrawFn, *, largest: int = 6) -> ast.StepBound:
    """Every form of step bound, never an empty one."""
    steps = numbers(1, largest)
    form = draw(st.sampled_from(["<=", "<", ">=", ">", "=", "[]", "sum"]))
    if form == "sum":
        return ast.StepBound(upper=ast.Binary("+", draw(steps), _ONE))
    if form in ("<=", "<"):
        return ast.StepBound(upper=draw(steps), upper_strict=form == "<")
    if form in (">=", ">"):
        return ast.StepBound(lower=draw(steps), lower_strict=form == ">")
    first = draw(st.integers(0, largest))
    lower = ast.Number(Fraction(first), integer=True)
    if form == "=":
        return ast.StepBound(lower=lower, upper=lower, exact=True)
    return ast.StepBound(lower=lower, upper=draw(numbers(first, largest + first)))


def paths(operands: st.SearchStrategy[ast.Formula]) -> st.SearchStrategy[ast.PathFormula]:
    """Every path operator, bounded or not, over the given state formulas."""
    bounds = st.none() | step_bounds()
    return st.one_of(
        st.builds(ast.Next, operands),
        st.builds(ast.Eventually, operands, bounds),
        st.builds(ast.Globally, operands, bounds),
        st.builds(ast.Until, operands, operands, bounds),
        st.builds(ast.WeakUntil, operands, operands, bounds),
        st.builds(ast.Release, operands, operands, bounds),
    )


def reward_paths(operands: st.SearchStrategy[ast.Formula]) -> st.SearchStrategy[ast.RewardPath]:
    """Every kind of reward."""
    return st.one_of(
        st.builds(ast.ReachReward, operands),
        st.just(ast.CumulativeReward()),
        st.builds(ast.CumulativeReward, numbers(1), st.booleans()),
        st.builds(ast.InstantaneousReward, numbers()),
        st.just(ast.LongRunReward()),
    )


def formulas(labels: Sequence[str], depth: int = 2, *, rewards: Sequence[str] = ()) -> st.SearchStrategy[ast.Formula]:
    """State formulas (truth values) over labels, with operators nested up to ``depth`` deep."""
    leaves = st.one_of(st.sampled_from(list(labels)).map(ast.Label), st.booleans().map(ast.Truth))
    if depth == 0:
        return leaves
    inner = formulas(labels, depth - 1, rewards=rewards)
    return st.one_of(
        leaves,
        st.builds(lambda operand: ast.Unary("!", operand), inner),
        st.builds(ast.Binary, st.sampled_from(["&", "|", "=>", "<=>"]), inner, inner),
        *_operators(inner, thresholds(), rewards),
    )


def queries(labels: Sequence[str], depth: int = 2, *, rewards: Sequence[str] = ()) -> st.SearchStrategy[ast.Formula]:
    """Formulas with a number as their value: ``=?`` operators and arithmetic over them."""
    inner = formulas(labels, max(0, depth - 1), rewards=rewards)
    operators = st.one_of(*_operators(inner, st.none(), rewards))
    return st.one_of(
        operators,
        st.builds(ast.Binary, st.sampled_from(["+", "-", "*"]), operators, operators | decimals()),
        st.builds(lambda base, exponent: ast.Call("pow", (base, exponent)), operators, numbers(1, 4)),
        st.builds(lambda operand: ast.Binary("-", _ONE, operand), operators),
        st.builds(lambda *arguments: ast.Call("max", arguments), operators, operators),
        st.builds(ast.Conditional, inner, operators, decimals()),
    )


def _operators(
    operands: st.SearchStrategy[ast.Formula],
    bounds: st.SearchStrategy[ast.Threshold] | st.SearchStrategy[None],
    rewards: Sequence[str],
) -> list[st.SearchStrategy[ast.Formula]]:
    operators: list[st.SearchStrategy[ast.Formula]] = [
        st.builds(ast.Probability, paths(operands), bounds),
        st.builds(ast.SteadyState, operands, bounds),
    ]
    if rewards:
        structures = st.sampled_from(list(rewards))
        operators.append(st.builds(ast.Reward, reward_paths(operands), structures, bounds))
    return operators
