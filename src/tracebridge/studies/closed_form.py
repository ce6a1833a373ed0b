"""The closed form against simulation (paper, SS1): does the formula say what the chain does?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain import MarkovChain, RationalMatrix
from tracebridge.closedform import long_run_reliability, mean_time_to_absorption, reliability, steps_per_failure
from tracebridge.studies.random_chains import chain_of_rows, random_rows
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import equals, fixed, spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.studies.replication import Replication
    from tracebridge.studies.statement import Statement

SIZES = (5, 10, 50, 100, 500)
TRAJECTORIES = 100_000
BUDGET = 5
#: The largest |z| of some thousand chains; normal scores exceed it once in 150,000.
LARGEST_Z = 4.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One chain: formula minus simulation, and the same in standard errors, for R_inf and R(5)."""

    errors: tuple[float, float]
    scores: tuple[float, float]


def compare_one(m: int, rng: np.random.Generator) -> Comparison:
    """A random chain of m states, by formula and by 100,000 runs."""
    rows = random_rows(rng, m, end=0.15)
    chain = chain_of_rows(rows)
    exact = np.array([float(long_run_reliability(chain)), float(reliability(chain, BUDGET))])
    successes = simulated_successes(rows, TRAJECTORIES, rng)
    simulated = np.array([successes.sum(), successes[: BUDGET + 1].sum()]) / TRAJECTORIES
    deviations = np.sqrt(exact * (1 - exact) / TRAJECTORIES)
    errors = exact - simulated
    scores = errors / deviations
    return Comparison(errors=(float(errors[0]), float(errors[1])), scores=(float(scores[0]), float(scores[1])))


def simulated_successes(rows: NDArray[np.float64], n_runs: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """How many of so many runs succeed at each step, 0 for step 0, all taking their steps together.

    Where there are many runs a state, what matters is how many are in each state, and these move by multinomial draws;
    else each run draws its own step. The laws are the same.
    """
    m = len(rows)
    law = rows / rows.sum(axis=1, keepdims=True)
    found = [0]
    if n_runs >= m * m:
        inside = np.zeros(m, dtype=np.int64)
        inside[0] = n_runs
        while inside.any():
            arrivals = rng.multinomial(inside, law).sum(axis=0)
            found.append(int(arrivals[m]))
            inside = arrivals[:m]
        return np.array(found)
    ladder = np.cumsum(law, axis=1)
    ladder[:, -1] = 1.0
    ladder = (ladder + np.arange(m)[:, None]).ravel()  # row i lies in (i, i + 1]: one search serves all rows
    state = np.zeros(n_runs, dtype=np.int64)
    while len(state):
        place = np.searchsorted(ladder, state + rng.random(len(state)), side="right")
        after = np.minimum(place - state * (m + 2), m + 1)
        found.append(int(np.count_nonzero(after == m)))
        state = after[after < m]
    return np.array(found)


def study(replication: Replication) -> Findings:
    """Compare formula and simulation over random chains of five sizes, and with values derived by hand."""
    found = replication.of_each(compare_one, SIZES)
    errors = np.array([[each.errors for each in part] for part in found])  # size, chain, figure
    scores = np.array([[each.scores for each in part] for part in found])
    figures = ("R_inf", f"R({BUDGET})")
    rows = [
        (
            m,
            replication.number,
            "< 0.05",
            float(np.abs(errors[i, :, 0]).max()),
            float(np.abs(errors[i, :, 1]).max()),
            math.sqrt(float(np.square(scores[i, :, 0]).mean())),
            float(np.abs(scores[i]).max()),
        )
        for i, m in enumerate(SIZES)
    ]
    columns = ("states", "chains", "paper: error", "error of R_inf", f"error of R({BUDGET})", "sd of z", "largest |z|")
    statements = [
        spread(
            f"standard deviation of z for {figure}, all sizes",
            scores[:, :, k].ravel(),
            "chains",
            lower=0.9,
            upper=1.1,
        )
        for k, figure in enumerate(figures)
    ]
    statements.append(fixed("largest |z| over all chains", float(np.abs(scores).max()), upper=LARGEST_Z))
    return Findings(
        tables=(
            Table(
                title=f"Closed form minus {TRAJECTORIES:,} simulated runs, largest over the chains",
                columns=columns,
                rows=tuple(rows),
            ),
        ),
        statements=(*statements, *_by_hand()),
        notes=(
            (
                "the paper asks for errors below .05, ten times what chance produces with 100,000 runs: such a "
                "gate cannot fail unless the formula is grossly wrong. Here errors are measured in their standard "
                "errors (z), which have standard deviation one if the formula is right"
            ),
        ),
    )


def loop_chain() -> MarkovChain:
    """Three states with loops, in tenths; what follows from it was derived by hand."""
    tenth = [[1, 5, 4, 0, 0], [1, 2, 3, 3, 1], [0, 1, 6, 0, 3], [0, 0, 0, 10, 0], [0, 0, 0, 0, 10]]
    return MarkovChain(
        states=("s0", "s1", "s2", "success", "failure"),
        transitions=RationalMatrix.from_rows([{j: Fraction(x, 10) for j, x in enumerate(row) if x} for row in tenth]),
        initial=np.eye(5)[0],
        labels={"absorbed": np.arange(5) > 2},
    )


def _by_hand() -> list[Statement]:
    chain = loop_chain()
    mean_time = mean_time_to_absorption(chain).overall
    return [
        equals("three-state loop: R_inf is 24/79", float(long_run_reliability(chain)), 24 / 79, 1e-12),
        equals("three-state loop: R(6) is .274437", float(reliability(chain, 6)), 0.274437, 1e-12),
        equals("three-state loop: mean time is 1000/237", float(mean_time), 1000 / 237, 1e-12),
        equals("three-state loop: steps per failure are 200/33", float(steps_per_failure(chain)), 200 / 33, 1e-12),
    ]
