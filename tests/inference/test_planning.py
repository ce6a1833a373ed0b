import math

import numpy as np
import pytest
from scipy.stats import beta, betabinom
from tests.inference.draws_of_chains import first_draws, small_fit

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.checking.result import Verdict
from tracebridge.errors import UsageError
from tracebridge.inference.planning import plan_runs, simulated_counts


def coin(successes: int, failures: int):
    paths = [(("a",), "success")] * successes + [(("a",), "failure")] * failures
    return fit_counts(TransitionCounts.from_paths(paths), support="observed")


def test_the_prospect_of_a_coin_is_that_of_the_beta_binomial_law():
    # Beta(13.5, 7.5); after n more tosses with k heads it is Beta(13.5 + k, 7.5 + n - k)
    (plan,) = plan_runs(coin(13, 7), 'P>=0.5 [ F "success" ]', factors=(2,), futures=400, draws=400)
    n, k = 40, np.arange(41)
    share = beta.sf(0.5, 13.5 + k, 7.5 + n - k)
    weight = betabinom.pmf(k, n, 13.5, 7.5)
    # draws of 400 see a share with an error of about 1 %: numbers of heads whose share is that near may fall either way
    low = weight[share >= 0.95 + 0.033].sum()
    high = weight[share >= 0.95 - 0.033].sum()
    (outlook,) = plan.outlooks
    assert plan.verdict is Verdict.UNDECIDED
    assert outlook.n_more == 40
    assert low - 4.5 * outlook.error <= outlook.satisfied <= high + 4.5 * outlook.error
    share = (400 * outlook.decided + 2) / 404
    assert outlook.error == pytest.approx(math.sqrt(share * (1 - share) / 404))


def test_more_runs_decide_more_often():
    (plan,) = plan_runs(small_fit(), 'P>=0.4 [ F "success" ]', factors=(64, 4, 16), futures=40, draws=200)
    decided = [outlook.decided for outlook in plan.outlooks]
    assert [outlook.n_more for outlook in plan.outlooks] == [24, 96, 384]
    assert decided == sorted(decided)
    assert decided[-1] > decided[0]
    assert plan.enough(1.1) is None
    assert plan.enough(0.0) == 24


def test_decided_properties_and_queries_need_no_plan():
    plans = plan_runs(small_fit(), 'P=? [ F "success" ]; P>=1 [ F "absorbed" ]', futures=2, draws=50)
    assert [(plan.verdict, plan.outlooks) for plan in plans] == [(Verdict.SATISFIED, ())]


def test_what_takes_one_chain_at_a_time_is_not_planned():
    (plan,) = plan_runs(small_fit(), 'P>=0.8 [ F{"steps"}<=9 "success" ]', futures=2, draws=20)
    assert plan.outlooks == ()
    assert "one chain at a time" in plan.reason


def test_plans_are_deterministic():
    once, twice = (
        plan_runs(small_fit(), 'P>=0.7 [ F "success" ]', factors=(1,), futures=5, draws=30, seed=3) for _ in range(2)
    )
    assert [plan.to_dict() for plan in once] == [plan.to_dict() for plan in twice]


def test_simulated_passages_are_a_flow_with_the_right_means():
    stack = first_draws(small_fit(), 3, seed=2)
    P = stack.chain.transitions
    n_runs = 4_000
    counts, starts = simulated_counts(stack, n_runs, np.random.default_rng(0))
    assert (starts.sum(axis=0) == n_runs).all()
    n = stack.chain.n_states
    for k in range(3):
        arriving = np.bincount(P.indices, weights=counts[:, k], minlength=n) + starts[:, k]
        leaving = np.add.reduceat(counts[:, k], P.indptr[:-1])
        transient = ~stack.chain.absorbing
        np.testing.assert_array_equal(arriving[transient], leaving[transient])  # what enters a state leaves it
        assert arriving[~transient].sum() == n_runs
        shares = counts[:, k] / np.repeat(np.maximum(leaving, 1), np.diff(P.indptr))
        p, visits = stack.entries[:, k], np.repeat(leaving, np.diff(P.indptr))
        seen = visits > 0
        error = np.sqrt(p[seen] * (1 - p[seen]) / visits[seen])
        assert (np.abs(shares - p)[seen] <= 5 * error + 5 / visits[seen]).all()


def test_options_are_checked():
    with pytest.raises(UsageError, match="positive"):
        plan_runs(small_fit(), 'P>=0.7 [ F "success" ]', factors=(0,))
