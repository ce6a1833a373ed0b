from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import NothingToCheckError
from tracebridge.traces import Outcome, Step, StepCount, Trace, TraceTally, summarize
from tracebridge.traces import summary as summary_module


def trace(length: int, index: int, **fields: object) -> Trace:
    steps = tuple(Step(name="ab"[i % 2], error=i % 3 == 0) for i in range(length))
    return Trace(trace_id=str(index), outcome=Outcome.SUCCESS, steps=steps, **fields)  # type: ignore[arg-type]


@given(lengths=st.lists(st.integers(0, 12), min_size=1, max_size=30))
def test_lengths(lengths: list[int]) -> None:
    found = summarize(trace(length, index) for index, length in enumerate(lengths))
    assert (found.length_min, found.length_max) == (min(lengths), max(lengths))
    assert found.length_median == statistics.median(lengths)
    assert found.length_mean == pytest.approx(statistics.fmean(lengths))
    assert (found.n_runs, found.n_steps) == (len(lengths), sum(lengths))


def test_counts() -> None:
    runs = [
        trace(3, 0, task_id="t1", model="m", termination="cap"),
        trace(4, 1, task_id="t1", model="m"),
        trace(0, 2, task_id="t2"),
        Trace(trace_id="3", outcome=Outcome.CENSORED, termination="cap"),
    ]
    found = summarize(runs)
    assert found.outcomes == {"success": 3, "failure": 0, "censored": 1}
    assert found.terminations == {"cap": 2}
    # steps: a b a / a b a b, of which the first and the fourth are errors
    assert found.steps == {"a": StepCount(n=4, n_errors=2), "b": StepCount(n=3, n_errors=1)}
    assert (found.n_tasks, found.runs_per_task, found.n_without_task) == (2, {1: 1, 2: 1}, 1)
    assert found.models == {"m": 2}
    assert json.loads(json.dumps(found.to_dict()))["length"] == {"min": 0, "median": 1.5, "mean": 1.75, "max": 4}


def test_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_module, "MAX_NAMES", 2)
    steps = tuple(Step(name=name) for name in "abcda")
    found = summarize([Trace(trace_id="x", outcome=Outcome.SUCCESS, steps=steps)])
    assert (list(found.steps), found.n_other_names_steps, found.n_steps) == (["a", "b"], 2, 5)


def test_nothing() -> None:
    with pytest.raises(NothingToCheckError):
        summarize([])


def test_a_tally_hands_on_what_it_counts() -> None:
    tally = TraceTally()
    runs = [trace(2, 0), trace(1, 1)]
    assert [tally.add(run) for run in runs] == runs
    assert tally.summary() == summarize(runs)


NAMED_RUNS = st.lists(
    st.builds(
        Trace,
        trace_id=st.just("a"),
        outcome=st.sampled_from(Outcome),
        steps=st.lists(st.builds(Step, name=st.sampled_from("abcdef"), error=st.booleans()), max_size=4).map(tuple),
        termination=st.sampled_from([None, "cap"]),
        task_id=st.sampled_from([None, "t", "u"]),
        model=st.sampled_from([None, "m"]),
    ),
    max_size=6,
)


@given(first=NAMED_RUNS, then=NAMED_RUNS)
def test_tallies_add_up_and_come_back(first: list[Trace], then: list[Trace]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summary_module, "MAX_NAMES", 3)  # no part forgets names below twice as many
        parts = [TraceTally(), TraceTally()]
        for part, traces in zip(parts, (first, then), strict=True):
            for trace in traces:
                part.add(trace)
        total = TraceTally.from_dict(parts[0].to_dict())
        total.update(TraceTally.from_dict(parts[1].to_dict()))
        assert (total.n_runs, total.n_steps) == (len(first + then), sum(len(trace.steps) for trace in first + then))
        if first or then:
            assert total.summary() == summarize([*first, *then])
