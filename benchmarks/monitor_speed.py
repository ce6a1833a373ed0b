"""Microseconds a step of a runtime monitor, against one closed-form check of the same properties.

python benchmarks/monitor_speed.py [--states 30] [--runs 2000]

The steps are those of runs drawn from the chain, after the run was opened; the slowest hundredth is shown too. The exit
code is 1 if the median of a step with ten properties is above 50 microseconds.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from tracebridge.chain import sample_traces
from tracebridge.checking import check
from tracebridge.inference.expanded.modelling import fit_chain
from tracebridge.inference.online.monitor import runtime_monitor
from tracebridge.traces import Outcome, Step, Trace

AIM = 50.0

PROPERTIES = """
P=? [ F "success" ]; P>=0.5 [ F<=20 "success" ]; P<=0.3 [ F "failure" ]; P=? [ !"s2" U "success" ];
P=? [ G<=10 !"s1" ]; P=? [ F[2,8] "s3" ]; P=? [ X "s1" ]; R{"steps"}=? [ F "absorbed" ];
R{"steps"}<=40 [ C<=50 ]; R{"s1"}=? [ F "absorbed" ];
"""


def corpus(n_states: int, n_runs: int) -> list[Trace]:
    rng = np.random.default_rng(0)
    steps = [Step(name=f"s{i}") for i in range(n_states)]
    traces = []
    for run in range(n_runs):
        path = [0]
        while rng.random() > 0.1:
            path.append(int(rng.integers(n_states)))
        outcome = Outcome.SUCCESS if rng.random() < 0.6 else Outcome.FAILURE
        traces.append(Trace(trace_id=f"{run}", outcome=outcome, steps=tuple(steps[i] for i in path)))
    return traces


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, default=30)
    parser.add_argument("--runs", type=int, default=2_000)
    arguments = parser.parse_args()
    fit = fit_chain(corpus(arguments.states, arguments.runs))
    started = time.perf_counter()
    check(fit.chain, PROPERTIES, engines=["closed-form"])
    checked = time.perf_counter() - started
    medians = {}
    for name, properties in (("no property", None), ("10 properties", PROPERTIES)):
        started = time.perf_counter()
        monitor = runtime_monitor(fit, properties)
        prepared = time.perf_counter() - started
        took = []
        for trace in sample_traces(fit.chain, arguments.runs, seed=1):
            run = monitor.start()
            for step in trace.steps:
                started = time.perf_counter()
                run.step(step)
                took.append(time.perf_counter() - started)
        median, slow = np.quantile(np.array(took) * 1e6, [0.5, 0.99])
        medians[name] = float(median)
        print(
            f"{name:>14}: {median:6.1f} us a step (99 % within {slow:.1f} us), {len(took)} steps; "
            f"prepared in {prepared:.2f} s; a check takes {checked / median * 1e6:,.0f} times as long"
        )
    return int(medians["10 properties"] > AIM)


if __name__ == "__main__":
    sys.exit(main())
