"""Shards on a real Dask cluster: a scheduler and workers in processes of their own, one of which is killed."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tracebridge.chain import document_text
from tracebridge.cli import run
from tracebridge.errors import InputError, TraceError, UsageError
from tracebridge.pipeline import fit_files
from tracebridge.sharding import ReadingProgress
from tracebridge.sharding.cluster import cluster
from tracebridge.traces import Outcome, Step, Trace, write_traces

pytest.importorskip("distributed")

N_FILES = 24
WORKER = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")


@dataclass
class Cluster:
    address: str
    workers: list[subprocess.Popen[bytes]]


def start(folder: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    place = str(folder / "scheduler.json")
    command = [sys.executable, "-m", f"distributed.cli.{program}", "--scheduler-file", place, *arguments]
    environment = os.environ | {"DASK_DISTRIBUTED__ADMIN__LOG_LENGTH": "0"}
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def scheduler(folder: Path) -> Iterator[str]:
    """The address of a scheduler."""
    process = start(folder, "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    place = folder / "scheduler.json"
    try:
        deadline = time.monotonic() + 60
        while not place.exists() or not place.read_text().endswith("}"):
            assert time.monotonic() < deadline, "no scheduler"
            time.sleep(0.05)
        yield json.loads(place.read_text())["address"]
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def dask_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("dask")
    workers = [start(folder, "dask_worker", *WORKER) for _ in range(2)]
    try:
        with scheduler(folder) as address:
            yield Cluster(address, workers)
    finally:
        for process in workers:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for i in range(N_FILES):
        steps = tuple(Step(name=name, error=i % 3 == 0) for name in ["plan", "search", "edit"][: 1 + i % 3])
        runs = [Trace(trace_id=f"{i}-{j}", outcome=list(Outcome)[(i + j) % 3], steps=steps) for j in range(400)]
        write_traces(runs, folder / f"{i:02}.jsonl")
    with (folder / "00.jsonl").open("a") as file:
        file.write("{broken\n")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="paths that mean something else in another process")
def test_what_a_worker_does_not_see_is_not_passed_over(
    dask_cluster: Cluster, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(corpus)  # workers have another folder
    place = Path("/proc/self/cwd")
    told = (
        r"0\d.jsonl: a worker on .* does not see what is here: /proc/self/cwd/0\d.jsonl cannot be opened: No such file"
    )
    with cluster(dask_cluster.address), pytest.raises(TraceError, match=told):
        fit_files([place], skip_bad=True)


def test_the_bytes_are_the_same_and_a_killed_worker_costs_nothing(dask_cluster: Cluster, corpus: Path) -> None:
    expected = fit_files([corpus], skip_bad=True, keep=True)
    assert expected.corpus["n_skipped"] == 1
    assert "00.jsonl:401" in expected.corpus["problems"][0]
    told: list[ReadingProgress] = []

    def kill_one(progress: ReadingProgress) -> None:
        if not told:
            dask_cluster.workers[0].send_signal(signal.SIGKILL)
        told.append(progress)

    with cluster(dask_cluster.address):
        found = fit_files([corpus], skip_bad=True, keep=True, on_progress=kill_one)
    assert dask_cluster.workers[0].wait(10) == -signal.SIGKILL
    assert len(told) == N_FILES
    assert document_text(found.fit.to_dict()) == document_text(expected.fit.to_dict())
    assert found.corpus == expected.corpus
    assert list(found.traces) == list(expected.traces)


def test_the_command_line_reaches_it(dask_cluster: Cluster, corpus: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    arguments = ["fit", str(corpus), "--skip-bad"]
    assert run([*arguments, "-o", str(here)]) == 0
    assert run([*arguments, "-o", str(there), "--cluster", dask_cluster.address]) == 0
    assert there.read_bytes() == here.read_bytes()


def test_work_is_given_up_when_no_worker_comes_back(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracebridge.sharding.cluster.SECONDS_TO_RETURN", 0.1)
    monkeypatch.setattr("tracebridge.sharding.cluster._SECONDS_BETWEEN_COUNTS", 0.2)
    told: list[str] = []
    with scheduler(tmp_path) as address:
        worker = start(tmp_path, "dask_worker", *WORKER, "--nthreads", "2")
        try:
            with (
                cluster(address, told.append),
                pytest.raises(TraceError, match="the cluster that read traces was lost"),
            ):
                fit_files([corpus], skip_bad=True, on_progress=lambda progress: worker.kill())
        finally:
            worker.kill()
            worker.wait()
    assert told[-1] == f"the Dask scheduler at {address} has no worker any more; waiting 0.1 s for one"


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"tcp://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("tcp://127.0.0.1:9", "Connection refused"),
        ("tcp://", "missing port number"),
        ("http://127.0.0.1:9", "unknown address scheme"),
        ("mute", "nothing came back within 0.5 s"),
    ],
)
def test_a_cluster_that_is_not_there(
    mute: str,
    address: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tracebridge.sharding.cluster.SECONDS_TO_ANSWER", 0.5)
    address = mute if address == "mute" else address
    (tmp_path / "a.csv").write_text("run_id,state,outcome\na,x,ok\n")
    assert run(["traces", "summary", str(tmp_path), "--cluster", address]) == 3
    said = capfd.readouterr()
    gc.collect()  # a client that was never connected complains when it goes
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"error: no Dask scheduler answers at {address!r}: ")
    assert reason in said.err
    assert capfd.readouterr().err == ""


def test_a_scheduler_without_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tracebridge.sharding.cluster.SECONDS_TO_START", 0.2)
    told: list[str] = []
    with (
        scheduler(tmp_path) as address,
        pytest.raises(InputError, match=r"has no worker, and none came within 0.2 s \(start some: dask worker tcp:"),
        cluster(address, told.append),
    ):
        pass
    assert told == [
        f"waiting for {what} at {address}" for what in ("the Dask scheduler", "a worker of the Dask scheduler")
    ]


def test_a_worker_is_no_scheduler(dask_cluster: Cluster) -> None:
    from distributed import Client

    with Client(dask_cluster.address, set_as_default=False) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(InputError, match="is no Dask scheduler but a Worker"), cluster(worker):
        pass


def test_another_version_is_refused(dask_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracebridge.sharding.cluster.__version__", "0.0.0")
    asked = r"scheduler at .* needs tracebridge 0\.0\.0; asked for its version, it says \d"
    with pytest.raises(UsageError, match=asked), cluster(dask_cluster.address):
        pass
    monkeypatch.setattr("tracebridge.sharding.cluster._require_scheduler_version", lambda client, address: None)
    with pytest.raises(UsageError, match=r"the worker tcp:.* needs tracebridge 0\.0\.0"), cluster(dask_cluster.address):
        pass
