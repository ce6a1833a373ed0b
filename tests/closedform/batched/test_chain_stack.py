import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tracebridge.chain import MarkovChain
from tracebridge.closedform.batched.chain_stack import DENSE_STATES, ChainStack
from tracebridge.closedform.batched.elimination import StackedElimination
from tracebridge.errors import UnsupportedError


def chain_of(P) -> MarkovChain:
    n = len(P)
    return MarkovChain(states=tuple(f"s{i}" for i in range(n)), transitions=csr_array(P), initial=np.eye(n)[0])


def stack_of(matrices) -> ChainStack:
    """Dense matrices with the same edges."""
    chain = chain_of(matrices[0])
    rows, columns = chain.transitions.tocoo().coords
    entries = np.stack([P[rows, columns] for P in matrices], axis=1)
    return ChainStack(chain, entries, chain.initial[:, None])


def absorbing_matrices(m: int, draws: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    matrices = []
    for _ in range(draws):
        P = np.zeros((m + 2, m + 2))
        P[:m] = rng.dirichlet(np.full(m + 2, 0.5), size=m)
        P[m, m] = P[m + 1, m + 1] = 1
        matrices.append(P)
    return matrices


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 8), st.integers(1, 4), st.integers(0, 2**32))
def test_elimination_solves_every_system(m, draws, seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(m + 1, 0.7), size=(m, draws)).transpose(0, 2, 1)
    gains = rng.random((m, draws))
    x = StackedElimination(P[:, :m].copy(), P[:, m].copy()).solve(gains)
    for k in range(draws):
        np.testing.assert_allclose(x[:, k], np.linalg.solve(np.eye(m) - P[:, :m, k], gains[:, k]), rtol=1e-9)


def test_elimination_keeps_relative_accuracy_where_one_minus_would_lose_it():
    # two states that leave for good once in 1e20 steps: the expected number of steps is 1e20, in doubles as well
    Q = np.array([[0.5, 0.5 - 1e-20], [1.0 - 1e-20, 0.0]])[:, :, None]
    x = StackedElimination(Q.copy(), np.full((2, 1), 1e-20)).solve(np.ones((2, 1)))
    np.testing.assert_allclose(x, 1e20, rtol=1e-12)


@pytest.mark.parametrize("m", [4, DENSE_STATES + 5])
def test_steps_and_equations_are_those_of_each_matrix(m):
    matrices = absorbing_matrices(m, 3, seed=m)
    stack = stack_of(matrices)
    active = np.arange(m + 2) < m
    goal = (np.arange(m + 2) == m).astype(float)
    gain = np.where(active, 0.5, 0.0)
    stepped = stack.iterate(goal[:, None], 7, active, gain)
    solved = stack.solve(active, goal[:, None], gain)
    discounted = stack.solve(np.ones(m + 2, dtype=bool), np.zeros((m + 2, 1)), gain, 0.9)
    for k, P in enumerate(matrices):
        x = goal.copy()
        for _ in range(7):
            x[:m] = gain[:m] + P[:m] @ x
        np.testing.assert_allclose(stepped[:, k], x, rtol=1e-12)
        expected = np.linalg.solve(np.eye(m) - P[:m, :m], P[:m, m] + gain[:m])
        np.testing.assert_allclose(solved[:m, k], expected, rtol=1e-9)
        np.testing.assert_allclose(discounted[:, k], np.linalg.solve(np.eye(m + 2) - 0.9 * P, gain), rtol=1e-9)


def test_many_steps_by_squaring_are_as_many_single_steps():
    matrices = absorbing_matrices(3, 2, seed=1)
    stack = stack_of(matrices)
    active = np.arange(5) < 3
    goal = (np.arange(5) == 3).astype(float)[:, None]
    steps = 1_000  # above the number from which on matrices are squared
    x = np.repeat(goal, 2, axis=1)
    for _ in range(steps):
        x = stack.iterate(x, 1, active)
    np.testing.assert_allclose(stack.iterate(goal, steps, active), x, rtol=1e-11)


def test_a_sure_thing_is_one_and_not_what_rounding_makes_of_it():
    third = 1 / 3
    P = np.array([[0.0, third, third, third], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]])
    P[0, 1:] = [0.1, 0.2, 0.7000000000000001]
    stack = stack_of([P])
    value = stack.iterate(np.array([0.0, 0, 0, 1])[:, None], 2, np.arange(4) < 3)
    assert value[0, 0] == 1.0


def test_selecting_draws_keeps_their_chains():
    stack = stack_of(absorbing_matrices(3, 4, seed=2))
    part = stack.select(np.array([2]))
    np.testing.assert_array_equal(part.entries[:, 0], stack.entries[:, 2])
    np.testing.assert_allclose(part.chain_at(0).transitions.data, stack.entries[:, 2], rtol=1e-15)


def test_steps_of_a_large_chain_are_limited():
    m = DENSE_STATES + 1
    stack = stack_of(absorbing_matrices(m, 1, seed=3))
    with pytest.raises(UnsupportedError, match="too many"):
        stack.iterate(np.zeros((m + 2, 1)), 10**9, np.arange(m + 2) < m)


def test_a_state_in_which_a_draw_does_not_start_does_not_count_there():
    chain = MarkovChain(states=("s0", "s1"), transitions=np.eye(2), initial=np.array([0.5, 0.5]))
    stack = ChainStack(chain, np.ones((2, 3)), np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]))
    np.testing.assert_array_equal(stack.mean_at_start(np.array([[2.0], [np.inf]])), [2, np.inf, np.inf])
    np.testing.assert_array_equal(stack.mean_at_start(np.array([[2.0], [np.nan]])), [2, np.nan, np.nan])
