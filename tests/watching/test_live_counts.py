"""Counts of a stream: the same chain as of the corpus at once, with weights that halve, over states that may be new."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.inference.runs import as_traces, runs

from tracebridge.chain import fit_chain
from tracebridge.errors import ModelError, NothingToCheckError, TracebridgeError, UsageError
from tracebridge.traces import Outcome, Step, Trace
from tracebridge.watching.live_counts import LiveCounts


def same_chain(one, other) -> bool:
    a, b = one.chain, other.chain
    return (
        a.states == b.states
        and a.transitions.shape == b.transitions.shape
        and abs(a.transitions - b.transitions).max() <= 1e-12
        and np.allclose(a.initial, b.initial, rtol=0, atol=1e-12)
    )


def fitted(make):
    """The fit, or None for a corpus that no chain can be fitted to."""
    try:
        return make()
    except TracebridgeError:
        return None


@settings(max_examples=12, deadline=None)
@given(runs(20), st.integers(1, 7))
def test_without_forgetting_it_is_the_chain_of_all_runs(chosen, size):
    traces = as_traces(chosen)
    live = LiveCounts(None)
    for begin in range(0, len(traces), size):
        live.add(traces[begin : begin + size])
    expected, found = fitted(lambda: fit_chain(traces)), fitted(live.fit)
    assert (expected is None) == (found is None)
    if expected is not None:
        assert same_chain(expected, found)
        again = LiveCounts(None)
        again.restore(live.to_dict())
        assert again.fit().counts == found.counts


@settings(max_examples=12, deadline=None)
@given(runs(40), st.integers(1, 9), st.sampled_from([1, 5, 40]))
def test_forgetting_weighs_runs_by_the_age_of_their_block(chosen, size, half_life):
    """However the runs were cut into batches: blocks end at multiples of a sixteenth of the half-life."""
    traces = as_traces(chosen)
    live = LiveCounts(None, half_life=half_life)
    for begin in range(0, len(traces), size):
        live.add(traces[begin : begin + size])
    n, block = len(traces), max(1, round(half_life / 16))
    weights = []
    for i in range(n):
        last = min((i // block + 1) * block, n)
        weight = Fraction(round(0.5 ** ((n - last) / half_life) * 2**16), 2**16)
        weights.append(weight if weight >= Fraction(1, 1024) else Fraction(0))
    kept = [(trace, weight) for trace, weight in zip(traces, weights, strict=True) if weight]
    assume(kept)
    of_trace = {trace.trace_id: weight for trace, weight in kept}
    expected = fitted(lambda: fit_chain([trace for trace, _ in kept], weight=lambda trace: of_trace[trace.trace_id]))
    found = fitted(live.fit)
    assert (expected is None) == (found is None)
    if expected is not None:
        assert same_chain(expected, found)
        assert found.weighted.effective_runs == sum(of_trace.values()) ** 2 / sum(w**2 for w in of_trace.values())


def corpus(names: list[str], start: int = 0) -> list[Trace]:
    steps = tuple(Step(name=name) for name in names)
    return [Trace(trace_id=f"{start + i}", outcome=Outcome.SUCCESS, steps=steps) for i in range(4)]


def test_steps_that_the_baseline_does_not_have_get_states_of_their_own():
    baseline = fit_chain(corpus(["plan", "answer"]))
    live = LiveCounts(baseline)
    assert live.add(corpus(["plan", "answer"])) == []
    (new,) = live.add(corpus(["plan", "search", "answer"], 4))
    assert str(new) == "action 'search'"
    assert live.add(corpus(["plan", "search", "answer"], 8)) == []
    fit = live.fit()
    assert fit.chain.states == ("answer", "plan", "unseen action search", "success", "failure")
    assert fit.counts.n_runs == 12
    assert live.states_of(corpus(["search"])) == [(["unseen action search"], "success")] * 4
    again = LiveCounts(baseline)
    again.restore(live.to_dict())
    assert again.unseen == live.unseen == (new,)
    assert same_chain(again.fit(), fit)


def test_a_new_variant_of_a_known_step_is_no_member_of_its_state():
    baseline = fit_chain(corpus(["plan", "answer"]))
    live = LiveCounts(baseline)
    failed = Trace(trace_id="x", outcome=Outcome.FAILURE, steps=(Step(name="plan", error=True),))
    live.add([*corpus(["plan", "answer"]), failed])
    fit = live.fit()
    assert "unseen action plan error" in fit.chain.states
    assert fit.chain.label("plan").sum() == 1


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(UsageError, match="half-life"):
        LiveCounts(None, half_life=0.5)
    with pytest.raises(NothingToCheckError):
        LiveCounts(None).fit()
    with pytest.raises(UsageError, match="without a baseline"):
        LiveCounts(None).states_of([])
    with pytest.raises(ModelError, match="half-life"):
        LiveCounts(None, half_life=3).restore(LiveCounts(None).to_dict())
    with pytest.raises(ModelError, match="cannot be read"):
        LiveCounts(None).restore({"runs": 1})
