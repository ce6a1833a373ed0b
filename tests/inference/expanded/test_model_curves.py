"""Curves of expanded chains against every run of them, and against the closed form of the exported chain."""

from __future__ import annotations

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model
from tests.inference.expanded.run_by_run import run_probabilities

from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform import reliability_curve
from tracebridge.inference.expanded import model_curves
from tracebridge.inference.expanded.model_curves import end_curves

ONE_CLASS = [name for name in FORMS if "classes" not in name]


def stacked(models):
    """The parameters of models of one form side by side."""
    return (np.stack([getattr(model, part) for model in models]) for part in ("start", "rows", "advance"))


@pytest.mark.parametrize("name", ONE_CLASS)
def test_curves_add_up_all_runs(name):
    longest = 4
    models = [random_model(name, m=2, seed=seed) for seed in range(3)]
    curves = end_curves(models[0].space, *stacked(models), longest)
    for model, found in zip(models, curves, strict=True):
        expected = np.zeros((2, longest + 1))
        for (path, end), p in run_probabilities(model, longest).items():
            expected[end, len(path) :] += p
        np.testing.assert_allclose(found, expected, atol=1e-14)


@pytest.mark.parametrize(
    "name",
    [
        "order2+dwell3+clock:0,1,4,9",
        "phases:3+order2",
        "group:model+phases:2:full+dwell2",
        "group:model+phases:3+clock:0,1,4,9",
    ],
)
def test_curves_are_those_of_the_expanded_chain(name):
    model = random_model(name, m=4, seed=5)
    chain = ExpandedStructure.of_model(model).chain(model)
    found = end_curves(model.space, *stacked([model]), 30)[0]
    for curve, ending in zip(found, ("success", "failure"), strict=True):
        np.testing.assert_allclose(curve, reliability_curve(chain, 30, target=ending), atol=1e-12)


@pytest.mark.parametrize("name", ["order2+phases:2", "group:model+clock:0,2+phases:2:full"])
def test_slices_do_not_matter(name, monkeypatch):
    """With small ones there are no products of matrices either."""
    models = [random_model(name, seed=seed) for seed in range(5)]
    whole = end_curves(models[0].space, *stacked(models), 12)
    monkeypatch.setattr(model_curves, "_SLICE", 1)
    np.testing.assert_allclose(end_curves(models[0].space, *stacked(models), 12), whole, atol=1e-15)
