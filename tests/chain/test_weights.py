import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain import ChainFit, TransitionCounts, WeightedCounts, fit_chain, fit_counts
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption
from tracebridge.errors import FitError, ModelError, NothingToCheckError
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=40)

weights = st.one_of(st.integers(0, 5), st.fractions(0, 5, max_denominator=12), st.sampled_from(["1/3", "0.25", 0.1]))
outcomes = st.sampled_from(["success", "failure"])
runs = st.tuples(st.lists(st.sampled_from("abc"), max_size=4), outcomes, weights)
corpora = st.lists(runs, max_size=8)
small_corpora = st.lists(runs, max_size=3)


def exact(weight):
    return Fraction(str(weight))


def mean(values, corpus):
    total = sum(exact(weight) for _, _, weight in corpus)
    return sum(exact(weight) * value for value, (_, _, weight) in zip(values, corpus, strict=True)) / total


@law
@given(corpora)
def test_without_a_prior_the_chain_repeats_the_weighted_means(corpus):
    counts = WeightedCounts.from_paths(corpus)
    assert counts.counts == TransitionCounts.from_paths([(names, outcome) for names, outcome, _ in corpus])
    if not counts.total_weight:
        with pytest.raises(NothingToCheckError, match="weight above zero" if corpus else "no run"):
            fit_counts(counts)
        return
    fit = fit_counts(counts, prior="none")
    assert long_run_reliability(fit.chain, exact=True) == mean([o == "success" for _, o, _ in corpus], corpus)
    assert mean_time_to_absorption(fit.chain, exact=True).overall == mean(
        [len(names) for names, _, _ in corpus], corpus
    )
    document = json.loads(json.dumps(fit.to_dict()))
    assert ChainFit.from_dict(document).to_dict() == document
    assert ChainFit.from_dict(document).weighted == counts


@law
@given(corpora, st.fractions(Fraction(1, 9), 9, max_denominator=9))
def test_only_ratios_of_weights_matter(corpus, factor):
    counts = WeightedCounts.from_paths(corpus)
    if not counts.total_weight or not any(names and exact(weight) for names, _, weight in corpus):
        return
    scaled = WeightedCounts.from_paths([(names, outcome, exact(weight) * factor) for names, outcome, weight in corpus])
    assert scaled.effective_runs == counts.effective_runs <= len(corpus)
    assert scaled.weighted == counts.weighted
    for prior in ("mass-one", "none", Fraction(1, 3)):
        ours, theirs = (fit_counts(each, prior=prior, start="smoothed").chain for each in (counts, scaled))
        assert ours.exact_initial() == theirs.exact_initial()
        for i in range(ours.n_states):
            assert ours.exact_transitions().row(i) == theirs.exact_transitions().row(i)


@law
@given(corpora, st.sampled_from(["censored", "failure", "drop"]))
def test_equal_weights_change_nothing(corpus, policy):
    counts = WeightedCounts.from_paths([(names, outcome, "2/7") for names, outcome, _ in corpus])
    assert counts.weighted == counts.counts
    assert counts.effective_runs == len(corpus)
    if any(names for names, _, _ in corpus):
        ours, theirs = (fit_counts(each, policy=policy).to_dict()["chain"] for each in (counts, counts.counts))
        assert ours == theirs


@law
@given(small_corpora, small_corpora, small_corpora)
def test_a_commutative_monoid(first, second, third):
    a, b, c = map(WeightedCounts.from_paths, (first, second, third))
    together = WeightedCounts.from_paths([*first, *second])
    assert (a + b).counts == (b + a).counts == together.counts
    for sum_ in (a + b, b + a):
        assert (sum_.total_weight, sum_.sum_of_squares) == (together.total_weight, together.sum_of_squares)
    left, right = (a + b) + c, a + (b + c)
    assert (left.total_weight, left.effective_runs) == (right.total_weight, right.effective_runs)
    if any(names and exact(weight) for names, _, weight in [*first, *second]):
        assert fit_counts(a + b).to_dict()["chain"] == fit_counts(together).to_dict()["chain"]
    assert (a + WeightedCounts.empty()).effective_runs == a.effective_runs


def test_a_prior_weighs_against_the_effective_number_of_runs():
    """Weights 1, 1 and 3 are worth 25/11 runs: the success of weight 3 is 3/5 of them."""
    fit = fit_counts(WeightedCounts.from_paths([(["a"], "success", 3), (["a"], "failure", 1), (["a"], "failure", 1)]))
    runs = Fraction(25, 11)
    row = fit.chain.exact_transitions().row(0)
    assert row[1] == (runs * Fraction(3, 5) + Fraction(1, 3)) / (runs + 1)
    assert row[0] == Fraction(1, 3) / (runs + 1)
    assert fit.row_counts().unit == runs / 5
    assert fit.counts.n_runs == 3
    assert fit.counts.pass_rate() == Fraction(1, 3)
    assert "runs have weights: 3 count as 2.273 of equal weight, and rates and rows are weighted means" in fit.notes


def test_traces_with_weights():
    def trace(i, outcome, weight, *names):
        steps = tuple(Step(name=name) for name in names)
        return Trace(
            trace_id=str(i), outcome=Outcome(outcome), steps=steps, attributes={"w": weight, "suite": names[0]}
        )

    traces = [trace(1, "success", 0.1, "a", "b"), trace(2, "failure", "0.3", "b"), trace(3, "censored", 1, "a", "c")]
    fit = fit_chain(iter(traces), weight="w")
    paths = [([step.name for step in t.steps], t.outcome, t.attributes["w"]) for t in traces]
    expected = fit_counts(WeightedCounts.from_paths(paths))
    assert fit.weighted == expected.weighted
    for i in range(fit.chain.n_states):
        assert fit.chain.exact_transitions().row(i) == expected.chain.exact_transitions().row(i)
    by_stratum = {"a": Fraction(1, 2), "b": 2}
    stratified = fit_chain(traces, weight=lambda trace: by_stratum[trace.attributes["suite"]])
    assert stratified.weighted.total_weight == 3
    assert stratified.abstraction == fit_chain(traces).abstraction
    with pytest.raises(FitError, match="run '1' has no attribute 'v'"):
        fit_chain(traces, weight="v")
    with pytest.raises(FitError, match="run '1': the weight 'a' is no number"):
        fit_chain(traces, weight="suite")


def test_states_of_runs_without_weight_are_not_in_the_chain():
    fit = fit_counts(WeightedCounts.from_paths([(["a"], "success", 1), (["a", "z"], "failure", 0)]))
    assert fit.chain.states == ("a", "success", "failure")
    assert any("not in the chain: 'z'" in note for note in fit.notes)


@pytest.mark.parametrize("weight", [-1, "-1", "x", float("nan"), float("inf"), True, None, "1/0", [1]])
def test_weights_that_are_none(weight):
    with pytest.raises(FitError, match=r"run 1: the weight .* is no number of zero or more"):
        WeightedCounts.from_paths([(["a"], "success", 1), (["a"], "success", weight)])


@pytest.mark.parametrize("weight", [1e300, "1e300", "1e999", 10**400, "9" * 50])
def test_weights_that_are_too_large_are_called_so(weight):
    with pytest.raises(FitError, match=r"run 0: the weight .*(too large|more than 40 digits)"):
        WeightedCounts.from_paths([(["a"], "success", weight)])


def test_weights_beyond_64_bits():
    huge = WeightedCounts.from_paths([(["a"], "success", 10**39), (["a"], "failure", 2 * 10**39)])
    assert huge.weighted.n_runs == 3
    with pytest.raises(FitError, match="more than 40 digits"):
        WeightedCounts.from_paths([(["a"], "success", 10**40)])
    with pytest.raises(FitError, match="round the weights"):
        WeightedCounts.from_paths([(["a"], "success", 1), (["a"], "success", Fraction(1, 2**61))])
    fine = WeightedCounts.from_paths([(["a"], "success", Fraction(1, 2**55))])
    coarse = WeightedCounts.from_paths([(["a"], "success", 2**10)])
    with pytest.raises(FitError, match="no common unit"):
        fine + coarse


def test_documents_that_do_not_hold_together_are_refused():
    fit = fit_counts(WeightedCounts.from_paths([(["a"], "success", 1), (["a", "b"], "failure", 2)]))
    document = json.loads(json.dumps(fit.to_dict()))

    def refused(match, **changes):
        with pytest.raises(ModelError, match=match):
            ChainFit.from_dict(document | {"weighted": document["weighted"] | changes}, "f.json")

    refused("field weighted: .*no 2 weights have the sum", sum_of_squares="1/1")
    refused("field weighted: .*no 2 weights have the sum", sum_of_squares="100/1")
    refused("field weighted: .*is no fraction", unit_weight="x")
    refused("field weighted: .*no 2 weights", unit_weight="0/1")
    refused("field weighted: .*unknown field", more=1)
    refused("over different states", counts=TransitionCounts.from_paths([(["a"], "success")]).to_dict())
    swapped = TransitionCounts.from_paths([(["a"], "failure"), *[(["a", "b"], "success")] * 2])
    refused("has a weight but no run", counts=swapped.to_dict())
