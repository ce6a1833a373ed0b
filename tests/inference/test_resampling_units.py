"""What the bootstrap draws: runs and tasks one by one, or, where there are many, in random groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from tests.inference.runs import NAMES, as_traces, laid_out, runs

from tracebridge.chain import TransitionCounts, fit_chain, fit_counts
from tracebridge.errors import FitError
from tracebridge.inference import resampling_units
from tracebridge.inference.resampling_units import ResamplingUnits
from tracebridge.inference.run_counts import RunCounts
from tracebridge.inference.second_opinion import second_opinions


def counted(chosen, tasks=None) -> RunCounts:
    codes, offsets, outcomes = laid_out(chosen)
    return RunCounts.of_paths(NAMES, codes, offsets, outcomes, task_ids=tasks)


@given(st.lists(runs(), min_size=1, max_size=5), st.integers(1, 12), st.integers(1, 30), st.data())
@settings(max_examples=60, deadline=None)
def test_however_runs_come_in_parts_the_units_are_the_same_and_whole_runs_and_tasks(parts, most, merged, data):
    chosen = [run for part in parts for run in part]
    if not chosen:
        with pytest.raises(FitError, match="no run"):
            ResamplingUnits.of(map(counted, parts))
        return
    names = [data.draw(st.sampled_from("xyzuvw")) for _ in chosen]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(resampling_units, "MOST_UNITS", most)
        patched.setattr(resampling_units, "_LEAST_MERGED", merged)
        whole = ResamplingUnits.of([counted(chosen, names)])
        left = iter(names)
        pieces = ResamplingUnits.of([counted(part, [next(left) for _ in part]) for part in parts])
    alone = counted(chosen).table.toarray()
    for found, items in ((whole.runs, np.arange(len(chosen))), (whole.tasks, np.unique(names, return_inverse=True)[1])):
        assert found.n_items == items.max() + 1
        assert found.n_units == min(found.n_items, most)
        sums = np.zeros((found.n_items, alone.shape[1]), dtype=np.int64)
        np.add.at(sums, items, alone)
        table = found.table.toarray()
        if not found.is_grouped:
            np.testing.assert_array_equal(table, sums)
        # groups are of whole items: of any run, task or group, the starts are as many as its runs
        np.testing.assert_array_equal(table.sum(axis=0), alone.sum(axis=0))
    np.testing.assert_array_equal(pieces.runs.table.toarray(), whole.runs.table.toarray())
    assert pieces.tasks.n_items == whole.tasks.n_items
    if not whole.tasks.is_grouped:
        np.testing.assert_array_equal(pieces.tasks.table.toarray(), whole.tasks.table.toarray())


def test_groups_are_of_equal_chance_also_for_items_at_regular_distances():
    """Tasks often come in turn: items 500 apart must not share groups more often than others do."""
    groups = resampling_units.MOST_UNITS
    for items in (np.arange(100_000), 500 * np.arange(100_000), groups * np.arange(100_000)):
        found = np.bincount(resampling_units._group_of(items), minlength=groups)
        expected = len(items) / groups
        statistic = ((found - expected) ** 2 / expected).sum()
        assert chi2.ppf(1e-6, groups - 1) < statistic < chi2.ppf(1 - 1e-6, groups - 1)


def test_groups_of_runs_give_the_interval_of_the_runs_one_by_one(monkeypatch):
    """The share of successes among 3,000 runs; both its bootstraps estimate the binomial law's width.

    Its standard deviation is known within sqrt(1 / (2 * 4000)) = 1.1 % from so many resamples, and within
    sqrt(1 / (2 * 400)) = 3.5 % from 400 groups; a quantile of 4,000 draws is off by 2.7 % of it.
    """
    n = 3_000
    paths = [(("a",), "success" if i % 3 else "failure") for i in range(n)]
    fit = fit_counts(TransitionCounts.from_paths(paths))
    outcomes = np.array([0 if i % 3 else 1 for i in range(n)])
    tasks = [str(i % 1_500) for i in range(n)]  # two runs of a task go alike, as 3 divides 1,500
    part = RunCounts.of_paths(("a",), np.zeros(n, dtype=int), np.arange(n + 1), outcomes, task_ids=tasks)
    monkeypatch.setattr(resampling_units, "MOST_UNITS", 400)
    (opinion,) = second_opinions(fit, 'P=? [ F "success" ]', runs=ResamplingUnits.of([part]), resamples=4_000)
    of_runs, of_tasks = (each for each in opinion.intervals if "bootstrap" in each.method)
    assert of_runs.method == "trace bootstrap in 400 random groups, percentile"
    assert of_tasks.method == "task bootstrap in 400 random groups, percentile"
    width = 2 * 1.96 * math.sqrt(2 / 9 / n)
    assert of_runs.upper - of_runs.lower == pytest.approx(width, rel=4 * 0.045)
    assert of_tasks.upper - of_tasks.lower == pytest.approx(math.sqrt(2) * width, rel=4 * 0.045)


def test_tasks_are_numbered_by_their_names_and_needed_of_every_run(monkeypatch):
    monkeypatch.setattr("tracebridge.inference.run_counts._BATCH_RUNS", 2)
    traces = as_traces([((0,), 0), ((1,), 0), ((2,), 1), ((0,), 1)], task_id=["c", "a", "c", "b"])
    fit = fit_chain(traces)
    units = ResamplingUnits.of(RunCounts.batches(fit, traces))
    one_by_one = RunCounts.of_traces(fit, traces).table.toarray()
    expected = [one_by_one[1], one_by_one[3], one_by_one[0] + one_by_one[2]]
    np.testing.assert_array_equal(units.of_kind("task").table.toarray(), expected)
    for names in (["a", "a", None, "a"], ["a"] * 4):
        unknown = ResamplingUnits.of([counted([((0,), 0)] * 4, names)])
        with pytest.raises(FitError, match="every run needs a task"):
            unknown.of_kind("task")
