"""Proven values of operators against plain ones: ratios of times, and how far off the plain ones are.

python benchmarks/closedform_speed.py [--states 2000] [--limit 60] [CHAIN ...]

For each chain and operator, the time of the closed-form engine (from a chain in memory to enclosed values) over the
time of

* scipy: ``spsolve`` on the same equations, or as many products with P as there are steps; the values only;
* Storm: our session with its default solver, from the same chain in memory; the process is already running.

Errors are the largest relative distance of a value from its enclosure; 0 means that every value lies inside. ``width``
is the largest relative width of the enclosures. Each scipy solution runs in a process of its own, which is stopped at
the limit (its LU of a well mixing chain fills up); the ratio is then below the one that is printed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from fractions import Fraction
from multiprocessing.connection import Connection

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve

from tracebridge.chain.graph import reaching, recurrent_classes
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.closedform import EnclosureVector, FloatArithmetic, evaluate_operator
from tracebridge.errors import EngineError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Formula,
    Label,
    Number,
    Operator,
    Probability,
    Reward,
    SteadyState,
    StepBound,
)

Floats = NDArray[np.float64]
STEPS = 50
GOAL = Label("goal")
OPERATORS: dict[str, Operator] = {
    "P F": Probability(Eventually(GOAL)),
    f"P F<={STEPS}": Probability(Eventually(GOAL, StepBound(upper=Number(Fraction(STEPS), True)))),
    "R C": Reward(CumulativeReward(), "steps"),
    "S": SteadyState(GOAL),
}


# ---------------------------------------------------------------- chains: the goal is next to last, failure last


def absorbing(m: int, rows: NDArray[np.int64], columns: NDArray[np.int64], weights: Floats) -> MarkovChain:
    """m transient states with these weights, then a goal and a failure."""
    n = m + 2
    ends = np.array([m, m + 1])
    entries = np.r_[weights, 1.0, 1.0]
    P = csr_array((entries, (np.r_[rows, ends], np.r_[columns, ends])), shape=(n, n))
    P.sum_duplicates()
    P.data /= np.repeat(np.asarray(P.sum(axis=1)).ravel(), np.diff(P.indptr))
    goal = np.arange(n) == m
    return MarkovChain(
        states=tuple(f"s{i}" for i in range(n)),
        transitions=P,
        initial=(np.arange(n) == 0).astype(np.float64),
        labels={"goal": goal},
        rewards={"steps": RewardStructure(state=(np.arange(n) < m).astype(np.float64))},
    )


def mixing(n: int) -> MarkovChain:
    """Five random successors a state; one state in five may end."""
    rng = np.random.default_rng(0)
    m = n - 2
    ending = np.flatnonzero(rng.random(m) < 0.2)
    return absorbing(
        m,
        np.r_[np.repeat(np.arange(m), 5), ending],
        np.r_[rng.integers(0, m, 5 * m), m + rng.integers(0, 2, len(ending))],
        np.r_[rng.random(5 * m) + 0.05, 0.1 * rng.random(len(ending))],
    )


def birth_and_death(n: int) -> MarkovChain:
    """A walk with drift towards the goal."""
    m = n - 2
    i = np.arange(m)
    below = np.where(i == 0, m + 1, i - 1)
    return absorbing(m, np.r_[i, i], np.r_[i + 1, below], np.r_[np.full(m, 0.6), np.full(m, 0.4)])


def pipeline(n: int) -> MarkovChain:
    """Stages, one or two ahead, that rarely fail: no cycle."""
    m = n - 2
    i = np.arange(m)
    weights = np.r_[np.full(m, 0.7), np.full(m, 0.3), np.full(m, 1 / n)]
    return absorbing(m, np.r_[i, i, i], np.r_[i + 1, np.minimum(i + 2, m), np.full(m, m + 1)], weights)


def nearly_decomposable(n: int) -> MarkovChain:
    """Ten clusters that are left once in 1e9 steps; one in 1e11 steps ends."""
    rng = np.random.default_rng(0)
    m = n - 2
    size = m // 10 + 1
    first = np.repeat(np.arange(m), 5) // size * size
    inside = first + (rng.random(5 * m) * (np.minimum(first + size, m) - first)).astype(np.int64)
    ending = np.arange(0, m, 7)
    return absorbing(
        m,
        np.r_[np.repeat(np.arange(m), 5), np.arange(m), ending],
        np.r_[inside, rng.integers(0, m, m), m + rng.integers(0, 2, len(ending))],
        np.r_[rng.random(5 * m) + 0.05, np.full(m, 1e-9), np.full(len(ending), 1e-11)],
    )


CHAINS: dict[str, Callable[[int], MarkovChain]] = {
    "mixing": mixing,
    "birth-death": birth_and_death,
    "pipeline": pipeline,
    "decomposable": nearly_decomposable,
}


# ---------------------------------------------------------------- the three ways


def holds(chain: MarkovChain) -> Callable[[Formula], NDArray[np.bool_]]:
    return lambda formula: chain.label(formula.name) if isinstance(formula, Label) else np.zeros(0, dtype=np.bool_)


def enclosed(chain: MarkovChain, operator: Operator) -> EnclosureVector:
    return evaluate_operator(FloatArithmetic(chain), operator, holds(chain))


def plain(chain: MarkovChain, name: str) -> Floats:
    """By scipy, in doubles, as one would write it down."""
    P = chain.transitions
    goal = chain.label("goal").astype(np.float64)
    if name.startswith("P F<="):
        x = goal
        for _ in range(STEPS):
            x = np.where(goal == 1, 1.0, P @ x)
        return x
    if name == "R C":
        active = ~np.isin(np.arange(chain.n_states), np.concatenate(recurrent_classes(P)))
        gain, x = chain.rewards["steps"].state, np.zeros(chain.n_states)
    else:  # the long-run fraction of time at the goal is the probability of ending there
        active = reaching(P, goal == 1) & (goal == 0)
        gain, x = np.zeros(chain.n_states), goal.copy()
    rows = P[np.flatnonzero(active)]
    system = eye_array(int(active.sum()), format="csc") - rows[:, np.flatnonzero(active)].tocsc()
    x[active] = spsolve(system.tocsc(), gain[active] + rows @ np.where(active, 0.0, x))
    return x


def plain_apart(connection: Connection, chain_name: str, states: int, operator: str) -> None:
    chain = CHAINS[chain_name](states)
    start = time.perf_counter()
    values = plain(chain, operator)
    connection.send((time.perf_counter() - start, values))


def within_limit(chain_name: str, states: int, operator: str, limit: float) -> tuple[float, Floats] | None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=plain_apart, args=(there, chain_name, states, operator))
    process.start()
    there.close()
    found: tuple[float, Floats] | None = None
    try:
        if here.poll(limit + 10):  # and ten seconds to start
            found = here.recv()
    except EOFError:  # it died, of memory for one
        found = None
    process.kill()
    process.join()
    return found


def error(values: Floats, truth: EnclosureVector) -> float:
    """The largest distance from the enclosures, relative to the numbers."""
    known = np.isfinite(truth.upper) & (truth.upper > 0)
    outside = np.maximum(np.maximum(truth.lower - values, values - truth.upper), 0.0)[known]
    return float(np.nan_to_num(outside / truth.upper[known], nan=np.inf).max(initial=0.0))


def compare(chain_name: str, states: int, limit: float, worker: StormWorker) -> None:
    chain = CHAINS[chain_name](states)
    for name, operator in OPERATORS.items():
        start = time.perf_counter()
        truth = enclosed(chain, operator)
        ours = time.perf_counter() - start
        positive = truth.value > 1e-300
        width = float(((truth.upper - truth.lower)[positive] / truth.value[positive]).max(initial=0.0))
        line = f"{chain_name:13} {states:7,} {name:7} width {width:7.1e}"
        by_scipy = within_limit(chain_name, states, name, limit)
        if by_scipy is None:
            line += f" | scipy <{ours / limit:8.3g}, error       ?"
        else:
            line += f" | scipy {ours / by_scipy[0]:9.3g}, error {error(by_scipy[1], truth):7.1e}"
        session = StormSession(chain, exact=False, worker=worker, time_limit=limit)
        start = time.perf_counter()
        try:
            values = session.evaluate(operator, holds(chain)).value
        except EngineError as failure:
            line += f" | Storm: {str(failure).splitlines()[0][:60]}"
        else:
            line += f" | Storm {ours / (time.perf_counter() - start):9.3g}, error {error(values, truth):7.1e}"
        print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chains", nargs="*", default=list(CHAINS), metavar="CHAIN", help=", ".join(CHAINS))
    parser.add_argument("--states", type=int, default=2_000)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each plain solution")
    arguments = parser.parse_args()
    unknown = set(arguments.chains) - set(CHAINS)
    if unknown:
        parser.error(f"no such chain: {', '.join(sorted(unknown))}; there are {', '.join(CHAINS)}")
    enclosed(mixing(50), OPERATORS["P F"])  # whatever is imported at first use
    print("time of the closed form over that of ...")
    with StormWorker() as worker:
        worker.version()
        for chain_name in arguments.chains:
            compare(chain_name, arguments.states, arguments.limit, worker)


if __name__ == "__main__":
    main()
