"""The probability of path formulas against an independent construction, PCTL, and the laws of LTL."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.closedform.ltl.elimination import is_small, probability
from tests.closedform.ltl.strategies import (
    Node,
    Truths,
    any_chains,
    arithmetic_on,
    branching_chains,
    label_chain,
    nodes,
    path_of,
    paths,
    pattern_paths,
    step_bounds,
)
from tests.closedform.strategies import number
from tests.closedform.strategies import paths as pctl_paths

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.bounds import step_window
from tracebridge.closedform.ltl import conditional_probability, equations, ltl_probability
from tracebridge.closedform.ltl.translation import MAX_DEPTH
from tracebridge.closedform.modelcheck import rounding_amplification
from tracebridge.closedform.until import until_form, until_probability
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast

A, B = ast.Label("a"), ast.Label("b")


def value(chain: MarkovChain, path: ast.PathFormula) -> list[Fraction]:
    return ltl_probability(arithmetic_on(chain, exact=True), path, Truths(chain)).value.tolist()


@settings(max_examples=120)
@given(any_chains(5), paths(3).filter(is_small))
def test_equals_the_refined_chain(chain: MarkovChain, path: ast.PathFormula) -> None:
    assert value(chain, path) == probability(chain, path)


@settings(max_examples=40)
@given(any_chains(4), paths(4, bounded=False).filter(is_small))
def test_deeply_nested_formulas_equal_the_refined_chain(chain: MarkovChain, path: ast.PathFormula) -> None:
    assert value(chain, path) == probability(chain, path)


@settings(max_examples=80)
@given(any_chains(6), paths(3))
def test_enclosures_contain_the_exact_value(chain: MarkovChain, path: ast.PathFormula) -> None:
    exact = value(chain, path)
    enclosed = ltl_probability(arithmetic_on(chain, exact=False), path, Truths(chain))
    for truth, lower, upper in zip(exact, enclosed.lower.tolist(), enclosed.upper.tolist(), strict=True):
        assert Fraction(lower) <= truth <= Fraction(upper)
        assert upper - lower <= 1e-13 * upper
        if truth in {0, 1}:
            assert lower == upper


@settings(max_examples=60)
@given(branching_chains(7), pattern_paths())
def test_formulas_that_lead_back_to_each_other(chain: MarkovChain, path: ast.PathFormula) -> None:
    exact = value(chain, path)
    assert exact == probability(chain, path)
    enclosed = ltl_probability(arithmetic_on(chain, exact=False), path, Truths(chain))
    for truth, lower, upper in zip(exact, enclosed.lower.tolist(), enclosed.upper.tolist(), strict=True):
        assert Fraction(lower) <= truth <= Fraction(upper)
        assert upper - lower <= 1e-13 * upper


@settings(max_examples=80)
@given(any_chains(6), pctl_paths(st.none() | step_bounds(4)))
def test_pctl_is_a_part_of_ltl(chain: MarkovChain, path: ast.Temporal) -> None:
    arithmetic, holds = arithmetic_on(chain, exact=True), Truths(chain)
    form = until_form(path, holds, chain.n_states)
    assert value(chain, path) == until_probability(arithmetic, form, step_window(path.bound)).value.tolist()


@settings(max_examples=50)
@given(any_chains(6), pctl_paths(st.none()))
def test_unbounded_pctl_is_the_same_in_doubles_to_the_last_bit(chain: MarkovChain, path: ast.Temporal) -> None:
    arithmetic, holds = arithmetic_on(chain, exact=False), Truths(chain)
    ours = ltl_probability(arithmetic, path, holds)
    theirs = until_probability(arithmetic, until_form(path, holds, chain.n_states), step_window(path.bound))
    assert ours.lower.tolist() == theirs.lower.tolist()
    assert ours.upper.tolist() == theirs.upper.tolist()


@settings(max_examples=50)
@given(any_chains(6), paths(3))
def test_a_formula_or_its_negation_holds(chain: MarkovChain, path: ast.PathFormula) -> None:
    total = np.array(value(chain, path)) + np.array(value(chain, ast.PathNot(path)))
    assert total.tolist() == [1] * chain.n_states


@settings(max_examples=50)
@given(any_chains(5), nodes(2), nodes(2))
def test_inclusion_and_exclusion(chain: MarkovChain, left: Node, right: Node) -> None:
    both, either = (value(chain, ast.PathBinary(operator, left, right)) for operator in ("&", "|"))
    ones = [np.array(value(chain, ast.PathNot(ast.PathNot(side)))) for side in (left, right)]
    assert (ones[0] + ones[1]).tolist() == (np.array(both) + np.array(either)).tolist()


@settings(max_examples=50)
@given(any_chains(5), nodes(2), nodes(2), st.sampled_from([ast.Until, ast.WeakUntil, ast.Release]))
def test_expansion_laws(chain: MarkovChain, left: Node, right: Node, kind: type) -> None:
    now = kind(left, right)
    if kind is ast.Release:
        expanded = ast.PathBinary("&", right, ast.PathBinary("|", left, ast.Next(now)))
    else:
        expanded = ast.PathBinary("|", right, ast.PathBinary("&", left, ast.Next(now)))
    difference = ast.PathNot(ast.PathBinary("<=>", now, expanded))
    assert value(chain, now) == value(chain, expanded)
    assert value(chain, difference) == [0] * chain.n_states


@settings(max_examples=50)
@given(any_chains(6), nodes(2))
def test_what_holds_infinitely_often_is_what_does_not_end(chain: MarkovChain, operand: Node) -> None:
    recurring = ast.Globally(ast.Eventually(operand))
    ending = ast.Eventually(ast.Globally(ast.PathNot(operand)))
    assert value(chain, ast.PathBinary("<=>", recurring, ending)) == [0] * chain.n_states
    assert value(chain, ast.Next(recurring)) == value(chain, recurring)


def test_known_answers() -> None:
    """One state 0 that stays with 1/2 or goes to a (1/3) or b (1/6), where runs alternate between a and b."""
    half, third, sixth = Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)
    chain = label_chain([{0: half, 1: third, 2: sixth}, {2: Fraction(1)}, {1: Fraction(1)}], a=[1], b=[2])
    ever, always, not_a = ast.Eventually, ast.Globally, ast.PathNot(ast.Next(A))
    assert value(chain, always(ever(A))) == [1, 1, 1]
    assert value(chain, ever(always(A))) == [0, 0, 0]
    # the first of both is a with probability (1/3) / (1/2)
    assert value(chain, ast.Until(ast.Unary("!", B), ast.PathBinary("&", A, ast.Next(B))))[0] == Fraction(2, 3)
    # a after exactly k steps: 2/3 (1 - 2^-k) in the limit alternates, from the first visit on
    assert value(chain, ast.Next(ast.Next(A)))[0] == half * third + sixth
    assert value(chain, ast.PathBinary("&", not_a, ever(A, ast.StepBound(upper=number(2)))))[0] == half * third + sixth


def test_step_bounds_take_as_many_formulas_as_steps() -> None:
    """Response within 3 steps for 20 steps: a walk over 21 + 3 steps in rationals."""
    chain = label_chain(
        [{0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(9, 10), 1: Fraction(1, 10)}], a=[1], b=[0]
    )
    soon = ast.Eventually(B, ast.StepBound(upper=number(3)))
    path = ast.Globally(ast.PathBinary("=>", A, soon), ast.StepBound(upper=number(20)))
    # fails iff there are four ones in a row, the first of them at step 0 to 20
    run = {0: Fraction(1)}  # ones in a row, from state 0
    for _ in range(23):
        after: dict[int, Fraction] = {}
        for ones, p in run.items():
            if ones == 4:
                after[4] = after.get(4, Fraction(0)) + p
                continue
            up = Fraction(1, 2) if ones == 0 else Fraction(1, 10)
            after[ones + 1] = after.get(ones + 1, Fraction(0)) + p * up
            after[0] = after.get(0, Fraction(0)) + p * (1 - up)
        run = after
    assert value(chain, path)[0] == 1 - run[4]


def test_rounding_is_amplified_by_the_time_in_the_open_nodes() -> None:
    """A state that is left with probability 1/1000, and a formula whose equations are those of ``F``."""
    chain = label_chain(
        [{0: Fraction(999, 1000), 1: Fraction(1, 2000), 2: Fraction(1, 2000)}, {1: Fraction(1)}, {2: Fraction(1)}],
        a=[1],
        b=[2],
    )
    path, ever = ast.Eventually(ast.Globally(A)), ast.Eventually(A)
    for operator, solutions in [
        (ast.Probability(path), 1),
        (ast.Probability(path, condition=ast.PathBinary("|", ever, ast.Eventually(B))), 2),
        (ast.Reward(ast.PathReward(ast.Eventually(ast.PathBinary("&", A, ast.Next(A)))), "cost"), 0),
        (ast.Reward(ast.ReachReward(A), "cost", condition=ever), 2),
    ]:
        amplification = rounding_amplification(chain, operator, Truths(chain))
        assert 900 * solutions <= amplification <= 1100 * solutions + 2


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        (
            ast.Globally(ast.Eventually(A, reward_bounds=(ast.RewardBound(None, ast.StepBound()),))),
            UnsupportedError,
            "reward",
        ),
        (ast.AutomatonPath("x.hoa", ()), UnsupportedError, "automat"),
        (ast.Next(ast.Eventually(A, ast.StepBound(upper=ast.Number(Fraction(1, 2), False)))), PropertyError, "steps"),
    ],
)
def test_refusals(path: ast.PathFormula, error: type[Exception], message: str) -> None:
    chain = label_chain([{0: Fraction(1)}], a=[], b=[0])
    with pytest.raises(error, match=message):
        value(chain, path)


def test_deep_nesting_is_refused_and_not_recursed_into() -> None:
    later = ast.StepBound(lower=number(1))
    chain = label_chain([{0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(1)}], a=[0], b=[1])
    path: Node = A
    for i in range(MAX_DEPTH):
        path = ast.Until(B, path, later) if i % 2 else ast.Release(A, path, later)
    assert isinstance(path, ast.Until)
    with pytest.raises(UnsupportedError, match="inside each other"):
        value(chain, ast.Next(path))
    assert value(chain, path)
    assert isinstance(path.right, ast.PathFormula)
    sides = np.array(value(chain, path.right)) + np.array(value(chain, ast.PathNot(path.right)))
    assert sides.tolist() == [1, 1]


def test_formulas_that_blow_up_are_refused() -> None:
    """Each of many labels must hold again and again within some steps: what is left can be any combination of them."""
    n = 24
    names = {f"p{i}": [i] for i in range(n)}
    chain = label_chain([{j: Fraction(1, n) for j in range(n)} for _ in range(n)], **names)
    parts = [ast.Globally(ast.Eventually(ast.Label(name), ast.StepBound(upper=number(30)))) for name in names]
    path: Node = parts[0]
    for part in parts[1:]:
        path = ast.PathBinary("&", path, part)
    with pytest.raises(UnsupportedError, match="too large"):
        value(chain, path)


@pytest.mark.parametrize("size", [0, 5, 1_000])
def test_equations_are_the_same_in_bundles_of_any_size(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four labels must come up, in any order, before a run ends."""
    monkeypatch.setattr(equations, "BUNDLE", size)
    names = ["p", "q", "r", "s"]
    rows = [{j: Fraction(1, 5) for j in range(5)} for _ in range(4)] + [{4: Fraction(1)}]
    chain = label_chain(rows, **{name: [i] for i, name in enumerate(names)})
    path: Node = ast.Eventually(ast.Label("p"))
    for name in names[1:]:
        path = ast.PathBinary("&", path, ast.Eventually(ast.Label(name)))
    enclosed = ltl_probability(arithmetic_on(chain, exact=False), path, Truths(chain))
    # k labels to come and the end: a new one is first with probability k / (k + 1)
    for i in range(4):
        assert (
            Fraction(enclosed.lower[i])
            <= Fraction(3, 4) * Fraction(2, 3) * Fraction(1, 2)
            <= Fraction(enclosed.upper[i])
        )
    assert enclosed.upper[4] == 0


# ---------------------------------------------------------------- conditions


@settings(max_examples=60)
@given(any_chains(5), paths(2), paths(2))
def test_a_conditional_probability_is_a_quotient(
    chain: MarkovChain, path: ast.PathFormula, condition: ast.PathFormula
) -> None:
    assume(is_small(path, condition, operators=5))
    holds = Truths(chain)
    both, given_ = probability(chain, ast.PathBinary("&", path, condition)), probability(chain, condition)
    exact = conditional_probability(arithmetic_on(chain, exact=True), path, condition, holds)
    enclosed = conditional_probability(arithmetic_on(chain, exact=False), path, condition, holds)
    assert exact.undefined.tolist() == enclosed.undefined.tolist() == [x == 0 for x in given_]
    for i in np.flatnonzero(~exact.undefined).tolist():
        truth = both[i] / given_[i]
        assert exact.value[i] == truth
        assert 0 <= Fraction(enclosed.lower[i]) <= truth <= Fraction(enclosed.upper[i]) <= 1
        if truth in {0, 1}:
            assert enclosed.lower[i] == enclosed.upper[i]


@settings(max_examples=50)
@given(any_chains(6), path_of(1), path_of(1))
def test_its_bounds_are_those_of_the_quotient_or_better(
    chain: MarkovChain, path: ast.PathFormula, condition: ast.PathFormula
) -> None:
    holds, arithmetic = Truths(chain), arithmetic_on(chain, exact=False)
    x = ltl_probability(arithmetic, ast.PathBinary("&", path, condition), holds)
    y = ltl_probability(arithmetic, ast.PathBinary("&", ast.PathNot(path), condition), holds)
    quotient = x / (x + y)
    enclosed = conditional_probability(arithmetic, path, condition, holds)
    defined = ~quotient.undefined
    assert np.all((enclosed.lower >= quotient.lower)[defined])
    assert np.all((enclosed.upper <= quotient.upper)[defined])


def test_a_condition_that_is_rarer_than_any_double_is_still_defined() -> None:
    """40 steps that each succeed with probability 1e-12, then a or b."""
    tiny = Fraction(1, 10**12)
    rows = [{i + 1: tiny, 42: 1 - tiny} for i in range(40)]
    rows += [{41: Fraction(1, 3), 42: Fraction(2, 3)}, {41: Fraction(1)}, {42: Fraction(1)}]
    chain = label_chain(rows, a=[41], b=[40])
    path, condition = ast.Eventually(A), ast.Eventually(B)
    exact = conditional_probability(arithmetic_on(chain, exact=True), path, condition, Truths(chain))
    enclosed = conditional_probability(arithmetic_on(chain, exact=False), path, condition, Truths(chain))
    assert exact.value[0] == Fraction(1, 3)
    assert 0 <= enclosed.lower[0] <= 1 / 3 <= enclosed.upper[0] <= 1
    assert not enclosed.undefined[0]
    assert enclosed.undefined[42]
