from __future__ import annotations

import json

from tracebridge.traces import Outcome, Step, Trace, TraceSet


def corpus(n: int = 3) -> TraceSet:
    steps = (Step(name="a", error=True), Step(name="b"))
    return TraceSet(
        traces=tuple(
            Trace(trace_id=f"<b>{i}</b>", outcome=list(Outcome)[i % 3], steps=steps[: i % 3], task_id="t")
            for i in range(n)
        )
    )


def test_counts_and_records() -> None:
    found = corpus(4)
    assert len(found) == 4
    assert found.outcomes() == {"success": 2, "failure": 1, "censored": 1}
    assert [record["n_steps"] for record in found.to_records()] == [0, 1, 2, 0]
    assert [record["n_errors"] for record in found.to_records()] == [0, 1, 1, 0]
    assert json.loads(json.dumps(found.to_dict()))["n_traces"] == 4


def test_html_is_escaped_and_short() -> None:
    text = corpus(40)._repr_html_()
    assert "<b>" not in text
    assert "&lt;b&gt;0&lt;/b&gt;" in text
    assert text.count("<tr>") == 31
    assert "and 10 more" in text
