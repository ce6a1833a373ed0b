from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import pytest

from tracebridge.traces import read_traces
from tracebridge.traces.files import InputFile
from tracebridge.traces.near_misses import remedy

ROWS = [{"Run-ID": "a", "state": "x", "outcome": "ok"}, {"Run-ID": "b", "state": "y", "outcome": "fail"}]
NATIVE = [{"trace_id": name, "outcome": "success", "steps": [{"name": "x"}]} for name in "ab"]
TABLE = "run_id,state,outcome\na,x,ok\nb,y,fail\n"


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.csv", TABLE)
    return packed.getvalue()


def advice(tmp_path: Path, data: bytes) -> str | None:
    path = tmp_path / "runs"
    path.write_bytes(data)
    with InputFile(path, path.name) as file:
        return remedy(file)


@pytest.mark.parametrize(
    ("data", "how", "plain"),
    [
        (json.dumps(ROWS).encode(), "jq -c '.[]'", "".join(json.dumps(row) + "\n" for row in ROWS)),
        (json.dumps(NATIVE).encode(), "jq -c '.[]'", "".join(json.dumps(trace) + "\n" for trace in NATIVE)),
        (TABLE.replace("\n", "\r").encode(), r"tr '\r' '\n'", TABLE),
        (TABLE.encode("utf-16"), "iconv -f UTF-16", TABLE),
    ],
)
def test_what_is_told_makes_the_file_readable(tmp_path: Path, data: bytes, how: str, plain: str) -> None:
    told = advice(tmp_path, data)
    assert told is not None
    assert how in told
    (tmp_path / "plain").write_text(plain)  # what the command writes
    assert len(read_traces(tmp_path / "plain")) == 2


def test_an_archive_is_read_by_the_url_that_is_told(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    told = advice(tmp_path, zipped())
    assert told is not None
    url = told.split("'")[1].replace("/PATH/FILE.zip", str(tmp_path / "runs"))
    assert len(read_traces(url)) == 2


@pytest.mark.parametrize(
    "data", [b"[]", b'[{"a": 1}]', b"[1, 2]", b'{"trace_id": 1}', b"some text\n", b"a\rb\n", b"\0"]
)
def test_nothing_is_told_of_other_files(tmp_path: Path, data: bytes) -> None:
    assert advice(tmp_path, data) is None
