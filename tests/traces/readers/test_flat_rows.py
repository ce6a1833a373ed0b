from __future__ import annotations

import csv
import gzip
import io
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import NothingToCheckError, TraceError
from tracebridge.traces import open_traces, read_traces
from tracebridge.traces.readers import flat_rows
from tracebridge.traces.readers.flat_rows import rows_by_run
from tracebridge.traces.readers.table import Row

CELLS = st.tuples(
    st.sampled_from(["a", "b", "c", "d", ""]),
    st.sampled_from(["", "0", "1", "2", "x"]),
    st.sampled_from(["", "plan", "act", "success", 'q"', "two\nlines"]),
    st.sampled_from(["", "", "ok", "fail", "maybe"]),
)


def found(path: Path) -> object:
    """All that reading says, however it ends."""
    stream = open_traces(path, skip_bad=True)
    try:
        traces = list(stream)
    except (TraceError, NothingToCheckError) as error:
        traces = [str(error)]
    return traces, list(map(str, stream.log.problems)), list(map(str, stream.log.notes)), stream.log.n_skipped


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
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
        patch.setattr(flat_rows, "LARGE_BYTES", -1)
        assert found(path) == once


@given(runs=st.lists(st.sampled_from("abcde"), max_size=30))
def test_runs_come_whole_and_in_the_order_of_their_first_rows(runs: list[str]) -> None:
    rows = [Row(line, {"run_id": run}) for line, run in enumerate(runs)]
    counts = {run: runs.count(run) for run in runs}
    grouped = dict(rows_by_run(rows, counts, "t"))
    assert list(grouped) == list(dict.fromkeys(runs))
    assert grouped == {run: [row for row in rows if row.values["run_id"] == run] for run in counts}


def test_a_file_that_changes_between_the_readings(tmp_path: Path) -> None:
    for counts in ({"a": 2}, {"b": 1}):
        with pytest.raises(TraceError, match="t: the file has changed while it was read"):
            list(rows_by_run([Row(1, {"run_id": "a"})], counts, "t"))


def table(n_runs: int, n_rows: int, *, interleaved: bool) -> bytes:
    ids = [run for _ in range(n_rows) for run in range(n_runs)]
    if not interleaved:
        ids.sort()
    return b"run_id,state,outcome\n" + b"".join(b"run-%d,plan,ok\n" % run for run in ids)


def test_no_more_rows_are_held_than_interleave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat_rows, "MAX_HELD_ROWS", 100)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(table(200, 20, interleaved=False)))
    assert len(read_traces(path)) == 200
    path.write_bytes(gzip.compress(table(200, 20, interleaved=True)))
    with pytest.raises(
        TraceError, match=r"t.csv.gz:102: 101 rows of runs that are not complete, such as run-0, are too many"
    ):
        read_traces(path)


def test_the_memory_of_a_large_file_is_that_of_its_runs(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(table(300, 200, interleaved=False)))
    stream = open_traces(path)
    tracemalloc.start()
    try:
        assert sum(len(trace.steps) for trace in stream) == 60_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6_000_000  # 60,000 rows take some 30 MB
