"""How often the drift alarms of `watch` are false: runs of one chain, and runs that break what the alarms rest on.

python benchmarks/drift_false_alarms.py [--streams 100] [--runs 1500] [--alpha 0.05] [--run-length 1000]

A baseline of 300 runs of a random chain of four states is compared with a stream of further ones:

plain    independent runs of the same chain
rare     the same, where one step in 500 is of a name that nothing had before
task M   M runs in a row are of one task, whose rows are drawn around those of the chain (Dirichlet of mass 50)
hard M   the same, with tasks that differ more (mass 5)

The exit code is 1 if plain runs, or rare ones, have more false alarms than stated by three standard errors.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tracebridge import fit_chain
from tracebridge.inference.online.drift import DriftMonitor
from tracebridge.traces import Outcome, Step, Trace
from tracebridge.watching import LiveCounts

STATES = 4
BASELINE = 300
KINDS = {
    "plain": (None, 1, 0.0),
    "rare": (None, 1, 0.002),
    "task 4": (50.0, 4, 0.0),
    "task 20": (50.0, 20, 0.0),
    "hard 4": (5.0, 4, 0.0),
}


def rows(rng: np.random.Generator) -> NDArray[np.float64]:
    """The start and each state, over the states, success and failure."""
    found = np.zeros((STATES + 1, STATES + 2))
    found[0, :STATES] = rng.dirichlet(np.ones(STATES))
    found[1:] = 0.75 * rng.dirichlet(np.ones(STATES + 2), size=STATES)
    found[1:, STATES] += 0.25 * rng.uniform(0.2, 0.8)
    found[1:, STATES + 1] += 1 - found[1:].sum(axis=1)
    return found


def runs(rng: np.random.Generator, mass: float | None, repeats: int, rare: float) -> Iterator[Trace]:
    chain, number = rows(rng), 0
    while True:
        task = chain if mass is None else np.array([rng.dirichlet(mass * row + 1e-9) for row in chain])
        for _ in range(repeats):
            steps, state = [], int(rng.choice(STATES + 2, p=task[0]))
            while state < STATES and len(steps) < 200:
                name = f"rare{rng.integers(1000)}" if rng.random() < rare else f"s{state}"
                steps.append(Step(name=name))
                state = int(rng.choice(STATES + 2, p=task[state + 1]))
            outcome = Outcome.SUCCESS if state == STATES else Outcome.FAILURE
            number += 1
            yield Trace(trace_id=str(number), outcome=outcome, steps=tuple(steps))


def alarms(kind: str, stream: int, n_runs: int, alpha: float, run_length: float) -> tuple[bool, int]:
    """Whether the alarm over all runs was raised, and how often that over recent ones."""
    source = runs(np.random.default_rng([stream, 99]), *KINDS[kind])
    fit = fit_chain([next(source) for _ in range(BASELINE)])
    monitor, live = DriftMonitor(fit, alpha=alpha, run_length=run_length), LiveCounts(fit)
    traces = [next(source) for _ in range(n_runs)]
    live.add(traces)
    for path, outcome in live.states_of(traces):
        monitor.add(path, outcome)
    return monitor.alarmed_at is not None, monitor.windows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--runs", type=int, default=1_500)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--run-length", type=float, default=1_000.0)
    chosen = parser.parse_args()
    print(
        f"stated: ever at most {chosen.alpha:g}; runs between two alarms of recent runs at least {chosen.run_length:g}"
    )
    code = 0
    for kind in KINDS:
        found = [alarms(kind, s, chosen.runs, chosen.alpha, chosen.run_length) for s in range(chosen.streams)]
        ever = float(np.mean([raised for raised, _ in found]))
        windows = np.array([number for _, number in found], dtype=float)
        between = chosen.runs * chosen.streams / max(1.0, windows.sum())
        error = math.sqrt(chosen.alpha * (1 - chosen.alpha) / chosen.streams)
        print(
            f"{kind:8} ever {ever:.3f} (standard error {error:.3f})  runs between two alarms {between:,.0f}", flush=True
        )
        most = chosen.runs / chosen.run_length
        too_many = windows.mean() > most + 3 * windows.std() / math.sqrt(chosen.streams)
        if kind in ("plain", "rare") and (ever > chosen.alpha + 3 * error or too_many):
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
