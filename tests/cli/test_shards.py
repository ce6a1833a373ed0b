"""Where trace files are read, from the command line: the documents are the same, and the line tells how far it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tracebridge.cli import run
from tracebridge.cli.shards import progress_text
from tracebridge.sharding import ReadingProgress
from tracebridge.traces import Outcome, Step, Trace, write_traces


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for day in range(3):
        runs = [
            Trace(
                trace_id=f"{day}-{i}",
                outcome=list(Outcome)[i % 3],
                steps=tuple(Step(name=name) for name in ["plan", "search", "edit"][: 1 + (i + day) % 3]),
                task_id=f"t{i % 4}",
                attributes={"site": "ab"[i % 2]},
            )
            for i in range(12)
        ]
        write_traces(runs, folder / f"day{day}.jsonl")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "-o", "-"],
        ["fit", "-o", "-", "--model", "order2"],
        ["certify", "--replicates", "19", "--covariate", "site", "--held-out"],
        ["certify", "--replicates", "19", "--model", "order2"],
        ["traces", "summary"],
        ["traces", "validate"],
    ],
    ids=" ".join,
)
def test_two_processes_and_a_manifest_change_nothing(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    found = []
    for options in (
        [],
        ["--jobs", "2", "--manifest", str(tmp_path / "m.json")],
        ["--manifest", str(tmp_path / "m.json")],
    ):
        code = run([*command, str(corpus), "--json", *options])
        found.append((code, capsys.readouterr().out))
    assert found[0] == found[1] == found[2]
    assert json.loads(found[0][1])


def test_here_or_there(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fit", str(corpus), "-o", "-", "--jobs", "2", "--cluster", "tcp://127.0.0.1:9"]) == 2
    assert "give one of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "read", "known", "text"),
    [
        (2.0, 50_000_000, 0, "reading traces: 3 of 9 shards, 1,234 steps, 25 MB/s, 16 s left"),
        (2.0, 1_000_000, 0, "reading traces: 3 of 9 shards, 1,234 steps, 0 MB/s, 14 min 58 s left"),
        (2.0, 100_000, 0, "reading traces: 3 of 9 shards, 1,234 steps, 0 MB/s, 2 h 29 min left"),
        (2.0, 0, 0, "reading traces: 3 of 9 shards, 1,234 steps"),
        (0.0, 50_000_000, 2, "reading traces: 3 of 9 shards, 1,234 steps, 2 known from before"),
    ],
)
def test_how_far_it_is(seconds: float, read: int, known: int, text: str) -> None:
    done = ReadingProgress(
        n_shards=9, n_bytes=450_000_000, shards_read=3, bytes_read=read, n_runs=99, n_steps=1234, n_known=known
    )
    assert progress_text(done, seconds) == text
