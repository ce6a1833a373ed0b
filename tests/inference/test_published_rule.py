from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp

from tracebridge.chain import fit_chain, fit_counts
from tracebridge.closedform import long_run_reliability, reliability_curve
from tracebridge.inference import SCENARIOS, certify, paper_profile
from tracebridge.inference.counting import path_counts
from tracebridge.inference.path_tables import PathTables
from tracebridge.traces import Step, Trace


def two_orders_by_hand(codes, offsets, outcomes, m):
    """Log-likelihoods of both orders over events after the first of each run."""
    first, second = {}, {}
    for run, (a, b) in enumerate(pairwise(offsets)):
        path = [*codes[a:b].tolist(), m + int(outcomes[run])]
        for t in range(1, len(path) - 1):
            first.setdefault(path[t], []).append(path[t + 1])
            second.setdefault((path[t - 1], path[t]), []).append(path[t + 1])

    def likelihood(groups):
        total = 0.0
        for group in groups.values():
            _, counts = np.unique(group, return_counts=True)
            total += float((counts * np.log(counts / counts.sum())).sum())
        return total

    supports = {state: len(set(group)) for state, group in first.items()}
    df = sum(supports[state] - 1 for _, state in second) - sum(supports[state] - 1 for state in first)
    return likelihood(first), likelihood(second), df


@pytest.mark.parametrize("name", ["N1", "N2", "A2"])
def test_the_orders_are_compared_on_the_same_events(name):
    scenario = SCENARIOS[name]
    codes, offsets, outcomes = scenario.draw(150, np.random.default_rng(0))
    found = paper_profile(PathTables.of_paths(codes, offsets, outcomes, scenario.n_states))
    first, second, df = two_orders_by_hand(codes, offsets, outcomes, scenario.n_states)
    m = scenario.n_states
    assert found.g2 == pytest.approx(2 * (second - first), rel=1e-9)
    assert found.df_full == (m * m - m) * (m + 1)
    assert found.df_support == df
    assert found.delta_aic == pytest.approx(-2 * (second - first) + 2 * found.df_full)
    assert found.chi2_p == pytest.approx(float(chi2.sf(found.g2, df)), abs=1e-12)
    assert found.largest_g2 == pytest.approx(-2 * first, rel=1e-9)
    assert found.n_events == len(codes) - 150


@pytest.mark.parametrize("name", ["N1", "A1"])
def test_times_to_success_are_compared_with_the_laplace_chain(name):
    fit, counts = SCENARIOS[name].fitted(200, seed=0)
    found = paper_profile(counts.tables)
    laplace = fit_counts(fit.counts, profile="paper").chain
    times = np.repeat(np.arange(counts.tables.ends.shape[2]), counts.tables.ends[0, 0])
    longest = int(times.max())
    curve = np.asarray(reliability_curve(laplace, 400)) / float(long_run_reliability(laplace))
    empirical = np.searchsorted(np.sort(times), np.arange(401), side="right") / len(times)
    assert found.ks_distance == pytest.approx(np.abs(empirical - curve)[: longest + 1].max(), abs=1e-9)
    # A sample of 8,000 times at the quantiles of the chain has its distribution function to 1/8000.
    simulated = np.searchsorted(curve, (np.arange(8_000) + 0.5) / 8_000)
    reference = ks_2samp(times, simulated, method="asymp")
    assert found.ks_distance == pytest.approx(reference.statistic, abs=2e-4)
    assert found.ks_p == pytest.approx(reference.pvalue, rel=0.05)
    assert found.ks_resolution == pytest.approx(1.36 / math.sqrt(len(times)), rel=0.02)
    seen = np.cumsum(np.bincount(times, minlength=51)[:51]) / 200
    assert found.gap == pytest.approx(np.abs(seen - np.asarray(reliability_curve(laplace, 50))).max(), abs=1e-12)


def test_the_rule_accepts_a_process_that_is_all_memory_and_the_certificate_does_not():
    """With 10 states, 500 runs and 2 steps each the order comparison cannot reject: the published sizes."""
    m, rng = 10, np.random.default_rng(0)
    paths, outcomes = [], []
    for _ in range(500):
        path = [int(rng.integers(m))]
        while rng.random() > 0.5:
            path.append((path[-1] + path[-2] + 1) % m if len(path) > 1 else int(rng.integers(m)))
        paths.append(path)
        outcomes.append(int(rng.random() < 0.5))
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    tables = PathTables.of_paths(np.concatenate(paths), offsets, np.array(outcomes), m)
    found = paper_profile(tables)
    assert found.aic_is_vacuous
    assert found.delta_aic > 0
    assert found.chi2_p < 1e-6


def test_it_is_blind_to_what_the_certificate_sees():
    fit, counts = SCENARIOS["A1b"].fitted(200, seed=0)
    certificate = certify(fit, counts, replicates=99)
    assert certificate.paper.ks_p > 0.05
    assert certificate["step time"].p == 0.01


def test_without_a_success_there_is_no_verdict():
    tables = PathTables.of_paths(np.array([0, 0]), np.array([0, 1, 2]), np.array([1, 1]), 1)
    found = paper_profile(tables)
    assert (found.accepted, found.ks_p, found.ks_distance, found.ks_resolution) == (None, None, None, None)
    assert (found.df_full, found.df_support, found.chi2_p) == (0, 0, None)


def test_one_success_leaves_the_test_next_to_no_power():
    """Of one draw the distance is at least d >= 1/2 with probability 2 (1 - d): rejected from .975 on."""
    fit, counts = fitted_to_one_success()
    assert paper_profile(counts.tables).ks_resolution == pytest.approx(0.975)
    notes = certify(fit, counts, replicates=19).notes
    assert any(
        "sees 1 run, and no distance below 0.97 of at most 1, which is next to no power" in note for note in notes
    )


def fitted_to_one_success():
    ends = ["success", "failure", "failure"]
    traces = [Trace(trace_id=f"{i}", outcome=end, steps=(Step(name="a"),) * 2) for i, end in enumerate(ends)]
    fit = fit_chain(traces)
    return fit, path_counts(fit, traces)
