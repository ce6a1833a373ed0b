from __future__ import annotations

import gzip
import hashlib
import io
import random
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracebridge.errors import TraceError
from tracebridge.traces.files import HEAD_BYTES, InputFile

COMPRESS = {
    "plain": lambda data: data,
    "gzip": gzip.compress,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    lines=st.lists(st.binary(min_size=0, max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=8),
    compression=st.sampled_from(sorted(COMPRESS)),
    limit=st.integers(1, 20),
)
def test_lines_are_split_and_cut(tmp_path: Path, lines: list[bytes], compression: str, limit: int) -> None:
    data = b"".join(line + b"\n" for line in lines)
    path = tmp_path / "file"
    path.write_bytes(COMPRESS[compression](data))
    if compression == "plain" and data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return
    found = []
    with InputFile(path, "file") as file:
        assert data.removeprefix(b"\xef\xbb\xbf").startswith(file.head)
        for line in file.lines(limit):
            found.append(line)
            if len(line) > limit and not line.endswith(b"\n"):
                file.skip_line()
        assert file.sha256() == hashlib.sha256(path.read_bytes()).hexdigest()
    expected = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")[:-1]
    assert found == [(line + b"\n")[: limit + 1] for line in expected]


@pytest.mark.parametrize("compression", sorted(COMPRESS))
def test_a_pipe_that_gives_a_little_at_a_time(compression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random.Random(1).randbytes(3 * HEAD_BYTES)
    stored = COMPRESS[compression](data)

    class Trickle(io.BytesIO):
        def readinto(self, buffer: object) -> int:
            view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
            return super().readinto(view[:4099])

    class Piped:
        buffer = Trickle(stored)

    monkeypatch.setattr("sys.stdin", Piped())
    with InputFile(None, "<stdin>") as file:
        assert file.head == data[:HEAD_BYTES]
        assert file.document() == data
        assert file.sha256() == hashlib.sha256(stored).hexdigest()


def test_the_hash_covers_what_was_not_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * (2 * HEAD_BYTES))
    with InputFile(path, "file") as file:
        assert file.sha256() == hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_document_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(bytes(5 << 20)))
    with InputFile(path, "file.gz") as file, pytest.raises(TraceError, match=r"file.gz: larger than 4 MiB"):
        file.document(4 << 20)


@pytest.mark.parametrize("compression", ["gzip", "zstd"])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.999])
def test_a_stream_that_breaks_off_is_damaged(tmp_path: Path, compression: str, keep: float) -> None:
    stored = COMPRESS[compression](random.Random(1).randbytes(1 << 20))
    path = tmp_path / "file"
    path.write_bytes(stored[: int(len(stored) * keep)])
    with pytest.raises(TraceError, match="damaged or cut off"), InputFile(path, "file") as file:
        file.document()


def test_a_stream_with_a_changed_byte_is_damaged(tmp_path: Path) -> None:
    for compression in ("gzip", "zstd"):
        stored = bytearray(COMPRESS[compression](random.Random(1).randbytes(1 << 16)))
        stored[len(stored) // 2] ^= 1
        path = tmp_path / compression
        path.write_bytes(stored)
        with pytest.raises(TraceError, match="damaged or cut off"), InputFile(path, compression) as file:
            file.document()


@pytest.mark.parametrize(
    ("label", "stem"),
    [("a.json", "a"), ("b/a.json.gz", "b/a"), ("a.jsonl.zst", "a"), ("a.b", "a.b"), (".json", ".json")],
)
def test_stems(tmp_path: Path, label: str, stem: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"{}")
    with InputFile(path, label) as file:
        assert file.stem == stem


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(data=st.text("ab\n", max_size=60), size=st.integers(1, 20), limit=st.integers(1, 60))
def test_pieces_are_whole_lines(tmp_path: Path, data: str, size: int, limit: int) -> None:
    path = tmp_path / "file"
    path.write_text(data, newline="")
    with InputFile(path, "file") as file:
        pieces = list(file.pieces(size, limit))
    assert b"".join(pieces) == data.encode()
    assert all(len(piece) <= size + limit + 1 for piece in pieces)
    whole = [piece.endswith(b"\n") or len(piece) > limit for piece in pieces]
    assert all(whole[:-1])
