"""What a certificate costs and how much faster its corpora are drawn than run by run.

python benchmarks/certificate_speed.py [--replicates 199] [--runs 200 2000 20000 200000 2000000]

CPU time; counting is timed apart, since a corpus is counted once. Runs are drawn one by one for three replicates, which
are compared with three of the certificate's own.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from tracebridge.inference import SCENARIOS, PathCounts, certify
from tracebridge.inference.misfit import misfit
from tracebridge.inference.simulation import Simulation


def speed_up(counts: PathCounts) -> float:
    """CPU time of a few corpora drawn one run after the other, over that of corpora drawn as the certificate does."""
    spent = []
    for one_by_one in (True, False):
        simulation = Simulation([counts.tables])
        if one_by_one:
            simulation.draws_groups = False
        begin = time.process_time()
        for (corpora,) in simulation.replicates(3, np.random.SeedSequence(0)):
            misfit(corpora)
        spent.append(time.process_time() - begin)
    return spent[0] / spent[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--runs", type=int, nargs="*", default=[200, 2_000, 20_000, 200_000, 2_000_000])
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
            replicates = args.replicates
            begin = time.process_time()
            certificate = certify(fit, counts, replicates=replicates)
            spent = time.process_time() - begin
            print(
                f"{name:3} m={scenario.n_states:2} {n_runs:6} runs {counts.n_events:7} steps, B={replicates:3}: "
                f"certificate {spent:6.2f} s; drawn {speed_up(counts):5.1f} times as fast as run by run; "
                f"counting {1e9 * counted / counts.n_events:.0f} ns a step; "
                f"{certificate.verdict}",
                flush=True,
            )


if __name__ == "__main__":
    main()
