"""Where the time of `assess` goes, and how little of it grows with the corpus.

python benchmarks/assess_speed.py [--steps 100000 1000000] [--replicates 199]

Each stage is a multiple of the CPU time that reading and fitting took in the same run, the engines' apart, which run in
processes of their own. The peak of memory is that of the process so far.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from make_corpus import write_corpus
from tracebridge import assess

READING, ENGINES = "reading traces", "engines"


def spent_by_stage(corpus: Path, replicates: int) -> dict[str, float]:
    """CPU seconds by stage, in order."""
    marks: list[tuple[str, float]] = []

    def on_stage(message: str) -> None:
        stage = ENGINES if message.startswith(("closed form:", "Storm:")) else message.partition(" and ")[0]
        marks.append((stage, time.process_time()))

    with tempfile.TemporaryDirectory() as folder:
        assess([corpus], output=Path(folder) / "report", replicates=replicates, seed=1, progress=on_stage)
    on_stage("end")
    found: dict[str, float] = {}
    for (stage, begin), (_, end) in pairwise(marks):
        found[stage] = found.get(stage, 0.0) + end - begin
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--replicates", type=int, default=199)
    args = parser.parse_args()
    for steps in args.steps:
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder) / "corpus.jsonl"
            write_corpus(corpus, steps)
            found = spent_by_stage(corpus, args.replicates)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        print(f"{steps} steps: {sum(found.values()):.1f} s of CPU, peak {peak:.0f} MiB; as multiples of reading:")
        for stage, seconds in found.items():
            print(f"  {seconds / found[READING]:6.2f}  {stage}", flush=True)


if __name__ == "__main__":
    main()
