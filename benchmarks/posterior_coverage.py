"""How often 95 % posterior intervals cover the truth, on chains that the model describes.

python benchmarks/posterior_coverage.py [--corpora 400] [--draws 1000] [--runs 50 200] [--only dense5 ...]

For R_inf, R(5) and the mean time, with the default prior. The standard error of a coverage of 95 % over 400 corpora is
1.1 %. The exit code is 1 if the mean lies outside of 93..97 %, or a cell below 90 %.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from tracebridge.chain import MarkovChain, RewardStructure
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability
from tracebridge.inference.scenarios import Scenario
from tracebridge.inference.uncertainty import property_uncertainty

PROPERTIES = 'P=? [ F "success" ]; P=? [ F<=5 "success" ]; R{"steps"}=? [ F "absorbed" ]'
FIGURES = ("R_inf", "R(5)", "mean time")

LEAST, MEAN_BETWEEN = 0.90, (0.93, 0.97)


def rows_of(seed: int, m: int, *, successors: int, end: float, success: tuple[float, float]) -> np.ndarray:
    """Rows (m, m + 2) of a random chain: successors a state, mean probability to end, range of success then."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((m, m + 2))
    ends = rng.beta(20 * end, 20 * (1 - end), size=m)
    share = rng.uniform(*success, size=m)
    for i in range(m):
        others = rng.permutation(np.delete(np.arange(m), (i + 1) % m))[: successors - 1]
        rows[i, [(i + 1) % m, *others]] = rng.dirichlet(np.ones(successors)) * (1 - ends[i])
    rows[:, m], rows[:, m + 1] = ends * share, ends * (1 - share)
    return rows


CHAINS = {
    "dense5": rows_of(1, 5, successors=5, end=0.15, success=(0.3, 0.7)),
    "high10": rows_of(2, 10, successors=10, end=0.15, success=(0.87, 0.97)),
    "high5": rows_of(3, 5, successors=5, end=0.15, success=(0.985, 0.995)),
    "sparse10": rows_of(4, 10, successors=3, end=0.15, success=(0.1, 0.4)),
    "short10": rows_of(5, 10, successors=4, end=0.35, success=(0.2, 0.5)),
}


def truth_of(rows: np.ndarray) -> MarkovChain:
    m = len(rows)
    P = np.vstack([rows, np.eye(m + 2)[m:]])
    P /= P.sum(axis=1, keepdims=True)
    return MarkovChain(
        states=(*(f"s{i:02d}" for i in range(m)), "success", "failure"),
        transitions=P,
        initial=np.eye(m + 2)[0],
        labels={"success": np.arange(m + 2) == m, "absorbed": np.arange(m + 2) >= m},
        rewards={"steps": RewardStructure(state=(np.arange(m + 2) < m).astype(float))},
    )


def true_figures(rows: np.ndarray) -> tuple[float, float, float]:
    chain = truth_of(rows)
    mean_time = mean_time_to_absorption(chain).overall
    return float(long_run_reliability(chain)), float(reliability(chain, 5)), float(mean_time)


def coverage(rows: np.ndarray, n_runs: int, corpora: int, draws: int, first_seed: int) -> np.ndarray:
    """The share of corpora whose interval covers the truth, one a figure."""
    m = len(rows)
    scenario = Scenario(
        name="", description="", is_null=True, n_states=m, start=np.eye(m)[0], law=lambda now: rows[now.state]
    )
    truth = true_figures(rows)
    covered = np.zeros(len(FIGURES))
    for seed in range(first_seed, first_seed + corpora):
        fit, _ = scenario.fitted(n_runs, seed=seed)
        found = property_uncertainty(fit, PROPERTIES, draws=draws, seed=seed)
        covered += [value in each.interval for value, each in zip(truth, found, strict=True)]
    return covered / corpora


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", type=int, default=400)
    parser.add_argument("--draws", type=int, default=1_000)
    parser.add_argument("--runs", type=int, nargs="*", default=[50, 200])
    parser.add_argument("--only", nargs="*", default=list(CHAINS), choices=list(CHAINS))
    args = parser.parse_args()
    error = math.sqrt(0.95 * 0.05 / args.corpora)
    print(f"{args.corpora} corpora, {args.draws} draws; standard error of a cell {error:.3f}")
    cells = []
    for name in args.only:
        truth = true_figures(CHAINS[name])
        for n_runs in args.runs:
            found = coverage(CHAINS[name], n_runs, args.corpora, args.draws, first_seed=100_000 * len(cells))
            cells.append(found)
            shown = " ".join(f"{f} {t:.3f}: {c:.3f}" for f, t, c in zip(FIGURES, truth, found, strict=True))
            print(f"{name:9} n {n_runs:4}  {shown}", flush=True)
    mean, least = float(np.mean(cells)), float(np.min(cells))
    print(f"mean {mean:.3f} (between {MEAN_BETWEEN[0]} and {MEAN_BETWEEN[1]}), least {least:.3f} (at least {LEAST})")
    return int(not MEAN_BETWEEN[0] <= mean <= MEAN_BETWEEN[1] or least < LEAST)


if __name__ == "__main__":
    sys.exit(main())
