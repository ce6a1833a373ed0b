"""Drawn runs follow the law of their model, and each corpus has its own stream."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.chain.expanded.random_models import FORMS, random_model
from tests.inference.expanded.run_by_run import run_probabilities, split

from tracebridge.inference.expanded import simulation
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.states.run_paths import CENSORED

SEEDS = np.random.SeedSequence(11).spawn(4)


@pytest.mark.parametrize("name", FORMS)
def test_runs_are_as_frequent_as_the_model_says(name):
    model, n = random_model(name, m=2, seed=3), 20_000
    drawn, corpora = ModelSimulation(model).corpora(n, SEEDS[:1])
    assert (drawn.n_runs, drawn.states, set(corpora.tolist())) == (n, model.states, {0})
    seen = Counter(split(drawn))
    probabilities = run_probabilities(model, 3)
    checked = 0
    for run, p in probabilities.items():
        if n * p >= 10:  # close to normal: one of 30 cells is beyond 4.5 deviations with a probability of 2e-4
            assert abs(seen[run] - n * p) < 4.5 * np.sqrt(n * p * (1 - p)), run
            checked += 1
    assert checked > 10


def test_groups_have_the_shares_that_the_start_says():
    model = random_model("group:model", n_groups=3, seed=1)
    drawn, _ = ModelSimulation(model).corpora(20_000, SEEDS[:1])
    shares = model.start.sum(axis=(1, 2))
    deviation = np.sqrt(shares * (1 - shares) / 20_000)
    assert drawn.group_names == model.groups
    assert (np.abs(np.bincount(drawn.groups, minlength=3) / 20_000 - shares) < 4 * deviation).all()


@pytest.mark.parametrize("name", ["order2+clock:0,2", "phases:2+classes:2"])
def test_a_corpus_does_not_depend_on_those_beside_it(name):
    model = random_model(name, seed=2)
    draw = ModelSimulation(model, np.array([0, 0, 0.3, 1.0]))
    together, corpora = draw.corpora(30, SEEDS)
    for k, seed in enumerate(SEEDS):
        alone, _ = draw.corpora(30, [seed])
        assert split(together.take(np.flatnonzero(corpora == k))) == split(alone)
    assert split(draw.corpora(30, SEEDS[:1])[0]) != split(draw.corpora(30, SEEDS[1:2])[0])


def test_runs_of_a_block_share_their_class():
    model = random_model("classes:2", m=2, seed=2)
    rows = np.array(model.rows)
    rows[..., -2:] = 0.2, 0.2
    rows /= rows.sum(axis=-1, keepdims=True)
    start = np.array(model.start)
    start[..., -2:] = 0
    model = replace(model, rows=rows, start=start / start.sum(), class_tilts=np.array([-80.0, 80.0]))
    blocks = np.random.default_rng(0).integers(1_000, size=3_000)
    drawn, corpora = ModelSimulation(model).corpora(3_000, SEEDS[:2], blocks)
    for k in range(2):
        outcomes = drawn.outcomes[corpora == k]
        solved = np.bincount(blocks, outcomes == 0) / np.maximum(np.bincount(blocks), 1)
        solved = solved[np.bincount(blocks) > 0]
        assert set(solved.tolist()) == {0.0, 1.0}
        weight = model.class_weights[1]
        assert abs(solved.mean() - weight) < 4 * np.sqrt(weight * (1 - weight) / len(solved))


def test_runs_that_go_on_are_cut_as_the_hazard_says():
    model = random_model("first-order", seed=4)
    drawn, _ = ModelSimulation(model, np.array([0, 0.5, 0.0, 1.0])).corpora(20_000, SEEDS[:1])
    lengths = drawn.lengths
    assert lengths.max() == 3
    assert not ((lengths == 2) & (drawn.outcomes == CENSORED)).any()
    going_on = int((lengths > 1).sum())
    cut = int(((lengths == 1) & (drawn.outcomes == CENSORED)).sum())
    assert abs(cut - (cut + going_on) / 2) < 4 * np.sqrt((cut + going_on) / 4)


def test_runs_far_longer_than_any_real_one_are_stopped(monkeypatch):
    monkeypatch.setattr(simulation, "_LONGEST_STEPS", 40)
    model = random_model("first-order", m=2, seed=0)
    endless = np.zeros_like(model.rows)
    endless[..., 0] = 1.0
    model = replace(model, rows=endless)
    draw = ModelSimulation(model)
    drawn, _ = draw.corpora(50, SEEDS[:1])
    begun = drawn.lengths > 0
    assert set(drawn.lengths[begun].tolist()) == {40}
    assert (drawn.outcomes[begun] == CENSORED).all()
    assert draw.stopped(drawn) == int(begun.sum()) > 10


def test_what_has_no_probability_is_not_drawn():
    model = random_model("order2", seed=6)
    rows = np.array(model.rows)
    rows[..., [0, -1]] = 0.0
    rows /= rows.sum(axis=-1, keepdims=True)
    drawn, _ = ModelSimulation(replace(model, rows=rows)).corpora(2_000, SEEDS[:1])
    assert not (drawn.following == 0).any()
    assert not (drawn.outcomes[drawn.lengths > 0] == 1).any()
