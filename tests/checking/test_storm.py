"""Storm's answers against independent ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.checking.storm_chains import F, evaluate, sticky, three_transient_states, walk_of
from tests.closedform.reference import Reference
from tests.closedform.strategies import chains, number, operators

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking.prism_program import build_prism_chain
from tracebridge.checking.storm_formulation import storm_formulation
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import parse_formula
from tracebridge.pctl.ast import (
    CumulativeReward,
    Formula,
    InstantaneousReward,
    Label,
    OnePerStep,
    Operator,
    ReachReward,
    Reward,
    Truth,
    walk,
)

pytestmark = pytest.mark.storm


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as shared:
        yield shared


@pytest.fixture(scope="module")
def chain_g() -> MarkovChain:
    return three_transient_states()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('P=? [ F "success" ]', [F(24, 79), F(36, 79), F(9, 79), 1, 0]),
        ('R=? [ F "end" ]', [F(1000, 237), F(710, 237), F(770, 237), 0, 0]),
        ("R=? [ C ]", [F(1000, 237), F(710, 237), F(770, 237), 0, 0]),
        ('R=? [ F "success" ]', [float("inf")] * 3 + [0, float("inf")]),
        ('P=? [ X "success" ]', [0, F(3, 10), 0, 1, 0]),
        ('P=? [ F<=1 "success" ]', [0, F(3, 10), 0, 1, 0]),
        ('P=? [ F<3 "success" ]', [F(15, 100), F(36, 100), F(3, 100), 1, 0]),
        ('P=? [ F=2 "s0" ]', [F(6, 100), F(3, 100), F(1, 100), 0, 0]),
        ('P=? [ F[2,1] "s0" ]', [0] * 5),
        ('P=? [ G[2,1] "s0" ]', [1] * 5),
        ('P=? [ G "s0" ]', [0] * 5),
        ('P=? [ G<=2 "s0" ]', [F(1, 100), 0, 0, 0, 0]),
        ('P=? [ "s0" W "s1" ]', [F(5, 9), 1, 0, 0, 0]),
        ('P=? [ "s1" R "s0" ]', [0] * 5),
        ('P=? [ "s0" U>=1 "s1" ]', [F(5, 9), 0, 0, 0, 0]),
        ('P=? [ "s0" U>1 "s1" ]', [F(5, 90), 0, 0, 0, 0]),
        ('S=? [ "success" ]', [F(24, 79), F(36, 79), F(9, 79), 1, 0]),
        ("R=? [ S ]", [0] * 5),
        ("R=? [ C<=2 ]", [2, F(16, 10), F(17, 10), 0, 0]),
        ("R=? [ C<1 ]", [0] * 5),
        ("R=? [ I=1 ]", [1, F(6, 10), F(7, 10), 0, 0]),
    ],
)
def test_values_by_hand(chain_g: MarkovChain, worker: StormWorker, text: str, expected: list[Fraction]) -> None:
    assert evaluate(chain_g, text, worker, exact=True).value.tolist() == expected
    floating = evaluate(chain_g, text, worker, exact=False)
    assert all(expected[i] in floating[i] for i in range(5))
    finite = np.isfinite(floating.value)
    assert np.all(floating.upper[finite] - floating.lower[finite] < 1e-12)


def test_reliability_by_hand(chain_g: MarkovChain, worker: StormWorker) -> None:
    curve = [evaluate(chain_g, f'P=? [ F<={d} "success" ]', worker, exact=True).value[0] for d in range(7)]
    assert curve == [0, 0, F(15, 100), F(207, 1000), F(2403, 10**4), F(26088, 10**5), F(274437, 10**6)]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(chain=chains(5), operator=operators())
def test_equals_the_reference(worker: StormWorker, chain: MarkovChain, operator: Operator) -> None:
    expected = Reference(chain).value(operator)
    assert evaluate(chain, operator, worker, exact=True).value.tolist() == expected, storm_formulation(operator)
    try:
        floating = evaluate(chain, operator, worker, exact=False)
    except UnsupportedError as error:  # the only answer that doubles may refuse
        assert "no correct digit" in str(error)  # noqa: PT017 - most examples have an answer
        return
    assert all(expected[i] in floating[i] for i in range(chain.n_states)), storm_formulation(operator)


def test_a_run_may_not_leave_the_left_side_before_the_window_opens(worker: StormWorker) -> None:
    """Storm's own ``"a" U[1,1] "b"`` says 1 here."""
    chain = MarkovChain(
        states=("s",), transitions=np.eye(1), initial=[1.0], labels={"a": np.array([False]), "b": np.array([True])}
    )
    assert evaluate(chain, 'P=? [ "a" U[1,1] "b" ]', worker, exact=False).value.tolist() == [0]


@pytest.mark.parametrize("digits", [6, 9, 12])
def test_sticky_chains_are_inside_the_assumed_accuracy(worker: StormWorker, digits: int) -> None:
    chain = sticky(1 - F(1, 10**digits))
    assert evaluate(chain, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(1, 2)
    floating = evaluate(chain, 'P=? [ F "success" ]', worker, exact=False)
    assert F(1, 2) in floating[0]
    assert floating[0].width < 10.0 ** (digits - 14)


def test_doubles_without_a_correct_digit_are_no_answer(worker: StormWorker) -> None:
    chain = sticky(1 - F(1, 10**15))
    with pytest.raises(UnsupportedError, match="no correct digit"):
        evaluate(chain, 'P=? [ F "success" ]', worker, exact=False)
    assert evaluate(chain, "P=? [ F true ]", worker, exact=False).value.tolist() == [1, 1, 1]  # the graph decides


def test_almost_sure_is_certain_in_doubles(worker: StormWorker) -> None:
    chain = sticky(1 - F(1, 10**12))
    reached = evaluate(chain, "P=? [ F true ]", worker, exact=False)
    assert reached.lower.tolist() == [1, 1, 1]
    ended = MarkovChain(
        states=chain.states, transitions=chain.transitions, initial=chain.initial, labels={"end": [False, True, True]}
    )
    assert evaluate(ended, 'P=? [ F "end" ]', worker, exact=False).lower.tolist() == [1, 1, 1]
    assert evaluate(ended, 'P=? [ G !"end" ]'.replace("!", ""), worker, exact=False).value[0] == 0


@pytest.mark.parametrize(("n", "up"), [(20, F(1, 2)), (400, F(1, 2)), (700, F(6, 10))])
def test_gamblers_ruin(worker: StormWorker, n: int, up: Fraction) -> None:
    """h_i = (1 - r^i) / (1 - r^n) with r = (1-p)/p, or i/n where p = 1/2, where i (n - i) steps are expected."""
    chain = walk_of(n, up)
    r = (1 - up) / up
    expected = [F(i, n) if r == 1 else (1 - r**i) / (1 - r**n) for i in range(n + 1)]
    hit = evaluate(chain, 'P=? [ F "top" ]', worker, exact=False)
    assert all(expected[i] in hit[i] for i in range(n + 1))
    assert np.all((hit.upper - hit.lower) <= 1e-6)
    settled = evaluate(chain, 'S=? [ "top" ]', worker, exact=False)  # by state elimination, or by gmm++ for n = 700
    assert all(expected[i] in settled[i] for i in range(n + 1))
    assert settled.value == pytest.approx(hit.value, rel=1e-5)
    if r == 1:
        steps = evaluate(chain, "R=? [ C ]", worker, exact=False)
        assert all(F(i * (n - i)) in steps[i] for i in range(n + 1))


def test_underflow_is_not_zero(worker: StormWorker) -> None:
    chain = MarkovChain(
        states=("s", "t"),
        transitions=RationalMatrix.from_rows([{0: F(1, 2), 1: F(1, 2)}, {1: F(1)}]),
        initial=RationalVector.from_fractions([1, 0]),
    )
    late = evaluate(chain, 'P=? [ F=2000 "s" ]', worker, exact=False)
    assert F(1, 2**2000) in late[0]
    assert late.upper[0] < 1e-300
    assert evaluate(chain, 'P=? [ F<=3 "s" ]', worker, exact=False).upper[1] == 0  # unreachable is zero


@pytest.mark.shared_data
def test_the_recorded_answers_of_prism(shared_data: Path, worker: StormWorker) -> None:
    """Every recorded property that is one operator over labels, against PRISM's explicit engine (4e-6 relative)."""
    recorded = json.loads((shared_data / "property_syntax.json").read_text())
    chain = build_prism_chain(recorded["model"], worker=worker)
    compared = 0
    for row in recorded["rows"]:
        text, answer = row["property"], row["prism"].get("value", "")
        try:
            formula = parse_formula(text)
            expected = float(answer.split()[0])
        except (PropertyError, ValueError, IndexError):
            continue
        if not isinstance(formula, Operator) or formula.threshold is not None:
            continue
        allowed = {Label, Truth, type(number(1))}
        parts = [node for node in walk(formula) if isinstance(node, Formula) and node is not formula]
        named = not isinstance(formula, Reward) or isinstance(formula.structure, str)
        if any(type(part) not in allowed for part in parts) or not named:
            continue
        value = float(evaluate(chain, formula, worker, exact=True).value[0])
        assert value == pytest.approx(expected, rel=2e-5), text
        compared += 1
    assert compared >= 15
    assert evaluate(chain, 'P=? [ F "success" ]', worker, exact=True).value[0] == F(6, 11)
    assert evaluate(chain, 'R{"steps"}=? [ F "done" ]', worker, exact=True).value[0] == F(30, 11)
    assert evaluate(chain, 'R{"cost"}=? [ F "done" ]', worker, exact=True).value[0] == F(50, 11)


def test_exact_results_may_have_many_digits(worker: StormWorker) -> None:
    chain = sticky(1 - F(1, 3**40))
    value = evaluate(chain, 'P=? [ F<=300 "success" ]', worker, exact=True).value[0]
    assert value == (1 - (1 - F(1, 3**40)) ** 300) / 2  # more than the 4,300 digits of int()


def test_state_and_action_rewards(worker: StormWorker) -> None:
    chain = MarkovChain(
        states=("s", "t"),
        transitions=RationalMatrix.from_rows([{0: F(2, 3), 1: F(1, 3)}, {1: F(1)}]),
        initial=RationalVector.from_fractions([1, 0]),
        rewards={
            "first": RewardStructure.from_fractions([7, 0]),
            "cost": RewardStructure.from_fractions([F(1, 7), 0], [F(1, 2), 0]),
        },
    )
    per_step = F(1, 7) + F(1, 2)
    assert evaluate(chain, 'R{"cost"}=? [ F "t" ]', worker, exact=True).value.tolist() == [3 * per_step, 0]
    assert evaluate(chain, 'R{"cost"}=? [ I=1 ]', worker, exact=True).value.tolist() == [F(2, 21), 0]
    goal, total = ReachReward(Label("t")), CumulativeReward()
    for path, structure, expected in (
        (total, None, 21),  # three steps are expected
        (goal, number(2), 3 * per_step),
        (goal, OnePerStep(), 3),
        (CumulativeReward(number(2)), OnePerStep(), 2),
        (InstantaneousReward(number(9)), OnePerStep(), 1),
    ):
        assert evaluate(chain, Reward(path, structure), worker, exact=True).value[0] == expected
    with pytest.raises(PropertyError, match='number 3; the chain has: "first", "cost"'):
        evaluate(chain, Reward(total, number(3)), worker, exact=True)
    with pytest.raises(PropertyError, match='no reward structure "costs"'):
        evaluate(chain, 'R{"costs"}=? [ C ]', worker, exact=True)


def test_step_bounds_are_whole_numbers_of_64_bits(chain_g: MarkovChain, worker: StormWorker) -> None:
    with pytest.raises(PropertyError, match="whole number"):
        evaluate(chain_g, 'P=? [ F<=2.5 "success" ]', worker, exact=False)
    with pytest.raises(UnsupportedError, match="64 bits"):
        evaluate(chain_g, f'P=? [ F<={2**63} "success" ]', worker, exact=False)
