from __future__ import annotations

import csv
import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import Trace, open_traces, read_traces
from tracebridge.traces.readers import delimited_table, flat_rows, step_values, table
from tracebridge.traces.readers.flat_rows import whole_runs
from tracebridge.traces.readers.json_table import JsonTable
from tracebridge.traces.readers.plain_runs import PlainRuns
from tracebridge.traces.readers.row_block import Row, RowBlock

CELLS = st.tuples(
    st.sampled_from(["a", "b", "c", "d", ""]),
    st.sampled_from(["", "0", "1", "2", "x"]),
    st.sampled_from(["", "plan", "act", "success", 'q"', "two\nlines"]),
    st.sampled_from(["", "", "ok", "fail", "maybe"]),
)


def found(path: Path) -> object:
    """All that reading says, however it ends."""
    stream = open_traces(path, skip_bad=True)
    traces: list[Trace | str]
    try:
        traces = list(stream)
    except (TraceError, NothingToCheckError) as error:
        traces = [str(error)]
    return traces, list(map(str, stream.log.problems)), list(map(str, stream.log.notes)), stream.log.n_skipped


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    rows=st.lists(CELLS, max_size=12),
    columns=st.permutations(["run_id", "step", "state", "outcome"]),
    junk=st.booleans(),
)
def test_reading_twice_finds_the_same(
    tmp_path: Path, rows: list[tuple[str, ...]], columns: list[str], junk: bool
) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerows([columns, *rows])
    path = tmp_path / "t.csv"
    path.write_text(text.getvalue() + 'a,"' * junk)
    with pytest.MonkeyPatch.context() as patch:
        once = found(path)
        patch.setattr(flat_rows, "MAX_AHEAD_ROWS", 2)
        assert found(path) == once


VALUES: dict[str, list[Any]] = {
    "run_id": ["a", "a", "b", " b", "c", ""],
    "state": [
        "plan",
        "act",
        "act",
        "Success",
        "failure",
        "",
        "two\nlines",
        'q"',
        "é",
        " x: y ",
        "x\x1by",
        "long" * 300,
    ],
    "step": ["0", "1", "2", "3", "4.0", "", "x"],
    "outcome": ["ok", "ok", "", "1.0", "fail", "timeout"],
    "task": ["t", "t", "n/a", "u"],
    "kind": ["tool", "tool", ""],
    "error": ["", "true", "0.0", "maybe"],
    "tokens": ["", "3", "5.0", "-1", "1e2", ".0", "nan"],
    "duration": ["", "1.5", "-0.0", "inf", "NaN", "1E3", "5.", "9" * 25],
}
NUMBERS: dict[str, list[Any]] = {
    "step": [0, 1, 2, 3, None, 1.0, 10**20, -1],
    "error": [False, True, 0, 1.0, None],
    "tokens": [3, 4, 5.0, -1, None, 10**30],
    "duration": [1.5, -0.0, 2, 0.25, 1e300, -1.5],
}
ODD_LINES = [
    '{"run_id": "a", "state": [1]}',
    '{"run_id": "b", "run_id": "a"}',
    '{"run_id": "a", "x": {"y": 1}}',
    '{"run_id": "a", "state": "plan"}{"run_id": "a", "state": "act"}',
    '{"trace_id": "a", "state": "plan", "x": "1:2"}',
    '{"run_id": "a", "state":\n{}}',
    "",
    "[1]",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120, deadline=None)
@given(data=st.data(), is_json=st.booleans(), is_large=st.booleans(), block_bytes=st.sampled_from([1, 40, 200, 4000]))
def test_plain_blocks_and_runs_say_what_a_slower_look_at_each_row_says(
    tmp_path: Path, data: st.DataObject, is_json: bool, is_large: bool, block_bytes: int
) -> None:
    usual = data.draw(st.sampled_from([["state", "outcome"]] * 4 + [["outcome"], ["state"]]))
    others = st.sampled_from([name for name in VALUES if name not in ("run_id", "state", "outcome")])
    columns = ["run_id", *usual, *data.draw(st.lists(others, unique=True))]
    values = VALUES | (NUMBERS if is_json and data.draw(st.booleans()) else {})
    # mostly the first of the values, so that whole blocks are plain
    cells = {name: st.sampled_from([*values[name][:2] * 12, *values[name]]) for name in columns}
    rows = data.draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=12))
    if "step" in columns and data.draw(st.booleans()):
        runs = [row["run_id"] for row in rows]
        for place, row in enumerate(rows):
            number = runs[:place].count(runs[place])
            row["step"] = number if values is not VALUES else str(number)
    text = io.StringIO()
    if is_json:
        odd = st.sampled_from([None] * 60 + ODD_LINES)
        absent = st.sets(st.sampled_from(columns)) if data.draw(st.booleans()) else st.just(set())
        for row in rows:
            left_out = data.draw(absent)
            kept = {name: value for name, value in row.items() if name not in left_out}
            text.write(f"{data.draw(odd) or json.dumps(kept)}\n")
    else:
        writer = csv.DictWriter(text, columns, lineterminator=data.draw(st.sampled_from(["\n", "\r\n"])))
        writer.writeheader()
        writer.writerows(rows)
    path = tmp_path / ("t.jsonl" if is_json else "t.csv")
    junk = data.draw(st.sampled_from([b""] * 9 + [b"a,\xff\n", b'"', b"\r", b"\n\n", b"\0"]))
    path.write_bytes(text.getvalue().encode() + junk)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flat_rows, "MAX_AHEAD_ROWS", 2 if is_large else 1 << 20)
        patch.setattr(table, "_BLOCK_BYTES", block_bytes)
        by_block = found(path)
        patch.setattr(delimited_table, "_block", lambda *_: None)
        patch.setattr(JsonTable, "_block", lambda *_: None)
        patch.setattr(step_values, "_values", lambda _, texts: texts)
        patch.setattr(PlainRuns, "trace", lambda *_: None)
        assert repr(by_block) == repr(found(path))  # repr tells -0.0 from 0.0


def block(rows: list[tuple[int, str]]) -> RowBlock:
    return RowBlock.of([Row(line, {"run_id": run, "state": str(line)}) for line, run in rows])


@given(blocks=st.lists(st.text("abcde", max_size=10), max_size=5))
def test_runs_come_whole_and_in_the_order_of_their_first_rows(blocks: list[str]) -> None:
    runs = "".join(blocks)
    rows = list(enumerate(runs))
    parts = []
    for size in map(len, blocks):
        parts.append(block(rows[:size]))
        rows = rows[size:]
    counts = {run: runs.count(run) for run in runs}
    grouped = {run.run_id: run.rows() for run in whole_runs(parts, counts, "t")}
    assert list(grouped) == list(dict.fromkeys(runs))
    for run, of_run in grouped.items():
        expected = [line for line, name in enumerate(runs) if name == run]
        assert list(of_run.lines) == expected
        assert list(of_run.columns["state"]) == list(map(str, expected))


def test_a_file_that_changes_between_the_readings(tmp_path: Path) -> None:
    for counts in ({"a": 2}, {"b": 1}):
        with pytest.raises(TraceError, match="t: the file has changed while it was read"):
            list(whole_runs([block([(1, "a")])], counts, "t"))


def rows_of(n_runs: int, n_rows: int, *, interleaved: bool) -> bytes:
    ids = [run for _ in range(n_rows) for run in range(n_runs)]
    if not interleaved:
        ids.sort()
    return b"run_id,state,outcome\n" + b"".join(b"run-%d,plan,ok\n" % run for run in ids)


def test_no_more_rows_are_held_than_interleave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_rows, "MAX_HELD_ROWS", 100)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(rows_of(200, 20, interleaved=False)))
    assert len(read_traces(path)) == 200
    path.write_bytes(gzip.compress(rows_of(200, 20, interleaved=True)))
    with pytest.raises(
        TraceError, match=r"t.csv.gz:102: 101 rows of runs that are not complete, such as run-0, are too many"
    ):
        read_traces(path)


def test_the_memory_of_a_large_file_is_that_of_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_rows, "MAX_AHEAD_ROWS", 1_000)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(rows_of(300, 100, interleaved=False)))
    stream = open_traces(path)
    tracemalloc.start()
    try:
        assert sum(len(trace.steps) for trace in stream) == 30_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000  # 30,000 rows take some 15 MB


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_bounds_are_told_with_their_lines(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = b'{"run_id": "a", "state": "x", "outcome": "ok"}\n'
    text = row * 100 if suffix == "jsonl" else b"run_id,state,outcome\n" + b"a,x,ok\n" * 99
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(text + text[-7:-1] * 200)
    monkeypatch.setattr(table, "MAX_LINE_BYTES", 1_000)
    with pytest.raises(TraceError, match=rf"t\.{suffix}:101: the line is longer than 0 MiB"):
        read_traces(path)
    monkeypatch.setattr(flat_rows, "MAX_DOCUMENT_BYTES", len(text) - 1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    with pytest.raises(TraceError, match=r"<stdin>:100: more than 0 MiB of rows"):
        read_traces("-")
    monkeypatch.setattr(flat_rows, "MAX_DOCUMENT_BYTES", len(text))
    monkeypatch.setattr(flat_rows, "MAX_HELD_ROWS", 98)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    with pytest.raises(TraceError, match=r"<stdin>: more than 98 rows .write them to a file"):
        read_traces("-")
