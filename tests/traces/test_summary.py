from __future__ import annotations

import json
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracebridge.errors import NothingToCheckError
from tracebridge.traces import Outcome, Step, StepCount, Trace, TraceTally, summarize
from tracebridge.traces import summary as summary_module
from tracebridge.traces.run_dates import RunDates, dates_text


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
        attributes=st.sampled_from(
            [{}, {"started": 7}, {"started": "2026-01-02T03:04:05Z"}, {"started": "2025-01-01T00:00"}]
        ),
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


DATED = [
    ({"started": "2026-01-02T03:04:05+02:00"}, "2026-01-02T01:04:05Z"),
    ({"started": "2026-01-02T02:00:00"}, "2026-01-02T02:00:00Z"),
    ({"started": "2025-12-31T23:59:59.9Z"}, "2025-12-31T23:59:59Z"),
    ({"started": "yesterday"}, None),
    ({"started": 1_800_000_000}, None),
    ({}, None),
]


@given(which=st.lists(st.sampled_from(DATED), min_size=1, max_size=8))
def test_dates(which: list[tuple[dict[str, object], str | None]]) -> None:
    found = summarize(trace(1, index, attributes=attributes) for index, (attributes, _) in enumerate(which))
    known = sorted(began for _, began in which if began is not None)
    first, last = (known[0], known[-1]) if known else (None, None)
    assert found.to_dict()["dates"] == {"n_runs": len(known), "first": first, "last": last}


def test_dates_are_told() -> None:
    began = {"n_runs": 2, "first": "2026-01-02T03:04:05Z", "last": "2026-02-01T00:00:00Z"}
    assert dates_text(began, 2) == "from 2026-01-02T03:04:05Z to 2026-02-01T00:00:00Z"
    assert dates_text(began, 5).endswith(" (2 of 5 runs; of the others it is not recorded)")
    assert dates_text({**began, "last": began["first"]}, 2) == "at 2026-01-02T03:04:05Z"
    assert dates_text(RunDates().to_dict(), 5) == "not recorded"


NOON, LATER = "2026-01-02T12:00:00Z", "2026-01-02T12:00:01Z"


@pytest.mark.parametrize(
    ("n_runs", "first", "last"),
    [(1, None, None), (0, NOON, NOON), (9, NOON, NOON), (1, LATER, NOON), (1, "soon", "soon"), (-1, None, None)],
)
def test_dates_that_no_runs_have(n_runs: int, first: str | None, last: str | None) -> None:
    tally = TraceTally()
    tally.add(trace(1, 0))
    with pytest.raises(ValueError, match=r"date|Expected"):
        TraceTally.from_dict({**tally.to_dict(), "dates": {"n_runs": n_runs, "first": first, "last": last}})
