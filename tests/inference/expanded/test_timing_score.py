"""Scores of the times of ends, against the ends of a chain that can be worked out by hand."""

from __future__ import annotations

from math import log

import numpy as np

from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.inference.expanded.timing_score import timing_scores
from tracebridge.states.model_form import ModelForm
from tracebridge.states.run_paths import RunPaths


def test_a_coin_that_is_thrown_until_a_run_ends() -> None:
    rows = np.array([0.5, 0.3, 0.2]).reshape(1, 1, 1, 3)
    model = ExpandedModel(
        form=ModelForm(), states=("a",), start=np.array([[[0.8, 0.15, 0.05]]]), rows=rows, advance=np.ones((1, 1, 1))
    )
    runs = [("a", "success"), ("aaa", "failure"), ("aa", "censored"), ("", "failure"), ("", "censored")]
    paths = RunPaths.of_names([(list(path), outcome) for path, outcome in runs])
    expected = [log(0.8 * 0.3), log(0.8 * 0.25 * 0.2), log(0.8 * 0.25), log(0.05), 0.0]
    assert np.allclose(timing_scores(model, paths), expected, rtol=1e-12)


def test_what_is_beyond_doubles_has_a_score() -> None:
    rows = np.array([1e-9, 0.5, 0.5 - 1e-9]).reshape(1, 1, 1, 3)
    model = ExpandedModel(
        form=ModelForm(), states=("a",), start=np.array([[[1.0, 0.0, 0.0]]]), rows=rows, advance=np.ones((1, 1, 1))
    )
    paths = RunPaths.of_names([(["a"] * 40, "success")])
    assert np.isfinite(timing_scores(model, paths)).all()
