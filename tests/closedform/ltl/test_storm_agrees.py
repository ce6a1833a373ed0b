"""LTL against Storm, which takes automata from Spot and a product of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checking.random_chains import random_chain
from tests.closedform.ltl.strategies import Truths, arithmetic_on, paths

from tracebridge.chain.graph import reaching
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.pctl import ast

pytestmark = pytest.mark.storm

pytest.importorskip("stormpy")

FORMULAS_A_CHAIN = 5
CHAINS = int(os.environ.get("TRACEBRIDGE_PAIRS", "2000")) // 10 // FORMULAS_A_CHAIN
A, B, C = ast.Label("a"), ast.Label("b"), ast.Label("c")


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as running:
        yield running


@settings(max_examples=CHAINS)
@given(st.integers(0, 2**32), st.lists(paths(3), min_size=FORMULAS_A_CHAIN, max_size=FORMULAS_A_CHAIN))
def test_probabilities_are_equal(worker: StormWorker, seed: int, batch: list[ast.PathFormula]) -> None:
    chain = random_chain(seed, 8)
    storm, holds = StormSession(chain, exact=True, worker=worker), Truths(chain)
    for path in batch:
        operator = ast.Probability(path)
        theirs = storm.evaluate(operator, holds)
        ours = evaluate_operator(arithmetic_on(chain, exact=True), operator, holds)
        assert ours.value.tolist() == theirs.value.tolist(), path


@settings(max_examples=CHAINS)
@given(st.integers(0, 2**32))
def test_conditions_are_equal(worker: StormWorker, seed: int) -> None:
    """Where they are defined, and for rewards where the target can be reached at all: else Storm 2.0.0 says 0."""
    chain = random_chain(seed, 8)
    holds, condition = Truths(chain), ast.Eventually(A)
    if not holds(A).any():
        return
    operators = [
        ast.Probability(ast.Eventually(B), condition=condition),
        ast.Reward(ast.ReachReward(C), "cost", condition=condition),
        ast.Reward(ast.ReachReward(A), "cost", condition=condition),
    ]
    possible = reaching(chain.transitions, holds(A))
    storm = StormSession(chain, exact=True, worker=worker)
    for operator in operators:
        target = operator.path.operand
        if not reaching(chain.transitions, holds(target))[possible].any():
            continue
        theirs = storm.evaluate(operator, holds)
        ours = evaluate_operator(arithmetic_on(chain, exact=True), operator, holds)
        assert np.array_equal(ours.undefined, ~possible)
        assert ours.value[possible].tolist() == theirs.value[possible].tolist(), operator
