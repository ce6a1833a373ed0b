from __future__ import annotations

import json
import socket
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem

from tracebridge.cli import run
from tracebridge.errors import NothingToCheckError, TraceError, UsageError
from tracebridge.traces import is_read_once, read_traces
from tracebridge.traces.remote_files import RemoteFile, is_url, local_path, shown_url


def line(name: str) -> str:
    return json.dumps({"trace_id": name, "outcome": "success", "steps": [{"name": "x"}]}) + "\n"


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    system = MemoryFileSystem()
    for name in ("corpus/a.jsonl", "corpus/sub/b.jsonl", "corpus/sub/c.jsonl", "corpus/.hidden/d.jsonl"):
        system.pipe(f"/{name}", line(name).encode())
    system.pipe("/corpus/notes.txt", b"not data")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.mark.parametrize(
    ("urls", "labels"),
    [
        (["memory://corpus/a.jsonl"], ["a.jsonl"]),
        (["memory://corpus"], ["a.jsonl", "sub/b.jsonl", "sub/c.jsonl"]),
        (["memory://corpus/sub/*.jsonl"], ["b.jsonl", "c.jsonl"]),
        (["memory://corpus/**/[ab].jsonl"], ["a.jsonl", "sub/b.jsonl"]),
        (["memory://corpus/sub/c.jsonl", "memory://corpus/a.jsonl"], ["c.jsonl", "a.jsonl"]),
        (["memory://corpus/a.jsonl", "memory://corpus/a.jsonl"], ["a.jsonl"]),
    ],
)
def test_files_folders_and_patterns(memory: MemoryFileSystem, urls: list[str], labels: list[str]) -> None:
    corpus = read_traces(urls)
    assert [file.path for file in corpus.files] == labels
    assert [trace.trace_id.rpartition("/")[2] for trace in corpus] == [name.rpartition("/")[2] for name in labels]
    if urls == ["memory://corpus"]:
        assert "1 file is not read, by the suffix: notes.txt" in str(corpus.notes[0])


def test_a_remote_file_reads_as_the_same_bytes_here_do(memory: MemoryFileSystem, shared_like: bytes) -> None:
    memory.pipe("/corpus/flat.csv", shared_like)
    corpus = read_traces("memory://corpus/flat.csv")
    assert corpus.outcomes() == {"success": 1, "failure": 1, "censored": 0}
    assert corpus.traces[0].source == "flat.csv:2"


@pytest.fixture
def shared_like() -> bytes:
    return b"run_id,state,outcome\na,x,ok\nb,y,fail\n"


def test_files_of_one_name_are_told_apart(memory: MemoryFileSystem, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as archive:
            archive.writestr("a.jsonl", line(name))
    urls = [f"zip://a.jsonl::file://{tmp_path}/{name}.zip" for name in ("one", "two")]
    assert [file.path for file in read_traces(urls).files] == ["one.zip/a.jsonl", "two.zip/a.jsonl"]
    (tmp_path / "a.jsonl").write_text(line("here"))
    mixed = read_traces([tmp_path / "a.jsonl", "memory://corpus/a.jsonl"])
    assert [trace.trace_id for trace in mixed] == ["here", "corpus/a.jsonl"]
    assert len({file.path for file in mixed.files}) == 2


def test_a_file_url_is_a_local_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)  # not needed
    (tmp_path / "a b.jsonl").write_text(line("a"))
    assert [file.path for file in read_traces(f"file://{tmp_path}/a%20b.jsonl").files] == ["a b.jsonl"]
    assert len(read_traces(f"file://localhost{tmp_path}/*.jsonl")) == 1
    assert local_path("file://elsewhere/a") is local_path("s3://a") is None


def test_a_local_path_with_a_colon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("run:1.jsonl", "c:x.jsonl", "zip::a.jsonl"):
        Path(name).write_text(line(name))
        assert len(read_traces(name)) == 1
        assert not is_url(name)
    assert not is_url(Path("s3://a"))


@pytest.mark.parametrize(
    ("url", "error", "what"),
    [
        ("memory://nowhere/a.jsonl", TraceError, "memory://nowhere/a.jsonl: there is no such file or folder"),
        ("memory://corpus/*.csv", TraceError, r"memory://corpus/\*.csv: no file matches this pattern"),
        ("gopher://host/a", UsageError, "gopher://host/a cannot be read: ValueError: Protocol not known"),
        ("zip://a::memory://corpus/a.jsonl", TraceError, "cannot be opened: BadZipFile"),
        ("memory://corpus/empty", NothingToCheckError, "there is no trace file in memory://corpus/empty"),
    ],
)
def test_what_is_not_there(memory: MemoryFileSystem, url: str, error: type[Exception], what: str) -> None:
    memory.mkdir("/corpus/empty")
    with pytest.raises(error, match=what):
        read_traces(url)


def test_a_driver_that_fails_is_a_damaged_file(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def read(self, size: int) -> bytes:
            raise RuntimeError("GET https://user:secret@host/a?signature=secret failed")

        def close(self) -> None: ...

    def open_badly(self: Any, path: str, mode: str) -> Any:
        if path.endswith("a.jsonl"):
            raise KeyError("token")
        return Failing()

    monkeypatch.setattr(MemoryFileSystem, "open", open_badly)
    with pytest.raises(TraceError) as caught:
        read_traces("memory://corpus/sub/*")
    assert [str(problem) for problem in caught.value.problems] == [
        f"{name}.jsonl: cannot be read: RuntimeError: GET https://… failed" for name in "bc"
    ]
    with pytest.raises(TraceError, match=r"^a\.jsonl: cannot be opened: KeyError: 'token'$"):
        read_traces("memory://corpus/a.jsonl")


@pytest.fixture
def mute(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A server that takes connections and never answers."""
    monkeypatch.setattr("tracebridge.traces.remote_files.SECONDS_TO_ANSWER", 0.3)
    monkeypatch.setattr("tracebridge.traces.remote_files.SECONDS_TO_LIST", 0.4)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


@pytest.mark.parametrize(
    ("asked", "url", "message"),
    [
        (
            "isfile",
            "memory://corpus/a.jsonl",
            "memory://corpus/a.jsonl: cannot be listed: nothing came back within 0.3 s",
        ),
        ("find", "memory://corpus", "memory://corpus: cannot be listed: nothing came back within 0.4 s"),
        ("glob", "memory://corpus/*", "memory://corpus/*: cannot be listed: nothing came back within 0.4 s"),
        ("open", "memory://corpus/a.jsonl", "a.jsonl: cannot be opened: nothing came back within 0.3 s"),
        ("read", "memory://corpus/a.jsonl", "a.jsonl: cannot be read: nothing came back within 0.3 s"),
    ],
)
def test_a_server_that_never_answers(
    memory: MemoryFileSystem,
    mute: tuple[str, int],
    monkeypatch: pytest.MonkeyPatch,
    asked: str,
    url: str,
    message: str,
) -> None:
    def wait(*arguments: Any, **options: Any) -> Any:
        with socket.create_connection(mute) as connection:
            return connection.recv(1)

    monkeypatch.setattr(MemoryFile if asked == "read" else MemoryFileSystem, asked, wait)
    began = time.monotonic()
    with pytest.raises(TraceError) as caught:
        read_traces(url)
    assert [str(problem) for problem in caught.value.problems] == [message]
    assert time.monotonic() - began < 10


def test_a_web_server_that_never_answers(mute: tuple[str, int]) -> None:
    pytest.importorskip("aiohttp", reason="aiohttp is not installed")
    with pytest.raises(TraceError, match=r"runs\.jsonl: cannot be listed: nothing came back within 0\.3 s"):
        read_traces(f"http://{mute[0]}:{mute[1]}/runs.jsonl")


def test_a_driver_with_a_limit_of_its_own(memory: MemoryFileSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*arguments: Any, **options: Any) -> Any:
        raise TimeoutError("of the driver")

    monkeypatch.setattr(MemoryFileSystem, "open", give_up)
    with pytest.raises(TraceError, match="cannot be opened: TimeoutError: of the driver"):
        read_traces("memory://corpus/a.jsonl")


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(
        UsageError, match=r"s3://bucket/a cannot be read without fsspec: pip install 'tracebridge\[remote\]'"
    ):
        read_traces("s3://user:secret@bucket/a?secret")


def test_messages_keep_secrets() -> None:
    assert shown_url("https://me:secret@host:8/a/b?signature=secret#c") == "https://host:8/a/b"
    assert shown_url("zip://*.json::https://me:secret@host/a.zip?secret") == "zip://*.json::https://host/a.zip"
    assert shown_url("s3://[secret/a") == "s3://…"


def test_the_command_line(memory: MemoryFileSystem, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["traces", "summary", "memory://corpus"]) == 0
    assert capsys.readouterr().out.startswith("3 runs (3 success")
    assert run(["fit", "memory://corpus", "-o", str(tmp_path / "chain.json")]) == 0
    assert not is_read_once("memory://corpus")
    assert RemoteFile("memory://corpus", "/corpus/a.jsonl").parts == ("corpus", "a.jsonl")
