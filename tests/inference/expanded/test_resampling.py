from itertools import product

import numpy as np
import pytest
from tests.chain.expanded.random_models import random_model

from tracebridge.chain.expanded.estimation import estimate, estimate_stack
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.closedform import long_run_reliability
from tracebridge.closedform.batched.chain_stack import ChainStack
from tracebridge.errors import FitError, UsageError
from tracebridge.inference.expanded.resampling import Resamples, repeats_tasks
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.expanded.task_classes import class_rates, with_classes
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths


def corpus(name: str = "phases:2", n: int = 60, tasks: int | None = None, seed: int = 3) -> RunPaths:
    paths, _ = ModelSimulation(random_model(name, seed=seed)).corpora(n, [np.random.SeedSequence(seed)])
    names = paths.states
    runs = []
    for i in range(n):
        codes = paths.codes[paths.offsets[i] : paths.offsets[i + 1]]
        runs.append(([names[code] for code in codes], ("success", "failure")[paths.outcomes[i]]))
    return RunPaths.of_names(runs, tasks=None if tasks is None else [f"t{i % tasks}" for i in range(n)], states=names)


@pytest.mark.parametrize("unit", ["task", "trace"])
def test_units_are_drawn_whole(unit):
    paths = corpus("first-order", n=10, tasks=4)
    source = Resamples(estimate(paths, parse_model("order2")), paths, 1.0, unit)
    n_units = 4 if unit == "task" else 10
    drawn = np.random.default_rng(0).integers(n_units, size=(3, n_units))
    runs, corpora = source.runs_of(drawn)
    for i, row in enumerate(drawn):
        expected = [run for unit_ in row for run in range(10) if (paths.tasks[run] if unit == "task" else run) == unit_]
        assert sorted(runs[corpora == i]) == sorted(expected)
    assert np.array_equal(corpora, np.sort(corpora))


def test_runs_without_a_task_are_drawn_alone():
    runs = [(("a",), "success")] * 5
    paths = RunPaths.of_names(runs, tasks=["x", "x", "y", None, None])
    assert repeats_tasks(paths)
    source = Resamples(estimate(paths, parse_model("order2")), paths, 1.0)
    assert source.unit == "task"
    drawn, _ = source.runs_of(np.arange(4)[None])
    assert sorted(drawn) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["order2+clock:0,2", "phases:2", "phases:2:full"])
def test_each_resample_is_refitted(name):
    paths = corpus(tasks=20)
    model = estimate(paths, parse_model(name), 2.0)
    source = Resamples(model, paths, 2.0)
    block = source.block(0, 3, seed=5)
    drawn = np.random.default_rng(np.random.SeedSequence(5, spawn_key=(0,))).integers(20, size=(source.at_a_time, 20))
    for i in range(3):
        runs = [run for task in drawn[i] for run in np.flatnonzero(paths.tasks == task)]
        alone = estimate_stack(paths.take(np.array(runs)), np.zeros(len(runs)), 1, model.form, 2.0, warm=model)
        for part in ("start", "rows", "advance"):
            assert getattr(block, part)[..., i] == pytest.approx(getattr(alone, part)[0], abs=1e-10)


def test_a_block_is_the_same_whatever_others_are_asked_for():
    paths = corpus("clock:0,1", tasks=15)
    source = Resamples(with_classes(estimate(paths, parse_model("clock:0,1")), paths, 2), paths, 1.0)
    one, two = source.block(1, 1, 0), source.block(1, 4, 0)
    for part in ("start", "rows", "class_weights", "class_tilts"):
        assert np.array_equal(getattr(one, part)[..., 0], getattr(two, part)[..., 0])
    assert not np.array_equal(source.block(0, 1, 0).rows, one.rows)


def test_classes_of_each_resample_have_its_pass_rates():
    paths = corpus("order2", n=90, tasks=18, seed=4)
    source = Resamples(with_classes(estimate(paths, parse_model("order2")), paths, 2), paths, 1.0)
    block = source.block(0, 3, 0)
    drawn = np.random.default_rng(np.random.SeedSequence(0, spawn_key=(0,))).integers(18, size=(source.at_a_time, 18))
    times = np.array([np.bincount(row, minlength=18) for row in drawn[:3]], dtype=float)
    weights, rates = class_rates(paths, 2, times)
    assert np.array_equal(block.class_weights, weights.T)
    plain = estimate(paths, parse_model("order2"))
    structure = ExpandedStructure.of_model(plain)
    chain = structure.chain(plain)
    for i, k in product(range(3), range(2)):
        tilts = block.class_tilts[k : k + 1, i : i + 1]
        entries = structure.entries(block.rows[..., i : i + 1], block.advance[..., i : i + 1], tilts)
        initial = structure.initial(block.start[..., i : i + 1], np.ones((1, 1)))
        R_inf = long_run_reliability(ChainStack(chain, entries, initial).chain_at(0))
        highest = 1 - initial[-1, 0]  # runs that fail without a step
        assert R_inf == pytest.approx(np.clip(rates[i, k], initial[-2, 0], highest), abs=1e-6)


def test_what_cannot_be_drawn_again_is_refused():
    paths = corpus("first-order", n=10, tasks=4)
    model = estimate(paths, parse_model("order2"))
    with pytest.raises(FitError, match="two or more of them, and there is 1"):
        Resamples(model, paths.take(np.arange(1)), 1.0)
    with pytest.raises(UsageError, match="draw tasks again"):
        Resamples(with_classes(model, corpus("first-order", n=30, tasks=6), 2), paths, 1.0, "trace")
