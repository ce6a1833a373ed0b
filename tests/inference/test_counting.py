from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.inference.runs import NAMES, as_traces, laid_out, runs

from tracebridge.chain import TransitionCounts, fit_chain, fit_counts
from tracebridge.errors import FitError, ModelError, UsageError
from tracebridge.inference import PathCounts, counting, path_counts, split_counts
from tracebridge.inference.run_sample import RunSample
from tracebridge.traces import Outcome

SOME = [((0, 1, 1, 2), 0), ((1, 1), 1), ((0, 0, 1), 2), ((), 0), ((2, 1, 0), 1)]


def counted(chosen) -> PathCounts:
    return PathCounts.of_paths(NAMES, *laid_out(chosen))


@given(runs(), runs())
def test_a_commutative_monoid_with_documents(ours, theirs):
    both = counted(ours) + counted(theirs)
    assert both == counted(theirs) + counted(ours) == counted(ours + theirs)
    assert both + PathCounts.empty() == both
    assert PathCounts.from_dict(json.loads(json.dumps(both.to_dict()))) == both


@given(runs().filter(lambda chosen: any(path and outcome < 2 for path, outcome in chosen)), st.integers(1, 30))
def test_counting_traces_is_counting_their_paths(chosen, batch):
    traces = as_traces(chosen)
    fit = fit_chain(traces)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_BATCH_STEPS", batch)
        counts = path_counts(fit, iter(traces))
    names = fit.abstraction.space.names
    moved = [(tuple(names.index(NAMES[code]) for code in path), outcome) for path, outcome in chosen]
    assert counts == PathCounts.of_paths(names, *laid_out(moved))
    rows = fit.row_counts()
    assert counts.states == rows.states
    assert counts.tables.clock.pooled().counts.sum() == rows.counts.sum()
    assert counts.runs_by_outcome() == fit.counts.runs_by_outcome()


def test_the_policy_of_the_fit_decides_about_censored_runs():
    traces = as_traces(SOME)
    seen = {
        policy: path_counts(fit_chain(traces, policy=policy), traces).runs_by_outcome()
        for policy in ("censored", "failure", "drop")
    }
    assert seen == {
        "censored": {"success": 2, "failure": 2, "censored": 1},
        "failure": {"success": 2, "failure": 3, "censored": 0},
        "drop": {"success": 2, "failure": 2, "censored": 0},
    }


def test_halves_are_whole_tasks_and_add_up_to_the_corpus():
    traces = as_traces(SOME * 8, task_id=[f"task-{i // 5}" for i in range(40)])
    fit = fit_chain(traces)
    halves = split_counts(fit, traces, covariates=["task_id"])
    assert halves[0] + halves[1] == path_counts(fit, traces, covariates=["task_id"])
    tasks = [{run.task for run in half.sample.runs} for half in halves]
    assert all(tasks)
    assert not tasks[0] & tasks[1]
    reversed_halves = split_counts(fit, traces[::-1], covariates=["task_id"])
    assert reversed_halves == halves
    assert split_counts(fit, traces, seed=1) != tuple(
        PathCounts(states=half.states, tables=half.tables) for half in halves
    )


def test_samples_of_shards_add_up_to_the_sample_of_the_corpus(monkeypatch):
    monkeypatch.setattr("tracebridge.inference.run_sample.SAMPLE_SIZE", 7)
    traces = as_traces(SOME * 6, model=["x", "y", None] * 10, attributes=[{"hard": i % 2 == 0} for i in range(30)])
    fit = fit_chain(traces)
    covariates = ("model", "hard", "absent")
    whole = path_counts(fit, traces, covariates=covariates)
    shards = [path_counts(fit, traces[i::3], covariates=covariates) for i in range(3)]
    assert shards[2] + (shards[0] + shards[1]) == whole
    assert (len(whole.sample.runs), whole.sample.n_seen, whole.sample.is_complete) == (7, 30, False)
    assert {run.values[1] for run in whole.sample.runs} <= {"True", "False"}
    assert {run.values[2] for run in whole.sample.runs} == {""}
    assert PathCounts.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole


def test_a_sampled_run_holds_its_transitions_and_its_end_if_it_was_seen():
    traces = as_traces([((0, 1, 0, 1), 0), ((1, 1), 2)])
    sample = path_counts(fit_chain(traces), traces, covariates=["model"]).sample
    assert {run.outcome: run.transitions for run in sample.runs} == {
        0: (("a", "b", 2), ("b", "a", 1), ("b", "success", 1)),
        2: (("b", "b", 1),),
    }


def test_counts_need_states_of_steps():
    counts = TransitionCounts.from_paths([(["a"], Outcome.SUCCESS)])
    with pytest.raises(UsageError, match="made from counts"):
        path_counts(fit_counts(counts), as_traces([((0,), 0)]))
    with pytest.raises(FitError, match="no state holds the step"):
        path_counts(fit_chain(as_traces([((0,), 0)])), as_traces([((1,), 0)]))
    with pytest.raises(ModelError, match="do not add up"):
        PathCounts.empty() + PathCounts.empty(["model"])
    with pytest.raises(ModelError, match="do not add up"):
        RunSample(covariates=("model",)) + RunSample(covariates=("trial",))


def changed(path, value):
    document = copy.deepcopy(counted(SOME).to_dict())
    place = document
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("schema_version",), 2, "version 2"),
        (("states",), ["b", "a", "c"], "ascending"),
        (("clock", "0", "a", "b"), 2, "not of the same events"),
        (("clock", "9"), {"a": {"b": 1}}, "'9' is none of '0'"),
        (("first", "a", "x"), 1, "'x' is none of"),
        (("first", "a", "b"), 0, "the count 0"),
        (("first", "a", "b"), -1, "the count -1"),
        (("starts", "a"), 3, "runs end in censored|entered|first steps"),
        (("ends", "success", "2"), 1, "runs end in success"),
        (("ends", "success", "99999999999"), 1, "no length of a run"),
        (("ends", "lost"), {"1": 1}, "'lost' is none of"),
        (("ends", "success", "4"), 2, "runs end in success"),
        (("sample",), {"covariates": ["x"], "n_seen": 5, "runs": []}, "holds the first"),
        (("ends", "success", "1000000"), 2**40, "below 2\\^53"),
        (("extra",), 1, "unknown field"),
    ],
)
def test_documents_that_no_runs_can_have_are_refused(path, value, message):
    with pytest.raises(ModelError, match=message):
        PathCounts.from_dict(changed(path, value), "counts.json")


def test_many_states_in_a_document_cost_no_more_than_the_document():
    document = counted(SOME).to_dict()
    document["states"] = [f"{i:06d}" for i in range(100_000)] + document["states"]
    with pytest.raises(ModelError, match="does not occur"):
        PathCounts.from_dict(document)


def test_a_count_of_steps_by_length_must_agree():
    document = counted([((0, 1), 0), ((0,), 0)]).to_dict()
    document["ends"]["success"] = {"1": 1, "3": 1}
    with pytest.raises(ModelError, match="lengths of the runs"):
        PathCounts.from_dict(document)
    assert np.array_equal(counted([]).tables.ends, np.zeros((1, 3, 1)))
