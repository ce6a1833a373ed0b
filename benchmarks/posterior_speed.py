"""Posterior draws through a property file, against Storm checking each property of each draw.

python benchmarks/posterior_speed.py [--draws 4000] [--storm-draws 40]

Storm builds the model of each draw once and checks the properties one by one: as the package does it, with its worker
process already running, and bare, in this very process through stormpy, which leaves out everything but Storm itself.
Both are measured on a few draws and extrapolated to all. The exit code is 1 below 200 times the former.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from tracebridge.chain import TransitionCounts, fit_counts
from tracebridge.checking.evaluate import PropertyChecker
from tracebridge.checking.storm import StormSession
from tracebridge.checking.storm_process import StormWorker
from tracebridge.inference.posterior import ChainPosterior
from tracebridge.inference.uncertainty import draw_properties, property_uncertainty, resolved_properties

LEAST_RATIO = 200

PROPERTIES = """
P=? [ F "success" ]; P=? [ F<=5 "success" ]; P=? [ F<=10 "success" ]; P=? [ F<=20 "success" ];
P>=0.4 [ F "success" ]; P>=0.3 [ F<=8 "success" ]; P<0.7 [ F "failure" ]; P=? [ F "s3" ];
P=? [ !"s2" U "success" ]; P=? [ !"s2" U<=6 "success" ]; P=? [ F<=10 "failure" ]; P=? [ X "s1" ];
P=? [ F[2,8] "success" ]; P=? [ "s0" U "s1" ]; P=? [ G !"s4" ];
R{"steps"}=? [ F "absorbed" ]; R{"steps"}=? [ C<=10 ]; R{"steps"}<=12 [ F "absorbed" ]; R{"steps"}=? [ I=4 ];
S=? [ "success" ];
"""


def fitted(m: int = 10, n_runs: int = 300):
    rng = np.random.default_rng(0)
    rows = np.column_stack([0.85 * rng.dirichlet(np.ones(m), size=m), np.full(m, 0.09), np.full(m, 0.06)])
    paths = []
    for _ in range(n_runs):
        path = [0]
        while (following := int(rng.choice(m + 2, p=rows[path[-1]]))) < m:
            path.append(following)
        paths.append(([f"s{i}" for i in path], "success" if following == m else "failure"))
    return fit_counts(TransitionCounts.from_paths(paths))


def storm_values(stack, properties) -> tuple[float, np.ndarray]:
    """Seconds, and the value of every property in every draw, shape (draws, properties)."""
    import stormpy
    from stormpy.datastructures import BitVector, SparseMatrixBuilder
    from stormpy.models import SparseDtmc, SparseModelComponents, SparseRewardModel, StateLabeling

    chain = stack.chain
    P, n = chain.transitions, chain.n_states
    names = {name: chain.label(name) for name in ("success", "failure", "absorbed", "s0", "s1", "s2", "s3", "s4")}
    parsed = [stormpy.parse_properties(text)[0] for text in properties]
    rows = np.repeat(np.arange(n), np.diff(P.indptr)).tolist()
    columns, steps = P.indices.tolist(), chain.rewards["steps"].state.tolist()
    values = np.empty((stack.draws, len(parsed)))
    started = time.perf_counter()
    for draw in range(stack.draws):
        builder = SparseMatrixBuilder[float](rows=n, columns=n, entries=P.nnz)
        builder.add_next_values(rows, columns, stack.entries[:, draw].tolist())
        labelling = StateLabeling(n)
        for name, states in {
            "init": [0],
            **{name: np.flatnonzero(mask).tolist() for name, mask in names.items()},
        }.items():
            labelling.add_label(name)
            labelling.set_states(name, BitVector(n, states))
        parts = SparseModelComponents[float](
            transition_matrix=builder.build(),
            state_labeling=labelling,
            reward_models={"steps": SparseRewardModel[float](optional_state_reward_vector=steps)},
        )
        model = SparseDtmc[float](parts)
        for j, property_ in enumerate(parsed):
            result = stormpy.model_checking(model, property_)
            values[draw, j] = (
                result.get_truth_values_vector().get(0) if result.is_qualitative() else result.get_value(0)
            )
    return time.perf_counter() - started, values


def engine_seconds(stack, properties) -> float:
    """Seconds for every property in every draw by the package's Storm engine."""
    started = time.perf_counter()
    with StormWorker() as worker:
        for draw in range(stack.draws):
            chain = stack.chain_at(draw)
            checker = PropertyChecker(chain, StormSession(chain, exact=False, worker=worker, time_limit=60.0))
            for property_ in properties:
                if not checker.check(property_).answered:
                    raise RuntimeError(f"Storm did not answer {property_.text}")
            if draw == 0:
                started = time.perf_counter()  # the process is up, Storm is loaded
    return (time.perf_counter() - started) * stack.draws / (stack.draws - 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4_000)
    parser.add_argument("--storm-draws", type=int, default=40)
    args = parser.parse_args()
    fit = fitted()
    resolved = resolved_properties(fit, PROPERTIES, None)
    property_uncertainty(fit, PROPERTIES, draws=64)  # everything is imported
    started = time.perf_counter()
    posterior = ChainPosterior.of_fit(fit)
    ours = draw_properties(resolved, posterior.draws(args.draws, 0), args.draws)
    seconds = time.perf_counter() - started

    few = next(posterior.draws(args.storm_draws, 0))
    texts = [line.strip() for line in PROPERTIES.replace("\n", " ").split(";") if line.strip()]
    bare, values = storm_values(few, texts)
    engine = engine_seconds(few, resolved)
    worst = 0.0
    for j, outcome in enumerate(ours):
        mine = outcome.holds if outcome.holds is not None else outcome.values
        worst = max(worst, float(np.abs(np.asarray(mine[: few.draws], dtype=float) - values[:, j]).max()))
    scale = args.draws / few.draws
    ratio = engine * scale / seconds
    print(f"{len(resolved)} properties of {fit.chain.n_states} states, {args.draws} draws: {seconds:.3f} s")
    print(f"Storm on {few.draws} draws: {engine:.2f} s by the engine, {bare:.2f} s bare; largest gap {worst:.1e}")
    print(f"for all draws: {engine * scale:.0f} s, ratio {ratio:.0f} (at least {LEAST_RATIO}); ", end="")
    print(f"bare {bare * scale:.0f} s, ratio {bare * scale / seconds:.0f}")
    return int(ratio < LEAST_RATIO or worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
