"""How accurate a probability is on chains that are hard for doubles: ours, and Storm's by default and as we ask it.

python benchmarks/accuracy.py [--limit 120] [CHAIN ...]

The references are rationals, or balls of 4,000 bits, for the very matrix of doubles that every engine gets: each row
over its exact sum. Errors are the largest over all states, relative to the number itself where that is above 1e-290;
seconds are of the processor. Exit code 1 if an error of ours is above 1e-12, or a number outside of its bounds.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from scaling_chains import absorbing
from storm_apart import REACH, apart, holds, storm_as_asked, storm_by_default
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix
from tracebridge.closedform import FloatArithmetic, evaluate_operator, solve_exact

Floats = NDArray[np.float64]
LARGEST_ERROR = 1e-12
SMALLEST_NUMBER = 1e-290


# ---------------------------------------------------------------- chains


def sticky(m: int, leave: float) -> MarkovChain:
    """Three random successors a state; a run ends with this probability in each step."""
    rng = np.random.default_rng(m)
    rows = np.repeat(np.arange(m), 3)
    ends = np.repeat(np.arange(m), 2)
    return absorbing(
        m,
        np.concatenate([rows, np.arange(m), ends]),
        np.concatenate([rng.integers(0, m, 3 * m), (np.arange(m) + 1) % m, np.tile([m, m + 1], m)]),
        np.concatenate([rng.random(3 * m) + 0.1, np.full(m, 0.1), leave * rng.random(2 * m)]),
    )


def exits_of_1e_6(m: int) -> MarkovChain:
    return sticky(m, 1e-6)


def exits_of_1e_10(m: int) -> MarkovChain:
    return sticky(m, 1e-10)


def exits_of_1e_14(m: int) -> MarkovChain:
    return sticky(m, 1e-14)


def nearly_decomposable(m: int) -> MarkovChain:
    """Ten clusters that are left once in 1e9 steps; one in 1e11 steps ends."""
    rng = np.random.default_rng(0)
    size = m // 10
    cluster = np.arange(m) // size * size
    inside = np.repeat(cluster, 4) + rng.integers(0, size, 4 * m)
    ring = cluster + (np.arange(m) - cluster + 1) % size
    ending = np.arange(0, m, 7)
    return absorbing(
        m,
        np.concatenate([np.repeat(np.arange(m), 4), np.arange(m), np.arange(m), ending]),
        np.concatenate([inside, ring, rng.integers(0, m, m), m + rng.integers(0, 2, len(ending))]),
        np.concatenate([rng.random(4 * m) + 0.05, np.full(m, 0.1), np.full(m, 1e-9), np.full(len(ending), 1e-11)]),
    )


def walk(up: Floats) -> MarkovChain:
    """Up with these probabilities, else down; the goal is above, the failure below."""
    m = len(up)
    i = np.arange(m)
    return absorbing(
        m,
        np.concatenate([i, i]),
        np.concatenate([i + 1, np.where(i == 0, m + 1, i - 1)]),
        np.concatenate([up, 1 - up]),
    )


def symmetric_walk(m: int) -> MarkovChain:
    return walk(np.full(m, 0.5))


def walk_with_drift(m: int) -> MarkovChain:
    return walk(np.full(m, 0.6))


def walk_against_drift(m: int) -> MarkovChain:
    return walk(np.full(m, 0.4))


def random_environment(m: int) -> MarkovChain:
    """Traps that hold a run for many more than 1e13 steps."""
    return walk(np.random.default_rng(0).uniform(0.3, 0.7, m))


def defective_pipeline(m: int) -> MarkovChain:
    """Stages that are repeated almost always, passed seldom, sent back at times, and fail once in 1e13."""
    i = np.arange(m)
    return absorbing(
        m,
        np.concatenate([i, i, i, i]),
        np.concatenate([i, i + 1, np.maximum(i - 5, 0), np.full(m, m + 1)]),
        np.concatenate([np.full(m, 0.9), np.full(m, 0.09), np.full(m, 0.01), np.full(m, 1e-13)]),
    )


# ---------------------------------------------------------------- references


def by_rationals(chain: MarkovChain) -> list[Fraction]:
    """By elimination in integers."""
    P = RationalMatrix.from_float(chain.transitions)
    m = chain.n_states - 2
    exits = [P.row(i).get(m, Fraction(0)) for i in range(m)]
    return solve_exact(P, np.arange(m), [exits])[0]


def by_ruin(chain: MarkovChain) -> list[Any]:
    """For walks, the gambler's ruin in balls: ``sum_(j<=i) r_j / sum_j r_j``, r_j the product of down / up to j."""
    from flint import arb, ctx

    m = chain.n_states - 2
    with ctx.workprec(4_000):
        product, total = arb(1), arb(1)
        sums = [total]
        for i in range(m):
            row = dict(zip(*_entries(chain.transitions, i), strict=True))
            product *= arb(row[m + 1 if i == 0 else i - 1]) / arb(row[i + 1])
            total += product
            sums.append(total)
        return [part / total for part in sums[:-1]]


def _entries(matrix: csr_array, row: int) -> tuple[list[int], list[float]]:
    span = slice(int(matrix.indptr[row]), int(matrix.indptr[row + 1]))
    return matrix.indices[span].tolist(), matrix.data[span].tolist()


def by_balls(chain: MarkovChain) -> list[Any]:
    """For pipelines, elimination from the first stage on in balls: ``x_i = a_i x_(i+1)``, put into what follows."""
    from flint import arb, ctx

    m = chain.n_states - 2
    with ctx.workprec(4_000):
        onward: list[Any] = []
        for i in range(m):
            row = {j: arb(p) for j, p in zip(*_entries(chain.transitions, i), strict=True)}
            leaving, back = sum((p for j, p in row.items() if j != i), arb(0)), arb(0)
            for j, p in row.items():
                if j < i:
                    reached = arb(1)
                    for k in range(j, i):
                        reached *= onward[k]
                    back += p * reached
            onward.append(row[i + 1] / (leaving - back))
        x = [arb(1)]
        for a in reversed(onward):
            x.append(a * x[-1])
        return x[:0:-1]


CHAINS: dict[str, tuple[Callable[[int], MarkovChain], int, Callable[[MarkovChain], list[Any]]]] = {
    "exits of 1e-6": (exits_of_1e_6, 300, by_rationals),
    "exits of 1e-10": (exits_of_1e_10, 300, by_rationals),
    "exits of 1e-14": (exits_of_1e_14, 300, by_rationals),
    "nearly decomposable": (nearly_decomposable, 300, by_rationals),
    "symmetric walk": (symmetric_walk, 10_000, by_ruin),
    "walk with drift": (walk_with_drift, 10_000, by_ruin),
    "walk against drift": (walk_against_drift, 10_000, by_ruin),
    "random environment": (random_environment, 10_000, by_ruin),
    "defective pipeline": (defective_pipeline, 2_000, by_balls),
}


# ---------------------------------------------------------------- errors


def ours(make: Callable[[int], MarkovChain], states: int) -> dict[str, Any]:
    chain = make(states)
    evaluate_operator(FloatArithmetic(make(50)), REACH, holds(make(50)))  # whatever is imported at first use
    start = time.process_time()
    found = evaluate_operator(FloatArithmetic(chain), REACH, holds(chain))
    return {"check": time.process_time() - start, "values": found.value, "lower": found.lower, "upper": found.upper}


def largest_error(values: Floats, truth: list[Any]) -> float:
    """Relative to the truth; rationals, or balls that are much narrower than any error."""
    from flint import arb, ctx

    errors = [0.0]
    with ctx.workprec(4_000):
        for value, true in zip(values.tolist(), truth, strict=False):
            exact = arb(true.numerator) / arb(true.denominator) if isinstance(true, Fraction) else true
            if exact > SMALLEST_NUMBER:
                errors.append(float(abs(arb(value) / exact - 1).mid()))
    return max(errors)


def encloses(found: dict[str, Any], truth: list[Any]) -> bool:
    from flint import arb, ctx

    with ctx.workprec(4_000):
        return all(
            not (exact < arb(lower) or exact > arb(upper))
            for lower, upper, exact in zip(
                found["lower"].tolist(),
                found["upper"].tolist(),
                (arb(x.numerator) / arb(x.denominator) if isinstance(x, Fraction) else x for x in truth),
                strict=False,
            )
        )


def cell(found: dict[str, Any] | None, truth: list[Any], limit: float) -> str:
    if found is None:
        return f"{'-':>9} over {limit:4g} s"
    return f"{largest_error(found['values'], truth):9.1e} {found['check']:9.3f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="*", default=list(CHAINS), metavar="CHAIN", help=", ".join(CHAINS))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each computation")
    arguments = parser.parse_args()
    unknown = set(arguments.chains) - set(CHAINS)
    if unknown:
        parser.error(f"no such chain: {', '.join(sorted(unknown))}; there are {', '.join(CHAINS)}")
    print(f"{'chain':20} {'states':>7} | {'ours':^21} | {'Storm by default':^21} | Storm as we ask it")
    failed = False
    for name in arguments.chains:
        make, states, reference = CHAINS[name]
        truth = reference(make(states))
        found = apart(arguments.limit, ours, make, states)
        failed |= found is None or largest_error(found["values"], truth) > LARGEST_ERROR or not encloses(found, truth)
        default = apart(arguments.limit, storm_by_default, make, states)
        asked = apart(arguments.limit, storm_as_asked, make, states)
        cells = [cell(one, truth, arguments.limit) for one in (found, default, asked)]
        solver = "" if asked is None else f" ({asked['solver']})"
        print(f"{name:20} {states:7,} | {' | '.join(cells)}{solver}", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
