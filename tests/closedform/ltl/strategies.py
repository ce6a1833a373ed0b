"""Random path formulas of LTL over the labels a and b."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from tests.closedform.strategies import chains, number

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.arithmetic import Arithmetic
from tracebridge.closedform.exact_arithmetic import ExactArithmetic
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.pctl import ast
from tracebridge.pctl.ast import StepBound

Node = ast.Formula | ast.PathFormula


@st.composite
def step_bounds(draw: st.DrawFn, max_steps: int = 2) -> StepBound:
    """Every form of bound, empty ones too."""
    low, high = (number(draw(st.integers(0, max_steps))) for _ in range(2))
    match draw(st.sampled_from(["upper", "strict", "lower", "exact", "interval"])):
        case "upper":
            return StepBound(upper=high)
        case "strict":
            return StepBound(lower=low, upper=high, lower_strict=True, upper_strict=True)
        case "lower":
            return StepBound(lower=low, lower_strict=draw(st.booleans()))
        case "exact":
            return StepBound(lower=low, upper=low, exact=True)
    return StepBound(lower=low, upper=high)


def nodes(depth: int, *, bounded: bool = True) -> st.SearchStrategy[Node]:
    """Formulas with operators nested up to ``depth`` deep."""
    literals = st.sampled_from([ast.Label("a"), ast.Label("b"), ast.Unary("!", ast.Label("a")), ast.Truth(True)])
    if depth == 0:
        return literals
    return literals | paths(depth, bounded=bounded)


def paths(depth: int, *, bounded: bool = True) -> st.SearchStrategy[ast.PathFormula]:
    """Path formulas with operators nested up to ``depth`` deep."""
    inner = nodes(depth - 1, bounded=bounded)
    bounds = st.none() | step_bounds() if bounded else st.none()
    binary = st.sampled_from([ast.Until, ast.WeakUntil, ast.Release])
    options = [
        st.builds(ast.Next, inner),
        st.builds(
            lambda kind, a, bound: kind(a, bound), st.sampled_from([ast.Eventually, ast.Globally]), inner, bounds
        ),
        st.builds(lambda kind, a, b, bound: kind(a, b, bound), binary, inner, inner, bounds),
    ]
    if depth > 1:
        deeper = paths(depth - 1, bounded=bounded)
        options += [
            st.builds(ast.PathNot, deeper),
            st.builds(ast.PathBinary, st.sampled_from(["&", "|", "=>", "<=>"]), deeper, inner),
        ]
    return st.one_of(options)


class Truths:
    """Where state formulas over labels hold in a chain."""

    def __init__(self, chain: MarkovChain) -> None:
        self.chain = chain

    def __call__(self, formula: ast.Formula) -> np.ndarray:
        match formula:
            case ast.Label():
                return self.chain.label(formula.name)
            case ast.Truth():
                return np.full(self.chain.n_states, formula.value)
            case ast.Unary(operator="!"):
                return ~self(formula.operand)
        raise AssertionError(formula)


def arithmetic_on(chain: MarkovChain, *, exact: bool) -> Arithmetic:
    return ExactArithmetic(chain) if exact else FloatArithmetic(chain)


def label_chain(rows: list[dict[int, Fraction]], **labels: list[int]) -> MarkovChain:
    """A chain with labels that hold in the states listed, and one reward ``cost`` of one a step."""
    n = len(rows)
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=RationalMatrix.from_rows(rows),
        initial=(np.arange(n) == 0).astype(np.float64),
        labels={name: np.isin(np.arange(n), states) for name, states in labels.items()},
        rewards={"cost": RewardStructure.from_fractions([1] * n)},
    )


def path_of(depth: int) -> st.SearchStrategy[ast.PathFormula]:
    """Path formulas without step bounds."""
    return paths(depth, bounded=False)


@st.composite
def branching_chains(draw: st.DrawFn, max_states: int = 5) -> MarkovChain:
    """Chains whose runs wander among some states and end in one of two or three classes, so that few formulas are
    decided by the graph; with a reward ``cost``."""
    wandering = draw(st.integers(min(3, max_states - 3), max_states - 3))
    ends = [wandering, wandering + 1]
    rows: list[dict[int, Fraction]] = []
    for _ in range(wandering):
        targets = draw(st.lists(st.integers(0, wandering - 1), min_size=1, max_size=2, unique=True))
        targets.append(draw(st.sampled_from([*ends, wandering + 2])))
        weights = [draw(st.sampled_from([1, 1, 2, 3, 10**6])) for _ in targets]
        rows.append({t: Fraction(w, sum(weights)) for t, w in zip(targets, weights, strict=True)})
    if draw(st.booleans()):  # the first two ends alternate
        rows += [{ends[1]: Fraction(1)}, {ends[0]: Fraction(1, 3), ends[1]: Fraction(2, 3)}]
    else:
        rows += [{end: Fraction(1)} for end in ends]
    rows.append({wandering + 2: Fraction(1)})
    truth = st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))
    return label_chain(rows, **{name: np.flatnonzero(draw(truth)).tolist() for name in "ab"})


def any_chains(max_states: int) -> st.SearchStrategy[MarkovChain]:
    """Chains of every kind, more than half of them branching."""
    return st.one_of(branching_chains(max_states), branching_chains(max_states), chains(max_states))


@st.composite
def pattern_paths(draw: st.DrawFn) -> ast.PathFormula:
    """Formulas whose remainders lead back to each other while runs wander: equations of several formulas at once."""
    literals = [ast.Label("a"), ast.Label("b"), ast.Unary("!", ast.Label("a")), ast.Unary("!", ast.Label("b"))]
    x, y, z = (draw(st.sampled_from(literals)) for _ in range(3))
    then = ast.PathBinary("&", x, ast.Next(y))
    until = ast.PathBinary("&", x, ast.Next(ast.Until(y, z)))
    twice = ast.PathBinary("&", x, ast.Next(ast.PathBinary("&", y, ast.Next(z))))
    return draw(
        st.sampled_from(
            [
                ast.Eventually(then),
                ast.Until(ast.PathBinary("|", x, ast.Next(y)), z),
                ast.Until(ast.PathNot(then), z),
                ast.PathBinary("&", ast.Eventually(until), ast.Eventually(y)),
                ast.Eventually(twice),
                ast.Globally(ast.PathBinary("=>", x, ast.Next(ast.PathBinary("|", y, ast.Next(z))))),
                ast.PathBinary("&", ast.Eventually(then), ast.Globally(ast.Eventually(z))),
            ]
        )
    )
