import json
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from tracebridge.chain import (
    TransitionCounts,
    WeightedCounts,
    decisive_edges,
    fit_counts,
    unseen,
    unseen_edges,
    verdict_support,
    zero_count_bound,
)
from tracebridge.errors import ModelError, UnsupportedError, UsageError
from tracebridge.traces.model import Outcome

law = settings(deadline=None, max_examples=40)

RUNS = [(["plan", "act", "done"], "success")] * 12 + [(["plan", "done"], "success")] * 8 + [(["delete"], "failure")] * 3


def pairs_of(edges):
    return [(edge.source, edge.target) for edge in edges]


def test_the_bound_is_that_of_clopper_and_pearson_at_zero():
    for n, printed in ((20, 0.139), (50, 0.058), (200, 0.015)):
        assert zero_count_bound(n) == pytest.approx(printed, abs=5e-4)
        assert zero_count_bound(n) == pytest.approx(beta.ppf(0.95, 1, n))
        assert zero_count_bound(n, level=0.99) == pytest.approx(beta.ppf(0.99, 1, n))
    assert zero_count_bound(0) == 1
    assert zero_count_bound(10**15) == pytest.approx(-np.log(0.05) / 10**15)
    for n, level in ((5, 1.0), (5, 0), (-1, 0.9), (5, float("nan"))):
        with pytest.raises(UsageError):
            zero_count_bound(n, level=level)


any_run = st.tuples(st.lists(st.sampled_from("abc"), max_size=4), st.sampled_from(list(Outcome)))


@law
@given(
    st.lists(any_run, min_size=1, max_size=8),
    st.sampled_from(["full", "observed"]),
    st.sampled_from(["none", "mass-one"]),
)
def test_unseen_edges_are_what_no_run_did(corpus, support, prior):
    if not any(names and outcome != "censored" for names, outcome in corpus):
        return
    fit = fit_counts(TransitionCounts.from_paths(corpus), support=support, prior=prior)
    seen, exits = set(), dict.fromkeys("abc", 0)
    for names, outcome in corpus:
        for pair in pairwise([*names, *([] if outcome == "censored" else [str(outcome)])]):
            seen.add(pair)
            exits[pair[0]] += 1
    states = sorted({name for names, _ in corpus for name in names})
    edges = unseen_edges(fit)
    expected = [(i, j) for i in states for j in (*states, "success", "failure") if (i, j) not in seen]
    assert pairs_of(edges) == expected
    for edge in edges:
        assert edge.exits == exits[edge.source]
        assert edge.bound == zero_count_bound(edge.exits)
        assert edge.in_chain == (prior != "none" and (support == "full" or edge.target in ("success", "failure")))
        assert edge.declared is None
    assert pairs_of(unseen_edges(fit, sources=["a"] if "a" in states else [])) == [p for p in expected if p[0] == "a"]


def test_edges_against_a_declared_graph():
    graph = {"plan": ["act", "done"], "act": ["done"], "done": [], "delete": ["done"]}
    fit = fit_counts(TransitionCounts.from_paths(RUNS), support=graph)
    edges = {(edge.source, edge.target): edge for edge in unseen_edges(fit)}
    assert (edges["plan", "delete"].declared, edges["plan", "delete"].in_chain) == (False, False)
    assert (edges["delete", "done"].declared, edges["delete", "done"].in_chain) == (True, True)
    assert (edges["delete", "success"].declared, edges["delete", "success"].in_chain) == (True, True)
    unsmoothed = fit_counts(TransitionCounts.from_paths(RUNS), support=graph, prior="none")
    (edge,) = [edge for edge in unseen_edges(unsmoothed) if (edge.source, edge.target) == ("delete", "done")]
    assert (edge.declared, edge.in_chain, edge.exits) == (True, False, 3)
    assert json.loads(json.dumps(edge.to_dict()))["bound"] == edge.bound


# ---------------------------------------------------------------- verdicts


def test_never_rests_on_the_edges_into_what_was_never_reached():
    """No run that plans was seen to delete: P<=0 [ F "delete" ] from plan."""
    counts = TransitionCounts.from_paths(RUNS)
    fit = fit_counts(counts, support="observed", start={"plan": 1})
    verdict = verdict_support(fit, "delete", "possible")
    assert not verdict.holds
    assert verdict.holds_as_observed  # three runs started with it
    assert pairs_of(verdict.edges) == [("act", "delete"), ("done", "delete"), ("plan", "delete")]
    assert [edge.exits for edge in verdict.edges] == [12, 20, 20]
    assert max(edge.bound for edge in verdict.edges) == zero_count_bound(12)
    assert verdict_support(fit_counts(counts, start={"plan": 1}), "delete", "possible").edges == ()
    assert verdict_support(fit_counts(counts, start={"plan": 1}), "delete", "possible").holds


def test_almost_sure_success_rests_on_the_edges_to_failure():
    runs = [run for run in RUNS if run[1] == "success"]
    fit = fit_counts(TransitionCounts.from_paths(runs), prior="none", support="observed")
    verdict = verdict_support(fit, "success", "almost-sure")
    assert verdict.holds
    assert verdict.holds_as_observed
    assert pairs_of(verdict.edges) == [(source, "failure") for source in ("act", "done", "plan")]
    inevitable = verdict_support(fit, "success", "inevitable")
    assert inevitable.holds
    assert ("done", "plan") in pairs_of(inevitable.edges)  # a loop, of probability zero
    assert ("done", "done") in pairs_of(inevitable.edges)
    assert ("plan", "success") not in pairs_of(inevitable.edges)
    smoothed = verdict_support(
        fit_counts(TransitionCounts.from_paths(runs), support="observed"), "success", "almost-sure"
    )
    assert (smoothed.holds, smoothed.holds_as_observed) == (False, True)  # the prior lets every state fail
    assert smoothed.edges == ()
    assert json.loads(json.dumps(verdict.to_dict()))["edges"][0] == {
        "source": "act", "target": "failure", "exits": 12.0, "bound": zero_count_bound(12), "in_chain": False,
        "declared": None,
    }  # fmt: skip


def test_until_and_masks():
    """No run was seen to be done before it acted: P<=0 [ !"act" U "done" ] rests on the edge that skips act."""
    fit = fit_counts(TransitionCounts.from_paths(RUNS[:12]), prior="none")
    before = ~fit.chain.label("act")
    verdict = verdict_support(fit, "done", "possible", through=before)
    assert not verdict.holds
    assert pairs_of(verdict.edges) == [("plan", "done")]
    assert verdict == verdict_support(fit, fit.chain.label("done"), "possible", through=before)


def test_what_was_never_left_is_not_known():
    fit = fit_counts(TransitionCounts.from_paths([(["a", "b"], "censored"), (["a"], "success")]), prior="none")
    verdict = verdict_support(fit, "failure", "possible")
    assert verdict.holds_as_observed is None
    assert pairs_of(verdict.edges) == [("a", "failure"), ("b", "failure")]
    assert verdict.edges[1].bound == 1
    assert "stuck" not in {edge.target for edge in verdict_support(fit, "b", "inevitable").edges}
    trap = verdict_support(
        fit_counts(TransitionCounts.from_paths([(["a"], "success")]), prior="none"), "success", "almost-sure"
    )
    assert trap.holds_as_observed


def test_weights_count_as_effective_runs():
    runs = [(["a"], "success", weight) for weight in (1, 1, 3)]
    fit = fit_counts(WeightedCounts.from_paths(runs), prior="none")
    (edge,) = [edge for edge in unseen_edges(fit) if edge.target == "failure"]
    assert edge.exits == float(Fraction(25, 11))
    assert edge.bound == zero_count_bound(25 / 11)


def test_questions_that_have_no_meaning_are_refused(monkeypatch):
    fit = fit_counts(TransitionCounts.from_paths(RUNS), support="observed")
    with pytest.raises(ModelError, match="unknown label"):
        verdict_support(fit, "delte", "possible")
    with pytest.raises(UsageError, match="no kind of verdict"):
        verdict_support(fit, "delete", "likely")
    with pytest.raises(UsageError, match="'success'"):
        unseen_edges(fit, sources=["success"])
    monkeypatch.setattr(unseen, "MAX_EDGES", 20)
    with pytest.raises(UnsupportedError, match="4 states have up to 24"):
        unseen_edges(fit)
    assert unseen_edges(fit, sources=["plan"])
    monkeypatch.setattr(decisive_edges, "MAX_EDGES", 2)
    with pytest.raises(UnsupportedError, match="more than can be listed"):
        verdict_support(
            fit_counts(TransitionCounts.from_paths(RUNS), support="observed", start={"plan": 1}), "delete", "possible"
        )
