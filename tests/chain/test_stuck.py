from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import (
    AbsorbingChain,
    MarkovChain,
    RewardStructure,
    TransitionCounts,
    fit_counts,
    stuck_as_outcome,
)
from tracebridge.closedform import long_run_outcomes, reliability
from tracebridge.errors import ModelError
from tracebridge.traces.model import Outcome

law = settings(deadline=None, max_examples=60)

any_run = st.tuples(st.lists(st.sampled_from("abcd"), max_size=5), st.sampled_from(list(Outcome)))


def succeeded_within(chain, d):
    """R(d) by walking forward in rationals, on any chain."""
    exact = chain.exact_transitions()
    now = chain.exact_initial()
    for _ in range(d):
        after = [Fraction(0)] * chain.n_states
        for i, mass in enumerate(now):
            for j, value in exact.row(i).items():
                after[j] += mass * value
        now = after
    return now[chain.index("success")]


@law
@given(st.lists(any_run, min_size=1, max_size=8))
def test_every_unsmoothed_fit_has_three_outcomes(corpus):
    if not any(names or outcome != "censored" for names, outcome in corpus):
        return
    chain = fit_counts(TransitionCounts.from_paths(corpus), prior="none").chain
    closed = stuck_as_outcome(chain)
    form = AbsorbingChain(chain=closed)
    outcomes = long_run_outcomes(form, exact=True)
    assert set(outcomes) <= {"success", "failure", "stuck"}
    assert sum(outcomes.values()) == 1
    for d in (0, 1, 2, 5):
        assert reliability(form, d, exact=True) == succeeded_within(chain, d)
    if not any(outcome == "censored" for _, outcome in corpus):
        assert closed is chain
        assert "stuck" not in closed.states


@law
@given(st.lists(any_run, min_size=1, max_size=8), st.sampled_from(["full", "observed", "declared"]))
def test_a_prior_lets_every_run_end(corpus, support):
    if not any(names and outcome != "censored" for names, outcome in corpus):
        return
    graph = {name: list("abcd") for name in "abcd"}
    fit = fit_counts(TransitionCounts.from_paths(corpus), support=graph if support == "declared" else support)
    assert AbsorbingChain(chain=fit.chain).chain is stuck_as_outcome(fit.chain)


def test_a_loop_and_a_last_state_by_hand():
    runs = [(["a"], "success"), (["a", "b", "c", "b"], "censored"), (["a", "d"], "censored"), (["c"], "censored")]
    chain = fit_counts(TransitionCounts.from_paths(runs), prior="none").chain
    closed = stuck_as_outcome(chain)
    assert closed.states == ("a", "d", "success", "failure", "stuck")
    third = Fraction(1, 3)
    assert closed.exact_transitions().row(0) == {1: third, 2: third, 4: third}
    assert closed.exact_transitions().row(1) == {4: 1}
    assert closed.exact_initial() == [Fraction(3, 4), 0, 0, 0, Fraction(1, 4)]
    assert closed.label("absorbed").tolist() == [False, False, True, True, True]
    assert closed.rewards["steps"].state.tolist() == [1, 1, 0, 0, 0]
    assert long_run_outcomes(AbsorbingChain(chain=closed), exact=True)["stuck"] == Fraction(3, 4)


def test_chains_of_doubles_and_their_rewards():
    matrix = [[0.5, 0.25, 0, 0.25], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    earned = RewardStructure.from_fractions([Fraction(1, 3), 1, 1, 0], [Fraction(1, 7), 1, 1, 0])
    chain = MarkovChain(
        states=("a", "b", "c", "end"),
        transitions=matrix,
        initial=[0.5, 0.25, 0.25, 0],
        labels={"x": [True, True, False, False]},
        rewards={"r": earned, "plain": RewardStructure(state=[1, 2, 3, 4])},
        constants={"k": Fraction(2)},
    )
    closed = stuck_as_outcome(chain)
    assert closed.states == ("a", "end", "stuck")
    np.testing.assert_array_equal(closed.transitions.toarray(), [[0.5, 0.25, 0.25], [0, 1, 0], [0, 0, 1]])
    assert closed.initial.tolist() == [0.5, 0, 0.5]
    assert closed.label("x").tolist() == [True, False, False]
    assert closed.rewards["r"].fractions(action=True) == [Fraction(10, 21), 0, 0]
    assert closed.rewards["plain"].state.tolist() == [1, 4, 0]
    assert closed.constants == {"k": 2}


def test_a_state_that_only_shares_the_name_is_refused():
    matrix = [[0, 0.5, 0.5], [0, 0, 1], [0, 1, 0]]
    with pytest.raises(ModelError, match="'stuck' can be left"):
        stuck_as_outcome(MarkovChain(states=("stuck", "a", "b"), transitions=matrix, initial=[1, 0, 0]))
    assert stuck_as_outcome(MarkovChain(states=("a", "stuck", "b"), transitions=matrix, initial=[1, 0, 0])).states == (
        "a",
        "stuck",
    )
