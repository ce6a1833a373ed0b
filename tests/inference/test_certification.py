from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.stats import binom, ncx2
from tests.inference.runs import as_traces

from tracebridge import fit_chain, read_traces
from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.inference import SCENARIOS, PathCounts, certify, path_counts, split_counts
from tracebridge.inference.resolution import detectable_gap, detectable_nats
from tracebridge.inference.scenarios import second_order
from tracebridge.traces import Outcome

NULLS = [name for name, scenario in SCENARIOS.items() if scenario.is_null]


# ---------------------------------------------------------------- error rates


def test_chains_that_are_right_are_rejected_at_most_at_seven_percent():
    """30 corpora of each of the eight nulls; `tracebridge study certificate --replicates 400` takes 400 of each."""
    corpora = 30
    rejected = {}
    for name in NULLS:
        results = [certify(*SCENARIOS[name].fitted(200, seed=k), replicates=59, seed=k) for k in range(corpora)]
        rejected[name] = sum(result.p <= 0.05 for result in results)
    assert len(rejected) == 8
    # Beyond these a size of 7 % would be chance in one of a thousand; one null has a standard error of 4 %.
    assert max(rejected.values()) <= binom.ppf(0.999, corpora, 0.07), rejected
    assert sum(rejected.values()) <= binom.ppf(0.999, 8 * corpora, 0.07), rejected


@pytest.mark.parametrize(("name", "floor"), [("A1", 12), ("A1b", 12), ("A2", 12), ("A2c", 12), ("A4", 12), ("A3", 6)])
def test_chains_that_are_wrong_are_rejected(name, floor):
    results = [certify(*SCENARIOS[name].fitted(200, seed=k), replicates=59, seed=k) for k in range(12)]
    assert sum(result.verdict == "reject" for result in results) >= floor


def test_few_runs_and_rare_events_do_not_inflate_the_size():
    """A plain bootstrap of G2 rejects a quarter of these corpora by the previous state."""
    results = [certify(*SCENARIOS["F2"].fitted(50, seed=k), replicates=59, seed=k) for k in range(40)]
    assert sum(result["previous state"].p <= 0.05 for result in results) <= binom.ppf(0.999, 40, 0.07)


def test_a_step_cap_is_no_reason_to_reject():
    rejected = 0
    for k in range(30):
        codes, offsets, outcomes = SCENARIOS["N1"].draw(150, np.random.default_rng(k))
        cap = 5
        lengths = np.diff(offsets)
        kept = np.arange(len(codes)) - np.repeat(offsets[:-1], lengths) < cap
        outcomes = np.where(lengths > cap, 2, outcomes)
        names = SCENARIOS["N1"].states
        capped = np.concatenate([[0], np.cumsum(np.minimum(lengths, cap))])
        paths = zip(np.split(codes[kept], capped[1:-1]), outcomes, strict=True)
        counts = TransitionCounts.from_paths(
            ([names[code] for code in path], list(Outcome)[outcome]) for path, outcome in paths
        )
        fit = fit_counts(counts)
        rejected += (
            certify(fit, PathCounts.of_paths(names, codes[kept], capped, outcomes), replicates=59, seed=k).p <= 0.05
        )
    assert rejected <= binom.ppf(0.999, 30, 0.07)


def test_a_held_out_certificate_has_its_size_and_power():
    def judged(name: str, n_runs: int, k: int):
        fit, _ = SCENARIOS[name].fitted(n_runs, seed=k)
        codes, offsets, outcomes = SCENARIOS[name].draw(n_runs, np.random.default_rng(k))  # the same runs
        half = n_runs // 2
        split = int(offsets[half])
        names = SCENARIOS[name].states
        first = PathCounts.of_paths(names, codes[:split], offsets[: half + 1], outcomes[:half])
        second = PathCounts.of_paths(names, codes[split:], offsets[half:] - split, outcomes[half:])
        return certify(fit, first, held_out=second, replicates=59, seed=k)

    results = [judged("F1", 240, k) for k in range(30)]
    assert all(result.held_out for result in results)
    assert sum(result.p <= 0.05 for result in results) <= binom.ppf(0.999, 30, 0.07)
    assert all(judged("A1", 600, k).verdict == "reject" for k in range(8))


# ---------------------------------------------------------------- what the numbers mean


@pytest.mark.parametrize("name", ["N1", "A2", "A3", "A4"])
def test_success_and_length_are_reproduced_by_any_chain_and_prove_nothing(name):
    fit, counts = SCENARIOS[name].fitted(200, seed=0)
    unsmoothed = fit_counts(fit.counts, prior="none")
    certificate = certify(unsmoothed, counts, replicates=19)
    figures = certificate.figures
    assert figures.reliability == pytest.approx(figures.pass_rate, abs=1e-12)
    assert figures.mean_time == pytest.approx(figures.mean_length, abs=1e-9)
    assert (certificate.verdict == "reject") == (not SCENARIOS[name].is_null)


def test_the_chain_stands_beside_the_runs_that_it_was_fitted_to():
    """Held out or not, and by their weights: an unsmoothed chain has their pass rate and their mean length."""
    cases = [((0, 1, 0), 0), ((0, 0), 1), ((1,), 1), ((1, 0, 0, 0), 0)] * 6
    weights = [3, 1, 2, 1] * 6
    traces = as_traces(cases, task_id=[f"t{i // 2}" for i in range(len(cases))], attributes=[{"w": w} for w in weights])
    for weight in (None, "w"):
        fit = fit_chain(traces, prior="none", weight=weight)
        for held_out in (False, True):
            figures = certify(fit, traces, held_out=held_out, replicates=19).figures
            assert figures.reliability == pytest.approx(figures.pass_rate, abs=1e-12)
            assert figures.mean_time == pytest.approx(figures.mean_length, abs=1e-9)
            assert figures.pass_rate == pytest.approx(0.5 if weight is None else 4 / 7)


def test_the_prior_of_the_fit_shows_in_its_own_gap_only():
    fit, counts = SCENARIOS["N3"].fitted(60, seed=1)
    plain, laplace = (
        certify(fit_counts(fit.counts, prior=prior), counts, replicates=19) for prior in ("mass-one", "laplace")
    )
    assert plain.statistics == laplace.statistics
    assert plain.figures.gap == pytest.approx(plain["first passage"].value, abs=1e-12)
    assert laplace.figures.gap > plain.figures.gap + 0.01
    assert laplace.figures.reliability < plain.figures.reliability - 0.04


def test_information_that_is_detectable_is_detected_that_often():
    for df in (40, 200):
        critical, n_events = 2.3, 1_000
        deviation = (2 * df) ** 0.5
        nats = detectable_nats(critical, deviation, n_events)
        power = float(ncx2.sf(df + critical * deviation, df, 2 * n_events * nats))
        assert power == pytest.approx(0.8, abs=0.01)


def test_a_detectable_gap_is_detected_that_often():
    gap = detectable_gap(0.1, 200)
    observed = np.random.default_rng(0).binomial(200, 0.5, size=20_000) / 200 - 0.5 + gap
    assert (observed > 0.1).mean() == pytest.approx(0.8, abs=0.03)
    assert detectable_gap(0.1, 0) <= 1


def test_memory_of_the_size_that_is_resolved_is_found_in_four_corpora_of_five():
    """A weight of .1 is worth the information that such corpora resolve: 80 % of them should be rejected."""
    scenario = second_order(0.1)
    results = [certify(*scenario.fitted(200, seed=k), replicates=59, seed=k) for k in range(60)]
    effects = [result["previous state"].effect for result in results]
    resolutions = [result["previous state"].resolution for result in results]
    assert np.mean(effects) == pytest.approx(np.mean(resolutions), rel=0.15)
    rejected = sum(result.p <= 0.05 for result in results)
    assert binom.ppf(0.001, 60, 0.8) <= rejected <= 60


def test_where_it_departs_is_named():
    by_time = certify(*SCENARIOS["A1"].fitted(300, seed=1), replicates=59)
    cells = [cell for cell in by_time.departures if cell.statistic == "step time"]
    assert any(
        cell.context == "4-7" and cell.following in ("success", "failure") and cell.residual > 3 for cell in cells
    )
    assert any(
        cell.context in "012-3" and cell.following in ("success", "failure") and cell.residual < -3 for cell in cells
    )
    assert by_time.curve.observed < by_time.curve.fitted  # fewer have ended early than the chain says
    assert by_time.curve.step <= 5
    for statistic in {share.statistic for share in by_time.shares}:
        total = sum(share.share for share in by_time.shares if share.statistic == statistic)
        assert 0 < total <= 1 + 1e-12
    assert not certify(*SCENARIOS["F1"].fitted(200, seed=3), replicates=59).departures


def test_covariates_are_tested_and_named():
    easy, hard = [((0, 0, 1), 0)] * 20, [((1, 0, 1, 1, 1), 1)] * 20
    traces = as_traces(easy + hard, model=["a"] * 20 + ["b"] * 20, trial=["1", "2"] * 20)
    certificate = certify(fit_chain(traces), traces, covariates=["model", "trial"], replicates=99)
    by_name = {result.covariate: result for result in certificate.covariates}
    assert by_name["model"].p_holm == 0.02
    assert by_name["trial"].p_holm > 0.05
    assert "runs differ by model (adjusted p <= 0.02)" in certificate.reasons
    assert any(cell.statistic == "model" and cell.context in "ab" for cell in certificate.departures)


# ---------------------------------------------------------------- use


def test_traces_and_their_counts_give_the_same_certificate():
    codes, offsets, outcomes = SCENARIOS["F1"].draw(60, np.random.default_rng(0))
    paths = [(tuple(path.tolist()), int(o)) for path, o in zip(np.split(codes, offsets[1:-1]), outcomes, strict=True)]
    traces = as_traces(paths, task_id=[f"t{i // 2}" for i in range(60)])
    fit = fit_chain(traces)
    by_counts = certify(fit, path_counts(fit, traces), replicates=29, seed=4)
    assert certify(fit, traces, replicates=29, seed=4) == by_counts
    assert certify(fit, traces, replicates=29, seed=5) != by_counts
    first, second = split_counts(fit, traces)
    by_halves = certify(fit, first, held_out=second, replicates=29)
    assert certify(fit, traces, held_out=True, replicates=29) == by_halves


@pytest.mark.parametrize("policy", ["censored", "failure", "drop"])
def test_the_policy_of_the_fit_is_the_policy_of_its_certificate(policy):
    traces = as_traces([((0, 1), 0), ((1, 0, 0), 1), ((0, 0), 2), ((), 2)] * 6)
    certificate = certify(fit_chain(traces, policy=policy), traces, replicates=19)
    ends = {"censored": (6, 6, 12), "failure": (6, 18, 0), "drop": (6, 6, 0)}
    assert tuple(certificate.runs.values()) == ends[policy]
    assert any("censored runs" in note for note in certificate.notes) == (policy != "censored")


def test_what_cannot_be_certified_is_refused():
    fit, counts = SCENARIOS["F1"].fitted(30, seed=0)
    other, _ = SCENARIOS["F1"].fitted(30, seed=1)
    with pytest.raises(UsageError, match="not fitted to these runs"):
        certify(other, counts)
    with pytest.raises(UsageError, match="at least 19"):
        certify(fit, counts, replicates=18)
    with pytest.raises(UsageError, match="level=1"):
        certify(fit, counts, level=1.0)
    with pytest.raises(UsageError, match="without the covariate 'model'"):
        certify(fit, counts, covariates=["model"])
    with pytest.raises(UsageError, match="named twice"):
        certify(fit, counts, covariates=["model", "model"])
    with pytest.raises(UsageError, match="cannot be split"):
        certify(fit, counts, held_out=True)
    with pytest.raises(UsageError, match="as counts too"):
        certify(fit, [], held_out=counts)
    unseen = TransitionCounts.from_paths([([], Outcome.SUCCESS)])
    with pytest.raises(NothingToCheckError, match="nothing to certify"):
        certify(fit_counts(unseen), PathCounts.of_paths((), np.empty(0, int), np.zeros(2, int), np.zeros(1, int)))


def test_a_single_state_has_no_previous_state_to_depend_on():
    codes, offsets = np.zeros(90, dtype=np.int64), np.arange(0, 91, 3)
    counts = PathCounts.of_paths(("a",), codes, offsets, np.arange(30) % 2)
    paths = [(["a"] * 3, list(Outcome)[i % 2]) for i in range(30)]
    certificate = certify(fit_counts(TransitionCounts.from_paths(paths)), counts, replicates=39)
    assert certificate["previous state"].resolution is None
    assert certificate["previous state"].p == 1
    assert certificate["step time"].p == 0.025  # every run lasts three steps
    assert certificate.verdict == "reject"


def test_runs_too_few_to_show_anything_are_inconclusive():
    fit, counts = SCENARIOS["N2"].fitted(25, seed=2)
    certificate = certify(fit, counts, replicates=99)
    assert certificate.verdict == "inconclusive"
    assert any("would be missed" in reason for reason in certificate.reasons)
    assert any("published order comparison accepts any dependence" in note for note in certificate.notes)
    relaxed = dataclasses.replace(certificate.effects, gap=1.0, nats=5.0)
    assert dataclasses.replace(certificate, effects=relaxed).verdict == "accept"


# ---------------------------------------------------------------- real agents


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("path", "nats", "differs_by_task"),
    [
        ("tau_bench/gpt-4o-airline.json", {"previous state": 0.17, "step time": 0.17, "dwell": 0.07}, True),
        ("tau2_bench/gpt-4.1_airline.json", {"previous state": 0.22, "step time": 0.22, "dwell": 0.15}, False),
        ("tau2_bench/gpt-4.1_retail.json", {"previous state": 0.22, "step time": 0.22, "dwell": 0.15}, False),
    ],
)
def test_real_agents_are_no_first_order_chains(shared_data, path, nats, differs_by_task):
    """The information that contexts add was measured before on corpora of these benchmarks, over other states."""
    traces = read_traces(shared_data / "traces" / path)
    certificate = certify(fit_chain(traces), traces, covariates=["task_id"], replicates=99)
    assert certificate.verdict == "reject"
    assert certificate.p == 0.01
    for name, expected in nats.items():
        assert certificate[name].p <= 0.05
        assert 0.5 * expected < certificate[name].effect < 2 * expected
    assert (certificate.covariates[0].p == 0.01) == differs_by_task
    assert certificate.paper.aic_is_vacuous
    assert certificate.shares
    assert certificate.departures
