"""The closed form against Storm on random chains and formulas: 2,000 pairs, or as many as TRACEBRIDGE_PAIRS says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checking.random_chains import LABELS, REWARDS, random_chain
from tests.pctl.strategies import formulas, queries

from tracebridge.agreement import compare_property
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.engine import STORM
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.result import CheckResult
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.pctl import format_formula
from tracebridge.pctl.ast import Eventually, Formula, Operator, Probability, Property, walk
from tracebridge.pctl.folding import fold_steps

pytestmark = pytest.mark.storm

FORMULAS_A_CHAIN = 10
PAIRS = int(os.environ.get("TRACEBRIDGE_PAIRS", "2000"))

pytest.importorskip("stormpy")


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as running:
        yield running


@cache
def any_formula() -> st.SearchStrategy[Formula]:
    either = st.one_of(formulas(LABELS, 2, rewards=REWARDS), queries(LABELS, 2, rewards=REWARDS))
    return either.map(lambda formula: formula if _has_operator(formula) else Probability(Eventually(formula)))


def _has_operator(formula: Formula) -> bool:
    return any(isinstance(node, Operator) for node in walk(formula))


def compare_engines(seed: int, batch: list[Formula], worker: StormWorker, *, exact: bool, max_states: int) -> None:
    chain = random_chain(seed, max_states)
    sessions = [ClosedFormSession(chain, exact=exact), StormSession(chain, exact=exact, worker=worker)]
    checkers = [PropertyChecker(chain, session) for session in sessions]
    for formula in batch:
        text = format_formula(formula)
        property_ = Property(formula=fold_steps(formula), text=text)
        results = [checker.check(property_) for checker in checkers]
        for result in results:
            assert result.answered or _hopeless(result), f"{result.engine} on {text}: {result.reason}"
        if not all(result.answered for result in results):
            continue
        agreement = compare_property(results)
        values = [(result.engine, result.value, result.verdict) for result in results]
        assert agreement.agree, (
            f"{text} on {chain.n_states} states: gap {agreement.gap}, allowed {agreement.allowed}; {values}"
        )
        if exact:
            assert agreement.gap == 0.0, text
            assert results[0].value == results[1].value, text


def _hopeless(result: CheckResult) -> bool:
    """Sticky chains of this size can leave Storm's doubles no correct digit, which it then says."""
    return result.engine == STORM and not result.exact and "no correct digit" in (result.reason or "")


@settings(max_examples=PAIRS // 2 // FORMULAS_A_CHAIN, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), batch=st.lists(any_formula(), min_size=FORMULAS_A_CHAIN, max_size=FORMULAS_A_CHAIN))
def test_rationals_are_equal(worker: StormWorker, seed: int, batch: list[Formula]) -> None:
    compare_engines(seed, batch, worker, exact=True, max_states=8)


@settings(max_examples=PAIRS // 2 // FORMULAS_A_CHAIN, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), batch=st.lists(any_formula(), min_size=FORMULAS_A_CHAIN, max_size=FORMULAS_A_CHAIN))
def test_doubles_agree_within_their_bounds(worker: StormWorker, seed: int, batch: list[Formula]) -> None:
    compare_engines(seed, batch, worker, exact=False, max_states=60)
