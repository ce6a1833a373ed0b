"""Interval chains: their invariants, and the chains inside."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from tests.closedform.strategies import chains

from tracebridge.chain.interval import IntervalChain, compared_with_one
from tracebridge.errors import ModelError


def interval_chain(lower, upper, **given_):
    n = len(lower)
    return IntervalChain(
        states=tuple("abcdef"[:n]),
        lower=csr_array(np.array(lower, dtype=float)),
        upper=csr_array(np.array(upper, dtype=float)),
        initial=np.eye(n)[0],
        **given_,
    )


def test_both_bounds_are_over_the_edges_of_the_upper_ones():
    chain = interval_chain([[0, 0.25], [0, 1]], [[0.5, 0.75], [0, 1]], labels={"end": [False, True]})
    assert chain.lower.data.tolist() == [0, 0.25, 1]
    assert chain.upper.data.tolist() == [0.5, 0.75, 1]
    np.testing.assert_array_equal(chain.lower.indices, chain.upper.indices)
    assert chain.absorbing.tolist() == [False, True]
    assert chain.label("end").tolist() == chain.label("b").tolist() == [False, True]
    assert chain.contains(chain.member)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([[0.6, 0], [0, 1]], [[0.5, 0.5], [0, 1]], r"state 'a': 'a' follows with the bounds \[0.6, 0.5\]"),
        ([[-0.1, 0], [0, 1]], [[0.5, 0.5], [0, 1]], r"state 'a': 'a' follows with the bounds \[-0.1, 0.5\]"),
        ([[0, 0], [0, 1]], [[0.5, 1.5], [0, 1]], r"state 'a': 'b' follows with the bounds \[0.0, 1.5\]"),
        ([[0, math.nan], [0, 1]], [[0.5, 0.5], [0, 1]], r"state 'a': 'b' follows with the bounds \[nan, 0.5\]"),
        ([[0.1, 0.1], [0, 1]], [[0, 1], [0, 1]], "state 'a': 'a' follows with a lower bound of 0.1, above 0"),
        ([[0.5, 0.75], [0, 1]], [[0.75, 0.75], [0, 1]], "state 'a': its lower bounds sum to 1.25, above 1"),
        ([[0, 0], [0, 1]], [[0.25, 0.25], [0, 1]], "state 'a': its upper bounds sum to 0.5, below 1"),
        ([[0, 0], [0, 1]], [[0, 0], [0, 1]], "state 'a': nothing follows it"),
        (
            [[0.5, 0.5], [0, 0.5]],
            [[0.5, 0.5], [0, 1]],
            "state 'b': it only returns to itself, with a lower bound of 0.5",
        ),
    ],
)
def test_broken_bounds_are_refused_by_the_name_of_the_state(lower, upper, message):
    with pytest.raises(ModelError, match=message):
        interval_chain(lower, upper)


def test_labels_rewards_and_the_start_are_checked_as_in_a_chain():
    with pytest.raises(ModelError, match="label 'x' has shape"):
        interval_chain([[1]], [[1]], labels={"x": [True, False]})
    with pytest.raises(ModelError, match="2 states need 2 x 2 upper bounds"):
        IntervalChain(states=("a", "b"), lower=csr_array((2, 2)), upper=csr_array((1, 1)), initial=np.ones(2) / 2)


def test_a_sum_is_compared_with_one_exactly():
    values = np.array([0.1, 0.2, 0.7, 1.0, 2.0**-70, 1.0, 0.5, 0.5])  # the first three sum to 1 - 2**-53 or so
    exact = sum(Fraction(value) for value in values[:3].tolist())
    assert exact != 1
    signs = compared_with_one(values, np.array([0, 3, 5, 6, 8]))
    assert signs.tolist() == [1 if exact > 1 else -1, 1, 0, 0]


@given(chains(), st.sampled_from([0.0, 1e-9, 0.1]))
def test_the_exact_chain_lies_inside_its_surroundings(chain, radius):
    around = IntervalChain.around(chain, radius)
    low, high = around.lower.tocsr(), around.upper
    exact = chain.exact_transitions()
    for i in range(chain.n_states):
        for j, p in exact.row(i).items():
            assert Fraction(float(low[i, j])) <= p <= Fraction(float(high[i, j]))
            assert float(high[i, j]) - float(low[i, j]) <= 2 * radius + 1e-12
    assert np.array_equal(around.absorbing, chain.absorbing)
    if radius == 0:
        assert (around.lower.data > 0).all()


def test_a_radius_is_a_number_of_zero_or_more():
    chain = interval_chain([[1]], [[1]]).member
    with pytest.raises(ModelError, match="a radius is a finite number"):
        IntervalChain.around(chain, -0.1)
