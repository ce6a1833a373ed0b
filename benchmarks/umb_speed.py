"""Writing and reading UMB archives against numpy.savez and numpy.load of the same arrays.

python benchmarks/umb_speed.py [--states 1000000] [--repeat 3]

Five random successors a state. savez stores the arrays of the matrix, the initial distribution and the label, without
the names of states, and checks nothing; reading an archive ends in a chain whose invariants are checked, which is timed
by itself too. Seconds of the processor, the best of some repetitions.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from scaling_chains import random_sparse
from tracebridge.chain.markov import MarkovChain
from tracebridge.export.umb import write_umb
from tracebridge.export.umb_reader import read_umb


def seconds(job: Callable[[], object], repeat: int) -> float:
    best = np.inf
    for _ in range(repeat):
        started = time.process_time()
        job()
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    chain = random_sparse(args.states)
    matrix = chain.transitions
    arrays = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "initial": chain.initial,
        "goal": chain.labels["goal"],
    }

    def load(path: Path) -> dict[str, np.ndarray]:
        with np.load(path) as held:
            return {name: held[name] for name in held.files}

    def checked() -> MarkovChain:
        P = csr_array((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        return MarkovChain(states=chain.states, transitions=P, initial=chain.initial, labels=chain.labels)

    with tempfile.TemporaryDirectory() as folder:
        archive, saved = Path(folder) / "chain.umb", Path(folder) / "chain.npz"
        jobs: dict[str, tuple[Callable[[], object], str | None]] = {
            "numpy.savez": (lambda: np.savez(saved, **arrays), None),
            "write_umb": (lambda: write_umb(chain, archive), "numpy.savez"),
            "numpy.load": (lambda: load(saved), None),
            "read_umb": (lambda: read_umb(archive), "numpy.load"),
            "the chain of the loaded arrays": (checked, "numpy.load"),
        }
        taken: dict[str, float] = {}
        print(f"{chain.n_states} states, {matrix.nnz} transitions")
        for name, (job, beside) in jobs.items():
            taken[name] = seconds(job, args.repeat)
            ratio = "" if beside is None else f"   {taken[name] / taken[beside]:6.1f} times {beside}"
            print(f"{name:32} {taken[name]:7.3f} s{ratio}")
        sizes = f"{archive.stat().st_size / 1e6:.0f} MB, numpy.savez {saved.stat().st_size / 1e6:.0f} MB"
        restored = read_umb(archive)
    same = restored.states == chain.states and restored.transitions.data.tobytes() == matrix.data.tobytes()
    print(f"the archive has {sizes}; {'the same chain' if same else 'ANOTHER CHAIN'} is read back")


if __name__ == "__main__":
    main()
