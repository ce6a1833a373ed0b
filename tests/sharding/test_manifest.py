"""The manifest: only new files are read, a killed reading goes on, and what was kept is checked like any input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config

from tracebridge.chain import document_text
from tracebridge.cli import run
from tracebridge.errors import TraceError, UsageError
from tracebridge.pipeline import FittedCorpus, fit_files
from tracebridge.sharding import source
from tracebridge.sharding.summary import ShardSummary, SummaryError, pack, read_runs, unpack
from tracebridge.sharding.task import ShardOptions, ShardTask, summarize
from tracebridge.traces import Outcome, Step, Trace, write_traces


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for day in range(4):
        write_day(folder, day)
    return folder


def write_day(folder: Path, day: int, name: str = "plan") -> None:
    runs = [
        Trace(trace_id=f"{day}-{i}", outcome=list(Outcome)[i % 3], steps=(Step(name=name),) * (1 + i % 2), task_id="t")
        for i in range(5)
    ]
    write_traces(runs, folder / f"day{day}.jsonl")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of the files that are read, as they are."""
    labels: list[str] = []

    def told(task: ShardTask) -> ShardSummary:
        labels.extend(label for _, label in task.files)
        return summarize(task)

    monkeypatch.setattr(source, "summarize", told)
    return labels


def same(one: FittedCorpus, two: FittedCorpus) -> bool:
    return document_text(one.fit.to_dict()) == document_text(two.fit.to_dict()) and one.corpus == two.corpus


def test_only_what_is_new_or_has_changed_is_read(corpus: Path, tmp_path: Path, read: list[str]) -> None:
    manifest = tmp_path / "m.json"
    fit_files([corpus], manifest=manifest)
    assert read == [f"day{day}.jsonl" for day in range(4)]
    entries = json.loads(manifest.read_text())["shards"].values()
    assert [(entry["path"], entry["n_runs"]) for entry in entries] == [(label, 5) for label in read]
    read.clear()
    write_day(corpus, 4)
    write_day(corpus, 2, name="search")
    resumed = fit_files([corpus], manifest=manifest, keep=True)
    assert read == ["day2.jsonl", "day4.jsonl"]
    assert same(resumed, fit_files([corpus]))
    read.clear()
    assert same(fit_files([corpus], manifest=manifest, mapping={"state": "name"}), fit_files([corpus], skip_bad=True))
    assert read[:5] == [f"day{day}.jsonl" for day in range(5)], "other options, other summaries"


def test_a_reading_that_was_killed_goes_on(corpus: Path, tmp_path: Path, read: list[str]) -> None:
    code = (
        "import os, signal, sys\n"
        "from tracebridge.pipeline import fit_files\n"
        "def stop(progress):\n"
        "    if progress.shards_read == 3:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "fit_files([sys.argv[1]], manifest=sys.argv[2], on_progress=stop)\n"
    )
    manifest = tmp_path / "m.json"
    killed = subprocess.run([sys.executable, "-c", code, str(corpus), str(manifest)], env=os.environ, check=False)
    assert killed.returncode == -signal.SIGKILL
    found = fit_files([corpus], manifest=manifest)
    assert read == ["day3.jsonl"]
    assert same(found, fit_files([corpus]))


def test_damage_is_made_good(corpus: Path, tmp_path: Path, read: list[str]) -> None:
    manifest = tmp_path / "m.json"
    expected = fit_files([corpus], manifest=manifest)
    first, second, *_ = sorted((tmp_path / "m.json.shards").iterdir())
    second.write_bytes(first.read_bytes())  # a sound summary, but of another file
    first.write_bytes(first.read_bytes()[:-3])
    read.clear()
    assert same(fit_files([corpus], manifest=manifest), expected)
    assert len(read) == 2
    read.clear()
    assert same(fit_files([corpus], manifest=manifest), expected)
    assert not read


def test_a_manifest_that_was_deleted_is_written_again(corpus: Path, tmp_path: Path, read: list[str]) -> None:
    manifest = tmp_path / "m.json"
    fit_files([corpus], manifest=manifest)
    written = manifest.read_bytes()
    manifest.unlink()
    read.clear()
    fit_files([corpus], manifest=manifest)
    assert read == []
    assert manifest.read_bytes() == written


def test_what_is_gone_is_not_counted_and_is_forgotten_when_asked(corpus: Path, tmp_path: Path, read: list[str]) -> None:
    manifest, kept = tmp_path / "m.json", tmp_path / "m.json.shards"
    fit_files([corpus], manifest=manifest)
    (kept / "notes.txt").write_text("not ours")
    (corpus / "day0.jsonl").unlink()
    (corpus / "day1.jsonl").rename(corpus / "moved.jsonl")
    write_day(corpus, 2, name="search")
    expected = fit_files([corpus])
    assert same(fit_files([corpus], manifest=manifest), expected)
    assert len(list(kept.glob("*.zst"))) == 4 + 2, "without being asked nothing is forgotten"
    assert same(fit_files([corpus], manifest=manifest, prune=True), expected)
    entries = json.loads(manifest.read_text())["shards"]
    assert {entry["path"] for entry in entries.values()} == {"day2.jsonl", "day3.jsonl", "moved.jsonl"}
    assert {path.name for path in kept.iterdir()} == {*(f"{key}.zst" for key in entries), "notes.txt"}
    read.clear()
    assert same(fit_files([corpus], manifest=manifest), expected)
    assert not read
    with pytest.raises(UsageError, match="--prune needs a --manifest"):
        fit_files([corpus], prune=True)


def test_another_file_is_no_manifest(corpus: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.json"
    other.write_text('{"kind": "notes"}')
    with pytest.raises(TraceError, match="this is no manifest of tracebridge"):
        fit_files([corpus], manifest=other)
    assert other.read_text() == '{"kind": "notes"}'


def test_a_manifest_is_not_among_the_traces(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lies among the traces: put it beside their folder"):
        fit_files([corpus], manifest=corpus / "m.json")
    (tmp_path / "m.json").write_text('{"kind": "tracebridge-manifest", "schema_version": 1, "shards": {}}')
    with pytest.raises(UsageError, match="lies among the traces"):
        fit_files([f"{tmp_path}/*.json"], manifest=tmp_path / "m.json")


def test_what_is_too_large_is_read_every_time(
    corpus: Path, tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = fit_files([corpus])
    monkeypatch.setattr("tracebridge.sharding.summary.MAX_BYTES", 500)
    for _ in range(2):
        assert same(fit_files([corpus], manifest=tmp_path / "m.json"), expected)
    assert len(read) == 3 * 4
    with parallel_config(backend="threading"), pytest.raises(TraceError, match="split the file"):
        fit_files([corpus], jobs=2)


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("TerminatedWorkerError", r"a process that read traces was killed .*short of memory"),
        ("FutureCancelledError", r"the cluster that read traces was lost .*reading goes on where it was"),
    ],
)
def test_workers_that_die_are_told(corpus: Path, monkeypatch: pytest.MonkeyPatch, error: str, what: str) -> None:
    def die(tasks: object) -> None:
        raise type(error, (Exception,), {})

    monkeypatch.setattr("tracebridge.sharding.parallel.summarize_to_bytes", die)
    with parallel_config(backend="threading"), pytest.raises(TraceError, match=what):
        fit_files([corpus], jobs=2)


@pytest.mark.shared_data
def test_what_looks_beside_its_file_is_not_kept(shared_data: Path, tmp_path: Path) -> None:
    manifest = tmp_path / "m.json"
    found = fit_files([shared_data / "traces" / "atif"], manifest=manifest, prior="none", skip_bad=True)
    formats = {file["path"]: file["format"] for file in found.corpus["files"]}
    assert "atif" in formats.values()
    kept = {entry["path"] for entry in json.loads(manifest.read_text())["shards"].values()} if manifest.exists() else ()
    assert "atif" not in {formats[path] for path in kept}


def test_the_command_line_takes_it(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (corpus / "day1.jsonl").open("a") as file:
        file.write("{broken\n")
    texts = []
    for options in ([], ["--manifest", str(tmp_path / "m.json")], ["--manifest", str(tmp_path / "m.json")]):
        assert run(["traces", "summary", str(corpus), "--skip-bad", "--json", *options]) == 0
        texts.append(capsys.readouterr().out)
        assert run(["traces", "validate", str(corpus), "--json", *options]) == 3
        texts.append(capsys.readouterr().out)
        assert run(["certify", str(corpus), "--skip-bad", "--replicates", "19", "--json", *options]) in (0, 1, 4)
        texts.append(capsys.readouterr().out)
    assert texts[:3] == texts[3:6] == texts[6:]
    assert "day1.jsonl:6" in texts[0]


# ---------------------------------------------------------------- hostile summaries


def a_summary() -> bytes:
    trace = Trace(trace_id="a", outcome=Outcome.SUCCESS, steps=(Step(name="x"), Step(name="y", error=True)))
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"tracebridge-summary-{os.getpid()}.jsonl"  # noqa: S108
    write_traces([trace], path)
    try:
        return summarize(ShardTask(files=((path, "a.jsonl"),), options=ShardOptions.of(runs=True))).to_bytes()
    finally:
        path.unlink()


SUMMARY = a_summary()


def test_a_summary_comes_back_as_it_was() -> None:
    read = ShardSummary.from_bytes(SUMMARY)
    assert read.to_bytes() == SUMMARY
    assert isinstance(read.runs, bytes)
    (run,) = read_runs(read.runs)
    assert [(step.name, step.error) for step in run.steps] == [("x", False), ("y", True)]


@settings(max_examples=40)
@given(data=st.data())
def test_damaged_bytes_are_refused(data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(SUMMARY) - 1))
    flipped = SUMMARY[:at] + bytes([SUMMARY[at] ^ data.draw(st.integers(1, 255))]) + SUMMARY[at + 1 :]
    for damaged in (flipped, SUMMARY[:at]):
        with suppress(SummaryError):  # unless it is a bit of the header that says nothing
            assert ShardSummary.from_bytes(damaged).to_bytes() == SUMMARY


def put(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        for key in parents:
            document = document[key]
        document[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("schema_version", 1), "schema_version 1 is not 2"),
        (put("ids", b"short"), "digests of trace_ids are cut"),
        (put("tally.lengths", {"2": 2}), "do not add up"),
        (put("tally.errors", {"x": 2}), "more errors than occurrences"),
        (put("tally.steps", {"x": -1}), "Expected `int` >= 1"),
        (put("features.counts", (2**61).to_bytes(8, "little") * 3), "between 1 and 2\\^60"),
        (put("features.keys", b"\xff" * 24), "distinct, ascending"),
        (put("features.vectors", [["action", "x", False, False, ""]]), "between vectors that are not there"),
        (put("counts", [0, 0, -1]), "Expected `int` >= 0"),
        (put("more", 1), "unknown field"),
        (put("error", ["OSError", []]), "Invalid enum value"),
    ],
)
def test_sums_and_types_are_checked(change: Callable[[dict[str, Any]], None], message: str) -> None:
    document = msgspec.msgpack.decode(unpack(SUMMARY))
    change(document)
    with pytest.raises(SummaryError, match=message):
        ShardSummary.from_bytes(pack(msgspec.msgpack.encode(document)))


def test_runs_are_checked() -> None:
    packed = msgspec.msgpack.decode(unpack(SUMMARY))["runs"]
    document = msgspec.msgpack.decode(unpack(packed))
    for key, value in (("codes", b"\x07\x07"), ("lengths", b"\x09\0\0\0"), ("width", 3), ("heads", b"[{}]")):
        with pytest.raises(SummaryError):
            read_runs(pack(msgspec.msgpack.encode({**document, key: value})))


def test_a_bomb_is_not_unpacked() -> None:
    import zstandard

    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 20))
    header = bytearray(bomb)
    assert zstandard.frame_content_size(bytes(header)) == 1 << 20
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(1 << 20))
    with pytest.raises(SummaryError, match="it unpacks to -1 bytes"):
        unpack(unsized)
