"""Stacks of random chains with the same edges, and what the exact engine says of each of their chains."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from tests.closedform.ltl.strategies import any_chains
from tests.inference.draws_of_chains import random_entries

from tracebridge.chain.markov import MarkovChain
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.exact_arithmetic import ExactArithmetic

DRAWS = 2


@st.composite
def stacks(draw: st.DrawFn, max_states: int = 6) -> ChainStack:
    """Draws of chains of every kind, with the labels a and b and a reward ``cost``."""
    chain = draw(any_chains(max_states))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return ChainStack(chain, random_entries(chain, DRAWS, rng), chain.initial[:, None])


def assert_exact_engine_agrees(
    stack: ChainStack, found: np.ndarray, exactly: Callable[[ExactArithmetic, MarkovChain], EnclosureVector]
) -> None:
    """Every draw has the exact engine's values: to rounding, and exactly where they are 0, 1, infinite or undefined."""
    for draw in range(stack.draws):
        chain = stack.chain_at(draw)
        expected = exactly(ExactArithmetic(chain), chain).value.tolist()
        values = np.broadcast_to(found, (chain.n_states, stack.draws))[:, draw]
        floats = np.array([float(value) for value in expected])
        np.testing.assert_allclose(values, floats, rtol=1e-9)
        special = [value if value in {Fraction(0), Fraction(1)} else None for value in expected]
        assert special == [value if value in {0.0, 1.0} else None for value in values.tolist()]
