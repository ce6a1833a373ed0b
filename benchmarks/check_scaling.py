"""Unbounded reachability on chains of 10^3 to 10^6 states: our engine against Storm, time and memory and accuracy.

python benchmarks/check_scaling.py [--sizes 1000 10000 100000 1000000] [--rounds 3] [--limit 600] [FAMILY ...]

Each computation runs in a process of its own, from a chain in memory to values in every state; the engines take turns,
and the best of several rounds counts. Times are of the processor, of all threads, so that other work on the machine
counts little. Storm gets the matrix as it is, and the solver that we choose for it (see
`tracebridge.checking.storm_solver`); its times are to build the model and to check.

    ours       seconds, from the chain to proven bounds
    memory     what our process takes beyond the chain at most while it computes, over the chain's matrix in CSR layout
    vector     one vector of doubles, in the same measure
    width      the largest relative width of our bounds
    check      our time over Storm's to check; below 1 we are faster
    all        our time over Storm's to build and check
    wall       our time over Storm's to check, by the clock on the wall
    error      how far Storm's values are from our bounds at most, relative

Then the same within 10^12 steps, which no loop gets through: our time, and the largest relative width of the bounds.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from scaling_chains import FAMILIES
from storm_apart import REACH, apart, holds, storm_as_asked
from tracebridge.closedform import FloatArithmetic, evaluate_operator
from tracebridge.pctl.ast import Eventually, Label, Number, Operator, Probability, StepBound

DENSE_STATES = 2_000
LONG = 20.0  # seconds; there is no second round of what takes longer
FAR = Probability(Eventually(Label("goal"), StepBound(upper=Number(Fraction(10**12), True))))


def ours(family: str, states: int, operator: Operator) -> dict[str, Any]:
    small = FAMILIES[family](600)
    evaluate_operator(FloatArithmetic(small), operator, holds(small))  # whatever is imported at first use
    chain = FAMILIES[family](states)
    matrix = chain.transitions
    before = forget_peak_of_memory()
    start, wall = time.process_time(), time.perf_counter()
    found = evaluate_operator(FloatArithmetic(chain), operator, holds(chain))
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    size = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return {
        "check": seconds,
        "wall": wall,
        "memory": (peak_of_memory() - before) / size,
        "vector": 8 * chain.n_states / size,
        "lower": found.lower,
        "upper": found.upper,
    }


def forget_peak_of_memory() -> int:
    """Give free memory back, let the peak be what is taken now, and tell it in bytes."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return peak_of_memory()


def peak_of_memory() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def best_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The results of the last with the shortest times of all."""
    times = {name: min(one[name] for one in found) for name in ("build", "check", "wall") if name in found[0]}
    return {**found[-1], **times}


def in_turns(
    rounds: int, limit: float, *tasks: tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]
) -> list[dict[str, Any] | None]:
    """Each task's best round; None for what does not end within the limit."""
    found: list[list[dict[str, Any]]] = [[] for _ in tasks]
    for _ in range(rounds):
        for results, (task, arguments) in zip(found, tasks, strict=True):
            result = apart(limit, task, *arguments)
            if result is None:
                return [best_of(results) if results else None for results in found]
            results.append(result)
        if max(results[-1]["wall"] for results in found) > LONG:
            break
    return [best_of(results) for results in found]


def width_of(mine: dict[str, Any]) -> float:
    positive = mine["lower"] > 0
    return float(((mine["upper"] - mine["lower"])[positive] / mine["lower"][positive]).max())


def against_storm(family: str, states: int, rounds: int, limit: float) -> str:
    text = f"{family:12} {states:9,}"
    tasks = (ours, (family, states, REACH)), (storm_as_asked, (FAMILIES[family], states))
    mine, theirs = in_turns(rounds, limit, *tasks)
    if mine is None:
        return f"{text}  ours: nothing within {limit:g} s"
    text += f"  {mine['check']:8.3f}  {mine['memory']:6.1f}  {mine['vector']:6.2f}  {width_of(mine):7.1e}"
    if theirs is None:
        return f"{text}  Storm: nothing within {limit:g} s"
    build, check = theirs["build"], theirs["check"]
    text += (
        f"  {mine['check'] / check:5.2f}  {mine['check'] / (build + check):5.2f}  {mine['wall'] / theirs['wall']:5.2f}"
    )
    positive = mine["lower"] > 0
    outside = np.maximum(np.maximum(mine["lower"] - theirs["values"], theirs["values"] - mine["upper"]), 0.0)
    error = float((outside[positive] / mine["upper"][positive]).max())
    return f"{text}  {error:7.1e}  Storm ({theirs['solver']}): build {build:.3f} s, check {check:.3f} s"


def within_many_steps(family: str, states: int, rounds: int, limit: float) -> str:
    text = f"{family:12} {states:9,}"
    (mine,) = in_turns(rounds, limit, (ours, (family, states, FAR)))
    return (
        f"{text}  nothing within {limit:g} s"
        if mine is None
        else f"{text}  {mine['check']:8.3f}  {width_of(mine):7.1e}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", default=list(FAMILIES), metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=3, help=f"at most; no more after one of {LONG:g} seconds")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each computation")
    arguments = parser.parse_args()
    unknown = set(arguments.families) - set(FAMILIES)
    if unknown:
        parser.error(f"no such family: {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    asked = [
        (family, states)
        for family in arguments.families
        for states in ([DENSE_STATES] if family == "dense" else arguments.sizes)
    ]
    ratios = f"{'check':>5}  {'all':>5}  {'wall':>5}  {'error':>7}"
    print(f"{'family':12} {'states':>9}  {'ours':>8}  {'memory':>6}  {'vector':>6}  {'width':>7}  {ratios}")
    for family, states in asked:
        print(against_storm(family, states, arguments.rounds, arguments.limit), flush=True)
    print(f"\nwithin 10^12 steps\n{'family':12} {'states':>9}  {'ours':>8}  {'width':>7}")
    for family, states in asked:
        print(within_many_steps(family, states, arguments.rounds, arguments.limit), flush=True)


if __name__ == "__main__":
    main()
