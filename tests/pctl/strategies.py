"""Random formulas: PCTL with rewards (`formulas`, `queries`), and the whole language (`any_formulas`)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

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


# ---------------------------------------------------------------- the whole language


def reward_bounds(rewards: Sequence[str]) -> st.SearchStrategy[tuple[ast.RewardBound, ...]]:
    """Bounds on collected rewards, often none, of named structures and of the first one."""
    bound = st.builds(ast.RewardBound, st.sampled_from([*rewards, None]), step_bounds())
    return st.lists(bound, max_size=2).map(tuple)


def reward_limits(rewards: Sequence[str]) -> st.SearchStrategy[tuple[ast.RewardBound, ...]]:
    """Upper bounds on collected rewards, which are all that C takes."""
    bound = st.builds(ast.RewardBound, st.sampled_from([*rewards, None]), st.builds(ast.StepBound, upper=numbers(1)))
    return st.lists(bound, max_size=2).map(tuple)


@st.composite
def any_paths(
    draw: st.DrawFn,
    operands: st.SearchStrategy[ast.Formula],
    rewards: Sequence[str] = (),
    *,
    depth: int = 2,
    automata: bool = True,
) -> ast.PathFormula:
    """Path formulas of LTL, with bounds on steps and rewards anywhere, and automata."""
    return draw(_any_paths(operands, tuple(rewards), depth, automata))


@cache
def _any_paths(
    operands: st.SearchStrategy[ast.Formula], rewards: Sequence[str], depth: int, automata: bool
) -> st.SearchStrategy[ast.PathFormula]:
    bounds = st.none() | step_bounds()
    collected = reward_bounds(rewards) if rewards else st.just(())
    inner = operands
    if depth:
        deeper = any_paths(operands, rewards, depth=depth - 1, automata=automata)
        inner = operands | deeper
    paths_ = [
        st.builds(ast.Next, inner),
        st.builds(ast.Eventually, inner, bounds, collected),
        st.builds(ast.Globally, inner, bounds, collected),
        st.builds(ast.Until, inner, inner, bounds, collected),
        st.builds(ast.WeakUntil, inner, inner, bounds, collected),
        st.builds(ast.Release, inner, inner, bounds, collected),
    ]
    if automata:
        propositions = st.lists(
            st.builds(ast.AutomatonProposition, st.sampled_from(["p", "q-1"]), operands), max_size=2
        )
        paths_.append(st.builds(ast.AutomatonPath, st.just("a b.hoa"), propositions.map(tuple)))
    if depth:
        signs = st.sampled_from(["&", "|", "=>", "<=>"])
        paths_ += [
            st.builds(ast.PathNot, deeper),
            st.builds(ast.PathBinary, signs, deeper, inner),
            st.builds(ast.PathBinary, signs, operands, deeper),
        ]
    return st.one_of(*paths_)


def any_reward_paths(
    operands: st.SearchStrategy[ast.Formula], rewards: Sequence[str]
) -> st.SearchStrategy[ast.RewardPath]:
    """Every kind of reward, Storm's discounts and reward bounds and rewards until a path formula included."""
    paths = any_paths(operands, rewards).filter(
        lambda path: (
            not (
                isinstance(path, ast.Eventually) and ast.is_pctl(path) and path.bound is None and not path.reward_bounds
            )
        )
    )
    discounts = st.none() | decimals() | st.just(ast.Binary("/", _ONE, ast.Number(Fraction(3), integer=True)))
    return st.one_of(
        reward_paths(operands),
        st.builds(ast.PathReward, paths),
        st.builds(
            lambda bound, strict, discount, collected: ast.CumulativeReward(
                bound, strict and bound is not None, discount, collected
            ),
            st.none() | numbers(1),
            st.booleans(),
            discounts,
            reward_limits(rewards),
        ),
    )


@st.composite  # strategies this large cannot be shown, and hypothesis shows what it fails on
def any_formulas(draw: st.DrawFn, labels: Sequence[str], rewards: Sequence[str], depth: int = 1) -> ast.Formula:
    """Truth values and numbers of the whole language, filters, quantiles and questions about choices included."""
    return draw(_any_formulas(tuple(labels), tuple(rewards), depth))


@cache
def _any_formulas(labels: Sequence[str], rewards: Sequence[str], depth: int) -> st.SearchStrategy[ast.Formula]:
    conditions = _any_conditions(labels, rewards, depth)
    numeric = st.one_of(*_any_operators(conditions, st.none(), rewards), *_number_filters(conditions, rewards))
    return st.one_of(
        conditions,
        numeric,
        st.builds(ast.Binary, st.sampled_from(["+", "-", "*", "/"]), numeric, numeric | decimals()),
        st.builds(ast.Binary, st.sampled_from(["<", ">=", "=", "!="]), numeric, numeric),
        st.builds(lambda operand: ast.Unary("-", operand), numeric),
        st.builds(lambda *arguments: ast.Call("max", arguments), numeric, numeric),
        _quantiles(conditions, rewards),
        st.builds(
            ast.Multi,
            st.sampled_from(["multi", "multilex"]),
            st.lists(
                st.builds(ast.Probability, paths(conditions), st.none() | thresholds(), _OPTIMA), min_size=2, max_size=3
            ).map(tuple),
        ),
        st.builds(
            ast.Coalition,
            st.lists(st.sampled_from(["p1", "2", "me"]), min_size=1, max_size=2, unique=True).map(tuple),
            st.booleans(),
            st.builds(ast.Probability, paths(conditions), st.none() | thresholds(), _OPTIMA),
        ),
    )


_OPTIMA = st.sampled_from([None, "min", "max"])


def _any_conditions(labels: Sequence[str], rewards: Sequence[str], depth: int) -> st.SearchStrategy[ast.Formula]:
    leaves = st.one_of(st.sampled_from(list(labels)).map(ast.Label), st.booleans().map(ast.Truth))
    if depth == 0:
        return leaves
    inner = _any_conditions(labels, rewards, depth - 1)
    return st.one_of(
        leaves,
        st.builds(lambda operand: ast.Unary("!", operand), inner),
        st.builds(ast.Binary, st.sampled_from(["&", "|", "=>", "<=>"]), inner, inner),
        st.builds(ast.Conditional, inner, inner, inner),
        st.builds(ast.Quantified, st.sampled_from(["A", "E"]), any_paths(inner, rewards)),
        st.builds(ast.Filter, st.sampled_from(["forall", "exists"]), inner, st.none() | inner),
        *_any_operators(inner, thresholds(), rewards),
    )


def _any_operators(
    operands: st.SearchStrategy[ast.Formula],
    bounds: st.SearchStrategy[ast.Threshold] | st.SearchStrategy[None],
    rewards: Sequence[str],
) -> list[st.SearchStrategy[ast.Formula]]:
    any_path = any_paths(operands, rewards)
    structures: st.SearchStrategy[ast.Structure] = st.sampled_from([*rewards, None, _ONE])
    return [
        st.builds(ast.Probability, any_path, bounds, _OPTIMA, st.none() | any_path),
        st.builds(ast.Reward, any_reward_paths(operands, rewards), structures, bounds, _OPTIMA),
        st.builds(ast.Reward, st.builds(ast.ReachReward, operands), structures, bounds, _OPTIMA, any_path),
        st.builds(ast.Reward, st.builds(ast.ReachReward, operands), st.just(ast.OnePerStep()), bounds, _OPTIMA),
        st.builds(ast.SteadyState, operands, bounds, _OPTIMA),
    ]


def _number_filters(
    operands: st.SearchStrategy[ast.Formula], rewards: Sequence[str]
) -> list[st.SearchStrategy[ast.Formula]]:
    numeric = st.one_of(*_any_operators(operands, st.none(), rewards))
    kinds = st.sampled_from(["min", "max", "sum", "avg", "state", "first"])
    return [
        st.builds(ast.Filter, kinds, numeric, st.none() | operands),
        st.builds(ast.Filter, st.just("count"), operands, st.none() | operands),
    ]


def _quantiles(operands: st.SearchStrategy[ast.Formula], rewards: Sequence[str]) -> st.SearchStrategy[ast.Formula]:
    bound = ast.StepBound(upper=ast.Identifier("B"))
    path = st.one_of(
        st.builds(ast.Eventually, operands, st.just(bound)),
        st.builds(ast.Globally, operands, st.just(bound)),
        st.builds(
            lambda operand, structure: ast.Eventually(operand, None, (ast.RewardBound(structure, bound),)),
            operands,
            st.sampled_from(list(rewards)),
        ),
    )
    variables = st.builds(ast.QuantileVariable, st.just("B"), _OPTIMA).map(lambda variable: (variable,))
    return st.builds(ast.Quantile, variables, st.builds(ast.Probability, path, thresholds(), _OPTIMA))
