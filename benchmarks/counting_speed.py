"""Counting transitions from lists of steps against numpy's bincount, on flat arrays and from the same lists.

python benchmarks/counting_speed.py [--runs 20000] [--repeat 20]

About 10 steps a run, over 10 states. Times are CPU milliseconds, the best of some repetitions. Python lists must be
walked once by whoever counts them; bincount from lists shows what that alone costs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import chain

import numpy as np

from tracebridge import TransitionCounts

STATES = 10


def milliseconds(job: Callable[[], object], repeat: int) -> float:
    best = np.inf
    for _ in range(repeat):
        started = time.process_time()
        job()
        best = min(best, time.process_time() - started)
    return 1e3 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    names = [f"state{i}" for i in range(STATES)]
    lengths = rng.poisson(9, args.runs) + 1
    codes = rng.integers(STATES, size=int(lengths.sum()))
    numbers = [part.tolist() for part in np.split(codes, np.cumsum(lengths)[:-1])]
    runs = [
        ([names[i] for i in steps], "success" if ended else "failure")
        for steps, ended in zip(numbers, rng.integers(2, size=args.runs).tolist(), strict=True)
    ]
    position = {name: i for i, name in enumerate(names)}

    def bincount(flat: np.ndarray) -> np.ndarray:
        return np.bincount(flat[:-1] * STATES + flat[1:], minlength=STATES**2)

    def from_lists_of_numbers() -> np.ndarray:
        return bincount(np.array(list(chain.from_iterable(numbers))))

    def from_lists_of_names() -> np.ndarray:
        return bincount(np.array([position[name] for steps, _ in runs for name in steps]))

    jobs: dict[str, Callable[[], object]] = {
        "bincount, flat array of numbers": lambda: bincount(codes),
        "bincount, lists of numbers": from_lists_of_numbers,
        "bincount, lists of names": from_lists_of_names,
        "TransitionCounts.from_paths": lambda: TransitionCounts.from_paths(runs),
    }
    print(f"{len(codes)} steps of {args.runs} runs over {STATES} states")
    taken = {name: milliseconds(job, args.repeat) for name, job in jobs.items()}
    ours = taken["TransitionCounts.from_paths"]
    for name, time_ in taken.items():
        print(f"{name:32} {time_:8.2f} ms   ours takes {ours / time_:6.2f} times as long")


if __name__ == "__main__":
    main()
