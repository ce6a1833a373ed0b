"""What a certificate costs for each simulated step, and whether its memory depends on the size of the corpus.

python benchmarks/certificate_speed.py [--replicates 199] [--runs 200 2000 20000]

CPU time; counting is timed apart, since a corpus is counted once. The target is about one microsecond a step.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from tracebridge.inference import SCENARIOS, PathCounts, certify


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--runs", type=int, nargs="*", default=[200, 2_000, 20_000])
    parser.add_argument("--only", nargs="*", default=["N1", "F4", "A2"], choices=list(SCENARIOS))
    args = parser.parse_args()
    certify(*SCENARIOS["F1"].fitted(50, seed=0))  # loads and tabulates what is needed once
    for name in args.only:
        scenario = SCENARIOS[name]
        for n_runs in args.runs:
            paths = scenario.draw(n_runs, np.random.default_rng(0))
            begin = time.process_time()
            PathCounts.of_paths(scenario.states, *paths)
            counted = time.process_time() - begin
            fit, counts = scenario.fitted(n_runs, seed=0)
            replicates = args.replicates if n_runs <= 2_000 else 19
            begin = time.process_time()
            certificate = certify(fit, counts, replicates=replicates)
            spent = time.process_time() - begin
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{name:3} m={scenario.n_states:2} {n_runs:6} runs {counts.n_events:7} steps, B={replicates:3}: "
                f"certificate {spent:6.2f} s = {1e6 * spent / (replicates * counts.n_events):.2f} us a simulated step; "
                f"counting {1e9 * counted / counts.n_events:.0f} ns a step; at most {memory:.0f} MB; "
                f"{certificate.verdict}",
                flush=True,
            )


if __name__ == "__main__":
    main()
