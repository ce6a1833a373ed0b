import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import (
    LengthCounts,
    TransitionCounts,
    WeightedCounts,
    aalen_johansen,
    censoring_extremes,
    fit_counts,
    mean_length_bounds,
    reliability_bounds,
)
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.errors import UsageError

law = settings(deadline=None, max_examples=40)

words = ["success", "failure", "censored"]
corpora = st.lists(
    st.tuples(st.lists(st.sampled_from("ab"), max_size=4), st.sampled_from(words)), min_size=1, max_size=8
).filter(lambda corpus: any(names for names, _ in corpus))


def lengths_of(corpus):
    return LengthCounts.from_lengths([len(names) for names, _ in corpus], [words.index(end) for _, end in corpus])


@law
@given(corpora, st.sampled_from(["mass-one", "laplace", "none"]), st.sampled_from(["full", "observed"]), st.randoms())
def test_every_assignment_of_ends_lies_between_the_extremes(corpus, prior, support, random):
    counts = TransitionCounts.from_paths(corpus)
    if prior != "none" and not any(names and end != "censored" for names, end in corpus):
        return  # no such fit
    extremes = censoring_extremes(fit_counts(counts, prior=prior, support=support, policy="censored"))
    assigned = [(names, random.choice(words[:2]) if end == "censored" else end) for names, end in corpus]
    chain = fit_counts(TransitionCounts.from_paths(assigned), prior=prior, support=support).chain
    for d in (0, 1, 3):
        lower, upper = extremes.of(lambda chain, d=d: reliability(chain, d, exact=True))
        assert lower <= reliability(chain, d, exact=True) <= upper
    lower, upper = extremes.of(lambda chain: long_run_reliability(chain, exact=True))
    assert lower <= long_run_reliability(chain, exact=True) <= upper
    times = extremes.of(lambda chain: mean_time_to_absorption(chain, exact=True).overall)
    assert times[0] == times[1] == mean_time_to_absorption(chain, exact=True).overall
    if prior == "none":
        assert (lower, upper) == reliability_bounds(lengths_of(corpus))


@law
@given(corpora, st.integers(0, 6), st.randoms())
def test_every_continuation_lies_within_the_bounds_that_assume_nothing(corpus, d, random):
    bounds, means = reliability_bounds(lengths_of(corpus), d), mean_length_bounds(lengths_of(corpus))
    continued = []
    for names, end in corpus:
        longer = len(names) + (random.randint(1, 3) if names else random.randint(0, 3)) * (end == "censored")
        continued.append((longer, random.randrange(2) if end == "censored" else words.index(end)))
    full = LengthCounts.from_lengths(*zip(*continued, strict=True))
    share = Fraction(full.within("success", d), full.n_runs)
    assert bounds[0] <= share <= bounds[1]
    assert means[0] <= Fraction(full.n_steps, full.n_runs) <= means[1]
    curve = aalen_johansen(lengths_of(corpus), exact=True)
    if all(names or end != "censored" for names, end in corpus) and d <= curve.horizon:
        assert bounds[0] <= curve.at(d) <= bounds[1]
    if all(end != "censored" for _, end in corpus):
        assert bounds == (share, share)
        assert means[0] == means[1]


def test_the_bounds_by_hand():
    counts = LengthCounts.from_lengths([2, 3, 4, 0], [0, 1, 2, 2])
    assert reliability_bounds(counts) == (Fraction(1, 4), Fraction(3, 4))
    assert reliability_bounds(counts, 4) == (Fraction(1, 4), Fraction(1, 2))  # not with the four steps that were seen
    assert reliability_bounds(counts, 5) == (Fraction(1, 4), Fraction(3, 4))
    assert reliability_bounds(counts, 0) == (0, Fraction(1, 4))
    assert mean_length_bounds(counts) == (Fraction(10, 4), math.inf)
    assert reliability_bounds(LengthCounts.empty()) is None
    assert mean_length_bounds(LengthCounts.empty()) is None
    for d in (-1, 1.5, True):
        with pytest.raises(UsageError, match="a number of steps"):
            reliability_bounds(counts, d)


def test_extremes_keep_the_options_of_the_fit():
    runs = [(["a", "b"], "success", 2), (["a"], "censored", 1), ([], "censored", 1)]
    graph = {"a": ["b"], "b": ["c"], "c": []}
    fit = fit_counts(WeightedCounts.from_paths(runs), prior="jeffreys", support=graph, policy="drop", start={"a": 1})
    extremes = censoring_extremes(fit)
    for extreme in (extremes.all_fail, extremes.all_succeed):
        assert (extreme.prior, extreme.declared, extreme.start) == (fit.prior, fit.declared, fit.start)
        assert extreme.chain.states == ("a", "b", "c", "success", "failure")
    assert extremes.all_fail.weighted.weighted.runs_by_outcome() == {"success": 2, "failure": 2, "censored": 0}
    assert extremes.all_succeed.counts.runs_by_outcome() == {"success": 3, "failure": 0, "censored": 0}
    paper = censoring_extremes(fit_counts(TransitionCounts.from_paths([(["a"], "success")]), profile="paper"))
    assert paper.all_fail.profile == paper.all_succeed.profile == "paper"
