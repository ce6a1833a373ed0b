"""The noise of end curves where runs of one task are alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tracebridge.chain.expanded.estimation import estimate
from tracebridge.chain.expanded.model import ExpandedModel
from tracebridge.inference.expanded.certification import certify_model
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.expanded.task_noise import task_gaps
from tracebridge.states.model_form import ModelForm
from tracebridge.states.run_paths import RunPaths

TASKS = 30


def coin() -> ExpandedModel:
    """One state that a run leaves with probability one half."""
    return ExpandedModel(
        form=ModelForm(),
        states=("a",),
        start=np.array([[[1.0, 0.0, 0.0]]]),
        rows=np.array([0.5, 0.3, 0.2]).reshape(1, 1, 1, 3),
        advance=np.ones((1, 1, 1)),
    )


def alike(copies: int, seed: int) -> RunPaths:
    """Runs of `TASKS` tasks, each of them so many times over."""
    runs, _ = ModelSimulation(coin()).corpora(TASKS, [np.random.SeedSequence([seed])])
    tasks = np.repeat(np.arange(TASKS), copies)
    taken = runs.take(tasks)
    return replace(taken, tasks=tasks.astype(np.int64), task_names=tuple(f"t{i:02}" for i in range(TASKS)))


@pytest.mark.parametrize("held_out", [False, True])
def test_copies_of_runs_are_no_information(held_out: bool) -> None:
    """The very same noise, whether each run stands once or five times."""
    found = []
    for copies in (1, 5):
        fitted, judged = alike(copies, 1), alike(copies, 2) if held_out else None
        source = estimate(fitted, ModelForm(), 1e-9)
        found.append(task_gaps(fitted, judged, source, 1e-9, number=40, seed=3))
    tolerance = 0.05  # the prior of mass one on a row weighs five times less against five copies
    assert np.allclose(found[0], found[1], atol=tolerance)
    assert found[0].mean() > 2 * tolerance * found[0].std()


def test_the_noise_of_independent_runs_is_that_of_their_chain() -> None:
    """Tasks with one run each: drawing them again scatters as drawing from the chain does, to a tenth."""
    runs = alike(1, 4)
    source = estimate(runs, ModelForm(), 1.0)
    again = task_gaps(runs, None, source, 1.0, number=400, seed=5).mean()
    certificate = certify_model(replace(runs, tasks=np.full(TASKS, -1), task_names=()), ModelForm(), replicates=99)
    statistic = certificate.timing.statistics[0]
    assert 0.5 * statistic.noise < again < 1.1 * statistic.noise  # the mean, against the 95 % quantile


def test_size_where_runs_of_a_task_are_the_same() -> None:
    """Ten corpora of the chain itself, each run five times: taken as independent they would all but be rejected."""
    rejected, naive = 0, 0
    for seed in range(10):
        runs = alike(5, 100 + seed)
        rejected += certify_model(runs, ModelForm(), replicates=19, seed=seed).timing.p <= 0.05
        alone = replace(runs, tasks=np.full(runs.n_runs, -1), task_names=())
        naive += certify_model(alone, ModelForm(), replicates=19, seed=seed).timing.p <= 0.05
    assert rejected <= 2  # more has a probability of 1 % at size 0.05
    assert naive >= 4


def test_chunks_and_repetition_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = alike(2, 6)
    source = estimate(runs, ModelForm(), 1.0)
    first = task_gaps(runs, runs, source, 1.0, number=7, seed=8)
    monkeypatch.setattr("tracebridge.inference.expanded.task_noise._SLICE_STEPS", 1)
    assert np.array_equal(first, task_gaps(runs, runs, source, 1.0, number=7, seed=8))
