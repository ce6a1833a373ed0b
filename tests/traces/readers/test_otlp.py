from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, Step, Trace, TraceSet, read_traces

GEN_AI_CHAT = {"gen_ai.operation.name": "chat"}
GEN_AI_AGENT = {"gen_ai.operation.name": "invoke_agent"}
INFERENCE_CHAT = {"openinference.span.kind": "LLM"}
INFERENCE_AGENT = {"openinference.span.kind": "AGENT"}


def gen_ai_tool(name: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}


def inference_tool(name: str) -> dict[str, Any]:
    return {"openinference.span.kind": "TOOL", "tool.name": name}


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    # an int is written as text, as the protocol says
    return [
        {"key": key, "value": {kinds[type(value)]: str(value) if type(value) is int else value}}
        for key, value in values.items()
    ]


def span(
    name: str, start: int, values: dict[str, Any] | None = None, *, parent: str = "", trace: str = "t", **fields: Any
) -> dict[str, Any]:
    base = {
        "traceId": trace,
        "spanId": name,
        "parentSpanId": parent,
        "name": name,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 2_000_000_000),
        "attributes": attributes(values or {}),
        "status": {},
    }
    return base | fields


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def read(tmp_path: Path, *exports: dict[str, Any]) -> TraceSet:
    path = tmp_path / "spans.json"
    path.write_text("\n".join(map(json.dumps, exports)))
    return read_traces(path)


def steps(trace: Trace) -> list[tuple[str, str]]:
    return [(step.kind, step.name) for step in trace.steps]


@pytest.mark.parametrize("as_lines", [False, True])
def test_steps_by_start_time_of_several_traces(tmp_path: Path, as_lines: bool) -> None:
    spans = [
        span("c", 30, GEN_AI_CHAT, parent="a", status={"code": 2}),
        span("b", 20, gen_ai_tool("find") | {"gen_ai.usage.input_tokens": 3}, parent="a"),
        span("other", 5, inference_tool("look") | {"error.type": "timeout"}, trace="u"),
        span("d", 10, GEN_AI_CHAT | {"gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 4}, parent="a"),
        span("a", 10, GEN_AI_AGENT),
        span("e", 40, {"gen_ai.operation.name": "retrieval"}, parent="a"),
    ]
    corpus = read(tmp_path, *(map(export, spans) if as_lines else [export(*spans)]))
    first, second = corpus
    assert first.steps == (
        Step(name="chat", kind="llm", tokens=4, duration=2),
        Step(name="find", kind="tool", tokens=3, duration=2),
        Step(name="chat", kind="llm", error=True, duration=2),
        Step(name="retrieval", kind="retrieval", duration=2),
    )
    assert second.steps == (Step(name="look", kind="tool", error=True, duration=2),)
    assert (first.trace_id, first.model, first.termination) == ("t", "m", "no_outcome")
    assert {trace.outcome for trace in corpus} == {Outcome.CENSORED}  # an unset status is not success


DOUBLES = {
    "one span in both": [span("a", 1, GEN_AI_CHAT | INFERENCE_CHAT)],
    "nested": [span("a", 1, INFERENCE_CHAT), span("b", 2, GEN_AI_CHAT, parent="a")],
    "nested below a plain span": [
        span("a", 1, INFERENCE_CHAT),
        span("http", 1, parent="a"),
        span("b", 2, GEN_AI_CHAT, parent="http"),
    ],
    "side by side": [
        span("r", 0, INFERENCE_AGENT),
        span("a", 1, INFERENCE_CHAT, parent="r"),
        span("b", 1, GEN_AI_CHAT, parent="r"),
    ],
}


@pytest.mark.parametrize("name", DOUBLES)
def test_one_operation_in_two_vocabularies_is_one_step(tmp_path: Path, name: str) -> None:
    (trace,) = read(tmp_path, export(*DOUBLES[name]))
    assert steps(trace) == [("llm", "chat")]


def test_operations_that_only_look_like_doubles_all_count(tmp_path: Path) -> None:
    spans = [
        span("r", 0, GEN_AI_AGENT),
        span("a", 1, gen_ai_tool("ask"), parent="r"),
        span("b", 2, INFERENCE_AGENT, parent="a"),
        span("c", 3, inference_tool("ask"), parent="b"),  # the subagent asks in turn: another call
        span("d", 4, gen_ai_tool("ask"), parent="r"),
        span("e", 5, gen_ai_tool("ask"), parent="d"),  # the same vocabulary: a call within a call
        span("f", 6, inference_tool("other"), parent="r"),
    ]
    (trace,) = read(tmp_path, export(*spans))
    assert [name for _, name in steps(trace)] == ["ask"] * 4 + ["other"]


def test_a_span_that_is_exported_twice(tmp_path: Path) -> None:
    corpus = read(tmp_path, export(span("a", 1, GEN_AI_CHAT)), export(span("a", 1, GEN_AI_CHAT)))
    assert len(corpus.traces[0].steps) == 1
    assert "repeated, and counted once: 1 span" in str(corpus.notes[0])


def evaluation(**values: Any) -> list[dict[str, Any]]:
    found = {"gen_ai.evaluation.name": "correct"} | {
        f"gen_ai.evaluation.score.{key}": value for key, value in values.items()
    }
    return [{"name": "gen_ai.evaluation.result", "attributes": attributes(found)}]


@pytest.mark.parametrize(
    ("fields", "values", "outcome", "termination"),
    [
        ({"events": evaluation(label="pass", value=0.7)}, {}, Outcome.SUCCESS, None),
        ({"events": evaluation(value=0.0)}, {}, Outcome.FAILURE, None),
        ({}, {"evaluation.label": "incorrect"}, Outcome.FAILURE, None),
        ({}, {"evaluation.score": 1}, Outcome.SUCCESS, None),
        ({}, {"tracebridge.outcome": "success", "tracebridge.termination": "stop"}, Outcome.SUCCESS, "stop"),
        ({"status": {"code": 1}}, {}, Outcome.CENSORED, "no_outcome"),
        ({"status": {"code": 2}}, {}, Outcome.CENSORED, "no_outcome"),
    ],
)
def test_outcomes(
    tmp_path: Path, fields: dict[str, Any], values: dict[str, Any], outcome: Outcome, termination: str | None
) -> None:
    task = {"tracebridge.task_id": 7, "tracebridge.trial": 2}
    (trace,) = read(tmp_path, export(span("a", 1, GEN_AI_AGENT | task | values, **fields)))
    assert (trace.outcome, trace.termination) == (outcome, termination)
    assert (trace.task_id, trace.trial) == ("7", "2")


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (span("x", 1, {"evaluation.score": 0.5}, trace="bad"), "field evaluation: the reward 0.5 is neither"),
        (
            span("x", 1, {"evaluation.score": 1}, trace="bad", events=evaluation(value=0.0)),
            "evaluations contradict each other",
        ),
    ],
)
def test_bad_traces_are_named(tmp_path: Path, bad: dict[str, Any], what: str) -> None:
    with pytest.raises(TraceError, match=what) as caught:
        read(tmp_path, export(span("a", 1), bad))
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("time", ["soon", "-1", -1, "9" * 30, 1.5])
def test_times_that_are_none(tmp_path: Path, time: Any) -> None:
    with pytest.raises(TraceError, match=r"nanoseconds|Expected"):
        read(tmp_path, export(span("a", 1, startTimeUnixNano=time)))


def test_parents_in_a_circle_end(tmp_path: Path) -> None:
    circle = [span("a", 1, parent="b"), span("b", 2, parent="a"), span("c", 3, GEN_AI_CHAT, parent="a")]
    (trace,) = read(tmp_path, export(*circle))
    assert steps(trace) == [("llm", "chat")]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # read off the spans in the files, by start time
        ("openai_agents_0.24.0_oi_2.5.3.jsonl", [["chat", "lookup_order", "chat", "handoff to Refunds", "chat"]]),
        ("openai_agents_0.24.0_oi_2.5.3_as_tool.json", [["chat", "ask_helper", "chat", "chat"]]),
        ("pydantic_ai_2.58.0.json", [["chat", "get_weather", "get_time", "chat"], ["chat"]]),
        ("pydantic_ai_2.58.0_delegation.json", [["chat", "ask_helper", "chat", "chat"]]),
    ],
)
def test_real_exports(shared_data: Path, name: str, expected: list[list[str]]) -> None:
    corpus = read_traces(shared_data / "traces" / "otel" / name)
    assert [[step.name for step in trace.steps] for trace in corpus] == expected
    assert {trace.outcome for trace in corpus} == {Outcome.CENSORED}


def test_a_run_began_with_its_earliest_span(tmp_path: Path) -> None:
    second = 1_000_000_000
    later, earlier = span("a", 1_800_000_009 * second, GEN_AI_CHAT), span("b", 1_800_000_001 * second + 5, GEN_AI_CHAT)
    unset = span("c", 0, GEN_AI_CHAT)
    known, unknown = read(tmp_path, export(later, earlier, unset, unset | {"traceId": "u"}))
    assert known.attributes == {"started": "2027-01-15T08:00:01Z"}  # date -u -d @1800000001
    assert unknown.attributes == {}
