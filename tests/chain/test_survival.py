import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, norm

from tracebridge.chain import LengthCounts, aalen_johansen
from tracebridge.errors import ModelError, UsageError
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=60)

SUCCESS, FAILURE, CENSORED = range(3)
runs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2)), max_size=14)
completed = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=1, max_size=14)


def counted(pairs):
    return LengthCounts.from_lengths([length for length, _ in pairs], [outcome for _, outcome in pairs])


# ---------------------------------------------------------------- the table


@law
@given(runs, runs, runs)
def test_a_commutative_monoid_with_documents(first, second, third):
    a, b, c = map(counted, (first, second, third))
    assert a + b == b + a == counted(first + second)
    assert (a + b) + c == a + (b + c)
    assert a + LengthCounts.empty() == a
    assert LengthCounts.from_dict(json.loads(json.dumps(a.to_dict()))) == a
    assert hash(a + b) == hash(b + a)


@law
@given(runs)
def test_every_way_to_count(pairs):
    traces = [
        Trace(trace_id=str(i), outcome=list(Outcome)[outcome], steps=(Step(name="a"),) * length)
        for i, (length, outcome) in enumerate(pairs)
    ]
    counts = counted(pairs)
    assert LengthCounts.from_traces(traces) == counts
    assert counts.n_runs == len(pairs)
    assert counts.n_steps == sum(length for length, _ in pairs)
    assert counts.runs_by_outcome() == {
        word: sum(outcome == code for _, outcome in pairs)
        for code, word in enumerate(["success", "failure", "censored"])
    }
    assert counts.within("failure", 3) == sum(length <= 3 and outcome == FAILURE for length, outcome in pairs)
    assert counts.within("success", None) == counts.runs_by_outcome()["success"]
    assert counts.under("censored") == counts
    assert counts.under("drop") == counted([pair for pair in pairs if pair[1] != CENSORED])
    assert counts.under("failure") == counted([(length, min(outcome, FAILURE)) for length, outcome in pairs])


def test_tables_that_hold_no_runs_are_refused():
    with pytest.raises(ModelError, match=r"runs of shape \(3, 1\)"):
        LengthCounts(lengths=[1], runs=[1])
    with pytest.raises(ModelError, match="must ascend"):
        LengthCounts(lengths=[2, 1], runs=np.ones((3, 2)))
    with pytest.raises(ModelError, match="must ascend"):
        LengthCounts.from_lengths([-1], [0])
    with pytest.raises(ModelError, match="negative, or a length has no run"):
        LengthCounts.from_lengths([1, 2], [0, 0], [3, -1])
    with pytest.raises(ModelError, match="below 2\\^60"):
        LengthCounts.from_lengths([1], [0], [2**60])
    with pytest.raises(ModelError, match="an outcome is not"):
        LengthCounts.from_lengths([1], [3])
    with pytest.raises(ModelError, match="do not belong together"):
        LengthCounts.from_lengths([1], [0, 1])
    with pytest.raises(ModelError, match="end with the number of steps"):
        LengthCounts.from_paths(np.zeros(3, dtype=int), np.array([0, 2]), np.array([0]))
    with pytest.raises(UsageError, match="no censoring policy"):
        LengthCounts.empty().under("guess")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"success": {"-1": 1}}, "field success: '-1' is no length"),
        ({"success": {"01": 1}}, "field success: '01' is no length"),
        ({"success": {"9" * 19: 1}}, "is no length"),
        ({"failure": {"1": -1}}, "field failure: -1 runs of length 1"),
        ({"failure": {"1": 2**60 - 1}}, "must stay below 2"),
        ({"censored": {"1": 2**60}}, "not in 0"),
        ({"censored": {"1": 1.5}}, "Expected `int`"),
        ({"kind": "other"}, "not 'length-counts'"),
        ({"more": 1}, "unknown field"),
    ],
)
def test_documents_that_do_not_hold_together_are_refused(changes, message):
    good = counted([(1, 0), (2, 1)]).to_dict()
    with pytest.raises(ModelError, match=message) as caught:
        LengthCounts.from_dict(good | changes, "f.json")
    assert str(caught.value).startswith("f.json")


# ---------------------------------------------------------------- the estimator in rationals


@law
@given(completed, st.integers(0, 8))
def test_without_censoring_it_is_the_plain_share_of_runs(pairs, d):
    curves = aalen_johansen(counted(pairs), exact=True)
    n = len(pairs)
    for ending, outcomes in (("success", {SUCCESS}), ("failure", {FAILURE}), ("ended", {SUCCESS, FAILURE})):
        share = Fraction(sum(length <= d and outcome in outcomes for length, outcome in pairs), n)
        assert curves.at(d, ending) == share
        assert curves.variance_at(d, ending) == share * (1 - share) / n
    assert curves.horizon == math.inf


def reference(pairs, d):
    """S, F and the variance of F at d for successes, by definition: gradients in the shares, and their variances."""
    S, F, steps = Fraction(1), Fraction(0), []
    for t in range(d + 1):
        Y = sum(length >= t and (length, outcome) != (0, CENSORED) for length, outcome in pairs)
        if not Y:
            continue
        p, q = (Fraction(pairs.count((t, cause)), Y) for cause in (SUCCESS, FAILURE))
        steps.append((Y, p, q))
        F, S = F + S * p, S * (1 - p - q)

    def of(shares):
        alive, reached = Fraction(1), Fraction(0)
        for p, q in shares:
            reached, alive = reached + alive * p, alive * (1 - p - q)
        return reached

    shares = [(p, q) for _, p, q in steps]
    variance = Fraction(0)
    for k, (Y, p, q) in enumerate(steps):
        # F is linear in each share by itself, so that a difference quotient is the derivative
        slopes = []
        for cause in (0, 1):
            moved = list(shares)
            moved[k] = (p + (cause == 0), q + (cause == 1))
            slopes.append(of(moved) - F)
        a, b = slopes
        variance += (a * a * p + b * b * q - (a * p + b * q) ** 2) / Y
    return S, F, variance


@law
@given(runs, st.integers(0, 6))
def test_censored_runs_are_at_risk_while_they_are_seen(pairs, d):
    curves = aalen_johansen(counted(pairs), exact=True)
    seen = max([length for length, outcome in pairs if (length, outcome) != (0, CENSORED)], default=-1)
    S, F, variance = reference(pairs, d)
    everyone_ended = not reference(pairs, 6)[0]
    assert curves.horizon == (math.inf if everyone_ended else seen)
    if d > curves.horizon:
        assert math.isnan(curves.at(d))
        assert all(math.isnan(limit) for limit in curves.interval(d))
        return
    assert curves.at(d) == F
    assert curves.at(d, "ended") == 1 - S == F + curves.at(d, "failure")
    assert curves.variance_at(d) == variance
    floats = aalen_johansen(counted(pairs))
    assert float(floats.at(d)) == pytest.approx(float(F), abs=1e-14)
    assert float(floats.variance_at(d)) == pytest.approx(float(variance), abs=1e-14)
    for method in ("wilson", "cloglog"):
        lower, upper = floats.interval(d, method=method)
        if method == "wilson" or 0 < F < 1:
            assert 0 <= lower <= F <= upper <= 1
            assert lower < upper
        else:
            assert math.isnan(lower)
            assert math.isnan(upper)


def test_the_textbook_estimate_by_hand():
    """Successes at 1 and 3, a failure at 2, cut after 2 and after 4 steps, which it was seen not to end with."""
    curves = aalen_johansen(counted([(1, 0), (3, 0), (2, 1), (2, 2), (4, 2), (0, 2)]), exact=True)
    assert curves.at_risk.tolist() == [5, 4, 2]
    # 1/5, then of the 4/5 left 1/4 fails at 2, then of the 3/5 left 1/2 succeeds at 3
    assert curves.at([0, 1, 2, 3, 4]).tolist() == [0, Fraction(1, 5), Fraction(1, 5), Fraction(1, 2), Fraction(1, 2)]
    assert curves.at(3, "failure") == Fraction(1, 5)
    assert curves.horizon == 4
    assert math.isnan(curves.at(5))
    assert curves.to_records()[1] == {
        "time": 2, "at_risk": 4, "successes": 0, "failures": 1, "success": 0.2, "failure": 0.2, "ended": 0.4,
        "variance_success": float(Fraction(1, 5) * Fraction(4, 5) / 5),
        "variance_failure": float(curves.variance_at(2, "failure")),
        "variance_ended": float(curves.variance_at(2, "ended")),
    }  # fmt: skip


def test_a_step_cap_leaves_the_estimate_before_it_as_it_is():
    """What the cap cut had not ended by it: up to the cap, the estimate is the share of all runs."""
    pairs = [(1, 0)] * 3 + [(5, 1)] * 2 + [(7, 0)] * 2
    capped = [pair if pair[0] <= 5 else (5, CENSORED) for pair in pairs]
    full, cut = (aalen_johansen(counted(chosen), exact=True) for chosen in (pairs, capped))
    assert cut.horizon == 5
    for ending in ("success", "failure", "ended"):
        assert cut.at(range(6), ending).tolist() == full.at(range(6), ending).tolist()


def test_many_runs_and_long_ones():
    counts = LengthCounts.from_lengths([10**17, 3, 10**17], [0, 1, 2], [2**50, 2**52, 2**51])
    curves = aalen_johansen(counts)
    assert float(curves.at(5, "failure")) == pytest.approx(4 / 7)
    assert float(curves.at(10**17)) == pytest.approx(1 / 7)  # the censored ones were seen not to end there


# ---------------------------------------------------------------- intervals


def test_intervals_by_hand():
    pairs = [(1, 0)] * 12 + [(2, 1)] * 28
    curves = aalen_johansen(counted(pairs))
    z = norm.ppf(0.975)
    lower, upper = curves.interval(1)
    middle = (0.3 + z * z / 80) / (1 + z * z / 40)
    assert (lower + upper) / 2 == pytest.approx(middle)
    for limit in (lower, upper):  # Wilson's limits solve the score equation
        assert (0.3 - limit) ** 2 == pytest.approx(z * z * limit * (1 - limit) / 40)
    lower, upper = curves.interval(1, method="cloglog")
    spread = z * math.sqrt(0.3 * 0.7 / 40) / (0.7 * abs(math.log(0.7)))
    assert math.log(-math.log(1 - lower)) == pytest.approx(math.log(-math.log(0.7)) - spread)
    assert math.log(-math.log(1 - upper)) == pytest.approx(math.log(-math.log(0.7)) + spread)


def test_no_event_still_leaves_doubt():
    """100 successes, of 20 runs the end was not seen: failure cannot be excluded, and success is not certain."""
    pairs = [(3, 0)] * 100 + [(2, 2)] * 20  # by 3 it is not known of the 20 how they ended
    curves = aalen_johansen(counted(pairs))
    lower, upper = curves.interval(3, "failure")
    assert lower == 0
    assert upper == pytest.approx(norm.ppf(0.975) ** 2 / (100 + norm.ppf(0.975) ** 2))  # the score limit at 0 of 100
    assert upper == pytest.approx(beta.ppf(0.975, 1, 100), abs=0.005)
    lower, upper = curves.interval(3)
    assert upper == 1
    assert 0.96 < lower < 1
    assert np.isnan(curves.interval(3, method="cloglog")).all()


def test_questions_that_have_no_meaning_are_refused():
    curves = aalen_johansen(counted([(1, 0)]))
    for d in (-1, 0.5, [True]):
        with pytest.raises(UsageError, match="numbers of steps"):
            curves.at(d)
    with pytest.raises(UsageError, match="is no curve"):
        curves.at(1, "censored")
    with pytest.raises(UsageError, match="confidence level"):
        curves.interval(1, level=95)
    with pytest.raises(UsageError, match="no interval method"):
        curves.interval(1, method="wald")
    assert math.isnan(aalen_johansen(LengthCounts.empty()).at(0))


@pytest.mark.parametrize("n", [50, 200])
def test_coverage_under_censoring(n):
    """Runs that end with hazards .10 (success) and .06 (failure) a step, cut with hazard .05 a step and at 12 steps.

    1,000 corpora: the standard error of a coverage of .95 is .007.
    """
    rng = np.random.default_rng(20240501)
    corpora = 1_000
    F = {d: 0.10 / 0.16 * (1 - 0.84**d) for d in (3, 10)}
    hits = dict.fromkeys([(d, method) for d in F for method in ("wilson", "cloglog")], 0)
    for _ in range(corpora):
        ends, cuts = rng.geometric(0.16, n), np.minimum(rng.geometric(0.05, n), 12)
        outcomes = np.where(ends > cuts, CENSORED, rng.random(n) >= 0.10 / 0.16)
        curves = aalen_johansen(LengthCounts.from_lengths(np.minimum(ends, cuts), outcomes))
        for d, method in hits:
            lower, upper = curves.interval(d, method=method)
            hits[d, method] += bool(lower <= F[d] <= upper)
    coverage = {key: hit / corpora for key, hit in hits.items()}
    assert all(0.93 <= share <= 0.97 for share in coverage.values()), coverage
