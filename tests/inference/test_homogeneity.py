from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tracebridge.inference.homogeneity import covariate_test, permutation_of
from tracebridge.inference.run_sample import RunSample, SampledRun

STATES = ("a", "b")


def sample_of(runs) -> RunSample:
    """From (task, value, outcome, transitions)."""
    made = [
        SampledRun(i, task, (value,), outcome, tuple(sorted(t))) for i, (task, value, outcome, t) in enumerate(runs)
    ]
    return RunSample(covariates=("x",), runs=tuple(made), n_seen=len(made))


def outcome_of(sample: RunSample, seed: int = 0, replicates: int = 99):
    return covariate_test(sample, "x", STATES, replicates=replicates, seed=np.random.SeedSequence(seed))


def drawn(rng, n_runs, *, tasks=None, values=None, shift=0.0, task_spread=0.0) -> RunSample:
    """Runs of ten steps between two states; value ``y`` leaves ``a`` for ``b`` more often by ``shift``."""
    tasks = tasks or [""] * n_runs
    effect = {task: task_spread * rng.standard_normal() for task in sorted(set(tasks))}
    runs = []
    for task, value in zip(tasks, values, strict=True):
        to_b = min(max(0.45 + shift * (value == "y") + effect[task], 0.02), 0.98)
        path = [0]
        for _ in range(10):
            path.append(int(rng.random() < (to_b if path[-1] == 0 else 0.5)))
        counts = {}
        for i, j in pairwise(path):
            counts[STATES[i], STATES[j]] = counts.get((STATES[i], STATES[j]), 0) + 1
        outcome = int(rng.random() < 0.5)
        counts[STATES[path[-1]], ("success", "failure")[outcome]] = 1
        runs.append((task, value, outcome, [(i, j, n) for (i, j), n in counts.items()]))
    return sample_of(runs)


def test_a_covariate_that_matters_is_found_and_measured():
    rng = np.random.default_rng(0)
    found = outcome_of(drawn(rng, 60, values=["x", "y"] * 30, shift=0.3))
    assert found.p == found.p_path == 0.01
    assert found.p_outcome > 0.05
    p = np.array([[0.6, 0.4], [0.3, 0.7]])  # half of the runs each; steps in a are somewhat over half of all
    in_a = float((p * np.log(p / p.mean(axis=0))).sum() / 2)
    assert 0.3 * in_a < found.nats_path < 0.7 * in_a
    assert (found.n_runs, found.n_values, found.over) == (60, 2, "runs")


def test_one_that_does_not_matter_is_rejected_at_the_level():
    rng = np.random.default_rng(1)
    rejected = sum(outcome_of(drawn(rng, 30, values=["x", "y"] * 15), seed, 39).p <= 0.05 for seed in range(120))
    assert rejected <= 14  # 6 expected, deviation 2.4


@pytest.mark.parametrize("inside", [False, True])
def test_runs_of_one_task_stay_together(inside):
    """Tasks differ a lot, the covariate does not matter; dealing out single runs would find it in most corpora."""
    rng = np.random.default_rng(2)
    tasks = [f"t{i // 10}" for i in range(100)]
    values = ["x", "y"] * 50 if inside else ["xy"[(i // 10) % 2] for i in range(100)]
    results = [outcome_of(drawn(rng, 100, tasks=tasks, values=values, task_spread=0.5), seed, 39) for seed in range(60)]
    assert {result.over for result in results} == {"runs within each task" if inside else "whole tasks"}
    assert sum(result.p <= 0.05 for result in results) <= 9  # 3 expected, deviation 1.7


def test_naive_permutation_would_mistake_tasks_for_the_covariate():
    rng = np.random.default_rng(2)
    tasks = [f"t{i // 25}" for i in range(100)]
    values = ["xy"[(i // 25) % 2] for i in range(100)]
    rejected = 0
    for seed in range(20):
        sample = drawn(rng, 100, tasks=tasks, values=values, task_spread=0.5)
        without_tasks = [run._replace(task="") for run in sample.runs]
        rejected += (
            outcome_of(RunSample(covariates=("x",), runs=tuple(without_tasks), n_seen=100), seed, 39).p_path <= 0.05
        )
    assert rejected >= 10


def test_tasks_themselves_are_dealt_out_over_the_runs():
    permutation = permutation_of("task_id", ["t1", "t1", "t2"], ["t1", "t1", "t2"])
    assert permutation.over == "runs"
    assert not permutation.is_idle


def test_permutations_keep_what_they_must():
    rng = np.random.default_rng(0)
    values = np.array([0, 1, 2, 3, 4, 5])
    within = permutation_of("x", list("abcdef"), ["s", "t", "s", "t", "t", "s"])
    whole = permutation_of("x", list("aabbcc"), ["s", "s", "t", "t", "u", "u"])
    seen = set()
    for _ in range(200):
        dealt = within.draw(values, rng)
        assert sorted(dealt[[0, 2, 5]]) == [0, 2, 5]
        assert sorted(dealt[[1, 3, 4]]) == [1, 3, 4]
        seen.add(tuple(dealt.tolist()))
        together = whole.draw(np.array([7, 8, 9]), rng)
        assert (together[::2] == together[1::2]).all()
        assert sorted(together[::2]) == [7, 8, 9]
    assert len(seen) == 36


@pytest.mark.parametrize(
    "runs",
    [
        [],
        [("", "x", 0, [("a", "success", 1)])] * 3,
        [("", value, 0, [("a", "success", 1)]) for value in "xyz"],
        [("", "", 0, [("a", "success", 1)])] * 3,
        [("t", value, 0, []) for value in "xx"] + [("u", "y", 1, [])],
    ],
    ids=["no run", "one value", "a value each", "no value", "fewer tasks than values"],
)
def test_where_nothing_can_differ_there_is_no_test(runs):
    found = outcome_of(sample_of(runs))
    assert found.p is None or found.p > 0.05
    if not runs or {run[1] for run in runs} in ({"x"}, {"x", "y", "z"}, {""}):
        assert found.p is None
