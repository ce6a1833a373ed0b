"""Files that grow, rotate and are replaced: every run comes once, and nothing is lost silently."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tracebridge.errors import Problem, TraceError, UsageError
from tracebridge.traces import Outcome, Step, Trace, write_traces
from tracebridge.traces.jsonl import encode_checked
from tracebridge.watching.followed_files import FileEvent, FollowedFiles


def traces(first: int, number: int) -> list[Trace]:
    return [
        Trace(trace_id=f"run-{i}", outcome=Outcome.SUCCESS, steps=(Step(name="a"), Step(name="b")))
        for i in range(first, first + number)
    ]


def lines(first: int, number: int) -> bytes:
    return b"".join(encode_checked(trace) + b"\n" for trace in traces(first, number))


def looked(files: FollowedFiles, *, last: bool = False) -> tuple[list[str], list[str], list[str]]:
    """The ids of new runs, the problems and the events."""
    found = list(files.look(last=last))
    ids = [each.trace_id for each in found if isinstance(each, Trace)]
    problems = [str(each) for each in found if isinstance(each, Problem)]
    return ids, problems, [each.text for each in found if isinstance(each, FileEvent)]


def ids(first: int, number: int) -> list[str]:
    return [f"run-{i}" for i in range(first, first + number)]


@pytest.mark.parametrize("seed", range(5))
def test_each_run_comes_once_however_the_bytes_arrive(tmp_path: Path, seed: int):
    path, text = tmp_path / "s.jsonl", lines(0, 40)
    path.touch()
    rng = np.random.default_rng(seed)
    files, found = FollowedFiles([path], {}), []
    cuts = [0, *sorted(rng.choice(len(text), size=25, replace=False).tolist()), len(text)]
    for begin, end in pairwise(cuts):
        with path.open("ab") as stream:
            stream.write(text[begin:end])
        if rng.random() < 0.3:  # another process goes on from what was saved
            saved, files = files.to_dict(), FollowedFiles([path], {})
            files.restore(saved)
        for each in files.look():
            assert isinstance(each, Trace)
            found.append(each)
    assert [trace.trace_id for trace in found] == ids(0, 40)
    assert [trace.source for trace in found] == [f"s.jsonl:{i + 1}" for i in range(40)]


def test_the_last_line_is_waited_for_unless_nobody_will_look_again(tmp_path: Path):
    path, text = tmp_path / "s.jsonl", lines(0, 2)
    path.write_bytes(text[:-1])
    files = FollowedFiles([path], {})
    assert looked(files)[0] == ids(0, 1)
    assert looked(files)[0] == []
    assert looked(files, last=True)[0] == ids(1, 1)
    with path.open("ab") as stream:
        stream.write(b"\n" + lines(2, 1) + b'{"trace_id": "cut')
    found, problems, _ = looked(files, last=True)
    assert found == ids(2, 1)
    assert problems == ["s.jsonl:4: the last line has no end yet; it is read when it has"]


def test_bad_lines_are_told_by_number_and_passed_over(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(0, 1) + b'{"trace_id": "x", "outcome": "maybe"}\n\nnot json\n' + lines(1, 1))
    found, problems, _ = looked(FollowedFiles([path], {}))
    assert found == ids(0, 2)
    assert len(problems) == 2
    assert problems[0].startswith("s.jsonl:2, record x, field outcome")
    assert problems[1].startswith("s.jsonl:4")


@pytest.mark.parametrize("twice", ['"trace_id": "x", "trace_id": "y"', '"trace_id": "x", "tr\\u0061ce_id": "y"'])
def test_a_key_that_stands_twice_is_told_and_not_resolved(tmp_path: Path, twice: str):
    path = tmp_path / "s.jsonl"
    given = '{"trace_id": "z", "outcome": "success", "steps": [], "task_id": null}\n'  # a default that is written out
    path.write_text(f'{{{twice}, "outcome": "success"}}\n{given}')
    found, problems, _ = looked(FollowedFiles([path], {"format": "jsonl"}))
    assert found == ["z"]
    assert len(problems) == 1
    assert problems[0].startswith("s.jsonl:1")
    assert "stands twice" in problems[0]


@pytest.mark.parametrize("at_once", [True, False])
def test_a_line_that_is_too_long_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool):
    monkeypatch.setattr("tracebridge.watching.followed_files.MAX_LINE_BYTES", 1 << 20)
    path, long = tmp_path / "s.jsonl", b'{"trace_id": "' + b"x" * (5 << 19)
    path.write_bytes(lines(0, 1) + long + (b'"}\n' + lines(1, 1) if at_once else b""))
    files = FollowedFiles([path], {})
    found, problems, _ = looked(files)
    if not at_once:
        assert found == ids(0, 1)
        with path.open("ab") as stream:
            stream.write(b'"}\n' + lines(1, 1))
        later, more, _ = looked(files)
        found, problems = found + later, problems + more
    assert found == ids(0, 2)
    assert problems == ["s.jsonl:2: the line is longer than 1 MiB"]


def test_a_rotated_log_is_read_to_its_end(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(0, 2))
    files = FollowedFiles([path], {})
    assert looked(files)[0] == ids(0, 2)
    with path.open("ab") as stream:
        stream.write(lines(2, 1))
    path.rename(tmp_path / "s.jsonl.1")
    path.write_bytes(lines(3, 2))
    found, problems, events = looked(files)
    assert found == ids(2, 3)
    assert problems == []
    assert events == ["s.jsonl is another file now; the one before it is s.jsonl.1"]
    path.unlink()
    assert looked(files) == ([], [], [])
    path.write_bytes(lines(5, 1))
    assert looked(files)[0] == ids(5, 1)


def test_a_rotated_log_in_a_folder_is_not_read_twice(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(0, 2))
    files = FollowedFiles([tmp_path], {})
    assert looked(files)[0] == ids(0, 2)
    path.rename(tmp_path / "a-1.jsonl")
    path.write_bytes(lines(2, 1))
    assert looked(files)[0] == ids(2, 1)
    assert looked(files)[0] == []


def test_a_file_that_was_cut_is_read_from_its_start(tmp_path: Path):
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines(0, 3))
    files = FollowedFiles([path], {})
    looked(files)
    with path.open("r+b") as stream:
        stream.truncate()
        stream.write(lines(7, 1))
    assert looked(files) == (ids(7, 1), [], ["s.jsonl was cut or written anew; it is read from its start"])
    with path.open("r+b") as stream:  # longer than what was read, but with another beginning
        stream.truncate()
        stream.write(lines(10, 5))
    assert looked(files)[0] == ids(10, 5)


def test_a_copy_put_in_its_place_is_read_on(tmp_path: Path):
    path, other = tmp_path / "s.jsonl", tmp_path / "s.tmp"
    path.write_bytes(lines(0, 2))
    files = FollowedFiles([path], {})
    looked(files)
    other.write_bytes(lines(0, 4))
    os.replace(other, path)  # noqa: PTH105 - what writers do
    assert looked(files) == (ids(2, 2), [], [])


def test_files_of_other_kinds_are_read_whole_once_they_stay_the_same(tmp_path: Path):
    files = FollowedFiles([tmp_path], {})
    assert looked(files) == ([], [], [])
    write_traces(traces(0, 3), tmp_path / "day.jsonl.gz")
    assert looked(files)[0] == []
    told = "day.jsonl.gz is read once, as all but plain native JSON Lines are; what is added later is not read"
    assert looked(files) == (ids(0, 3), [], [told])
    assert looked(files) == ([], [], [])
    write_traces(traces(0, 4), tmp_path / "day.jsonl.gz")
    expected = "day.jsonl.gz changed after it was read whole; what is new in it is not read"
    assert looked(files) == ([], [], [expected])
    assert looked(files) == ([], [], [])
    (tmp_path / "odd.json").write_text("[1, 2]")
    _, problems, events = looked(files, last=True)
    assert len(problems) == 1
    assert "odd.json" in problems[0]
    assert events == []  # it was said of the first


def test_lines_that_are_steps_and_no_runs_are_a_table(tmp_path: Path):
    rows = [f'{{"trace_id": "r{i}", "state": "a", "outcome": "success"}}\n' for i in range(3)]
    (tmp_path / "flat.jsonl").write_text("".join(rows))
    found, problems, _ = looked(FollowedFiles([tmp_path], {}), last=True)
    assert found == ["r0", "r1", "r2"]
    assert problems == []


def test_what_cannot_be_followed_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="not standard input"):
        FollowedFiles(["-"], {})
    with pytest.raises(TraceError, match="no such file"):
        FollowedFiles([tmp_path / "missing.jsonl"], {})
    with pytest.raises(TraceError, match="cannot be read"):
        FollowedFiles([tmp_path], {}).restore([{"path": 1}])
