"""Random formulas of everything that an engine for chains evaluates, with bounds small enough for both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from hypothesis import strategies as st
from tests.pctl.strategies import formulas, numbers, paths, reward_paths, step_bounds

from tracebridge.pctl import ast

LABELS = ("a", "b", "c")
REWARDS = ("steps", "cost")
_COMPARISONS = st.sampled_from(["<", "<=", ">", ">="])


def literal(value: Fraction | int) -> ast.Number:
    return ast.Number(Fraction(value), integer=Fraction(value).denominator == 1)


@cache
def thresholds() -> st.SearchStrategy[ast.Threshold]:
    values = st.fractions(0, 1, max_denominator=20).map(literal)
    return st.builds(ast.Threshold, _COMPARISONS, values)


@cache
def operands(depth: int) -> st.SearchStrategy[ast.Formula]:
    """Truth values in every state, with operators inside up to ``depth`` deep."""
    return plain(0) if depth == 0 else st.one_of(plain(1), truths(depth - 1))


@cache
def plain(depth: int) -> st.SearchStrategy[ast.Formula]:
    """Truth values of the part of the language that PRISM and Storm share."""
    return formulas(LABELS, depth, rewards=REWARDS)


@cache
def ltl(depth: int, inside: st.SearchStrategy[ast.Formula]) -> st.SearchStrategy[ast.PathFormula]:
    """Path formulas of LTL: temporal operators in one another, joined and negated."""
    below = inside | ltl(depth - 1, inside) if depth else inside
    paths_below = ltl(depth - 1, inside) if depth else paths(inside)
    bounds = st.none() | st.none() | step_bounds(largest=3)
    return st.one_of(
        st.builds(ast.PathNot, paths_below),
        st.builds(ast.PathBinary, st.sampled_from(["&", "|", "=>", "<=>"]), paths_below, below),
        st.builds(ast.PathBinary, st.sampled_from(["&", "|", "=>", "<=>"]), below, paths_below),
        st.builds(ast.Next, below),
        st.builds(ast.Eventually, below, bounds),
        st.builds(ast.Globally, below, bounds),
        st.builds(ast.Until, below, below, bounds),
        st.builds(ast.WeakUntil, below, below, bounds),
        st.builds(ast.Release, below, below, bounds),
    ).filter(lambda path: not isinstance(path, ast.Formula))


@st.composite
def reward_bounds(draw: st.DrawFn) -> tuple[ast.RewardBound, ...]:
    """One or two bounds on rewards, from above, from below or both."""
    bounds = []
    for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
        ends = sorted(draw(st.lists(st.fractions(0, 6, max_denominator=3), min_size=2, max_size=2)))
        lower, upper = map(literal, ends)
        strict = draw(st.booleans())
        kind = draw(st.sampled_from(["<=", "<=", ">=", "[]"]))
        bound = ast.StepBound(
            lower=None if kind == "<=" else lower,
            upper=None if kind == ">=" else upper,
            lower_strict=kind == ">=" and strict,
            upper_strict=kind == "<=" and strict,
        )
        bounds.append(ast.RewardBound(draw(st.sampled_from(REWARDS)), bound))
    return tuple(bounds)


@cache
def within_rewards(inside: st.SearchStrategy[ast.Formula]) -> st.SearchStrategy[ast.PathFormula]:
    """Path operators with bounds on rewards, sometimes on steps too."""
    steps = st.none() | st.none() | step_bounds(largest=4)
    return st.one_of(
        st.builds(ast.Eventually, inside, steps, reward_bounds()),
        st.builds(ast.Globally, inside, steps, reward_bounds()),
        st.builds(ast.Until, inside, inside, steps, reward_bounds()),
        st.builds(ast.WeakUntil, inside, inside, steps, reward_bounds()),
        st.builds(ast.Release, inside, inside, steps, reward_bounds()),
    )


@cache
def cumulated() -> st.SearchStrategy[ast.RewardPath]:
    """Discounted rewards, and rewards until another is used up."""
    discounts = st.sampled_from([Fraction(1, 2), Fraction(9, 10)]).map(literal)
    upper = st.tuples(st.sampled_from(REWARDS), st.integers(0, 5)).map(
        lambda item: (ast.RewardBound(item[0], ast.StepBound(upper=literal(item[1]))),)
    )
    return st.one_of(
        st.builds(ast.CumulativeReward, st.none() | numbers(0, 8), st.just(False), discounts),
        st.builds(ast.CumulativeReward, st.none() | numbers(0, 6), st.just(False), st.none(), upper),
    )


@cache
def quantiles(inside: st.SearchStrategy[ast.Formula]) -> st.SearchStrategy[ast.Quantile]:
    """Quantiles over steps and over rewards."""
    variable = ast.Identifier("B")
    ends = st.sampled_from([ast.StepBound(upper=variable), ast.StepBound(lower=variable)])
    by_steps = st.one_of(
        st.builds(ast.Eventually, inside, ends),
        st.builds(ast.Globally, inside, st.just(ast.StepBound(upper=variable))),
        st.builds(ast.Until, inside, inside, ends),
    )
    by_reward = st.builds(
        lambda goal, name: ast.Eventually(goal, None, (ast.RewardBound(name, ast.StepBound(upper=variable)),)),
        inside,
        st.sampled_from(REWARDS),
    )
    probability = st.builds(ast.Probability, by_steps | by_reward, thresholds())
    return probability.map(lambda operator: ast.Quantile((ast.QuantileVariable("B"),), operator))


@cache
def quantities(depth: int = 1) -> st.SearchStrategy[ast.Quantitative]:
    """Operators without a threshold."""
    inside = operands(depth)
    targets = st.builds(ast.Eventually, inside)
    structures = st.sampled_from([*REWARDS, None, ast.OnePerStep(), literal(2)])
    return st.one_of(
        st.builds(ast.Probability, paths(inside)),
        st.builds(ast.Probability, ltl(1, inside)),
        st.builds(ast.Probability, ltl(2, plain(0))),
        st.builds(ast.Probability, within_rewards(inside)),
        st.builds(ast.Probability, targets, st.none(), st.none(), targets),
        st.builds(ast.Probability, paths(inside), st.none(), st.none(), paths(inside) | ltl(0, inside)),
        st.builds(ast.Reward, reward_paths(inside), structures),
        st.builds(ast.Reward, cumulated(), structures),
        st.builds(ast.Reward, st.builds(ast.ReachReward, inside), structures, st.none(), st.none(), targets),
        st.builds(ast.Reward, st.builds(ast.PathReward, st.builds(ast.Until, inside, inside)), structures),
        st.builds(ast.SteadyState, inside),
    )


@cache
def branching(depth: int = 1) -> st.SearchStrategy[ast.Quantified]:
    return st.builds(ast.Quantified, st.sampled_from(["A", "E"]), paths(operands(depth)))


@cache
def numeric(depth: int = 1) -> st.SearchStrategy[ast.Formula]:
    """Formulas with a number as their value."""
    operators = quantities(depth)
    states = st.none() | plain(0).filter(lambda formula: not isinstance(formula, ast.Truth))
    kinds: Sequence[ast.FilterKind] = ("min", "max", "sum", "avg", "first", "print", "printall", "values")
    return st.one_of(
        operators,
        operators,
        operators,
        st.builds(ast.Binary, st.sampled_from(["+", "-", "*"]), operators, operators),
        st.builds(ast.Filter, st.sampled_from(kinds), operators, states),
        st.builds(ast.Filter, st.just("count"), truths(0), states),
    )


@cache
def truths(depth: int = 1) -> st.SearchStrategy[ast.Formula]:
    """Formulas with a truth value."""
    bounded = st.builds(lambda operator, bound: _with(operator, bound), quantities(depth), thresholds())
    return st.one_of(
        bounded,
        bounded,
        branching(depth),
        st.builds(ast.Binary, _COMPARISONS, quantities(depth), st.fractions(0, 2, max_denominator=9).map(literal)),
        st.builds(ast.Filter, st.sampled_from(["forall", "exists"]), bounded, st.none()),
        st.builds(ast.Filter, st.sampled_from(["argmin", "argmax"]), quantities(depth), st.none()),
    )


def _with(operator: ast.Quantitative, threshold: ast.Threshold) -> ast.Quantitative:
    return replace(operator, threshold=threshold)
