"""Large native files are read in pieces, and nothing shows it."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracebridge.errors import TraceError
from tracebridge.sharding import ShardOptions, read_shards, source
from tracebridge.sharding.scan import ScannedFile, scan
from tracebridge.sharding.summary import ShardSummary
from tracebridge.sharding.task import ShardTask, summarize
from tracebridge.states import count_features
from tracebridge.traces import Outcome, Step, Trace, TraceTally, open_traces

GOOD = st.builds(
    Trace,
    trace_id=st.integers(0, 8).map("run-{}".format),
    outcome=st.sampled_from(Outcome),
    steps=st.lists(st.builds(Step, name=st.sampled_from("ab"), error=st.booleans()), max_size=3).map(tuple),
).map(msgspec.json.encode)
LINES = st.lists(GOOD | st.sampled_from([b"", b"  ", b"{", b'{"trace_id": "x"}', b"\x1f\x8bnoise"]), max_size=15)


def native(path: Path, lines: list[bytes], *, ends: bool = True) -> Path:
    first = Trace(trace_id="first", outcome=Outcome.SUCCESS, steps=(Step(name="a"),))
    path.write_bytes(b"\n".join([msgspec.json.encode(first), *lines]) + b"\n" * ends)
    return path


@settings(max_examples=25)
@given(lines=LINES, piece_bytes=st.integers(1, 400), ends=st.booleans(), keeps=st.booleans())
def test_pieces_are_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], piece_bytes: int, ends: bool, keeps: bool
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    path = native(folder / "runs.jsonl", lines, ends=ends)
    stream, tally = open_traces(path), TraceTally()
    traces = [tally.add(trace) for trace in stream.usable()]
    options = replace(ShardOptions.of(runs=True), piece_bytes=piece_bytes)
    for _ in range(2):
        found = read_shards(path, options, manifest=folder / "m.json" if keeps else None)
        assert found.files == stream.files
        assert (found.log.problems, found.log.n_skipped) == (stream.log.problems, stream.log.n_skipped)
        assert found.tally.summary() == tally.summary()
        assert found.features.counts() == count_features(traces)
        assert found.runs is not None
        assert [(t.trace_id, t.source, len(t.steps)) for t in found.runs] == [
            (t.trace_id, t.source, len(t.steps)) for t in traces
        ]


def scanned(path: Path, piece_bytes: int, name: str | None = None) -> ScannedFile:
    found = scan(path, path.name, name, piece_bytes)
    assert found is not None
    return found


def test_a_file_that_grows_changes_its_last_piece_alone(tmp_path: Path) -> None:
    path = native(tmp_path / "runs.jsonl", [b'{"trace_id": "%d", "outcome": "success"}' % i for i in range(30)])
    before = scanned(path, 200)
    data = path.read_bytes()
    spans = [piece.span for piece in before.pieces]
    assert None not in spans
    assert len(spans) > 4
    parts = [data[span.start : span.end] for span in spans if span is not None]
    assert b"".join(parts) == data
    assert all(part.endswith(b"\n") for part in parts)
    assert [hashlib.sha256(part).hexdigest() for part in parts] == [piece.sha256 for piece in before.pieces]
    assert before.sha256 == hashlib.sha256(data).hexdigest()
    native(path, [*data.splitlines()[1:], b'{"trace_id": "late", "outcome": "failure"}'])
    assert scanned(path, 200).pieces[: len(spans) - 1] == before.pieces[:-1]


def test_only_plain_native_files_are_cut(tmp_path: Path) -> None:
    plain = native(tmp_path / "runs.jsonl", [b"{}"] * 50)
    packed = tmp_path / "runs.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes() * 50))
    table = tmp_path / "runs.csv"
    table.write_text("run_id,state,outcome\n" + "a,plan,success\n" * 50)
    assert len(scanned(plain, 50).pieces) > 1
    assert [len(scanned(path, 50).pieces) for path in (packed, table)] == [1, 1]
    assert len(scanned(plain, 50, "flat").pieces) == 1
    assert scan(tmp_path / "none.jsonl", "none.jsonl", None, 50) is None


def test_a_file_that_changes_meanwhile_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = native(tmp_path / "runs.jsonl", [b'{"trace_id": "%d", "outcome": "success"}' % i for i in range(30)])

    def late(task: ShardTask) -> ShardSummary:
        path.write_bytes(path.read_bytes().replace(b'"29"', b'"92"'))
        return summarize(task)

    monkeypatch.setattr(source, "summarize", late)
    with pytest.raises(TraceError, match=r"runs.jsonl: the file changed while it was read"):
        read_shards(path, replace(ShardOptions.of(), piece_bytes=200))
