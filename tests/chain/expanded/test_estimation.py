"""Estimates of forms without hidden parts: what they agree with, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.chain.expanded.corpora import as_paths, forms, runs

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.chain.expanded.estimation import estimate, estimate_stack
from tracebridge.errors import FitError, NothingToCheckError, UsageError
from tracebridge.states.model_form import ModelForm, parse_model


@settings(max_examples=40)
@given(runs)
def test_the_first_order_form_is_the_first_order_fit(drawn):
    try:
        plain = fit_counts(TransitionCounts.from_paths(run[:2] for run in drawn)).chain
    except (FitError, NothingToCheckError):
        assume(False)
    seen = "".join(sorted({name for path, *_ in drawn for name in path}))
    model = estimate(as_paths(drawn, states=seen), ModelForm())
    m = len(seen)
    assert plain.states[:m] == model.states
    np.testing.assert_allclose(model.rows[0, 0], plain.transitions.toarray()[:m], rtol=1e-14)
    np.testing.assert_allclose(model.start[0, 0], plain.initial, rtol=1e-14)


@settings(max_examples=40)
@given(runs, forms, st.floats(0.1, 9))
def test_a_stack_holds_the_estimates_of_its_corpora(drawn, form, kappa):
    paths = as_paths(drawn)
    assume(any(path or outcome != "censored" for path, outcome, _ in drawn))
    twice = paths.take(np.tile(np.arange(paths.n_runs), 2))
    stack = estimate_stack(twice, np.repeat([0, 1], paths.n_runs), 2, form, kappa)
    alone = estimate(paths, form, kappa)
    assert len(stack) == 2
    for i in range(2):
        for name in ("start", "rows", "advance"):
            np.testing.assert_array_equal(getattr(stack.model(i), name), getattr(alone, name))
    assert alone.groups == (paths.group_names if form.group else ())


def test_the_start_is_as_observed_in_each_group():
    paths = as_paths(
        [(["b"], "success", "x"), (["a"], "censored", "y"), ([], "failure", "y"), ([], "censored", "x")], states="ab"
    )
    start = estimate(paths, ModelForm(group="model")).start
    third = 1 / 3
    np.testing.assert_allclose(start[:, 0], [[0, third, 0, 0], [third, 0, 0, third]])


def test_what_cannot_be_estimated_is_said():
    paths = as_paths([(["a"], "success", "x")])
    with pytest.raises(UsageError, match="not chosen yet"):
        estimate(paths, parse_model("clock"))
    with pytest.raises(UsageError, match="repeated trials"):
        estimate(paths, parse_model("order2+classes:2"))
    ungrouped = type(paths).of_names([(["a"], "success")])
    with pytest.raises(UsageError, match="'site'"):
        estimate(ungrouped, parse_model("group:site"))
    with pytest.raises(NothingToCheckError):
        estimate(as_paths([([], "censored", "x")]), ModelForm())
    with pytest.raises(NothingToCheckError, match="corpus 1 of 2"):
        estimate_stack(paths, np.zeros(1, dtype=np.int64), 2, ModelForm())
