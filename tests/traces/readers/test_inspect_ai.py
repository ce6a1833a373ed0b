"""Logs that inspect_ai has written, read by it, by us, and by us through it; skipped where it is not installed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, read_traces

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSample, EvalSpec, read_eval_log, write_eval_log
    from inspect_ai.model import ChatMessageAssistant, ChatMessageTool, ChatMessageUser, ContentReasoning, ContentText
    from inspect_ai.scorer import Score
    from inspect_ai.tool import ToolCall, ToolCallError

pytestmark = pytest.mark.filterwarnings("ignore")

LONG = "a long text " * 100


def sample(name: int | str, epoch: int, value: Any, *messages: Any, **fields: Any) -> Any:
    scores = {} if value is None else {"match": Score(value=value)}
    return EvalSample(id=name, epoch=epoch, input=LONG, target="3", messages=list(messages), scores=scores, **fields)


def call(tool: str, identifier: str, content: Any = "") -> Any:
    return ChatMessageAssistant(content=content, tool_calls=[ToolCall(identifier, tool, {"x": 1})])


@pytest.fixture
def log() -> Any:
    failed = ToolCallError("permission", "not for you")
    parts = [ContentReasoning(reasoning="hidden"), ContentText(text="said "), ContentText(text=LONG)]
    samples = [
        sample(
            "a/b:c", 1, "C", ChatMessageUser(content="1 + 2?"), call("add", "1", parts), ChatMessageTool(content="3")
        ),
        sample("a/b:c", 2, "I", call("add", "1"), ChatMessageTool(content="", tool_call_id="1", error=failed)),
        sample(7, 1, float("nan"), ChatMessageAssistant(content="attachment://key"), attachments={"key": LONG}),
        sample(7, 2, None),
    ]
    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00", task="sums", dataset=EvalDataset(), model="m/1", config=EvalConfig()
    )
    return EvalLog(eval=spec, status="success", samples=samples)


def text_of(message: Any) -> str:
    if isinstance(message.content, str):
        return message.content
    return "".join(part.text for part in message.content if part.type == "text")


def steps_of(sample: Any) -> list[tuple[str, str | None, bool]]:
    steps: list[tuple[str, str | None, bool]] = []
    failed = {message.tool_call_id for message in sample.messages if message.role == "tool" and message.error}
    for message in sample.messages:
        if message.role == "assistant":
            calls = [(call.function, call.id in failed) for call in message.tool_calls or ()] or [("respond", False)]
            steps += [(name, None if i else text_of(message), error) for i, (name, error) in enumerate(calls)]
    return steps


@pytest.mark.parametrize("container", ["json", "eval"])
def test_what_inspect_writes_is_read_as_inspect_reads_it(log: Any, tmp_path: Path, container: str) -> None:
    path = tmp_path / f"log.{container}"
    write_eval_log(log, str(path))
    compare(path)
    assert [trace.outcome for trace in read_traces(path)].count(Outcome.CENSORED) == 2


@pytest.mark.shared_data
@pytest.mark.parametrize(
    "name",
    [
        "intercode_ctf.eval",
        "inspect_intercode_ctf_4samples_zstd.eval",
        "inspect_intercode_ctf_4samples.json",
        "log_message_deduplication.eval",
        "log_streaming.eval",
        "2025-05-12T20-28-13-04-00_popularity.json",
    ],
)
def test_real_logs(shared_data: Path, name: str) -> None:
    compare(shared_data / "traces" / "inspect" / name)


def compare(path: Path) -> None:
    log = read_eval_log(str(path), resolve_attachments=True)
    theirs = {(f"{log.eval.task}/{sample.id}", str(sample.epoch)): steps_of(sample) for sample in log.samples or ()}
    ours = {
        (trace.task_id, trace.trial): [(step.name, step.text, step.error) for step in trace.steps]
        for trace in read_traces(path)
    }
    assert ours == theirs
    assert len(ours) == len(log.samples or ())
    by_package, by_us = (
        {trace.trace_id: msgspec.structs.replace(trace, source=None) for trace in read_traces(path, format=name)}
        for name in ("inspect-ai", "inspect")
    )
    assert by_package == by_us


@pytest.mark.parametrize("damage", [b"PK\x03\x04 no archive", b'{"version": 2, "status": "success", "eval": 7}'])
def test_what_the_package_cannot_read_is_one_problem(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "log.eval").write_bytes(damage)
    with pytest.raises(TraceError, match="inspect_ai cannot read it: "):
        list(read_traces(tmp_path / "log.eval", format="inspect-ai"))
