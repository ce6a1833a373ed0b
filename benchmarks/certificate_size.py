"""How often the certificate rejects chains that are right, and finds what is wrong with the others.

python benchmarks/certificate_size.py [--corpora 400] [--runs 200] [--replicates 199] [--only N1 A3 ...]

A size above 7 % or a power below its floor makes the exit code 1. The standard error of a size of 5 % over 400 corpora
is 1.1 %.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter

from tracebridge.inference import SCENARIOS, certify

LARGEST_SIZE = 0.07
LEAST_POWER = {"A1": 0.97, "A1b": 0.97, "A2": 0.97, "A2c": 0.97, "A3": 0.5, "A4": 0.97}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", type=int, default=400)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=199)
    parser.add_argument("--only", nargs="*", default=list(SCENARIOS), choices=list(SCENARIOS))
    args = parser.parse_args()
    failed = False
    print(f"{args.corpora} corpora of {args.runs} runs each, {args.replicates} replicates; rejected at 5 %:")
    for name in args.only:
        scenario = SCENARIOS[name]
        rejected: Counter[str] = Counter()
        verdicts: Counter[str] = Counter()
        for corpus in range(args.corpora):
            fit, counts = scenario.fitted(args.runs, seed=corpus)
            certificate = certify(fit, counts, replicates=args.replicates, seed=corpus)
            verdicts[certificate.verdict] += 1
            rejected["joint"] += certificate.p <= 0.05
            rejected["published rule"] += certificate.paper.accepted is False
            for statistic in certificate.statistics:
                rejected[statistic.name] += statistic.p <= 0.05
        rates = {key: count / args.corpora for key, count in rejected.items()}
        error = math.sqrt(rates["joint"] * (1 - rates["joint"]) / args.corpora)
        wrong = rates["joint"] > LARGEST_SIZE if scenario.is_null else rates["joint"] < LEAST_POWER[name]
        failed |= wrong
        print(
            f"{name:4} {'null' if scenario.is_null else 'wrong':5} {rates['joint']:.3f} +- {error:.3f}"
            f"{'  <-- out of bounds' if wrong else ''}",
            " ".join(f"{key} {rate:.3f}" for key, rate in rates.items() if key != "joint"),
            dict(verdicts),
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
