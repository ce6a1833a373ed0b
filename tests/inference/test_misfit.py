from __future__ import annotations

import numpy as np
import pytest

from tracebridge.chain.survival import LengthCounts
from tracebridge.chain.survival import aalen_johansen as exact_aalen_johansen
from tracebridge.closedform import reliability_curve
from tracebridge.inference import SCENARIOS
from tracebridge.inference.misfit import aalen_johansen, context_tables, misfit
from tracebridge.inference.path_tables import PathTables


def of_lengths(lengths, outcomes) -> PathTables:
    codes = np.zeros(sum(lengths), dtype=np.int64)
    return PathTables.of_paths(codes, np.concatenate([[0], np.cumsum(lengths)]), np.array(outcomes), 1)


def test_without_cut_runs_the_curves_are_frequencies():
    curves = aalen_johansen(of_lengths([0, 1, 2, 2, 4], [1, 0, 0, 1, 0]))[0]
    np.testing.assert_allclose(curves[0], [0, 0.2, 0.4, 0.4, 0.6])
    np.testing.assert_allclose(curves[1], [0.2, 0.2, 0.4, 0.4, 0.4])


def test_a_cut_run_is_at_risk_at_its_last_step():
    # At risk 4, 3, 2 at steps 1, 2, 3. The run cut at 2 goes on then: hazards 1/4 success, 1/3 failure, 1/1 success.
    curves = aalen_johansen(of_lengths([1, 2, 2, 3], [0, 1, 2, 0]))[0]
    np.testing.assert_allclose(curves[0], [0, 1 / 4, 1 / 4, 1 / 4 + 3 / 4 * 2 / 3 * 1])
    np.testing.assert_allclose(curves[1], [0, 0, 3 / 4 * 1 / 3, 3 / 4 * 1 / 3])


def test_a_run_cut_before_its_first_step_tells_nothing():
    with_it = aalen_johansen(of_lengths([0, 1, 3], [2, 0, 1]))
    np.testing.assert_allclose(with_it, aalen_johansen(of_lengths([1, 3], [0, 1])))


def test_it_is_the_exact_estimator_of_the_chain_package():
    codes, offsets, outcomes = SCENARIOS["N3"].draw(300, np.random.default_rng(0))
    counts = LengthCounts.from_lengths(np.diff(offsets), outcomes)
    assert counts.runs_by_outcome()["censored"] > 5
    steps = np.arange(int(np.diff(offsets).max()) + 1)
    expected = exact_aalen_johansen(counts, exact=True)
    found = aalen_johansen(PathTables.of_paths(codes, offsets, outcomes, 5))[0]
    for curve, ending in zip(found, ("success", "failure"), strict=True):
        np.testing.assert_allclose(curve, expected.at(steps, ending).astype(float), atol=1e-13)


def test_beyond_a_step_cap_nothing_is_claimed():
    curves = aalen_johansen(of_lengths([1, 2, 2, 2], [0, 2, 2, 2]))[0]
    np.testing.assert_allclose(curves, [[0, 0.25, 0.25], [0, 0, 0]])


def test_the_gap_is_the_largest_between_the_observed_and_the_fitted_curves():
    fit, counts = SCENARIOS["A1"].fitted(120, seed=4)
    found = misfit(counts.tables).gap
    longest = int(counts.tables.longest[0])
    completed = counts.tables.ends[0, :2]
    observed = np.cumsum(completed, axis=1) / completed.sum()
    fitted = np.stack([reliability_curve(fit.chain, longest, target=end) for end in ("success", "failure")])
    gaps = np.abs(observed - fitted)
    assert found.size[0] == pytest.approx(gaps.max(), abs=1e-12)
    assert np.unravel_index(gaps.argmax(), gaps.shape) == (found.outcome[0], found.step[0])


def test_first_steps_have_no_previous_state():
    counts = SCENARIOS["F1"].counts(30, seed=0)
    tables = context_tables(counts.tables)
    assert list(tables) == ["previous state", "step time", "dwell"]
    assert int(tables["previous state"].totals[0]) == counts.n_events - 30
    assert int(tables["step time"].totals[0]) == counts.n_events


def test_a_held_out_corpus_is_judged_by_the_other_one():
    first, second = (SCENARIOS["F1"].counts(60, seed=seed).tables for seed in (1, 2))
    found = misfit(second, fitted_to=first)
    assert found.names == ("first passage", "previous state", "step time", "dwell", "between halves")
    same = misfit(first, fitted_to=first)
    assert same.gap.size == misfit(first).gap.size
    assert same.deviances["between halves"].g2.sum() == pytest.approx(0, abs=1e-9)
    halves = context_tables(second, fitted_to=first)["between halves"]
    assert halves.totals[0] == first.clock.totals[0] + second.clock.totals[0]
