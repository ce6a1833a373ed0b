"""Fitting by one process, two, a local Dask cluster, and from a manifest; and memory by the size of the corpus.

python benchmarks/scale.py [--steps 1000000] [--repeat 1] [--ways one processes] [--folder FOLDER]

The corpus is one native file, written as it is generated. Each measurement is a process of its own; times are seconds
on the clock, from the call to the fitted chain, with the imports of workers in them; the best of some repetitions.
Memory is the peak of the process that was asked, and of the largest of those that read for it. The yardstick is msgspec
decoding the same lines into untyped objects in one process, without any use of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec

from make_corpus import write_corpus

WORKERS = 2
MIB = 2**20 if sys.platform == "darwin" else 2**10  # ru_maxrss has bytes there, KiB elsewhere


@contextmanager
def dask_cluster(peaks: list[int]) -> Iterator[None]:
    """Two worker processes; ``peaks`` gets their memory in the end."""
    from distributed import LocalCluster
    from joblib import parallel_config

    options: dict[str, Any] = {"n_workers": WORKERS, "threads_per_worker": 1, "processes": True}
    with LocalCluster(**options, dashboard_address=None) as local, local.get_client() as client:
        with parallel_config("dask", client=client):
            yield
        peaks.extend(client.run(own_peak).values())


def own_peak() -> int:
    """In ``ru_maxrss``'s unit; by the kernel's own mark on Linux, where ru_maxrss has that of the parent in it."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fit(path: Path, how: str) -> dict[str, Any]:
    """Fit in one of the ways of `WAYS`."""
    from joblib.externals.loky import get_reusable_executor

    from tracebridge.chain import document_text
    from tracebridge.pipeline import fit_files

    peaks: list[int] = []
    jobs = WORKERS if how == "processes" else None
    manifest = path.with_suffix(".manifest") if how in ("first", "again") else None
    with dask_cluster(peaks) if how == "dask" else nullcontext():
        start = time.perf_counter()
        fitted = fit_files([path], jobs=jobs, manifest=manifest)
        seconds = time.perf_counter() - start
    if how == "processes":
        get_reusable_executor().shutdown(wait=True)
        peaks.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    digest = hashlib.sha256(document_text(fitted.fit.to_dict()).encode()).hexdigest()
    return {"seconds": seconds, "peak": own_peak() / MIB, "workers": max(peaks, default=0) / MIB, "chain": digest}


WAYS = {
    "one": "1 process",
    "processes": f"{WORKERS} processes",
    "dask": f"Dask, {WORKERS} workers",
    "first": "1 process, new manifest",
    "again": "1 process, all known",
}


def measure(path: Path, how: str, repeat: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--path", str(path), "--how", how]
    found = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(repeat)
    ]
    return min(found, key=lambda each: each["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--steps", type=int, default=1_000_000, help="of the largest corpus; a tenth and less go before"
    )
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the corpora are written")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="which ways are measured")
    parser.add_argument("--how", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.how:
        print(json.dumps(fit(options.path, options.how)))
        return
    smaller = [steps for steps in (100_000, 1_000_000, 10_000_000, 100_000_000) if steps < options.steps]
    compare_ways([*smaller, options.steps], ways=options.ways, repeat=options.repeat, folder=options.folder)


def compare_ways(
    sizes: list[int], *, ways: Sequence[str] = tuple(WAYS), repeat: int = 1, folder: Path | None = None
) -> None:
    """Print the ways beside each other for corpora of so many steps; stop if their chains differ."""
    with tempfile.TemporaryDirectory(dir=folder) as inside:
        for steps in sizes:
            path = Path(inside) / f"{steps}.jsonl"
            write_corpus(path, steps)
            size = path.stat().st_size / 1e6
            yardstick = seconds_to_decode(path)
            print(f"{steps:,} steps, {size:,.0f} MB; msgspec decodes them in {yardstick:.1f} s", flush=True)
            chains = set()
            for how in ways:
                found = measure(path, how, repeat)
                chains.add(found["chain"])
                workers = f", of a worker {found['workers']:.0f} MiB" if found["workers"] else ""
                print(
                    f"  {WAYS[how]:<24} {found['seconds']:7.1f} s, {size / found['seconds']:6.0f} MB/s, "
                    f"{steps / found['seconds']:>9,.0f} steps/s, {found['seconds'] / yardstick:.2f} x msgspec; "
                    f"peak {found['peak']:.0f} MiB{workers}",
                    flush=True,
                )
            if len(chains) != 1:
                raise SystemExit("the chains differ")
            path.unlink()


def seconds_to_decode(path: Path) -> float:
    """By msgspec, into untyped objects, line by line."""
    decode = msgspec.json.Decoder().decode
    start = time.perf_counter()
    with path.open("rb") as file:
        for line in file:
            decode(line)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
