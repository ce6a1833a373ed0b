"""One iteration for hidden phases against one of hmmlearn's CategoricalHMM with as many states, on the same runs.

python benchmarks/phases_speed.py [--runs 500] [--steps 60] [--categories 10] [--phases 4] [--repeat 5]

Times are CPU milliseconds an iteration, the best of some repetitions of ten iterations, in turn. hmmlearn
(pip install hmmlearn) is asked for its faster implementation, which scales, and its default, which takes logarithms.
Last come the refits of 99 resampled corpora side by side, six iterations each, and a whole fit from three starts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from tracebridge.chain.expanded.phases import em_stack, fit_phases
from tracebridge.states.model_form import ModelForm, parse_model
from tracebridge.states.run_paths import RunPaths

ITERATIONS = 10
REPLICATES = 99


def seconds(job: Callable[[], object]) -> float:
    started = time.process_time()
    job()
    return time.process_time() - started


def drawn_runs(n_runs: int, n_steps: int, m: int, n_phases: int) -> RunPaths:
    """Runs whose rows change from part to part."""
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(m, 0.5), (n_phases, m)).cumsum(axis=-1)
    codes = np.empty((n_runs, n_steps), dtype=np.int64)
    codes[:, 0] = rng.integers(m, size=n_runs)
    for t in range(1, n_steps):
        row = rows[t * n_phases // n_steps, codes[:, t - 1]]
        codes[:, t] = np.minimum((rng.random((n_runs, 1)) > row).sum(axis=1), m - 1)
    names = [f"c{i:03}" for i in range(m)]
    return RunPaths.of_codes(names, codes.ravel(), np.arange(n_runs + 1) * n_steps, rng.integers(2, size=n_runs))


def ours(paths: RunPaths, form: ModelForm) -> Callable[[], object]:
    warm = fit_phases(paths, form, restarts=1).model
    one = np.zeros(paths.n_runs, dtype=np.int64)
    return lambda: em_stack(paths, one, 1, form, 1.0, warm, ITERATIONS)


def theirs(paths: RunPaths, n_phases: int) -> dict[str, Callable[[], object]]:
    try:
        from hmmlearn.hmm import CategoricalHMM
    except ImportError:
        print("hmmlearn is not installed (pip install hmmlearn): nothing to compare with")
        return {}
    codes = paths.codes.astype(np.int64)[:, np.newaxis]

    def fitted(implementation: str) -> None:
        model = CategoricalHMM(n_phases, n_iter=ITERATIONS, tol=-np.inf, random_state=0, implementation=implementation)
        model.fit(codes, paths.lengths)

    return {f"hmmlearn, {name}": lambda name=name: fitted(name) for name in ("scaling", "log")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("runs", 500), ("steps", 60), ("categories", 10), ("phases", 4), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    paths = drawn_runs(args.runs, args.steps, args.categories, args.phases)
    print(f"{args.runs} runs of {args.steps} steps over {args.categories} categories, {args.phases} phases")
    forms = [parse_model(f"phases:{args.phases}{kind}") for kind in ("", ":full", "+order2")]
    jobs = {str(form): ours(paths, form) for form in forms} | theirs(paths, args.phases)
    taken = dict.fromkeys(jobs, np.inf)
    for _ in range(args.repeat):
        for name, job in jobs.items():
            taken[name] = min(taken[name], seconds(job) / ITERATIONS)
    fastest = min((time_ for name, time_ in taken.items() if name.startswith("hmmlearn")), default=np.nan)
    for name, time_ in taken.items():
        print(f"{name:24} {1e3 * time_:8.2f} ms   {time_ / fastest:6.3f} times hmmlearn's faster one")

    runs = np.random.default_rng(1).integers(args.runs, size=(REPLICATES, args.runs))
    corpora = np.repeat(np.arange(REPLICATES), args.runs)
    resampled = paths.take(runs.ravel())
    for form in forms:
        started = time.process_time()
        found = fit_phases(paths, form)
        fitted = time.process_time()
        em_stack(resampled, corpora, REPLICATES, form, 1.0, found.model, 6)
        refitted = time.process_time() - fitted
        print(f"{form!s:24} {refitted:6.2f} s for {REPLICATES} refits, {fitted - started:6.2f} s for a fit")


if __name__ == "__main__":
    main()
