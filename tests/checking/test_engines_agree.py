"""The closed form against Storm on random chains and formulas of every operator.

3,000 pairs of a chain and a formula, or as many as TRACEBRIDGE_PAIRS says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checking.random_chains import random_chain
from tests.checking.random_operators import branching, numeric, operands, quantiles, truths

from tracebridge.agreement import compare_property
from tracebridge.checking.closedform import ClosedFormSession
from tracebridge.checking.engine import STORM
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.result import CheckResult, Verdict
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.errors import PropertyError
from tracebridge.pctl import fold_steps, format_formula
from tracebridge.pctl.ast import Formula, Property, Quantile

pytestmark = pytest.mark.storm

FORMULAS_A_CHAIN = 10
PAIRS = int(os.environ.get("TRACEBRIDGE_PAIRS", "3000"))
EXACT_PAIRS = PAIRS * 2 // 3  # equality is the sharper test, and takes half the time

pytest.importorskip("stormpy")

#: What Storm may say that it cannot do, and what its doubles cannot decide on chains as sticky as these.
REFUSALS = ("no probability says the same", "within the bounds", "discounted total reward", "without an end")
DOUBLES_REFUSE = ("no correct digit", "whether the condition is possible", "so small a probability")


@pytest.fixture(scope="module")
def worker() -> Iterator[StormWorker]:
    with StormWorker() as running:
        yield running


@cache
def any_formula() -> st.SearchStrategy[Formula]:
    return st.one_of(numeric(), numeric(), truths(), truths(), branching(), quantiles(operands(0)))


def compare_engines(seed: int, batch: list[Formula], worker: StormWorker, *, exact: bool, max_states: int) -> None:
    chain = random_chain(seed, max_states)
    sessions = [ClosedFormSession(chain, exact=exact), StormSession(chain, exact=exact, worker=worker)]
    checkers = [PropertyChecker(chain, session) for session in sessions]
    for formula in batch:
        if isinstance(formula, Quantile) and chain.transitions.data.min() < 1e-4:
            continue  # on a sticky chain it may be millions of steps away, and is searched for step by step
        text = format_formula(formula)
        property_ = Property(formula=fold_steps(formula), text=text)
        try:
            results = [checker.check(property_) for checker in checkers]
        except PropertyError as error:
            assert "over no state" in str(error), text  # noqa: PT017 - most formulas have an answer
            continue
        closed, storm = results
        if over_no_state(closed) or over_no_state(storm):
            continue
        assert closed.answered, f"{text} on {chain.n_states} states: {closed.reason}"
        if not storm.answered:
            assert storm.verdict is Verdict.UNSUPPORTED, f"{text} on {chain.n_states} states: {storm.reason}"
            assert is_known_refusal(storm), f"{text}: {storm.reason}"
            continue
        agreement = compare_property(results)
        values = [(result.engine, result.value, result.verdict) for result in results]
        assert agreement.agree, (
            f"{text} on {chain.n_states} states: gap {agreement.gap}, allowed {agreement.allowed}; {values}"
        )
        if exact:
            assert (closed.truth, closed.range) == (storm.truth, storm.range), text
            if closed.value is not None and closed.value.undefined:
                assert storm.value is not None, text
                assert storm.value.undefined, text
                assert agreement.gap is None, text
            else:
                assert closed.value == storm.value, text
                assert agreement.gap == 0.0, text


def over_no_state(result: CheckResult) -> bool:
    """A filter whose states hang on values may be over none of them."""
    return result.verdict is Verdict.ERROR and "over no state" in (result.reason or "")


def is_known_refusal(result: CheckResult) -> bool:
    assert result.engine == STORM
    known = REFUSALS if result.exact else REFUSALS + DOUBLES_REFUSE
    return any(words in (result.reason or "") for words in known)


@settings(max_examples=EXACT_PAIRS // FORMULAS_A_CHAIN, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), batch=st.lists(any_formula(), min_size=FORMULAS_A_CHAIN, max_size=FORMULAS_A_CHAIN))
def test_rationals_are_equal(worker: StormWorker, seed: int, batch: list[Formula]) -> None:
    compare_engines(seed, batch, worker, exact=True, max_states=7)


@settings(max_examples=(PAIRS - EXACT_PAIRS) // FORMULAS_A_CHAIN, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), batch=st.lists(any_formula(), min_size=FORMULAS_A_CHAIN, max_size=FORMULAS_A_CHAIN))
def test_doubles_agree_within_their_bounds(worker: StormWorker, seed: int, batch: list[Formula]) -> None:
    compare_engines(seed, batch, worker, exact=False, max_states=12)
