"""Robust values against all extreme chains, chains inside the bounds, and hand calculations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.closedform.robust.interval_chains import drawn_inside, extreme_rows, interval_chains, mixed, with_rows
from tests.closedform.strategies import chains

from tracebridge.chain.interval import IntervalChain
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.closedform import FloatArithmetic, evaluate_operator
from tracebridge.closedform.batched.operators import evaluate_stacked
from tracebridge.closedform.robust import robust, robust_values
from tracebridge.closedform.robust.rows import IntervalRows
from tracebridge.errors import ModelError, PropertyError, UnsupportedError
from tracebridge.pctl.ast import Label, Unary
from tracebridge.pctl.parser import parse_formula, parse_properties

UNBOUNDED = ('P=? [F "a"]', 'P=? ["a" U "b"]', 'P=? [G "a"]', 'P=? ["a" W "b"]', 'P=? ["a" R "b"]', 'R=? [F "a"]')
BOUNDED = (
    'P=? [X "a"]',
    'P=? [F<=3 "a"]',
    'P=? ["a" U[1,3] "b"]',
    'P=? [F>=2 "b"]',
    'P=? [G<=2 "a"]',
    'P=? [G>=2 "a"]',
    'P=? ["a" W<=2 "b"]',
    "R=? [C<=3]",
    "R=? [I=2]",
)


def holds_in(chain: MarkovChain):
    def holds(formula):
        if isinstance(formula, Unary):
            return ~holds(formula.operand)
        assert isinstance(formula, Label)
        return chain.label(formula.name)

    return holds


def ordinary(chain: MarkovChain, text: str):
    return evaluate_operator(FloatArithmetic(chain), parse_formula(text), holds_in(chain))


# ---------------------------------------------------------------- one row


def test_the_extreme_means_of_a_row_by_hand():
    rows = IntervalRows(
        indptr=np.array([0, 3]),
        indices=np.array([0, 1, 2]),
        lower=np.array([0.125, 0.25, 0.0]),
        upper=np.array([0.5, 0.5, 0.75]),
        n_columns=3,
    )
    values = np.array([1.0, 2.0, 4.0])
    # greatest: 1/8, 1/4 and the rest, 5/8, to the last; least: 1/2 to the first, 1/2 to the second
    for maximise, mean, best in ((True, 0.125 + 0.5 + 2.5, [0.125, 0.25, 0.625]), (False, 1.5, [0.5, 0.5, 0.0])):
        low, high = rows.mean_bounds(values, maximise=maximise)
        assert low[0] <= mean <= high[0]
        assert high[0] - low[0] < 1e-13
        np.testing.assert_array_equal(rows.extreme_rows(values, maximise=maximise).toarray()[0], best)
    low, high = rows.mean_bounds(np.full(3, 0.1), maximise=True)
    assert low[0] == high[0] == 0.1


# ---------------------------------------------------------------- brute force


@settings(max_examples=50)
@given(interval_chains(max_states=3), st.sampled_from(UNBOUNDED))
def test_unbounded_values_are_those_of_the_best_extreme_chain(chain, text):
    every = [
        ordinary(with_rows(chain, np.array(rows)), text).to_float().value
        for rows in product(*(extreme_rows(chain, state) for state in range(chain.n_states)))
    ]
    for direction, best in (("min", np.min(every, axis=0)), ("max", np.max(every, axis=0))):
        found = robust_values(chain, parse_formula(text), direction)
        finite = np.isfinite(best)
        assert np.array_equal(np.isfinite(found.upper), finite)
        np.testing.assert_allclose(found.value[finite], best[finite], rtol=1e-9, atol=1e-9)
        slack = 1e-12 * np.maximum(1, best[finite])  # of the ordinary engine in doubles
        assert (found.lower[finite] <= best[finite] + slack).all()
        assert (found.upper[finite] >= best[finite] - slack).all()
        assert (found.upper[finite] - found.lower[finite] <= 1e-9 * np.maximum(1, best[finite])).all()


def brute_steps(chain: IntervalChain, text: str, best) -> np.ndarray:
    """By definition: the best extreme row for what is to come, from the last step to the first."""
    rows = [np.array(extreme_rows(chain, state)) for state in range(chain.n_states)]
    a, b = (chain.labels[name].astype(float) for name in "ab")
    reward = chain.rewards["r"]

    def back(x):
        return np.array([best(vertices @ x) for vertices in rows])

    match text:
        case 'P=? [X "a"]':
            return back(a)
        case 'P=? [F<=3 "a"]':
            x = a
            for _ in range(3):
                x = np.where(a > 0, 1, back(x))
            return x
        case 'P=? [G<=2 "a"]':
            return a * back(a * back(a))
        case 'P=? ["a" U[1,3] "b"]':
            x = b
            for _ in range(2):
                x = np.where(b > 0, 1, a * back(x))
            return a * back(x)
        case 'P=? ["a" W<=2 "b"]':
            x = np.maximum(a, b)
            for _ in range(2):
                x = np.where(b > 0, 1, a * back(x))
            return x
        case "R=? [C<=3]":
            return reward.per_step + back(reward.per_step + back(reward.per_step))
        case "R=? [I=2]":
            return back(back(reward.state))
    raise AssertionError(text)


@settings(max_examples=40)
@given(interval_chains(), st.sampled_from([text for text in BOUNDED if ">=" not in text]))
def test_bounded_values_are_those_of_the_best_rows_step_by_step(chain, text):
    for direction, best in (("min", np.min), ("max", np.max)):
        found = robust_values(chain, parse_formula(text), direction)
        np.testing.assert_allclose(found.value, brute_steps(chain, text, best), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------- laws


@settings(max_examples=50)
@given(interval_chains(max_states=5), st.integers(0, 2**32 - 1))
def test_the_bounds_contain_the_value_of_every_chain_inside(chain, seed):
    rng = np.random.default_rng(seed)
    text = (UNBOUNDED + BOUNDED)[seed % len(UNBOUNDED + BOUNDED)]
    low = robust_values(chain, parse_formula(text), "min")
    high = robust_values(chain, parse_formula(text), "max")
    for member in mixed(chain, rng, 10):  # a thousand chains over all examples
        value = ordinary(member, text).to_float()
        assert (low.lower <= value.upper).all()
        assert (value.lower <= high.upper).all()


@settings(max_examples=40)
@given(chains(sticky=False), st.sampled_from([*UNBOUNDED, *BOUNDED]))
def test_degenerate_bounds_give_the_ordinary_value(chain, text):
    expected = ordinary(chain, text).to_float().value
    for direction in ("min", "max"):
        found = robust_values(IntervalChain.around(chain), parse_formula(text), direction)
        np.testing.assert_allclose(found.value, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=30)
@given(chains(sticky=False), st.sampled_from([*UNBOUNDED, *BOUNDED]))
def test_wider_intervals_give_wider_bounds(chain, text):
    for direction, narrower_first in (("min", False), ("max", True)):
        narrow, wide = (
            robust_values(IntervalChain.around(chain, radius), parse_formula(text), direction) for radius in (0.01, 0.1)
        )
        small, large = (narrow, wide) if narrower_first else (wide, narrow)
        assert (small.lower <= large.upper).all()


@settings(max_examples=40)
@given(interval_chains(max_states=5), st.sampled_from(["", "<=3", ">=2"]))
def test_globally_is_the_complement_in_the_other_direction(chain, bound):
    for direction, other in (("min", "max"), ("max", "min")):
        always = robust_values(chain, parse_formula(f'P=? [G{bound} "a"]'), direction)
        once = robust_values(chain, parse_formula(f'P=? [F{bound} !"a"]'), other)
        np.testing.assert_allclose(always.value, 1 - once.value, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- cases


def game(lower, upper, **given_):
    n = len(lower)
    return IntervalChain(
        states=tuple(f"s{i}" for i in range(n)),
        lower=csr_array(np.array(lower, dtype=float)),
        upper=csr_array(np.array(upper, dtype=float)),
        initial=np.eye(n)[0],
        **given_,
    )


def test_nature_may_stay_for_ever_where_lower_bounds_are_zero():
    # s0 and s1 can hand over to each other; s0 may leave to the goal s2, s1 to the trap s3
    lower = [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    upper = [[0, 1, 0.5, 0], [1, 0, 0, 0.5], [0, 0, 1, 0], [0, 0, 0, 1]]
    chain = game(
        lower,
        upper,
        labels={"goal": [False, False, True, False]},
        rewards={"r": RewardStructure(state=np.array([0.0, 0.0, 0.0, 0.0]))},
    )
    reach = parse_formula('P=? [F "goal"]')
    assert robust_values(chain, reach, "min").upper.tolist() == [0, 0, 1, 0]
    assert robust_values(chain, reach, "max").lower.tolist() == [1, 1, 1, 0]
    # reached surely at the will of nature, at no cost; but nature may also never reach it
    cost = parse_formula('R=? [F "goal"]')
    assert robust_values(chain, cost, "min").value.tolist() == [0, 0, 0, np.inf]
    assert robust_values(chain, cost, "max").value.tolist() == [np.inf, np.inf, 0, np.inf]


def test_an_end_component_is_worth_its_best_exit_only():
    # s0 and s1 hand over to each other; s0 may leave to s2, which reaches the goal s3 with 1/4 to 1/2
    lower = [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0.25, 0.5], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    upper = [[0, 1, 1, 0, 0], [1, 0, 0, 0, 0.5], [0, 0, 0, 0.5, 0.75], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    chain = game(lower, upper, labels={"goal": [False, False, False, True, False]})
    most = robust_values(chain, parse_formula('P=? [F "goal"]'), "max")
    np.testing.assert_allclose(most.value, [0.5, 0.5, 0.5, 1, 0], atol=1e-9)
    assert (most.upper - most.lower <= 1e-9).all()


@pytest.mark.parametrize(("radius", "n"), [(0.0, 200), (0.01, 100)])
def test_slow_chains_are_enclosed_as_closely(radius, n):
    # The gambler's ruin: value iteration takes about n^2 sweeps, and is far from the value where it stops early
    P = np.zeros((n + 1, n + 1))
    P[0, 0] = P[n, n] = 1
    for i in range(1, n):
        P[i, i - 1] = P[i, i + 1] = 0.5
    top = np.arange(n + 1) == n
    chain = MarkovChain(states=tuple(map(str, range(n + 1))), transitions=P, initial=P[0], labels={"top": top})
    for direction, up in (("min", 0.5 - radius), ("max", 0.5 + radius)):
        ratio = (1 - up) / up
        start = n // 2
        exact = 0.5 if radius == 0 else (1 - ratio**start) / (1 - ratio**n)
        found = robust_values(IntervalChain.around(chain, radius), parse_formula('P=? [F "top"]'), direction)[start]
        assert float(found.upper) - float(found.lower) < 1e-9
        assert found.lower - 1e-12 <= exact <= found.upper + 1e-12


def test_the_least_reward_is_proved_where_nature_could_stay_and_earn_for_ever():
    # A line: forward with at most 1/1000, else stay, at a cost of 1 or of nothing. Value iteration takes 10^5 sweeps.
    n = 20
    upper = np.diag(np.ones(n + 1)) + np.diag(np.full(n, 0.001), 1)
    lower = np.zeros((n + 1, n + 1))
    lower[n, n] = 1
    cost = np.arange(n + 1) % 2.0
    cost[n] = 0
    end = np.arange(n + 1) == n
    chain = game(lower, upper, labels={"end": end}, rewards={"cost": RewardStructure(state=cost)})
    least = robust_values(chain, parse_formula('R=? [F "end"]'), "min")
    exact = 1000 * np.cumsum(cost[::-1])[::-1]
    np.testing.assert_allclose(least.value, exact, rtol=1e-9)
    assert (least.lower <= exact * (1 + 1e-15)).all()  # 0.001 is a double near a thousandth
    assert (exact * (1 - 1e-15) <= least.upper).all()
    assert (least.upper - least.lower <= 1e-9 * np.maximum(least.upper, 1)).all()
    most = robust_values(chain, parse_formula('R=? [F "end"]'), "max")
    assert most.value.tolist() == [np.inf] * n + [0]


@pytest.mark.parametrize("tiny", [1e-15, 1e-200, 1e-310])
def test_a_bound_is_never_closer_than_doubles_allow(tiny):
    lower = [[1 - 1e-15, tiny / 2, 0], [0, 1, 0], [0, 0, 1]]
    upper = [[1, tiny, tiny], [0, 1, 0], [0, 0, 1]]
    chain = game(lower, upper, labels={"goal": [False, True, False]}, rewards={"r": RewardStructure(state=[1, 0, 0])})
    # least: half of the mass that leaves as is possible to the goal, twice as much elsewhere
    least = robust_values(chain, parse_formula('P=? [F "goal"]'), "min")[0]
    assert least.lower <= 1 / 3 * (1 + 1e-12)
    assert least.upper >= 1 / 3 * (1 - 1e-12)
    most = robust_values(chain, parse_formula('P=? [F "goal"]'), "max")[0]
    assert most.upper == 1  # nothing need go elsewhere
    assert most.lower == 1


# ---------------------------------------------------------------- properties


COIN = game(
    [[0, 0.25, 0.5], [0, 1, 0], [0, 0, 1]],
    [[0, 0.5, 0.75], [0, 1, 0], [0, 0, 1]],
    labels={"good": [False, True, False]},
)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ('P>=0.249 [F "good"]', "satisfied"),
        ('P>0.3 [F "good"]', "undecided"),
        ('P>=0.501 [F "good"]', "violated"),
        ('P<=0.501 [F "good"]', "satisfied"),
        ('P<0.3 [F "good"]', "undecided"),
        ('P<0.249 [F "good"]', "violated"),
        ('P>0.499 [G !"good"]', "satisfied"),
        ('P=? [F "good"]', None),
    ],
)
def test_a_verdict_is_about_all_chains(text, verdict):
    result = robust(COIN, parse_properties(text).properties[0])
    assert result.verdict == verdict
    assert (result.reason is not None) == (verdict == "undecided")
    low, high = (0.5, 0.75) if "G" in text else (0.25, 0.5)
    assert float(result.minimum.value) == pytest.approx(low, abs=1e-12)
    assert float(result.maximum.value) == pytest.approx(high, abs=1e-12)


def test_why_it_is_undecided_is_said():
    between = robust(COIN, parse_properties('P>=0.3 [F "good"]').properties[0])
    assert between.reason == "it holds for some choices between the bounds and not for others"
    edge = robust(COIN, parse_properties('P>=0.25 [F "good"]').properties[0])  # the least value, up to rounding
    assert edge.reason == "an extreme value is within rounding of the threshold"
    certain = robust(COIN, parse_properties('P>=1 [F "good" | "s2"]').properties[0])  # decided by the edges: exact
    assert certain.verdict == "satisfied"


def test_steps_after_which_nothing_changes_are_not_made():
    long = robust_values(COIN, parse_formula('P=? [F<=1000000000 "good"]'), "max")[0]
    assert long.upper - long.lower < 1e-12
    assert long.value == pytest.approx(0.5, abs=1e-12)


def test_too_many_steps_are_refused(monkeypatch):
    monkeypatch.setattr("tracebridge.closedform.robust.operators.MAX_WORK", 10_000)
    swing = game([[0, 1], [1, 0]], [[0, 1], [1, 0]], rewards={"r": RewardStructure(state=[1, 0])})
    with pytest.raises(UnsupportedError, match="1000 steps over 2 uncertain transitions are too many"):
        robust_values(swing, parse_formula("R=? [I=1000]"), "max")


def test_what_is_not_evaluated_says_so():
    for text in (
        'P=? [F G "good"]',
        'S=? ["good"]',
        'P=? [F P>0.5 [X "good"]]',
        'P=? [F "good" || F "s0"]',
        "P=? [F true & (1 < 2)]",
    ):
        with pytest.raises(UnsupportedError, match="over an interval chain"):
            robust_values(COIN, parse_formula(text), "min")
    with pytest.raises(UnsupportedError, match="one P or R operator"):
        robust(COIN, parse_properties('P>=0.1 [F "good"] & P>=0.1 [X "good"]').properties[0])
    with pytest.raises(ModelError, match="unknown label"):
        robust_values(COIN, parse_formula('P=? [F "best"]'), "min")
    with pytest.raises(PropertyError, match="no reward structure"):
        robust_values(COIN, parse_formula('R=? [F "good"]'), "min")


# ---------------------------------------------------------------- a thousand chains at a time


@pytest.mark.parametrize("seed", range(3))
def test_a_thousand_chains_inside_the_bounds_have_values_inside_the_robust_ones(seed):
    rng = np.random.default_rng(seed)
    n = 12
    centre = rng.dirichlet(np.full(n, 0.3), size=n)
    centre[-2:] = np.eye(n)[-2:]
    around = rng.uniform(0.02, 0.3, size=(n, n))
    around[-2:] = 0  # they stay absorbing
    chain = IntervalChain(
        states=tuple(f"s{i}" for i in range(n)),
        lower=csr_array(np.maximum(centre - around, 0.0)),
        upper=csr_array(np.minimum(centre + around, 1.0)),
        initial=np.full(n, 1 / n),
        labels={"a": np.arange(n) == n - 1, "b": np.arange(n) % 3 == 0, "end": np.arange(n) >= n - 2},
        rewards={"r": RewardStructure(state=rng.integers(0, 4, size=n).astype(float))},
    )
    stack = drawn_inside(chain, 1_000, seed)
    assert (stack.entries >= chain.lower.data[:, None]).all()
    assert (stack.entries <= chain.upper.data[:, None]).all()
    np.testing.assert_allclose(np.add.reduceat(stack.entries, chain.upper.indptr[:-1], axis=0), 1, rtol=1e-12)
    for text in (*UNBOUNDED[:5], *BOUNDED, 'R=? [F "end"]'):
        operator = parse_formula(text)
        values = evaluate_stacked(stack, operator, holds_in(chain.member))
        least, greatest = (robust_values(chain, operator, direction) for direction in ("min", "max"))
        # doubles of the draws are off by far less than a relative 1e-9
        assert (values >= least.lower[:, None] * (1 - 1e-9)).all(), text
        assert (values <= greatest.upper[:, None] * (1 + 1e-9)).all(), text
