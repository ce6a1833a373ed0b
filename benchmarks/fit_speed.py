"""Reading and fitting a corpus against merely decoding it, and whether memory depends on its size.

python benchmarks/fit_speed.py [--steps 1000000] [--repeat 3]

Decoding is msgspec into structs of the same shape, line by line, keeping nothing: the least that any reader must do.
Each measurement is a process of its own; times are CPU seconds, the best of some repetitions.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from make_corpus import write_corpus


class PlainStep(msgspec.Struct):
    name: str
    kind: str = "action"
    text: str | None = None
    error: bool = False
    confidence: float | None = None
    tokens: int | None = None
    duration: float | None = None
    attributes: dict[str, Any] = {}


class PlainTrace(msgspec.Struct):
    trace_id: str
    outcome: str
    steps: list[PlainStep] = []
    termination: str | None = None
    task_id: str | None = None
    trial: str | None = None
    model: str | None = None
    source: str | None = None
    attributes: dict[str, Any] = {}


def decode(path: Path) -> None:
    one = msgspec.json.Decoder(PlainTrace).decode
    with path.open("rb") as file:
        for line in file:
            one(line)


def fit(path: Path) -> None:
    from tracebridge.pipeline import fit_files

    fit_files([path])


def imports(_path: Path) -> None:
    """What is loaded before the first byte is read."""
    for name in ("tracebridge.pipeline",):
        import_module(name)


JOBS = {"decode": decode, "fit": fit, "imports": imports}


def measure(job: str, path: Path) -> dict[str, float]:
    """CPU seconds and peak MiB of one job in a process of its own."""
    command = [sys.executable, __file__, "--job", job, "--path", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def run(job: str, path: Path) -> None:
    if job == "fit":
        imports(path)
    start = time.process_time()
    JOBS[job](path)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    print(json.dumps({"seconds": seconds, "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--job", choices=JOBS, help=argparse.SUPPRESS)
    parser.add_argument("--path", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        run(options.job, options.path)
        return
    with tempfile.TemporaryDirectory() as folder:
        sizes = (options.steps // 10, options.steps)
        for steps in sizes:
            path = Path(folder) / f"{steps}.jsonl"
            write_corpus(path, steps)
            found = {job: [measure(job, path) for _ in range(options.repeat)] for job in JOBS}
            best = {job: min(results, key=lambda result: result["seconds"]) for job, results in found.items()}
            ratio = best["fit"]["seconds"] / best["decode"]["seconds"]
            print(
                f"{steps:>9} steps, {path.stat().st_size / 2**20:.0f} MiB: decode {best['decode']['seconds']:.2f} s, "
                f"read and fit {best['fit']['seconds']:.2f} s, ratio {ratio:.2f}; peak {best['fit']['peak']:.0f} MiB, "
                f"of which imports {best['imports']['peak']:.0f} MiB"
            )


if __name__ == "__main__":
    main()
