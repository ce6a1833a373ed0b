from __future__ import annotations

import json
import re
import struct
import sys
import tracemalloc
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import Outcome, Step, TraceSet, read_traces
from tracebridge.traces.files import InputFile
from tracebridge.traces.readers.zip_members import ZipMembers

SAY = {"role": "assistant", "content": "hi"}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": "bash", "arguments": {}}]}
ERROR_TYPES = [
    *("parsing", "timeout", "unicode_decode", "permission", "file_not_found", "is_a_directory", "limit", "approval"),
    *("cancelled", "sandbox_unavailable", "unknown", "output_limit"),
]


def result(error: Any = None) -> dict[str, Any]:
    return {"role": "tool", "content": "out", "tool_call_id": "1", "error": error}


def sample(name: Any = 1, epoch: int = 1, **fields: Any) -> dict[str, Any]:
    return {"id": name, "epoch": epoch, "messages": [SAY], "scores": {"match": {"value": "C"}}} | fields


def log(*samples: dict[str, Any], **fields: Any) -> dict[str, Any]:
    base = {"version": 2, "status": "success", "eval": {"task": "ctf", "model": "m"}, "results": None}
    return base | {"samples": list(samples)} | fields


def archive(document: dict[str, Any], method: int, *, n_bytes: int | None = None) -> bytes:
    """An .eval file; with ``n_bytes`` its last sample claims that size. Written by hand: zipfile cannot zstandard."""
    header = {key: value for key, value in document.items() if key != "samples"}
    members = {f"samples/{s['id']}_epoch_{s['epoch']}.json": s for s in document["samples"]} | {"header.json": header}
    body, directory = BytesIO(), BytesIO()
    for name, content in members.items():
        plain = json.dumps(content).encode()
        packed = {
            0: lambda data: data,
            8: lambda data: zlib.compress(data, wbits=-15),
            93: zstandard.ZstdCompressor().compress,
        }[method](plain)
        size = n_bytes if n_bytes is not None and name != "header.json" else len(plain)
        common = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0, zlib.crc32(plain), len(packed), size, len(name), 0)
        entry = struct.pack("<4sH", b"PK\x01\x02", 20) + common + struct.pack("<HHHII", 0, 0, 0, 0, body.tell())
        directory.write(entry + name.encode())
        body.write(b"PK\x03\x04" + common + name.encode() + packed)
    size, n_members = directory.tell(), len(members)
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n_members, n_members, size, body.tell(), 0)
    return body.getvalue() + directory.getvalue() + end


def read(tmp_path: Path, document: dict[str, Any], method: int | None = None, **options: Any) -> TraceSet:
    path = tmp_path / ("log.json" if method is None else "log.eval")
    path.write_bytes(json.dumps(document).encode() if method is None else archive(document, method))
    return read_traces(path, **options)


@pytest.mark.parametrize("method", [None, 0, 8, 93])
def test_all_containers_give_the_same_runs(tmp_path: Path, method: int | None) -> None:
    messages = [{"role": "user", "content": "do"}, CALL, result({"type": "timeout", "message": "x"}), SAY]
    document = log(sample("a/b:c", 2, messages=messages), sample(7, scores={"match": {"value": "I"}}))
    first, second = read(tmp_path, document, method)
    assert first.steps == (
        Step(name="bash", kind="tool", text="", error=True),
        Step(name="respond", kind="message", text="hi"),
    )
    assert (first.task_id, first.trial, first.model) == ("ctf/a/b:c", "2", "m")
    assert (first.outcome, second.outcome) == (Outcome.SUCCESS, Outcome.FAILURE)
    assert first.trace_id == ("log" if method is None else "log.eval") + "/a/b:c/2"


@pytest.mark.parametrize(
    ("fields", "outcome", "termination"),
    [
        ({"scores": {"s": {"value": "N"}}}, Outcome.FAILURE, None),
        ({"scores": {"s": {"value": 1.0}, "t": {"value": True}}}, Outcome.SUCCESS, None),
        ({"scores": {"s": {"value": float("nan")}}}, Outcome.CENSORED, "no_score"),
        ({"scores": {}}, Outcome.CENSORED, "no_score"),
        ({"scores": None}, Outcome.CENSORED, "no_score"),
        ({"scores": None, "score": {"value": "C"}}, Outcome.SUCCESS, None),
        (
            {"scores": {"s": {"value": "I"}}, "limit": {"type": "message", "limit": 50}},
            Outcome.CENSORED,
            "message_limit",
        ),
        ({"limit": {"type": "token", "limit": 9}}, Outcome.SUCCESS, "token_limit"),
        ({"scores": None, "error": {"message": "boom"}}, Outcome.CENSORED, "error"),
        ({"invalidation": {"reason": "x"}}, Outcome.CENSORED, "invalidated"),
    ],
)
def test_outcomes(tmp_path: Path, fields: dict[str, Any], outcome: Outcome, termination: str | None) -> None:
    (trace,) = read(tmp_path, log(sample(**fields)))
    assert (trace.outcome, trace.termination) == (outcome, termination)


@pytest.mark.parametrize("error", [*({"type": name, "message": "x"} for name in ERROR_TYPES), "old"])
def test_every_type_of_tool_error_is_an_error(tmp_path: Path, error: Any) -> None:
    (trace,) = read(tmp_path, log(sample(messages=[CALL, result(), CALL, result(error)])))
    assert [step.error for step in trace.steps] == [False, True]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ({"scores": {"s": {"value": "P"}}}, r"field scores.s.value: partially correct is neither"),
        ({"scores": {"s": {"value": 0.4}}}, "0.4 is neither 0 nor 1"),
        ({"scores": {"s": {"value": {"a": 1}}}}, "a dict does not say"),
        ({"scores": {"s": {"value": "C"}, "t": {"value": "I"}}}, "scores contradict each other"),
        ({"messages": [result()]}, "no tool call waits for"),
        ({"epoch": None}, "Expected `int`"),
    ],
)
def test_bad_samples_are_named_and_the_others_survive(tmp_path: Path, bad: dict[str, Any], what: str) -> None:
    document = log(sample(1), sample(**({"name": 2} | bad)), sample(3))
    with pytest.raises(TraceError, match=what) as caught:
        read(tmp_path, document)
    assert len(caught.value.problems) == 1
    assert len(read(tmp_path, document, skip_bad=True)) == 2


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("attachment://abc", "long"),
        ([{"type": "text", "text": "so "}, {"type": "text", "text": "attachment://abc"}, {"type": "image"}], "so long"),
        ("attachment://gone", "attachment://gone"),
    ],
)
@pytest.mark.parametrize("apart", [{"attachments": {"abc": "long"}}, {"transcript": {"content": {"abc": "long"}}}])
def test_long_texts_are_looked_up(tmp_path: Path, content: Any, text: str, apart: dict[str, Any]) -> None:
    (trace,) = read(tmp_path, log(sample(messages=[SAY | {"content": content}], **apart)))
    assert trace.steps[0].text == text


def test_not_a_number_in_a_text_stays(tmp_path: Path) -> None:
    text = 'NaN "Infinity" \\'
    (trace,) = read(tmp_path, log(sample(messages=[SAY | {"content": text}]), results={"value": float("-inf")}))
    assert trace.steps[0].text == text


def test_logs_as_a_whole(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"version 4 of the log format is not known.*--format inspect-ai"):
        read(tmp_path, log(sample(), version=4))
    with pytest.raises(TraceError, match="marked as invalid"):
        read(tmp_path, log(sample(), invalidated=True))
    with pytest.raises(NothingToCheckError):
        read(tmp_path, log())
    assert "status 'cancelled'" in str(read(tmp_path, log(sample(), status="cancelled")).notes[0])


def test_the_package_of_inspect_is_asked_for_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log(sample())))
    with pytest.raises(
        TraceError, match=re.escape("takes the package inspect_ai (pip install 'tracebridge[inspect]')")
    ):
        list(read_traces(path, format="inspect-ai"))


@pytest.mark.parametrize("method", [8, 93])
@pytest.mark.parametrize("claimed", [10, 100_000])
def test_a_sample_of_another_size_than_recorded(tmp_path: Path, method: int, claimed: int) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(archive(log(sample()), method, n_bytes=claimed))
    with pytest.raises(TraceError, match="its size or checksum is not the recorded one"):
        read_traces(path)


def test_zip_bombs_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(archive(log(sample()), 93, n_bytes=(1 << 32) - 1))
    with pytest.raises(TraceError, match="claim to hold 4,29"):
        read_traces(path)


@pytest.mark.parametrize("method", [8, 93])
def test_a_bomb_that_lies_about_its_size_costs_no_memory(tmp_path: Path, method: int) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(archive(log(sample(messages=[SAY | {"content": "x" * 20_000_000}])), method, n_bytes=1000))
    with InputFile(path, "log.eval") as file:
        members = ZipMembers(file)
    tracemalloc.start()
    with pytest.raises(TraceError, match="its size or checksum is not the recorded one"):
        members.read("samples/1_epoch_1.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_archives_that_are_damaged(tmp_path: Path) -> None:
    whole = archive(log(sample(1), sample(2)), 93)
    path = tmp_path / "log.eval"
    path.write_bytes(whole[:-30])
    with pytest.raises(TraceError, match="the zip archive is damaged or cut off"):
        read_traces(path)
    path.write_bytes(whole[:60] + b"\x00\x00\x00\x00" + whole[64:])  # inside the first sample
    with pytest.raises(TraceError, match=r"'samples/1_epoch_1.json' is damaged"):
        read_traces(path)
    assert len(read_traces(path, skip_bad=True)) == 1


def test_an_archive_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("samples/1.json", "{}")
    with pytest.raises(TraceError, match=r"neither header.json nor _journal/start.json"):
        read_traces(path)


# ---------------------------------------------------------------- samples in chunks


def chunked(document: dict[str, Any], size: int) -> dict[str, Any]:
    """The members of an archive with its samples in chunks, each of which ends a slice of what it refers to."""
    members: dict[str, Any] = {"header.json": {key: value for key, value in document.items() if key != "samples"}}
    for whole in document["samples"]:
        folder = f"samples/{whole['id']}_epoch_{whole['epoch']}"
        pool = [{"role": "system", "content": "not of the conversation"}, *whole["messages"][::-1]]
        last = len(pool)
        refs = [[last - 1 - i, last - i] for i in range(last - 1)]
        shell = {key: value for key, value in whole.items() if key not in ("messages", "attachments")}
        members[f"{folder}/sample.json"] = shell | {"message_refs": refs}
        members |= {f"{folder}/skeleton.json": {}, f"{folder}/events/stats.json": {}, f"{folder}/events/0.json": []}
        for name, items in (("messages", pool), ("attachments", whole["attachments"])):
            for start in range(0, len(items), size):
                members[f"{folder}/{name}/{start}.json"] = items[start : start + size]
    return members


def write_members(path: Path, members: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w") as stream:
        for name, content in members.items():
            stream.writestr(name, json.dumps(content))
    return path


CHUNKED = log(
    sample("a/b_epoch_1", messages=[CALL, result("x"), SAY | {"content": "attachment://1"}], attachments=["no", "yes"]),
    sample(2, messages=[SAY, SAY | {"content": "attachment://0"}], attachments=["NaN"], scores={"s": {"value": "I"}}),
)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_samples_in_chunks_are_the_same_runs(tmp_path: Path, size: int) -> None:
    whole = log(*(each | {"attachments": dict(enumerate(each["attachments"]))} for each in CHUNKED["samples"]))
    mixed = chunked(CHUNKED, size) | {"samples/3_epoch_1.json": sample(3)}
    expected = sorted(read(tmp_path, log(*whole["samples"], sample(3)), 0), key=lambda trace: trace.trace_id)
    found = sorted(read_traces(write_members(tmp_path / "log.eval", mixed)), key=lambda trace: trace.trace_id)
    assert [(t.trace_id, t.steps, t.outcome) for t in found] == [(t.trace_id, t.steps, t.outcome) for t in expected]
    assert [trace.steps[-1].text for trace in found] == ["NaN", "hi", "yes"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"sample.json": None}, "is in chunks and has no sample.json"),
        ({"messages/0.json": None}, r"'samples/2_epoch_1/messages/' the elements from 0 to 1 are missing"),
        ({"messages/1.json": None, "messages/2.json": None}, "refers to messages 2 to 3 of 1"),
        ({"sample.json": {"message_refs": [[-1, 1]]}}, "refers to messages -1 to 1 of 3"),
        ({"sample.json": {"message_refs": [[2, 1]]}}, "refers to messages 2 to 1 of 3"),
        ({"sample.json": {"message_refs": 1}}, r"sample\.json, field message_refs: Expected `array`"),
        ({"messages/0.json": {}}, r"messages/0\.json: Expected `array`"),
        ({"messages/00.json": []}, r"messages/00\.json"),
        ({"sample.json": {"id": 2, "epoch": 1, "message_refs": [[0, 3]] * 200}}, "is larger than 0 MiB"),
    ],
)
def test_chunks_that_are_no_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], what: str
) -> None:
    monkeypatch.setattr("tracebridge.traces.readers.inspect_archive.MAX_MEMBER_BYTES", 10_000)
    members = chunked(CHUNKED, 1) | {f"samples/2_epoch_1/{name}": content for name, content in change.items()}
    path = write_members(tmp_path / "log.eval", {name: text for name, text in members.items() if text is not None})
    with pytest.raises(TraceError, match=what) as caught:
        read_traces(path)
    assert len(caught.value.problems) == 1
    assert "ctf/a/b_epoch_1" in [trace.task_id for trace in read_traces(path, skip_bad=True)]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "outcomes"),
    [
        # from the scores and limits in the files: 6 of 15 are scored I, 3 of these hit the message limit
        ("intercode_ctf.eval", (9, 3, 3)),
        ("inspect_intercode_ctf_4samples_zstd.eval", (2, 1, 1)),
        ("inspect_intercode_ctf_4samples.json", (2, 1, 1)),
        ("log_message_deduplication.eval", (0, 1, 0)),
        ("log_streaming.eval", (3, 1, 0)),
        ("2025-05-12T20-28-13-04-00_popularity.json", (2, 1, 0)),
    ],
)
def test_real_logs(shared_data: Path, name: str, outcomes: tuple[int, int, int]) -> None:
    corpus = read_traces(shared_data / "traces" / "inspect" / name)
    assert tuple(corpus.outcomes().values()) == outcomes
    reasons = {trace.termination for trace in corpus if trace.outcome is Outcome.CENSORED}
    assert reasons <= {"message_limit"}


@pytest.mark.shared_data
def test_the_real_log_is_the_same_in_both_containers(shared_data: Path) -> None:
    folder = shared_data / "traces" / "inspect"
    packed = read_traces(folder / "inspect_intercode_ctf_4samples_zstd.eval")
    plain = read_traces(folder / "inspect_intercode_ctf_4samples.json")
    assert [trace.steps for trace in packed] == [trace.steps for trace in plain]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "error", "what"),
    [
        ("01_git_lfs_pointer.eval", TraceError, "Git LFS pointer"),
        ("03_inspect_v1_NaN_accuracy_nosamples.json", NothingToCheckError, "no run in"),
        ("04_inspect_future_version4.json", TraceError, "version 4"),
        ("05_inspect_cancelled_zero_samples.json", NothingToCheckError, "no run in"),
        ("06_inspect_all_tool_error_types.json", TraceError, "no tool call waits for"),
    ],
)
def test_real_malformed_logs(shared_data: Path, name: str, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        read_traces(shared_data / "malformed" / name)


@pytest.mark.shared_data
def test_a_real_log_without_scores(shared_data: Path) -> None:
    (trace,) = read_traces(shared_data / "malformed" / "02_zip_method93_zstd_noscores_retries.eval")
    assert (trace.outcome, trace.termination) == (Outcome.CENSORED, "no_score")


SAMPLE, STATS, CREATED = "2026-01-01T01:00:00.5+01:00", "2026-01-01T00:00:02+00:00", "2026-01-01T00:00:01"


@pytest.mark.parametrize(
    ("of_sample", "of_log", "expected"),
    [
        ({"started_at": SAMPLE}, {"stats": {"started_at": STATS}}, "2026-01-01T00:00:00Z"),
        ({}, {"stats": {"started_at": STATS}}, "2026-01-01T00:00:02Z"),
        ({"started_at": "?"}, {"stats": {"started_at": ""}}, "2026-01-01T00:00:01Z"),
        ({}, {"stats": None, "eval": {"task": "ctf", "created": 3}}, None),
    ],
)
def test_a_run_began_with_its_sample_or_its_evaluation(
    tmp_path: Path, of_sample: dict[str, Any], of_log: dict[str, Any], expected: str | None
) -> None:
    whole = {"eval": {"task": "ctf", "model": "m", "created": CREATED}} | of_log
    (trace,) = read(tmp_path, log(sample(**of_sample), **whole))
    assert trace.attributes.get("started") == expected
