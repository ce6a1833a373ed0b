"""The cluster bootstrap of a ratio metric against as many plain numpy passes over the blocks.

python benchmarks/confidence_bootstrap.py [--blocks 11122] [--replicates 2000] [--repeat 7]

A plain pass sums the numerator and the denominator over the blocks once, without drawing anything. Clusters are 421
shards of problems or 4,181 traces, as in the corpus that the audit was published for. Times are CPU milliseconds, the
best of some repetitions; the bound is three. It holds for counts, whose clusters come in few kinds; the last figure is
of a ratio of real numbers, for which no two clusters are alike and each has to be drawn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from tracebridge.confidence.bootstrap import Resampling, ratio_interval, ratio_intervals

METRICS = 20


def milliseconds(job: Callable[[], object], repeat: int) -> float:
    best = np.inf
    for _ in range(repeat):
        started = time.process_time()
        job()
        best = min(best, time.process_time() - started)
    return 1e3 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=11_122)
    parser.add_argument("--replicates", type=int, default=2_000)
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    valid = (rng.random(args.blocks) < 0.85).astype(np.float64)
    correct = valid * (rng.random(args.blocks) < 0.5)
    seconds = valid * rng.random(args.blocks)
    resampling = Resampling(replicates=args.replicates)

    def plain_passes() -> list[float]:
        return [correct.sum() / valid.sum() for _ in range(args.replicates)]

    plain = milliseconds(plain_passes, args.repeat)
    print(f"{args.replicates} plain passes over {args.blocks} blocks: {plain:.1f} ms")
    counted = valid[:, None] * (rng.random((args.blocks, METRICS)) < 0.5)
    many = correct[:, None] * counted, counted
    for n_clusters in (421, 4_181):
        cluster = np.sort(rng.integers(0, n_clusters, args.blocks))
        one = milliseconds(
            lambda c=cluster, g=n_clusters: ratio_interval(correct, valid, c, g, resampling=resampling), args.repeat
        )
        alone = milliseconds(
            lambda c=cluster, g=n_clusters: ratio_interval(seconds, valid, c, g, resampling=resampling), args.repeat
        )
        together = milliseconds(
            lambda c=cluster, g=n_clusters: ratio_intervals(*many, c, g, resampling=resampling), args.repeat
        )
        print(
            f"{n_clusters} clusters: one ratio {one:.1f} ms, {one / plain:.2f} times the plain passes; "
            f"{METRICS} ratios {together:.1f} ms, {together / (METRICS * plain):.2f} times theirs; "
            f"one ratio of real numbers {alone:.1f} ms, {alone / plain:.2f} times the plain passes"
        )


if __name__ == "__main__":
    main()
