from __future__ import annotations

import numpy as np
import pytest

from tracebridge.chain import fit_counts
from tracebridge.closedform import long_run_outcomes, reliability_curve
from tracebridge.inference import SCENARIOS, smoothed_chain
from tracebridge.inference.path_tables import PathTables
from tracebridge.inference.smoothed_chain import SmoothedChain, censoring_hazard

NAMES = ("N2", "N3", "F4", "A4")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prior", ["mass-one", "laplace"])
def test_it_is_the_fitted_chain_with_the_same_prior(name, prior):
    fit, counts = SCENARIOS[name].fitted(60, seed=1)
    chain = fit_counts(fit.counts, prior=prior).chain
    smoothed = SmoothedChain(counts.tables, mass=1.0 if prior == "mass-one" else len(counts.states) + 2)
    curves = smoothed.end_curves(30)[0]
    for k, outcome in enumerate(("success", "failure")):
        np.testing.assert_allclose(curves[k], reliability_curve(chain, 30, target=outcome), atol=1e-14)
    expected = long_run_outcomes(chain)
    np.testing.assert_allclose(smoothed.long_run(), [expected["success"], expected["failure"]], atol=1e-12)


def test_corpora_side_by_side_are_stepped_each_by_its_own_chain():
    one, two = (SCENARIOS["F1"].counts(40, seed=seed).tables for seed in (1, 2))
    parts = {}
    for name in ("previous", "clock", "dwell"):
        first, second = getattr(one, name), getattr(two, name)
        keys = np.concatenate([first.keys, first.n_cells + second.keys])
        counts = np.concatenate([first.counts, second.counts])
        parts[name] = type(first)(
            n_corpora=2, n_contexts=first.n_contexts, n_states=first.n_states, keys=keys, counts=counts
        )
    width = min(one.ends.shape[2], two.ends.shape[2])
    both = PathTables(
        **parts,
        starts=np.concatenate([one.starts, two.starts]),
        ends=np.concatenate([one.ends[:, :, :width], two.ends[:, :, :width]]),
    )
    curves = SmoothedChain(both).end_curves(20)
    np.testing.assert_array_equal(curves[0], SmoothedChain(one).end_curves(20)[0])
    np.testing.assert_array_equal(curves[1], SmoothedChain(two).end_curves(20)[0])


def test_draws_have_the_frequencies_of_the_chain():
    fit, counts = SCENARIOS["F4"].fitted(30, seed=3)  # few runs: the prior matters
    matrix = fit.chain.transitions.toarray()
    sampler = SmoothedChain(counts.tables).sampler()
    rng = np.random.default_rng(0)
    m, draws = len(counts.states), 40_000
    for state in range(m):
        after = sampler.following(np.full(draws, state), rng)
        p = matrix[state]
        z = (np.bincount(after, minlength=m + 2) - draws * p) / np.sqrt(draws * p * (1 - p))
        assert np.abs(z).max() < 4.5  # 168 cells: a false alarm in a thousand
    starts = np.bincount(sampler.starts(draws, rng), minlength=m + 2) / draws
    np.testing.assert_allclose(starts, fit.chain.initial, atol=4.5 / np.sqrt(draws) / 2)


def test_a_run_that_was_cut_is_known_to_have_gone_on():
    # lengths: successes 1, 2, 3; cut at 2, 2; one cut before its first step, which tells nothing
    codes = np.zeros(10, dtype=np.int64)
    offsets = np.array([0, 1, 3, 6, 8, 10, 10])
    tables = PathTables.of_paths(codes, offsets, np.array([0, 0, 0, 2, 2, 2]), 1)
    # after step 2, three runs go on: the one of length 3 and the two that are cut there
    assert censoring_hazard(tables).tolist() == [0.0, 0.0, 2 / 3, 0.0]


def test_a_step_cap_cuts_every_run_that_reaches_it():
    codes = np.zeros(7, dtype=np.int64)
    tables = PathTables.of_paths(codes, np.array([0, 1, 4, 7]), np.array([0, 2, 2]), 1)
    assert censoring_hazard(tables).tolist() == [0.0, 0.0, 0.0, 1.0]


def test_long_curves_by_blocks_are_those_step_by_step(monkeypatch):
    counted = SCENARIOS["F1"].counts(40, seed=1).tables
    for longest in (1, 2, 7, 64, 333):
        blocks = SmoothedChain(counted)._end_curves_by_blocks(longest)
        monkeypatch.setattr(smoothed_chain, "_LONG_CURVE", 10**9)
        np.testing.assert_allclose(blocks, SmoothedChain(counted).end_curves(longest), rtol=0, atol=1e-14)
        monkeypatch.undo()
    expected = SmoothedChain(counted).long_run()
    np.testing.assert_allclose(SmoothedChain(counted).end_curves(10_000)[0, :, -1], expected, atol=1e-12)
