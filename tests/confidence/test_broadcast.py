"""The format of deliberations: what is written reads back, and all that is wrong is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.confidence.broadcast_traces import random_corpus

from tracebridge.confidence.broadcast import BroadcastTrace, broadcast_schema
from tracebridge.confidence.broadcast_file import write_broadcast
from tracebridge.confidence.broadcast_lines import read_line, write_line
from tracebridge.confidence.reading import read_confidence
from tracebridge.errors import Location, TraceError

SEEDS = st.integers(0, 2**32)
VALIDATOR = jsonschema.Draft202012Validator(broadcast_schema())


def record(**changes: Any) -> dict[str, Any]:
    """A trace as its JSON object: two blocks of two polls."""
    poll = {"agent": "ann", "order": 0, "score_raw": 90, "parse_ok": True, "candidate_raw": "4", "correct": True}
    other = poll | {"agent": "bob", "order": 1, "score_raw": 70, "candidate_raw": "5", "correct": False}
    speak = {"utt_id": "u0", "agent": "ann", "candidate_raw": "4", "correct": True}
    block = {
        "block_id": "b0",
        "round": 0,
        "turn": 0,
        "index": 0,
        "polls": [poll, other],
        "selection": {"agent": "ann", "score": 90, "tie_set": ["ann"], "rule": "argmax"},
        "speak": speak,
    }
    second = block | {"block_id": "b1", "turn": 1, "index": 1, "speak": speak | {"utt_id": "u1"}}
    whole = {
        "schema": "broadcast-trace/0.1",
        "trace_id": "t1",
        "problem_uid": "p1",
        "cell": {"actor_model": "m", "benchmark": "math", "judge_model": "j"},
        "mode": "broadcast",
        "protocol": {"name": "p", "version": "1"},
        "score_scale": {"min": 1, "max": 100, "integer": True, "elicitation": "how sure?"},
        "blocks": [block, second],
    }
    return json.loads(json.dumps(whole | changes))


def changed(path: str, value: Any) -> dict[str, Any]:
    """The record with one value replaced, or removed where the value is `...`."""
    whole: Any = record()
    *parents, last = (int(key) if key.isdigit() else key for key in path.split("."))
    at = whole
    for key in parents:
        at = at[key]
    if value is ...:
        del at[last]
    else:
        at[last] = value
    return whole


def read(whole: dict[str, Any]) -> BroadcastTrace | list[Any]:
    return read_line(json.dumps(whole).encode(), Location(path="f", line=1), {})


@settings(max_examples=50)
@given(SEEDS)
def test_a_trace_reads_back_and_obeys_the_schema(seed: int) -> None:
    for trace in random_corpus(seed):
        line = write_line(trace)
        again = read_line(line, Location(), {})
        assert again == trace
        assert isinstance(again, BroadcastTrace)
        assert write_line(again) == line
        VALIDATOR.validate(json.loads(line))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(broadcast_schema())
    VALIDATOR.validate(record())


@pytest.mark.parametrize(
    ("path", "value", "field", "message"),
    [
        ("trace_id", ..., "trace_id", "missing"),
        ("schema", "broadcast-trace/9", "schema", "Invalid enum value"),
        ("cell", 3, "cell", "object was expected"),
        ("cell.benchmark", ..., "cell.benchmark", "missing"),
        ("blocks", {}, "blocks", "array was expected"),
        ("blocks.0", 5, "blocks[0]", "object was expected"),
        ("blocks.1.round", -1, "blocks[1].round", ">= 0"),
        ("blocks.0.polls.1.score_raw", "Unparseable", "blocks[0].polls[1].score_raw", "got 'Unparseable'"),
        ("blocks.0.polls.1.score_raw", True, "blocks[0].polls[1].score_raw", "got true"),
        ("blocks.0.polls.1.correct", "yes", "blocks[0].polls[1].correct", "got 'yes'"),
        ("blocks.0.speak", ..., "blocks[0].speak", "missing"),
        ("blocks.0.speak.equiv", [{"judge": "j", "verdict": "same"}], "blocks[0].speak.equiv[0].verdict", "enum"),
        ("outcome", {"passed": None, "stop": "tired"}, "outcome.stop", "enum"),
    ],
)
def test_a_wrong_value_is_refused_by_reader_and_schema(path: str, value: Any, field: str, message: str) -> None:
    whole = changed(path, value)
    found = read(whole)
    assert isinstance(found, list)
    assert [(problem.location.field, problem.location.line) for problem in found] == [(field, 1)]
    assert message in found[0].message
    assert not VALIDATOR.is_valid(whole)


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("score_scale.min", 100, "score_scale"),
        ("score_scale.min", -1, "score_scale"),
        ("score_scale.max", 99.5, "score_scale"),
        ("score_scale.resolution", 0, "score_scale.resolution"),
        ("score_scale.resolution", 1e-300, "score_scale.resolution"),
        ("blocks.1.block_id", "b0", "blocks[1].block_id"),
        ("blocks.1.index", 0, "blocks[1].index"),
        ("blocks.0.round", 1, "blocks[1].round"),
        ("blocks.0.polls.1.agent", "ann", "blocks[0].polls"),
        ("blocks.0.polls.1.order", 0, "blocks[0].polls"),
        ("blocks.0.selection.tie_set", ["eve"], "blocks[0].selection.tie_set"),
        ("blocks.0.speak.agent", "bob", "blocks[0].speak.agent"),
        ("blocks.1.speak.utt_id", "u0", "blocks[1].speak.utt_id"),
        ("blocks.0.visible", ["u1"], "blocks[0].visible"),
        ("blocks.0.visible", ["u0"], "blocks[0].visible"),
        (
            "blocks.0.speak.equiv",
            [{"judge": "j", "verdict": "divergent"}, {"judge": "j", "verdict": "equivalent"}],
            "blocks[0].speak.equiv",
        ),
        ("outcome", {"passed": False, "stop": "pass"}, "outcome"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(path: str, value: Any, field: str) -> None:
    found = read(changed(path, value))
    assert isinstance(found, list)
    assert field in [problem.location.field for problem in found]


def test_all_that_is_wrong_in_a_line_is_listed() -> None:
    whole = changed("blocks.0.polls.0.score_raw", "high")
    whole["mode"] = ""
    del whole["protocol"]["version"]
    found = read(whole)
    assert isinstance(found, list)
    fields = [problem.location.field for problem in found]
    assert sorted(fields) == ["blocks[0].polls[0].score_raw", "mode", "protocol.version"]


def test_unknown_keys_are_kept_under_extra_and_counted() -> None:
    whole = changed("blocks.0.polls.1.mood", [1, {"a": None}])
    whole["extra"] = {"b": 2}
    whole["tokens"] = 5
    seen: dict[str, int] = {}
    trace = read_line(json.dumps(whole).encode(), Location(), seen)
    assert isinstance(trace, BroadcastTrace)
    assert trace.extra == {"b": 2, "tokens": 5}
    assert trace.blocks[0].polls[1].extra == {"mood": [1, {"a": None}]}
    assert seen == {"tokens": 1, "mood": 1}
    assert read_line(write_line(trace), Location(), {}) == trace
    whole["extra"]["tokens"] = 6
    assert isinstance(read(whole), list)


def test_whole_scores_stay_whole() -> None:
    trace = read(changed("blocks.0.polls.0.score_raw", 90.0))
    assert isinstance(trace, BroadcastTrace)
    first, second = trace.blocks[0].polls
    assert isinstance(first.score_raw, float)
    assert isinstance(second.score_raw, int)


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_files_are_written_and_read_back(tmp_path: Path, suffix: str) -> None:
    lines = "".join(json.dumps(record(trace_id=name)) + "\n" for name in ("t1", "t2"))
    (tmp_path / "in.jsonl").write_text(lines)
    corpus = read_confidence(tmp_path / "in.jsonl")
    assert [trace.source for trace in corpus] == ["in.jsonl:1", "in.jsonl:2"]
    out = tmp_path / f"out.jsonl{suffix}"
    assert write_broadcast(corpus, out) == 2
    stored = out.read_bytes()
    plain = {"": lambda data: data, ".gz": gzip.decompress, ".zst": zstandard.decompress}[suffix](stored)
    assert plain.count(b"\n") == 2
    assert read_confidence(out).traces == corpus.traces
    write_broadcast(corpus, out)
    assert out.read_bytes() == stored
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["in.jsonl", out.name])


def test_a_trace_that_would_change_is_not_written(tmp_path: Path) -> None:
    trace = read(record(extra={}))
    assert isinstance(trace, BroadcastTrace)
    broken = msgspec.structs.replace(trace, trace_id="t2", tier_rank=1e999)
    with pytest.raises(TraceError, match="would change"):
        write_broadcast([trace, broken], tmp_path / "out.jsonl")
    with pytest.raises(TraceError, match="used twice"):
        write_broadcast([trace, trace], tmp_path / "out.jsonl")
    assert not list(tmp_path.iterdir())


def test_bad_lines_are_all_listed_with_their_numbers_or_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    good = json.dumps(record())
    bad = [
        '{"schema": "broadcast-trace/0.1", "trace_id": "t2",',
        "[]",
        good.replace("90", "NaN"),
        good,
        '{"trace_id": 1}',
    ]
    path.write_text("\n".join([good, "", *bad]))
    with pytest.raises(TraceError) as caught:
        read_confidence(path)
    text = str(caught.value)
    assert all(f"in.jsonl:{line}" in text for line in (3, 4, 5, 7))
    assert "breaks off" in text
    assert "'NaN' is not a JSON number" in text
    assert "was used by an earlier trace" in text
    corpus = read_confidence(path, skip_bad=True)
    assert (len(corpus), corpus.n_skipped) == (1, 5)


def test_a_line_cut_anywhere_gives_an_error_and_no_crash() -> None:
    line = write_line(random_corpus(3)[0])
    for end in range(0, len(line) - 1, 7):
        assert isinstance(read_line(line[:end], Location(), {}), list)


def test_deep_and_wide_input_is_refused() -> None:
    deep = b'{"schema": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    found = read_line(deep, Location(), {})
    assert isinstance(found, list)
    assert "nested too deeply" in found[0].message
    many = read(record(blocks=[{}] * 1000))
    assert isinstance(many, list)
    assert len(many) == 20
