"""Path formulas, conditions and the rewards that hang on them, against the exact engine on each chain of a stack."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.batched.stacks import assert_exact_engine_agrees, stacks
from tests.closedform.ltl.strategies import Truths, paths, pattern_paths
from tests.inference.draws_of_chains import random_entries

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform import ltl
from tracebridge.closedform.batched import path_formulas
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.closedform.batched.linear_system import MOST_SIDE_BY_SIDE
from tracebridge.closedform.batched.operators import evaluate_stacked
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.pctl import ast, parse_properties

ANY_PATH = st.one_of(paths(2), paths(3), pattern_paths())
ONE_OPERATOR = st.one_of(paths(1), pattern_paths())


@settings(max_examples=50, deadline=None)
@given(stacks(), ANY_PATH)
def test_probabilities(stack: ChainStack, path: ast.PathFormula) -> None:
    holds = Truths(stack.chain)
    found = path_formulas.path_probability(stack, path, holds)
    assert_exact_engine_agrees(stack, found, lambda exact, chain: ltl.ltl_probability(exact, path, Truths(chain)))


@settings(max_examples=50, deadline=None)
@given(stacks(), ONE_OPERATOR, ONE_OPERATOR)
def test_conditional_probabilities(stack: ChainStack, path: ast.PathFormula, condition: ast.PathFormula) -> None:
    found = path_formulas.conditional_path_probability(stack, path, condition, Truths(stack.chain))
    assert_exact_engine_agrees(
        stack, found, lambda exact, chain: ltl.conditional_probability(exact, path, condition, Truths(chain))
    )


@settings(max_examples=40, deadline=None)
@given(stacks(), st.sampled_from("ab"), ONE_OPERATOR)
def test_conditional_rewards(stack: ChainStack, target: str, condition: ast.PathFormula) -> None:
    operator = ast.Reward(ast.ReachReward(ast.Label(target)), "cost", condition=condition)
    found = evaluate_stacked(stack, operator, Truths(stack.chain))
    assert_exact_engine_agrees(stack, found, lambda exact, chain: evaluate_operator(exact, operator, Truths(chain)))


CO_SAFE = [
    'F ("a" & X "b")', '("a" | X "b") U ("b" & X !"a")', '(F<=3 "a") & (F "b")', 'X X "a"', 'G<=2 (F<=2 "b")',
    '(F "a") | (X F ("b" & X X "a"))',
]  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(stacks(), st.sampled_from(CO_SAFE))
def test_rewards_until_a_formula_is_satisfied(stack: ChainStack, text: str) -> None:
    (parsed,) = parse_properties(f'R{{"cost"}}=? [ {text} ]').properties
    operator = parsed.formula
    found = evaluate_stacked(stack, operator, Truths(stack.chain))
    assert_exact_engine_agrees(stack, found, lambda exact, chain: evaluate_operator(exact, operator, Truths(chain)))


def test_each_draw_is_solved_alone_where_many_equations_hang_together() -> None:
    """Steps repeat until two of the same kind come in a row: equations of several formulas, in 60 states."""
    n, rng = MOST_SIDE_BY_SIDE + 10, np.random.default_rng(4)
    P = np.zeros((n, n))
    for i in range(n - 1):
        P[i, [*rng.choice(n - 1, size=4, replace=False), n - 1]] = 1
    P[n - 1, n - 1] = 1
    chain = MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=P / P.sum(axis=1, keepdims=True),
        initial=np.eye(n)[0],
        labels={"a": np.arange(n) % 3 == 0, "b": np.arange(n) % 5 == 0},
    )
    stack = ChainStack(chain, random_entries(chain, 2, rng), chain.initial[:, None])
    a, b = ast.Label("a"), ast.Label("b")
    path = ast.PathBinary("&", ast.Eventually(ast.PathBinary("&", a, ast.Next(a))), ast.Eventually(b))
    found = path_formulas.path_probability(stack, path, Truths(chain))
    assert 0 < found[0].min() < found[0].max() < 1
    assert_exact_engine_agrees(stack, found, lambda exact, chain: ltl.ltl_probability(exact, path, Truths(chain)))


def test_draws_in_chunks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = two_ends()
    stack = ChainStack(chain, random_entries(chain, 7, np.random.default_rng(0)), chain.initial[:, None])
    path = ast.PathBinary("&", ast.Eventually(ast.Label("a")), ast.Eventually(ast.Label("b")))
    whole = path_formulas.path_probability(stack, path, Truths(chain))
    monkeypatch.setattr(path_formulas, "CHUNK_BYTES", 1)
    np.testing.assert_array_equal(path_formulas.path_probability(stack, path, Truths(chain)), whole)


def two_ends() -> MarkovChain:
    """From s0 to s1, s2 or itself; from s1 to s2 or s3; s2 and s3 stay."""
    return MarkovChain(
        states=("s0", "s1", "s2", "s3"),
        transitions=np.array([[0.25, 0.5, 0.25, 0], [0, 0, 0.5, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]),
        initial=np.array([0.5, 0, 0.5, 0]),
        labels={"a": np.array([False, True, False, False]), "b": np.array([False, False, True, False])},
    )


def test_a_draw_without_some_edges_has_its_own_values() -> None:
    """By hand: the second draw never goes from s0 to s1, so no run satisfies the condition there."""
    chain = two_ends()
    entries = np.column_stack([chain.transitions.data, [0.5, 0, 0.5, 0.5, 0.5, 1, 1]])
    stack = ChainStack(chain, entries, chain.initial[:, None])
    a, b = ast.Eventually(ast.Label("a")), ast.Eventually(ast.Label("b"))
    both = path_formulas.path_probability(stack, ast.PathBinary("&", a, b), Truths(chain))
    np.testing.assert_allclose(both[:2], [[1 / 3, 0], [1 / 2, 1 / 2]], rtol=1e-15)
    given_a = path_formulas.conditional_path_probability(stack, b, a, Truths(chain))
    np.testing.assert_allclose(given_a[:2], [[1 / 2, np.nan], [1 / 2, 1 / 2]], rtol=1e-15)
    assert np.isnan(given_a[2:]).all()


def test_a_rare_condition_keeps_its_accuracy() -> None:
    """The condition has a probability of about 1e-300; the quotient is that of its two ways."""
    chain = MarkovChain(
        states=("s0", "s1", "s2", "s3"),
        transitions=np.array([[0, 0.25, 0.25, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        initial=np.array([1.0, 0, 0, 0]),
        labels={"a": np.array([False, True, False, False]), "b": np.array([False, True, True, False])},
    )
    stack = ChainStack(chain, np.array([[1e-300, 3e-300, 1.0, 1, 1, 1]]).T, chain.initial[:, None])
    a, b = ast.Eventually(ast.Label("a")), ast.Eventually(ast.Label("b"))
    assert path_formulas.conditional_path_probability(stack, a, b, Truths(chain))[0, 0] == pytest.approx(
        0.25, rel=1e-14
    )
