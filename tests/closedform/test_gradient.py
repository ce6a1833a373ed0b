"""Gradients against exact differences of rational functions, and against equations of our own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.strategies import budgeted_probabilities, budgeted_rewards, chains, discounted_rewards, operators

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform import ExactArithmetic, evaluate_operator
from tracebridge.closedform.gradient import operator_gradient
from tracebridge.closedform.sensitivity import reliability_gradient
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import Label, Unary
from tracebridge.pctl.parser import parse_formula

STORM = Path(__file__).parent / "storm_derivatives_reference.py"
STEP = Fraction(1, 10**15)  # of a central difference in rationals: off by its square times a third derivative
PATHS = (
    'P=? [(F "a") & (G !"b")]',
    'P=? [F<=3 ("a" & (X "b"))]',
    'P=? [F "b" || F "a"]',
    'P=? [G "a" || X "b"]',
    'R{"cost"}=? [F ("a" & (X "b"))]',
    'R{"cost"}=? [F "b" || F "a"]',
    'R{"tokens"}=? ["a" U "b"]',
)


def holds_in(chain: MarkovChain):
    def holds(formula):
        if isinstance(formula, Unary):
            return ~holds(formula.operand)
        assert isinstance(formula, Label)
        return chain.label(formula.name)

    return holds


def moved(chain: MarkovChain, source: int, target: int, step: Fraction) -> MarkovChain:
    """The chain with a probability larger by the step, and the others of its row smaller in proportion."""
    found = []
    for i in range(chain.n_states):
        row = chain.exact_transitions().row(i)
        if i == source:
            rest = 1 - row[target]
            row = {j: p + step if j == target else p - step * p / rest for j, p in row.items()}
        found.append(row)
    return replace(chain, transitions=RationalMatrix.from_rows(found), rationals=None)  # type: ignore[arg-type]


def exact_value(chain: MarkovChain, operator) -> Fraction | float:
    values = evaluate_operator(ExactArithmetic(chain), operator, holds_in(chain)).value
    (start,) = np.flatnonzero(chain.initial)
    return values[start]


def assert_is_the_derivative(chain: MarkovChain, operator) -> None:
    """Each entry along the simplex, against a central difference in rationals, to 1e-9 of the larger of both sides."""
    value = exact_value(chain, operator)
    if not isinstance(value, Fraction):
        with pytest.raises(UnsupportedError, match="no derivative"):
            operator_gradient(chain, operator, holds_in(chain))
        return
    found = operator_gradient(chain, operator, holds_in(chain))
    assert found.value == pytest.approx(float(value), rel=1e-12, abs=1e-300)
    P = chain.transitions
    entries = zip(np.repeat(np.arange(chain.n_states), np.diff(P.indptr)).tolist(), P.indices.tolist(), strict=True)
    for (i, j), slope in zip(entries, found.along_simplex.tolist(), strict=True):
        if len(chain.exact_transitions().row(i)) == 1:
            assert np.isnan(slope)
            continue
        step = STEP * min(chain.exact_transitions().row(i).values())
        ends = [exact_value(moved(chain, i, j, sign * step), operator) for sign in (1, -1)]
        assert slope == pytest.approx(float((ends[0] - ends[1]) / (2 * step)), rel=1e-9, abs=1e-9)


@settings(max_examples=18)
@given(chains(max_states=5, min_states=2, sticky=False), st.one_of(operators(), discounted_rewards()))
def test_gradients_are_the_derivatives_of_exact_values(chain, operator):
    assert_is_the_derivative(chain, operator)


@settings(max_examples=12)
@given(chains(max_states=4, min_states=2, sticky=False), st.one_of(budgeted_probabilities(), budgeted_rewards()))
def test_gradients_within_budgets(chain, operator):
    assert_is_the_derivative(chain, operator)


@settings(max_examples=5)
@given(chains(max_states=4, min_states=2, sticky=False), st.sampled_from(PATHS))
def test_gradients_of_path_formulas_and_conditions(chain, text):
    assert_is_the_derivative(chain, parse_formula(text))


# ---------------------------------------------------------------- each entry by itself


@pytest.mark.storm
@pytest.mark.parametrize("seed", [1, 2])
def test_free_derivatives_are_those_of_storms_rational_functions(seed):
    chain = chain_of_parameters(seed)
    questions = ['P=? [F "a"]', 'P=? [!"b" U "a"]', 'P=? [G !"a"]', 'R{"cost"}=? [F "end"]', 'R{"cost"}=? [C<=4]']
    answers = ask_storm(chain, questions)
    P = chain.transitions
    names = [f"p{i}_{j}" for i, row in enumerate(np.split(P.indices, P.indptr[1:-1])) for j in row.tolist()]
    for text, answer in zip(questions, answers, strict=True):
        found = operator_gradient(chain, parse_formula(text), holds_in(chain))
        assert found.value == pytest.approx(float(Fraction(answer["value"])), rel=1e-12)
        expected = [float(Fraction(answer["derivatives"].get(name, 0))) for name in names]
        of_storm = replace(found, free=np.array(expected))
        if "G" in text:  # one minus F for Storm, a recursion of its own here: the same where rows sum to one
            np.testing.assert_allclose(found.centred, of_storm.centred, rtol=1e-9, atol=1e-9)
        else:
            np.testing.assert_allclose(found.free, of_storm.free, rtol=1e-9, atol=1e-9)


def chain_of_parameters(seed: int) -> MarkovChain:
    """Three transient states, each with four successors, and two absorbing ones; random twelfths."""
    rng = np.random.default_rng(seed)
    rows = []
    for successors in ((1, 2, 3, 4), (0, 1, 2, 3), (0, 1, 3, 4)):
        weights = rng.multinomial(8, [1 / 4] * 4) + 1
        rows.append({j: Fraction(int(w), 12) for j, w in zip(successors, weights, strict=True)})
    rows += [{3: Fraction(1)}, {4: Fraction(1)}]
    states = np.arange(5)
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(5)),
        transitions=RationalMatrix.from_rows(rows),  # type: ignore[arg-type]
        initial=RationalVector.from_fractions([Fraction(int(i == 0)) for i in range(5)]),  # type: ignore[arg-type]
        labels={"a": states == 3, "b": states == 2, "end": states >= 3},
        rewards={"cost": RewardStructure.from_fractions([2, 0, 1, 0, 0])},
    )


def ask_storm(chain: MarkovChain, questions: list[str]) -> list[dict]:
    """Each transition of a transient state is a parameter of its own, at the probability that it has."""
    parameters, commands = {}, []
    for i in range(chain.n_states):
        row = chain.exact_transitions().row(i)
        parameters |= {f"p{i}_{j}": str(p) for j, p in row.items() if p != 1}
        branches = (f"{f'p{i}_{j}' if p != 1 else 1}:(s'={j})" for j, p in row.items())
        commands.append(f"[] s={i} -> {' + '.join(branches)};")
    labels = (
        f'label "{name}" = ' + "|".join(f"s={i}" for i in np.flatnonzero(mask)) for name, mask in chain.labels.items()
    )
    costs = (f"s={i} : {int(c)};" for i, c in enumerate(chain.rewards["cost"].state))
    lines = ["dtmc", *(f"const double {name};" for name in parameters)]
    lines += ["module m", f"s : [0..{chain.n_states - 1}] init 0;", *commands, "endmodule"]
    lines += [f"{line};" for line in labels] + ['rewards "cost"', *costs, "endrewards"]
    request = {"program": "\n".join(lines), "questions": questions, "point": parameters}
    done = subprocess.run(
        [sys.executable, str(STORM)], input=json.dumps(request), capture_output=True, text=True, check=True, timeout=40
    )
    return json.loads(done.stdout[done.stdout.index("[{") :])


def test_the_derivatives_of_a_bounded_property_by_hand():
    # from 0: to itself p, to the goal q, to the sink r. F<=2: q + p q, whatever the entries sum to.
    chain = MarkovChain(
        states=("try", "done", "lost"),
        transitions=np.array([[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]]),
        initial=np.array([1.0, 0, 0]),
        labels={"a": np.array([False, True, False])},
    )
    found = operator_gradient(chain, parse_formula('P=? [F<=2 "a"]'), holds_in(chain))
    np.testing.assert_array_equal(found.free[:3], [0.25, 1.5, 0.0])  # dq/dp = q, 1 + p, 0
    # mean 1/8 + 3/8 = 1/2; along the simplex (free - 1/2) / (1 - entry)
    np.testing.assert_allclose(found.along_simplex[:3], [-0.5, 4 / 3, -2 / 3], rtol=1e-15)
    assert np.isnan(found.along_simplex[3:]).all()
    np.testing.assert_array_equal(found.initial, [0.375, 1.0, 0.0])


def test_many_steps_are_those_of_few_kept_vectors():
    chain = chain_of_parameters(4)
    for steps in (1, 2, 3, 10, 50):  # the sweep back keeps a few of the vectors only
        expected = reliability_gradient_by_powers(chain, steps)
        found = operator_gradient(chain, parse_formula(f'P=? [F<={steps} "a"]'), holds_in(chain))
        np.testing.assert_allclose(found.free, expected, rtol=1e-12, atol=1e-15)


def reliability_gradient_by_powers(chain: MarkovChain, steps: int) -> np.ndarray:
    """``sum_t (pi P^t)_i (P^(steps - 1 - t) 1)_j`` over the transient i, with dense powers."""
    P, goal = chain.transitions.toarray(), chain.label("a").astype(float)
    before = [chain.initial @ np.linalg.matrix_power(P, t) for t in range(steps)]
    after = [np.linalg.matrix_power(P, steps - 1 - t) @ goal for t in range(steps)]
    dense = np.sum([np.outer(x, y) for x, y in zip(before, after, strict=True)], axis=0)
    dense[chain.label("a")] = 0
    rows = np.repeat(np.arange(chain.n_states), np.diff(chain.transitions.indptr))
    return dense[rows, chain.transitions.indices]


def test_the_gradient_of_reliability_is_that_of_the_sensitivity_module():
    chain = chain_of_parameters(5)
    rows = np.repeat(np.arange(5), np.diff(chain.transitions.indptr))
    kept = rows < 3
    for d, text in ((None, 'P=? [F "a"]'), (7, 'P=? [F<=7 "a"]')):
        dense = reliability_gradient(chain, d=d, target="s3").matrix()
        found = operator_gradient(chain, parse_formula(text), holds_in(chain))
        np.testing.assert_allclose(found.free[kept], dense[rows[kept], chain.transitions.indices[kept]], rtol=1e-12)


def test_a_sticky_row_keeps_its_digits():
    stay = 1 - Fraction(1, 10**13)
    rest = 1 - stay
    rows = [{0: stay, 1: rest / 4, 2: rest * 3 / 4}, {1: Fraction(1)}, {2: Fraction(1)}]
    chain = MarkovChain(
        states=("slow", "a", "lost"),
        transitions=RationalMatrix.from_rows(rows),  # type: ignore[arg-type]
        initial=RationalVector.from_fractions([Fraction(1), Fraction(0), Fraction(0)]),  # type: ignore[arg-type]
        labels={"a": np.array([False, True, False])},
    )
    # h = p / (p + q): to grow by e at the cost of staying leaves q and loses e * rest share of it
    found = operator_gradient(chain, parse_formula('P=? [F "a"]'), holds_in(chain)).along_simplex
    assert found[0] == pytest.approx(0, abs=1e-2)  # both exits shrink alike; slopes beside it are of the size 1e13
    p, q = rest / 4, rest * 3 / 4
    assert found[1] == pytest.approx(float(q / ((p + q) ** 2 * (1 - p))), rel=1e-9)


def test_what_has_no_derivative_says_so():
    chain = chain_of_parameters(1)
    for text, reason in (
        ('R{"cost"}=? [F "a"]', "no derivative"),
        ('P=? [F{"cost"}<=10000000 "a"]', "levels"),
        ('P=? [F<=100000000 "a"]', "too many"),
    ):
        with pytest.raises(UnsupportedError, match=reason):
            operator_gradient(chain, parse_formula(text), holds_in(chain))
