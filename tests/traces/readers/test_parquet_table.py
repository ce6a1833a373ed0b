from __future__ import annotations

import gzip
import io
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import TraceError
from tracebridge.traces import Outcome, open_traces, read_traces
from tracebridge.traces.readers import flat_rows, parquet_table

COLUMNS: dict[str, Any] = {
    "run_id": ["a", "a", "b", "c"],
    "step": [0, 1, 0, 0],
    "state": pa.array(["plan", "act", "plan", "act"]).dictionary_encode(),
    "passed": [1.0, 1.0, 0.0, None],
    "error": [False, True, None, False],
    "tokens": pa.array([3, None, 5, 7], pa.int16()),
    "confidence": [0.25, float("nan"), 1.0, 0.0],
    "when": pa.array([0, 0, 1, 2], pa.date32()),
}
CSV = """run_id,step,state,passed,error,tokens,confidence,when
a,0,plan,1.0,false,3,0.25,1970-01-01
a,1,act,1.0,true,,nan,1970-01-01
b,0,plan,0.0,,5,1.0,1970-01-02
c,0,act,,false,7,0.0,1970-01-03
"""
MAPPING = {"outcome": "passed", "attributes.at": "when"}


def parquet(columns: dict[str, Any] = COLUMNS, **options: Any) -> bytes:
    stored = io.BytesIO()
    pq.write_table(pa.table(columns), stored, **options)
    return stored.getvalue()


@pytest.mark.parametrize("suffix", [".parquet", ".parquet.gz"])
def test_a_table_reads_as_its_csv_does(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = parquet(row_group_size=3)
    (tmp_path / f"t{suffix}").write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    monkeypatch.setattr(parquet_table, "_BATCH_ROWS", 2)
    (tmp_path / "u.csv").write_text(CSV)
    read = read_traces(tmp_path / f"t{suffix}", mapping=MAPPING)
    expected = read_traces(tmp_path / "u.csv", mapping=MAPPING)

    def content(trace: Any) -> Any:
        return trace.trace_id, trace.outcome, trace.steps, trace.termination, trace.attributes

    assert list(map(content, read)) == list(map(content, expected))
    assert [trace.outcome for trace in read] == [Outcome.SUCCESS, Outcome.FAILURE, Outcome.CENSORED]
    assert read.files[0].format == "flat"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(data=st.data(), n_rows=st.integers(1, 6))
def test_numbers_mean_what_their_texts_do(tmp_path: Path, data: st.DataObject, n_rows: int) -> None:
    def column(values: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(values, min_size=n_rows, max_size=n_rows))

    floats = st.sampled_from([0.5, 0.1, -0.0, 1e-300, 7.0, 1e300, float("nan"), float("inf"), -1.5])
    numbers = {
        "tokens": pa.array(column(st.sampled_from([0, 3, 2**62, -1])), pa.int64()),
        "duration": pa.array(column(floats), data.draw(st.sampled_from([pa.float64(), pa.float32()]))),
        "confidence": pa.array(column(st.none() | st.sampled_from([0.5, 1.0, 0.1])), pa.float64()),
    }
    columns = {"run_id": list(map(str, range(n_rows))), "state": ["x"] * n_rows, "outcome": ["ok"] * n_rows}
    texts = {
        name: [value and value.strip() for value in values.cast(pa.string()).to_pylist()]
        for name, values in numbers.items()
    }
    found = []
    for cells in (numbers, texts):
        path = tmp_path / "t.parquet"
        path.write_bytes(parquet({**columns, **cells}))
        stream = open_traces(path, skip_bad=True)
        try:
            traces = [repr(trace) for trace in stream]
        except TraceError:
            traces = []
        found.append((traces, list(map(str, stream.log.problems))))
    assert found[0] == found[1]


def test_a_folder_and_a_url(tmp_path: Path) -> None:
    (tmp_path / "one.parquet").write_bytes(parquet({"run_id": ["a"], "state": ["x"], "outcome": ["ok"]}))
    assert len(read_traces(tmp_path)) == 1
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem().pipe("/one.parquet", (tmp_path / "one.parquet").read_bytes())
    try:
        assert read_traces("memory://one.parquet").traces[0].source == "one.parquet:1"
    finally:
        MemoryFileSystem.store.clear()


@pytest.mark.parametrize(
    ("columns", "mapping", "what"),
    [
        (
            {
                "run_id": ["a"],
                "state": ["x"],
                "outcome": ["ok"],
                "task": pa.array([b"\xff"], pa.binary()).view(pa.string()),
            },
            {},
            "field task: byte 0xff is not valid UTF-8",
        ),
        ({"state": ["x"]}, {}, "t.parquet: no column names the run; there are state .--map run_id=COLUMN"),
        (
            {"run_id": ["a"], "state": ["x"], "outcome": ["ok"]},
            {"task": "job"},
            "there is no column 'job'; there are run_id",
        ),
        (
            {"run_id": ["a"], "state": [["x", "y"]], "outcome": ["ok"]},
            {},
            "field state: the column holds list<.*>: texts, numbers or truth values are needed",
        ),
        (
            {"run_id": ["a"], "state": pa.array([b"\xff"], pa.binary()).view(pa.string()), "outcome": ["ok"]},
            {},
            "field state: byte 0xff is not valid UTF-8",
        ),
        (
            {"run_id": ["a", "a"], "state": ["x", "y"], "outcome": ["ok", "fail"]},
            {},
            "t.parquet:2, record a, field outcome",
        ),
        ({"run_id": ["a"], "state": ["x"]}, {}, "no column says how the runs ended"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, columns: dict[str, Any], mapping: dict[str, str], what: str) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet(columns))
    with pytest.raises(TraceError, match=what):
        read_traces(path, mapping=mapping)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["a"])] * 2, names=["run_id", "run_id"]), path)
    with pytest.raises(TraceError, match="the column 'run_id' stands twice"):
        read_traces(path)


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.parquet"
    path.write_bytes(parquet())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TraceError, match=re.escape("only pyarrow can read (pip install 'tracebridge[arrow]')")):
        read_traces(path)


def test_what_is_held_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column of one value takes a few bytes however many rows it has."""
    path = tmp_path / "t.parquet"
    n = 300_000
    path.write_bytes(
        parquet({"run_id": pa.repeat("a" * 100, n), "state": pa.repeat("x", n), "outcome": pa.repeat("ok", n)})
    )
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(flat_rows, "MAX_HELD_ROWS", 10_000)
    with pytest.raises(TraceError, match=r"t\.parquet:10001: 10,001 rows of runs that are not complete, such as aaaa"):
        read_traces(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(place=st.integers(4, 2_000), damage=st.binary(min_size=1, max_size=4), cut=st.integers(0, 200))
def test_damage_is_told(tmp_path: Path, place: int, damage: bytes, cut: int) -> None:
    data = parquet()
    data = data[:place] + damage + data[place + len(damage) :]
    path = tmp_path / "t.parquet"
    path.write_bytes(data[: len(data) - cut])
    try:
        traces = read_traces(path, mapping=MAPPING)
    except TraceError as error:
        found = [problem.location.path for problem in error.problems]
    else:
        found = [file.path for file in traces.files]
    assert {str(path).partition(":")[0] for path in found} == {"t.parquet"}
