import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.chain.counts import TransitionCounts
from tracebridge.errors import ModelError, UsageError
from tracebridge.states.construction import abstract_features
from tracebridge.states.features import count_features
from tracebridge.states.flow import RunFlow
from tracebridge.traces.model import Outcome, Step, Trace

law = settings(deadline=None, max_examples=60)

runs = st.tuples(st.lists(st.sampled_from(["a", "b", "ü x"]), max_size=5), st.sampled_from(list(Outcome)))
corpora = st.lists(runs, max_size=10)
small_corpora = st.lists(runs, max_size=3)


@law
@given(small_corpora, small_corpora, small_corpora)
def test_counts_are_a_commutative_monoid(first, second, third):
    a, b, c = map(TransitionCounts.from_paths, (first, second, third))
    assert a + b == b + a == TransitionCounts.from_paths([*first, *second])
    assert (a + b) + c == a + (b + c)
    assert a + TransitionCounts.empty() == a
    assert sum([a, b, c], TransitionCounts.empty()) == a + b + c


@law
@given(corpora, st.randoms(use_true_random=False))
def test_the_document_is_the_counts_and_order_does_not_matter(corpus, random):
    counts = TransitionCounts.from_paths(corpus)
    text = json.dumps(counts.to_dict())
    assert TransitionCounts.from_dict(json.loads(text)) == counts
    random.shuffle(corpus)
    assert json.dumps(TransitionCounts.from_paths(corpus).to_dict()) == text


@law
@given(corpora, st.sampled_from(["censored", "failure", "drop"]))
def test_policies_follow_their_definition(corpus, policy):
    counts = TransitionCounts.from_paths(corpus)
    rows = counts.under(policy)
    if policy == "drop":
        corpus = [run for run in corpus if run[1] != "censored"]
    if policy == "failure":
        corpus = [(names, Outcome.FAILURE if outcome == "censored" else outcome) for names, outcome in corpus]
    columns = [*counts.states, Outcome.SUCCESS, Outcome.FAILURE]
    expected = np.zeros((len(counts.states), len(columns)), dtype=int)
    starts = np.zeros(len(columns), dtype=int)
    for names, outcome in corpus:
        walk = list(names) if outcome == "censored" else [*names, outcome]
        if walk:
            starts[columns.index(walk[0])] += 1
        for source, target in pairwise(walk):
            expected[columns.index(source), columns.index(target)] += 1
    np.testing.assert_array_equal(rows.counts.toarray(), expected)
    np.testing.assert_array_equal(rows.starts, starts)
    assert rows.visits.tolist() == [sum(names.count(state) for names, _ in corpus) for state in counts.states]


def test_rates_lengths_and_totals():
    counts = TransitionCounts.from_paths(
        [(["a", "b"], "success"), ([], "failure"), (["a"], "failure"), (["a"] * 4, "censored")]
    )
    assert counts.runs_by_outcome() == {"success": 1, "failure": 2, "censored": 1}
    assert (counts.n_runs, counts.n_steps, counts.visits.tolist()) == (4, 7, [6, 1])
    assert counts.pass_rate() == counts.pass_rate("drop") == Fraction(1, 3)
    assert counts.pass_rate("failure") == Fraction(1, 4)
    assert counts.mean_length() == counts.mean_length("drop") == 1
    assert counts.mean_length("failure") == Fraction(7, 4)
    assert TransitionCounts.empty().pass_rate() is None
    assert TransitionCounts.empty().mean_length() is None
    assert TransitionCounts.from_paths([(["a"], "censored")]).pass_rate("drop") is None


def test_an_unknown_policy_is_refused():
    for call in (TransitionCounts.empty().under, TransitionCounts.empty().pass_rate):
        with pytest.raises(UsageError, match="'guess' is no censoring policy"):
            call("guess")


def test_states_are_put_in_order():
    flow = RunFlow.from_paths(np.array([0, 1]), np.array([0, 2]), 2)
    none = RunFlow.none(2)
    given_order = TransitionCounts(states=("z", "a"), success=flow, failure=none, censored=none)
    assert given_order == TransitionCounts.from_paths([(["z", "a"], "success")])


@pytest.mark.parametrize("states", [("a", "a"), ("", "a"), ("a",)])
def test_names_that_do_not_fit_are_refused(states):
    none = RunFlow.none(2)
    with pytest.raises(ModelError):
        TransitionCounts(states=states, success=none, failure=none, censored=none)


def test_features_become_states():
    steps = (Step(name="x", kind="tool", error=True), Step(name="x", kind="tool"), Step(name="y", kind="tool"))
    traces = [Trace(trace_id="1", outcome=Outcome.SUCCESS, steps=steps), Trace(trace_id="2", outcome=Outcome.CENSORED)]
    features = count_features(traces)
    counts = TransitionCounts.from_features(features, abstract_features(features))
    assert counts == TransitionCounts.from_paths([(["x.error", "x.retry", "y"], "success"), ([], "censored")])
    folded = TransitionCounts.from_features(features, abstract_features(features, top=0))
    assert folded == TransitionCounts.from_paths([(["other"] * 3, "success"), ([], "censored")])


def good():
    return TransitionCounts.from_paths([(["a", "b"], "success"), (["a"], "censored")]).to_dict()


def flow(**changes):
    return {"transitions": {}, "starts": {}, "ends": {}, "empty": 0} | changes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "markov-chain"}, "field kind: this is 'markov-chain'"),
        ({"schema_version": 2}, "field schema_version: version 2"),
        ({"schema_version": True}, "field schema_version: version True"),
        ({"states": ["a", "a"]}, "field states: state names must be unique"),
        ({"states": ["a", ""]}, "field states: state names must be unique"),
        ({"states": 7}, "field states: Expected `array`, got `int`"),
        ({"success": flow(starts={"c": 1})}, "field success: there is no state 'c'"),
        ({"success": flow(starts={"a": 1})}, "field success: state 'a': entries minus departures is 1"),
        ({"success": flow(starts={"a": -1}, ends={"a": -1})}, "the count -1 is not in"),
        ({"success": flow(starts={"a": 2**70}, ends={"a": 2**70})}, "the count 1180591620717411303424 is not in"),
        ({"success": flow(starts={"a": 2**59}, ends={"a": 2**59})}, "too large"),
        ({"success": flow(starts={"a": 1.5})}, r"field success.starts\[...\]: Expected `int`, got `float`"),
        ({"failure": None}, "field failure: Expected `object`, got `null`"),
        ({"more": 1}, "unknown field `more`"),
    ],
)
def test_documents_that_do_not_hold_together_are_refused(changes, message):
    with pytest.raises(ModelError, match=message) as caught:
        TransitionCounts.from_dict(good() | changes, "f.json")
    assert str(caught.value).startswith("f.json")


@pytest.mark.parametrize("data", [None, [], "x", {}])
def test_anything_else_is_refused(data):
    with pytest.raises(ModelError):
        TransitionCounts.from_dict(data)
