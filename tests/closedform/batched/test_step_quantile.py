"""Quantiles over steps, against the engine on each chain of a stack, and against closed forms."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.closedform.batched.stacks import stacks
from tests.closedform.ltl.strategies import Truths

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform.batched.chain_stack import DENSE_STATES, ChainStack
from tracebridge.closedform.batched.step_quantile import FIRST_COUNTS, step_quantile
from tracebridge.closedform.float_arithmetic import FloatArithmetic
from tracebridge.closedform.modelcheck import evaluate_quantile
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl import ast, parse_properties

BOUNDED = [
    'F<=B "a"', 'F<B "a"', 'F>=B "a"', 'F>B "a"', 'G<=B "a"', 'G<B "b"', 'G>=B "a"', 'G>B "b"', '"a" U<=B "b"',
    '"a" U>=B "b"', '"a" U>B "b"', '"a" W<=B "b"', '"a" W>=B "b"', '"b" R<=B "a"', '"b" R<B "a"', '"b" R>B "a"',
]  # fmt: skip
PROBABILITIES = [
    f"P{comparison}{threshold} [ {path} ]"
    for path, comparison, threshold in itertools.product(BOUNDED, ["<", "<=", ">", ">="], ["0", "0.2", "0.9", "1"])
]
REWARDS = [
    f'R{{"cost"}}{comparison}{threshold} [ {path} ]'
    for path, comparison, threshold in itertools.product(["C<=B", "C<B"], ["<", "<=", ">", ">="], ["0", "2.3", "40.7"])
]


def asked(text: str) -> ast.Quantile:
    (parsed,) = parse_properties(f"quantile(min B, {text})").properties
    assert isinstance(parsed.formula, ast.Quantile)
    return parsed.formula


@settings(max_examples=40, deadline=None)
@given(stacks(), st.sampled_from(PROBABILITIES) | st.sampled_from(REWARDS), st.integers(0, 2**32))
def test_each_draw_has_the_quantile_of_its_chain(stack: ChainStack, text: str, seed: int) -> None:
    quantile, start = asked(text), np.random.default_rng(seed).dirichlet(np.ones(stack.chain.n_states), stack.draws).T
    anywhere = ChainStack(stack.chain, stack.entries, start).chain_at(0)  # runs may start in every state
    stack = ChainStack(anywhere, stack.entries, start)
    found = step_quantile(stack, quantile, Truths(anywhere))
    for draw in range(stack.draws):
        chain = stack.chain_at(draw)
        values, at_start = evaluate_quantile(FloatArithmetic(chain), quantile, Truths(chain), chain.exact_initial())
        np.testing.assert_array_equal(found[:, draw], [*values.value, float(at_start.value)])


def leaving(rates: list[float]) -> ChainStack:
    """A state that is left for another one with a different probability in each draw, and costs one a step."""
    chain = MarkovChain(
        states=("waiting", "done"),
        transitions=np.array([[0.5, 0.5], [0, 1]]),
        initial=np.array([1.0, 0]),
        labels={"a": np.array([False, True]), "b": np.array([True, False])},
        rewards={"cost": RewardStructure(state=np.array([1.0, 0]))},
    )
    rate = np.array(rates)
    return ChainStack(chain, np.stack([1 - rate, rate, np.ones_like(rate)]), chain.initial[:, None])


RATES = [0.3, 1e-3, 1e-6, 2.0**-30]


@pytest.mark.parametrize("comparison", [">=", ">"])
def test_late_crossings_are_those_of_the_geometric_distribution(comparison: str) -> None:
    """``P [F<=B a] = 1 - (1 - rate)^B``, and ``R [C<=B]`` is that divided by the rate."""
    found = step_quantile(leaving(RATES), asked(f'P{comparison}0.9 [ F<=B "a" ]'), Truths(leaving(RATES).chain))
    expected = np.array([math.ceil(math.log(0.1) / math.log1p(-rate)) for rate in RATES])
    np.testing.assert_array_equal(found[0], found[2])
    np.testing.assert_array_equal(found[1], 0)
    assert expected[1] > FIRST_COUNTS
    np.testing.assert_array_equal(found[0, :3], expected[:3])
    assert abs(found[0, 3] - expected[3]) <= 1e-6 * expected[3]  # doubles lose so much in 2^31 steps

    collected = step_quantile(leaving(RATES), asked(f'R{{"cost"}}{comparison}500 [ C<=B ]'), Truths(leaving([1]).chain))
    assert np.isinf(collected[0, 0])  # 1 / 0.3 at most
    np.testing.assert_array_equal(
        collected[0, 1:3], [math.ceil(math.log1p(-500 * rate) / math.log1p(-rate)) for rate in RATES[1:3]]
    )


def test_the_largest_bound_of_a_falling_value() -> None:
    """``P [G<=B b] = (1 - rate)^B >= 0.1`` up to the step before; no bound satisfies ``P>1``."""
    stack = leaving(RATES[:3])
    expected = [math.floor(math.log(0.1) / math.log1p(-rate)) for rate in RATES[:3]]
    np.testing.assert_array_equal(step_quantile(stack, asked('P>=0.1 [ G<=B "b" ]'), Truths(stack.chain))[0], expected)
    assert np.isnan(step_quantile(stack, asked('P>1 [ G<=B "b" ]'), Truths(stack.chain))).all()


def test_a_limit_that_is_only_approached_is_never_reached() -> None:
    stack = leaving([0.5, 1e-9])
    for text, expected in [('P>=1 [ F<=B "a" ]', np.inf), ('P<1 [ F<=B "a" ]', np.inf), ('P>0 [ F<=B "a" ]', 1)]:
        np.testing.assert_array_equal(step_quantile(stack, asked(text), Truths(stack.chain))[0], expected)


def test_a_draw_without_the_edge_back_reaches_its_limit() -> None:
    """The second draw is done after one step, surely; the first only approaches that."""
    stack = leaving([0.5, 1.0])
    found = step_quantile(stack, asked('P>=1 [ F<=B "a" ]'), Truths(stack.chain))
    np.testing.assert_array_equal(found, [[np.inf, 1], [0, 0], [np.inf, 1]])


def test_ties_with_the_threshold_count_as_equal() -> None:
    """Three tenths in one step: 0.1 + 0.2 is above 0.3 in doubles."""
    chain = MarkovChain(
        states=("s0", "s1", "s2", "s3"),
        transitions=np.array([[0, 0.1, 0.2, 0.7], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]),
        initial=np.array([1.0, 0, 0, 0]),
        labels={"a": np.array([False, True, True, False])},
    )
    stack = ChainStack.of_chain(chain)
    text = 'P<=0.3 [ F<=B "a" ]'
    assert step_quantile(stack, asked(text), Truths(chain))[0, 0] == 0
    assert np.isinf(step_quantile(stack, asked(text), Truths(chain), tie=1e-12)[0, 0])


def test_a_long_chain_takes_its_steps() -> None:
    """A walk to the end of a line: the value is zero before as many steps as there are states ahead."""
    n = DENSE_STATES + 20
    P = np.diag(np.full(n, 0.5)) + np.diag(np.full(n - 1, 0.5), 1)
    P[-1, -1] = 1
    chain = MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=P,
        initial=np.eye(n)[0],
        labels={"a": np.arange(n) == n - 1},
    )
    quantile = asked('P>=0.75 [ F<=B "a" ]')
    (found,) = step_quantile(ChainStack.of_chain(chain), quantile, Truths(chain)).T
    # the first B with at least n - 1 successes among B fair coins, with a probability of 0.75
    ahead = n - 1
    tail = (sum(math.comb(b, k) for k in range(ahead)) / 2**b for b in itertools.count())
    assert found[0] == found[n] == next(b for b, short in enumerate(tail) if short <= 0.25)


@pytest.mark.parametrize(
    ("text", "message"), [('P>0.5 [ F<=2*B "a" ]', "by itself"), ('P>0.5 [ X F<=B "a" ]', "one path operator")]
)
def test_what_is_no_quantile_over_steps_is_refused(text: str, message: str) -> None:
    stack = leaving([0.5])
    with pytest.raises(UnsupportedError, match=message):
        step_quantile(stack, asked(text), Truths(stack.chain))


def test_a_quantile_needs_a_threshold() -> None:
    stack, quantile = leaving([0.5]), asked('P>0.5 [ F<=B "a" ]')
    without = replace(quantile, operator=replace(quantile.operator, threshold=None))
    with pytest.raises(PropertyError, match="needs a threshold"):
        step_quantile(stack, without, Truths(stack.chain))
