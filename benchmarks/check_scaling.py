"""Unbounded reachability on chains of 10^3 to 10^6 states: our engine against Storm, time and memory and accuracy.

python benchmarks/check_scaling.py [--sizes 1000 10000 100000 1000000] [--limit 600] [FAMILY ...]

Each computation runs in a process of its own, from a chain in memory to values in every state. Times are of the
processor, of all threads, so that other work on the machine counts little. Storm gets the matrix as it is, and the
solver that we choose for it (`tracebridge.checking.storm_solver`); its times are to build the model and to check.

    ours       seconds, from the chain to proven bounds
    memory     what our process takes beyond the chain while it computes, over the chain's matrix in CSR layout
    width      the largest relative width of our bounds
    check      our time over Storm's to check; below 1 we are faster
    all        our time over Storm's to build and check
    error      how far Storm's values are from our bounds at most, relative
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from scaling_chains import FAMILIES
from storm_apart import REACH, apart, holds, storm_reachability
from tracebridge.closedform import FloatArithmetic, evaluate_operator

DENSE_STATES = 2_000


def ours(family: str, states: int) -> dict[str, Any]:
    evaluate_operator(FloatArithmetic(FAMILIES[family](600)), REACH, holds(FAMILIES[family](600)))  # imports
    chain = FAMILIES[family](states)
    matrix = chain.transitions
    with PeakMemory() as memory:
        start = time.process_time()
        found = evaluate_operator(FloatArithmetic(chain), REACH, holds(chain))
        seconds = time.process_time() - start
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return {
        "seconds": seconds,
        "memory": memory.growth / size,
        "vector": 8 * chain.n_states / size,
        "lower": found.lower,
        "upper": found.upper,
    }


class PeakMemory:
    """How much the process grows while it computes, by looking now and then."""

    def __enter__(self) -> PeakMemory:
        self._start = self._peak = resident_bytes()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.growth = self._peak - self._start

    def _watch(self) -> None:
        while not self._over.wait(0.005):
            self._peak = max(self._peak, resident_bytes())


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096


def line(family: str, states: int, limit: float) -> str:
    text = f"{family:12} {states:9,}"
    mine = apart(limit, ours, family, states)
    if mine is None:
        return f"{text}  ours: nothing within {limit:g} s"
    positive = mine["lower"] > 0
    width = float(((mine["upper"] - mine["lower"])[positive] / mine["lower"][positive]).max())
    vectors = 3 * mine["vector"]
    text += f"  {mine['seconds']:8.3f}  {mine['memory']:5.1f} (three vectors: {vectors:.1f})  {width:7.1e}"
    theirs = apart(limit, storm_reachability, FAMILIES[family], states)
    if theirs is None:
        bound = f"<{mine['seconds'] / limit:6.3f}"
        return f"{text}  {bound}  {bound}        ?  Storm: over {limit:g} s"
    check, everything = theirs["check"], theirs["build"] + theirs["check"]
    outside = np.maximum(np.maximum(mine["lower"] - theirs["values"], theirs["values"] - mine["upper"]), 0.0)
    error = float((outside[positive] / mine["upper"][positive]).max())
    text += f"  {mine['seconds'] / check:7.2f}  {mine['seconds'] / everything:7.2f}  {error:7.1e}"
    return f"{text}  Storm ({theirs['solver']}): build {theirs['build']:.3f} s, check {check:.3f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(FAMILIES), metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each computation")
    arguments = parser.parse_args()
    unknown = set(arguments.families) - set(FAMILIES)
    if unknown:
        parser.error(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    ratios = f"{'check':>7}  {'all':>7}  {'error':>7}"
    print(f"{'family':12} {'states':>9}  {'ours':>8}  {'memory':>27}  {'width':>7}  {ratios}")
    for family in arguments.families:
        for states in [DENSE_STATES] if family == "dense" else arguments.sizes:
            print(line(family, states, arguments.limit), flush=True)


if __name__ == "__main__":
    main()
