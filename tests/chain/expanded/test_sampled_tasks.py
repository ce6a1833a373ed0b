"""Runs drawn from a chain with classes of tasks: those of one task share its class."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from tests.chain.expanded.random_models import random_model

from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.sample import sample_traces
from tracebridge.errors import UsageError
from tracebridge.traces.model import Outcome


def chain_of_classes() -> MarkovChain:
    """Tasks of which .3 nearly always fail, and the others nearly never."""
    model = random_model("classes:2", seed=4)
    model = replace(model, class_weights=np.array([0.3, 0.7]), class_tilts=np.array([-9.0, 9.0]))
    return ExpandedStructure.of_model(model).chain(model)


def test_trials_of_a_task_share_its_class():
    runs = sample_traces(chain_of_classes(), 4 * 500, seed=1, trials=4)
    assert [run.task_id for run in runs[:9]] == ["task-0"] * 4 + ["task-1"] * 4 + ["task-2"]
    assert [run.trial for run in runs[:5]] == ["0", "1", "2", "3", "0"]
    passed = defaultdict(list)
    for run in runs:
        if run.steps:  # a run without a step ends as it starts, whatever the class
            passed[run.task_id].append(run.outcome is Outcome.SUCCESS)
    mixed = sum(len(set(outcomes)) > 1 for outcomes in passed.values())
    assert mixed / len(passed) < 0.05
    share = np.mean([outcomes[0] for outcomes in passed.values()])
    assert share == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / len(passed)))


def test_with_one_trial_every_run_is_a_task_and_the_runs_are_the_same_law():
    chain = chain_of_classes()
    alone = sample_traces(chain, 2_000, seed=2)
    assert [run.task_id for run in alone[:3]] == ["task-0", "task-1", "task-2"]
    assert alone[0].trial is None
    grouped = sample_traces(chain, 4_000, seed=3, trials=2)
    for outcome in Outcome:
        one, two = (np.mean([run.outcome is outcome for run in runs]) for runs in (alone, grouped))
        assert one == pytest.approx(two, abs=4 * np.sqrt(0.25 / 1_000))
    starts = [Counter(run.steps[0].name if run.steps else "" for run in runs) for runs in (alone, grouped)]
    for name in starts[0] | starts[1]:
        assert starts[0][name] / 2_000 == pytest.approx(starts[1][name] / 4_000, abs=4 * np.sqrt(0.25 / 1_000))


def test_other_chains_name_no_task_unless_asked():
    model = random_model("order2", seed=4)
    chain = ExpandedStructure.of_model(model).chain(model)
    assert {run.task_id for run in sample_traces(chain, 5)} == {None}
    plain, grouped = sample_traces(chain, 5, seed=1), sample_traces(chain, 5, seed=1, trials=2)
    assert [run.task_id for run in grouped] == ["task-0", "task-0", "task-1", "task-1", "task-2"]
    assert [run.steps for run in grouped] == [run.steps for run in plain]
    with pytest.raises(UsageError, match="one trial or more"):
        sample_traces(chain, 5, trials=0)
