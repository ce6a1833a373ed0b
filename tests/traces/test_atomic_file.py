from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tracebridge.errors import TraceError, UsageError
from tracebridge.report import OutputFolder
from tracebridge.traces import Outcome, Trace, write_traces
from tracebridge.traces.atomic_file import is_leftover, replacing, write_whole

OLD = b"what was there before\n" * 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file.jsonl"
    path.write_bytes(OLD)
    return path


def test_a_block_that_raises_leaves_the_old_file_and_nothing_beside_it(path: Path) -> None:
    def write_half(stream_of: Path) -> None:
        with replacing(stream_of) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half(path)
    assert path.read_bytes() == OLD
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_what_is_written_replaces_the_old_file_with_its_permissions(path: Path) -> None:
    path.chmod(0o640)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path.name)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127)
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_device_stays_a_device(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"through the pipe")
        assert os.read(reading, 100) == b"through the pipe"
    finally:
        os.close(reading)
    assert pipe.is_fifo()


def test_traces_that_cannot_be_written_leave_the_old_file(path: Path) -> None:
    one = Trace(trace_id="a", outcome=Outcome.SUCCESS)
    with pytest.raises(TraceError, match="used twice"):
        write_traces([one, one], path)
    assert path.read_bytes() == OLD


def test_what_a_killed_process_left_does_not_make_a_folder_foreign(tmp_path: Path) -> None:
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / f".results.json.{'0' * 16}.tmp").write_text("half")
    OutputFolder(folder, marker="results.json", kind="results").write("results.json", "whole")
    (folder / "results.json").rename(folder / "other.json")
    with pytest.raises(UsageError, match="not empty"):
        OutputFolder(folder, marker="results.json", kind="results")


# Each writes over the file, and is killed while the new bytes are on their way to the disk.
WRITERS = {
    "traces": """
from tracebridge.traces import Outcome, Trace, write_traces
write_traces((die_after(i, Trace(trace_id=str(i), outcome=Outcome.SUCCESS)) for i in range(10**6)), path)
""",
    "lines of a model": """
from tracebridge.export.whole_file import write_lines
write_lines(path, (die_after(i, "1 2 0.5") for i in range(10**6)))
""",
    "a document": """
import tracebridge.traces.atomic_file as atomic
from tracebridge.chain import write_chain
from tracebridge.chain import chain_from_dict
chain = chain_from_dict({"kind": "markov-chain", "schema_version": 1, "states": ["a"], "initial": {"a": 1.0},
    "transitions": {"a": {"a": 1.0}}, "labels": {}, "rewards": {}})
Path.replace = lambda *_: die_after(10**6, None)
write_chain(path, chain)
""",
}
KILLED = """
import os, signal, sys
from pathlib import Path
path = Path(sys.argv[1])
def die_after(index, value):
    if index >= 50_000:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
"""


@pytest.mark.parametrize("writer", WRITERS)
def test_a_process_that_is_killed_while_it_writes_leaves_the_old_file(path: Path, writer: str) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED + WRITERS[writer], path], check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert path.read_bytes() == OLD
    (left,) = (entry.name for entry in path.parent.iterdir() if entry.name != path.name)
    assert is_leftover(left)
