"""Rewards until a formula is satisfied, and under a condition, against enumeration, other operators and laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.ltl.elimination import Core, core
from tests.closedform.ltl.strategies import Node, Truths, any_chains, arithmetic_on, label_chain, paths
from tests.closedform.strategies import number

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.expected_reward import reward_until
from tracebridge.closedform.ltl import conditional_reward, ltl_probability, satisfied_prefix_reward
from tracebridge.errors import PropertyError
from tracebridge.pctl import ast

A, B = ast.Label("a"), ast.Label("b")
F = Fraction


def until_satisfied(chain: MarkovChain, path: ast.PathFormula, *, exact: bool = True) -> EnclosureVector:
    arithmetic = arithmetic_on(chain, exact=exact)
    per_step = arithmetic.vector(chain.rewards["cost"].fractions(action=True))
    return satisfied_prefix_reward(arithmetic, path, per_step, Truths(chain))


def under_condition(
    chain: MarkovChain, target: ast.Formula, condition: ast.PathFormula, *, exact: bool = True
) -> EnclosureVector:
    arithmetic = arithmetic_on(chain, exact=exact)
    per_step = arithmetic.vector(chain.rewards["cost"].fractions(action=True))
    return conditional_reward(arithmetic, target, condition, per_step, Truths(chain))


# ---------------------------------------------------------------- an independent answer for bounded formulas

Letter = tuple[bool, bool]  # of a and b


def horizon(formula: Core) -> int:
    """How many steps after the present one a formula without U is about."""
    if formula[0] == "label":
        return 0
    return max([horizon(part) for part in formula[1:]], default=0) + (formula[0] == "next")


def true_of(formula: Core, word: Sequence[Letter], at: int = 0) -> bool:
    match formula:
        case ("true",):
            return True
        case ("label", name):
            return word[at]["ab".index(name)]
        case ("not", operand):
            return not true_of(operand, word, at)
        case ("and", left, right):
            return true_of(left, word, at) and true_of(right, word, at)
        case ("next", operand):
            return true_of(operand, word, at + 1)
    raise AssertionError(formula)


def enumerated(chain: MarkovChain, path: ast.PathFormula) -> list[Fraction | float]:
    """Every path of the chain; a prefix satisfies the formula if every word that goes on does.

    The letters of such words are free, but operands that are constant on the chain, equal or opposite are so in them.
    """
    formula = core(path)
    length = horizon(formula) + 1
    matrix = chain.exact_transitions()
    rows = [matrix.row(i) for i in range(chain.n_states)]
    letter = list(zip(chain.label("a").tolist(), chain.label("b").tolist(), strict=True))
    letters = [
        (a, b)
        for a, b in itertools.product([False, True], repeat=2)
        if a in {x for x, _ in letter} and b in {y for _, y in letter} and (a == b) in {x == y for x, y in letter}
    ]
    cost = chain.rewards["cost"].fractions(action=True)

    def expected(prefix: list[int], probability: Fraction) -> Fraction | float:
        word = [letter[s] for s in prefix]
        endings = itertools.product(letters, repeat=length - len(word))
        verdicts = {true_of(formula, [*word, *ending]) for ending in endings}
        if verdicts == {True}:
            return F(0)
        if verdicts == {False}:
            return math.inf
        last = prefix[-1]
        later = [expected([*prefix, t], probability * p) for t, p in rows[last].items()]
        return sum(later, probability * cost[last])

    return [expected([s], F(1)) for s in range(chain.n_states)]


def bounded_paths(depth: int) -> st.SearchStrategy[ast.PathFormula]:
    """Formulas that a few steps decide."""
    inner: st.SearchStrategy[Node] = st.sampled_from([A, B, ast.Unary("!", A)])
    if depth > 1:
        inner = st.one_of(inner, bounded_paths(depth - 1))
    upper = st.builds(lambda k: ast.StepBound(upper=number(k)), st.integers(0, 1))
    one_more = st.builds(lambda k: ast.StepBound(lower=number(1), upper=number(k)), st.integers(0, 2))
    bounds = upper | one_more
    options = [
        st.builds(ast.Next, inner),
        st.builds(
            lambda kind, a, bound: kind(a, bound), st.sampled_from([ast.Eventually, ast.Globally]), inner, bounds
        ),
        st.builds(ast.Until, inner, inner, bounds),
    ]
    if depth > 1:
        operator = st.sampled_from(["|", "|", "&", "=>", "<=>"])
        options.append(st.builds(ast.PathBinary, operator, bounded_paths(depth - 1), inner))
    return st.one_of(options)


@settings(max_examples=80)
@given(any_chains(4), bounded_paths(2))
def test_reward_until_satisfied_equals_enumeration(chain: MarkovChain, path: ast.PathFormula) -> None:
    assert until_satisfied(chain, path).value.tolist() == enumerated(chain, path)


@settings(max_examples=50)
@given(any_chains(6))
def test_of_a_target_it_is_the_reward_before_it(chain: MarkovChain) -> None:
    holds = Truths(chain)
    for exact in (True, False):
        arithmetic = arithmetic_on(chain, exact=exact)
        per_step = arithmetic.vector(chain.rewards["cost"].fractions(action=True))
        before = reward_until(arithmetic, per_step, holds(A))
        ours = until_satisfied(chain, ast.Eventually(A), exact=exact)
        assert ours.lower.tolist() == before.lower.tolist()
        assert ours.upper.tolist() == before.upper.tolist()


@settings(max_examples=60)
@given(any_chains(5), paths(2))
def test_it_is_finite_where_the_formula_is_almost_sure(chain: MarkovChain, path: ast.PathFormula) -> None:
    """And refused for formulas that no finite part of a run satisfies; those are all that keep a G, W or R."""
    try:
        exact, enclosed = until_satisfied(chain, path), until_satisfied(chain, path, exact=False)
    except PropertyError:
        assert any(bound_free(node) for node in ast.walk(path))
        return
    probability = ltl_probability(arithmetic_on(chain, exact=True), path, Truths(chain)).value.tolist()
    assert [x == math.inf for x in exact.value.tolist()] == [p < 1 for p in probability]
    for truth, lower, upper in zip(exact.value.tolist(), enclosed.lower.tolist(), enclosed.upper.tolist(), strict=True):
        assert lower <= truth <= upper
        assert upper == lower or upper - lower <= 1e-13 * upper


def bound_free(node: ast.Node) -> bool:
    return (
        isinstance(node, ast.Temporal)
        and not isinstance(node, ast.Next)
        and (node.bound is None or node.bound.upper is None)
    )


def test_a_pattern_of_fair_tosses() -> None:
    """Two heads in a row take 6 tosses, head then tail 4 (Feller, volume I, XIII.7); states are tosses, so one less
    step each, and from a head one half of the rest."""
    half = F(1, 2)
    chain = label_chain([{0: half, 1: half}, {0: half, 1: half}], a=[0], b=[1])
    two_heads = ast.Eventually(ast.PathBinary("&", A, ast.Next(A)))
    head_tail = ast.Eventually(ast.PathBinary("&", A, ast.Next(B)))
    mean = [half * sum(until_satisfied(chain, path).value.tolist()) for path in (two_heads, head_tail)]
    assert mean == [5, 3]


def test_it_is_satisfied_as_soon_as_it_cannot_fail() -> None:
    chain = label_chain([{1: F(1)}, {0: F(1)}], a=[0], b=[1])
    sooner_or_not = ast.PathBinary("|", ast.Next(A), ast.Next(ast.Unary("!", A)))
    assert until_satisfied(chain, sooner_or_not).value.tolist() == [0, 0]
    assert until_satisfied(chain, ast.Next(A)).value.tolist() == [math.inf, 1]


@pytest.mark.parametrize(
    "path",
    [
        ast.Globally(A),
        ast.WeakUntil(A, B),
        ast.Release(A, B),
        ast.PathNot(ast.Eventually(A)),
        ast.Eventually(ast.Globally(A)),
    ],
)
def test_other_formulas_are_refused(path: ast.PathFormula) -> None:
    chain = label_chain([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}], a=[0], b=[1])
    with pytest.raises(PropertyError, match="no finite part"):
        until_satisfied(chain, path)
    assert until_satisfied(chain, ast.PathNot(ast.PathNot(ast.Eventually(B)))).value.tolist() == [2, 0]
    assert until_satisfied(chain, ast.PathNot(ast.Globally(A))).value.tolist() == [2, 0]


# ---------------------------------------------------------------- conditions


@settings(max_examples=60)
@given(any_chains(5), paths(2))
def test_conditions_share_the_whole_reward(chain: MarkovChain, condition: ast.PathFormula) -> None:
    """The law of total expectation, for a condition and its negation."""
    holds, arithmetic = Truths(chain), arithmetic_on(chain, exact=True)
    total = [F(0)] * chain.n_states
    for part in (condition, ast.PathNot(condition)):
        share = ltl_probability(arithmetic, part, holds).value.tolist()
        mean = under_condition(chain, A, part)
        assert mean.undefined.tolist() == [p == 0 for p in share]
        total = [t + p * m if p else t for t, p, m in zip(total, share, mean.value.tolist(), strict=True)]
    per_step = arithmetic.vector(chain.rewards["cost"].fractions(action=True))
    assert total == reward_until(arithmetic, per_step, holds(A)).value.tolist()


@settings(max_examples=60)
@given(any_chains(5), paths(2))
def test_enclosures_contain_the_exact_mean(chain: MarkovChain, condition: ast.PathFormula) -> None:
    exact, enclosed = (under_condition(chain, A, condition, exact=exact) for exact in (True, False))
    assert exact.undefined.tolist() == enclosed.undefined.tolist()
    for i in np.flatnonzero(~exact.undefined).tolist():
        assert enclosed.lower[i] <= exact.value[i] <= enclosed.upper[i]
        assert enclosed.upper[i] == enclosed.lower[i] or enclosed.upper[i] <= enclosed.lower[i] * (1 + 1e-12)


def test_known_mean_under_a_condition() -> None:
    """From 0 to 1, 2, 3 and 4 with 1/4 each, from 3 back to 0 with 1/3, from 2 on; only 2 satisfies the condition.

    P(F b) is x = 1/4 + x/12, so 3/11; among its runs a visit to 3 precedes with probability 1/12 each time, 1/11 times
    on average, and costs 6; the last step from 0 costs 1: 17/11.
    """
    rows = [{i: F(1, 4) for i in (1, 2, 3, 4)}, {1: F(1)}, {4: F(1)}, {0: F(1, 3), 4: F(2, 3)}, {4: F(1)}]
    chain = label_chain(rows, a=[1, 2], b=[2])
    arithmetic = arithmetic_on(chain, exact=True)
    cost = arithmetic.vector([F(c) for c in (1, 2, 3, 5, 7)])
    mean = conditional_reward(arithmetic, A, ast.Eventually(B), cost, Truths(chain))
    assert mean.value[:1].tolist() == [F(17, 11)]
    assert mean.undefined.tolist() == [False, True, False, False, True]


def test_infinite_where_the_condition_allows_to_miss_the_target() -> None:
    half = F(1, 2)
    chain = label_chain([{0: half, 1: half}, {2: half, 3: half}, {2: F(1)}, {3: F(1)}], a=[2], b=[1])
    assert under_condition(chain, A, ast.Eventually(B)).value.tolist()[0] == math.inf
    assert under_condition(chain, A, ast.Eventually(A)).value.tolist()[:3] == [3, 1, 0]
