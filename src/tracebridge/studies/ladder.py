"""Richer chains: sizes of certificates, coverage of intervals, both engines on each form, pass^k, and the ladder.

The truths are chains of each form that fit the packaged corpus. Public corpora are looked for in the folder that the
environment variable ``TRACEBRIDGE_SHARED`` names, and left out without one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.agreement import compare
from tracebridge.chain import fit_chain
from tracebridge.chain.expanded.structure import ExpandedStructure
from tracebridge.checking import check
from tracebridge.inference.expanded.certification import certify_model
from tracebridge.inference.expanded.clock_bins import with_bins
from tracebridge.inference.expanded.ladder import RUNGS, SCOPES, Ladder, climb
from tracebridge.inference.expanded.simulation import ModelSimulation
from tracebridge.inference.expanded.standing import standings
from tracebridge.inference.expanded.task_classes import class_rates, task_counts
from tracebridge.resources import packaged
from tracebridge.states.model_form import parse_model
from tracebridge.states.run_paths import RunPaths
from tracebridge.studies.expanded_coverage import FIGURES, KnownModel, coverage_of_forms
from tracebridge.studies.result import Findings, Table
from tracebridge.studies.statement import fixed, rate
from tracebridge.traces import read_traces

if TYPE_CHECKING:
    from tracebridge.studies.replication import Replication
    from tracebridge.studies.result import Cell
    from tracebridge.studies.statement import Statement

RUNS = 200
LARGEST_SIZE = 0.08
REPLICATES = 39
COVERAGE_BETWEEN = (0.90, 0.98)

#: One form of each kind of rung; the largest last.
FORMS = (
    "first-order",
    "clock:log",
    "phases:4",
    "order2",
    "order2+clock:log",
    "order2+phases:4",
    "order2+dwell4+clock:log",
)

#: Forms whose intervals are looked at: those of the larger chains take minutes a corpus.
COVERED_FORMS = FORMS[:5]

_PROPERTIES = (
    'P=? [ F "success" ]; P=? [ F<=6 "success" ]; R{"steps"}=? [ F "absorbed" ]; P=? [ G<=4 !"failure" ];'
    'P=? [ X X "absorbed" ]; S=? [ "failure" ]'
)

#: Below the folder of public corpora: what is read, and whether its tasks were tried several times.
_CORPORA = {
    "tau-bench airline": ("data/traces/tau_bench/gpt-4o-airline.json", True),
    "tau2-bench airline": ("data/traces/tau2_bench/gpt-4.1_airline.json", False),
    "tau2-bench retail": ("data/traces/tau2_bench/gpt-4.1_retail.json", False),
}

# Trials of a task that pass^k is foretold for, and random halves of the tasks over which the error is taken.
_TRIALS, _SPLITS = 4, 6


@cache
def packaged_runs() -> RunPaths:
    """The runs of the packaged corpus."""
    return _runs(packaged("demo", "refund_agent.jsonl"))


def _runs(path: Path) -> RunPaths:
    traces = read_traces(path)
    abstraction = fit_chain(traces).abstraction
    if abstraction is None:  # fit_chain makes one of every corpus
        raise AssertionError(path)
    return RunPaths.of_traces(abstraction, traces)


@cache
def known_model(name: str) -> KnownModel:
    """The truth of a form."""
    paths = packaged_runs()
    return KnownModel.of_runs(paths, with_bins(parse_model(name), paths), runs=RUNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What the certificate says of one corpus of a form's own truth: rejections by scope, and a refusal."""

    timing: bool
    path: bool
    refused: bool


def judged(name: str, rng: np.random.Generator) -> Judged:
    """Draw a corpus from the truth of a form, and certify the form on it."""
    seed = int(rng.integers(2**32))
    model = known_model(name).model
    paths, _ = ModelSimulation(model).corpora(RUNS, [np.random.SeedSequence(seed)])
    found = certify_model(paths, model.form, replicates=REPLICATES, seed=seed)
    verdicts = {scope: found.verdict(scope) for scope in SCOPES}
    return Judged(
        timing=verdicts["timing"] == "reject", path=verdicts["path"] == "reject", refused=verdicts["path"] == "refused"
    )


def study(replication: Replication) -> Findings:
    """Size, coverage, export, pass^k, and the ladder on the packaged and on public corpora."""
    tables, statements = [], []
    for found_tables, found in (_sizes(replication), _coverage(replication), _exports(), _corpora(replication.seed)):
        tables += found_tables
        statements += found
    missing = [name for name, path in _public_corpora().items() if path is None]
    notes: tuple[str, ...] = ("What is drawn from is the chain of each form that fits the packaged corpus.",)
    if missing:
        notes = (*notes, f"Not at hand, and left out: {', '.join(missing)} (see the source of this study).")
    return Findings(tables=tuple(tables), statements=tuple(statements), notes=notes)


# ---------------------------------------------------------------- certificates and intervals


def _sizes(replication: Replication) -> tuple[list[Table], list[Statement]]:
    results = replication.of_each(judged, FORMS)
    rows, statements = [], []
    for name, found in zip(FORMS, results, strict=True):
        number = len(found)
        rejections = {"timing": sum(each.timing for each in found), "path": sum(each.path for each in found)}
        refused = sum(each.refused for each in found)
        rows.append((name, number, rejections["timing"] / number, rejections["path"] / number, refused / number))
        for scope, count in rejections.items():
            text = f"{name}: rejections of its own truth, {scope}"
            statements.append(rate(text, count, number, "corpora", upper=LARGEST_SIZE))
    title = f"Certificates on {RUNS} runs of the form's own truth, level 0.05, {REPLICATES} replicates"
    columns = ("model", "corpora", "rejected, timing", "rejected, path", "no path verdict")
    return [Table(title=title, columns=columns, rows=tuple(rows))], statements


def _coverage(replication: Replication) -> tuple[list[Table], list[Statement]]:
    lower, upper = COVERAGE_BETWEEN
    rows: list[tuple[Cell, ...]] = []
    statements = []
    for found in coverage_of_forms([known_model(name) for name in COVERED_FORMS], replication):
        rows.append((found.form, found.corpora, found.known.median, *found.rates))
        text = f"{found.form}: coverage of {FIGURES[0]}"
        statements.append(rate(text, found.hits[0], found.corpora, "corpora", lower=lower, upper=upper))
    title = f"Coverage of 95 % intervals on {RUNS} runs of the form's own truth"
    return [Table(title=title, columns=("model", "corpora", "median", *FIGURES), rows=tuple(rows))], statements


def _exports() -> tuple[list[Table], list[Statement]]:
    """Every rung's chain by both engines."""
    rows: list[tuple[Cell, ...]] = []
    differing = 0
    for name in FORMS:
        model = known_model(name).model
        chain = ExpandedStructure.of_model(model).chain(model)
        agreements = compare(check(chain, _PROPERTIES))
        disagreements = sum(not each.agree for each in agreements)
        gaps = [each.gap for each in agreements if each.gap is not None]
        differing += disagreements
        rows.append((name, chain.n_states, len(agreements), disagreements, max(map(float, gaps), default=0.0)))
    table = Table(
        title="Both engines on the chain of each form",
        columns=("model", "states", "properties", "disagreements", "largest gap"),
        rows=tuple(rows),
    )
    return [table], [fixed("properties on which the engines disagree", differing, upper=0)]


# ---------------------------------------------------------------- corpora


def _public_corpora() -> dict[str, Path | None]:
    folder = os.environ.get("TRACEBRIDGE_SHARED")
    found: dict[str, Path | None] = {}
    for name, (path, _) in _CORPORA.items():
        place = None if not folder else Path(folder) / path
        found[name] = place if place is not None and place.is_file() else None
    return found


def _corpora(seed: int) -> tuple[list[Table], list[Statement]]:
    """The ladder and pass^k on each corpus."""
    corpora = {"packaged": packaged_runs()}
    corpora |= {name: _runs(path) for name, path in _public_corpora().items() if path is not None}
    rows, trials, statements = [], [], []
    for name, paths in corpora.items():
        if len(np.unique(paths.blocks)) >= 24:
            ladder = climb(paths, rungs=RUNGS, replicates=99, seed=seed)
            rows.append(_row(name, paths, ladder))
            if name == "tau-bench airline":
                verdict = standings(ladder)["timing"].verdict
                passed = verdict in ("accept", "inconclusive")
                statements.append(fixed(f"{name}: timing passes on held-out tasks", float(passed), lower=1))
        if max(task_counts(paths).trials, default=0) >= _TRIALS:
            errors = pass_hat_errors(paths, seed)
            trials.append((name, *errors))
            text = f"{name}: error of pass^{_TRIALS} on held-out tasks, over that of the training tasks' own rate"
            statements.append(fixed(text, errors[1] / errors[2], upper=1.1))
    ladders = Table(
        title="The ladder on corpora, split by task where there are tasks",
        columns=("corpus", "runs", "model", "states", "timing", "p", "path", "p"),
        rows=tuple(rows),
    )
    repeated = Table(
        title=f"Root mean square error of pass^{_TRIALS} on held-out tasks, {_SPLITS} splits in halves",
        columns=("corpus", "one chain, R^k", "two classes of tasks", "rate of the training tasks"),
        rows=tuple(trials),
    )
    return [ladders, repeated], statements


def _row(name: str, paths: RunPaths, ladder: Ladder) -> tuple[str | int | float | None, ...]:
    rung = next(rung for rung in ladder.rungs if rung.form == ladder.form)
    found = standings(ladder)
    certificate = next((test.certificate for test in reversed(ladder.tests) if test.form == ladder.form), None)
    p_values = {scope: None if certificate is None else certificate[scope].p for scope in SCOPES}
    return (
        name,
        paths.n_runs,
        ladder.form,
        rung.n_states,
        found["timing"].verdict,
        p_values["timing"],
        found["path"].verdict,
        p_values["path"],
    )


def pass_hat_errors(paths: RunPaths, seed: int) -> tuple[float, float, float]:
    """Errors of pass^k on held-out tasks: of R^k of one chain, of two classes of tasks, of the training tasks' rate.

    Root mean square over splits of the tasks in halves, each half foretelling the other. Classes enter by their pass
    rates, which are the R_inf of the tilted chains.
    """
    rng = np.random.default_rng(np.random.SeedSequence([seed, len(paths.task_names)]))
    errors = []
    for _ in range(_SPLITS):
        order = rng.permutation(len(paths.task_names))
        halves = np.split(order, [len(order) // 2])
        for training, held in (halves, halves[::-1]):
            one, other = (paths.take(np.flatnonzero(np.isin(paths.tasks, half))) for half in (training, held))
            truth = _observed_pass_hat(other)
            weights, rates = class_rates(one, 2)
            plain = (one.outcomes == 0).sum() / (one.outcomes != 2).sum()
            foretold = (plain**_TRIALS, float(weights[0] @ rates[0] ** _TRIALS), _observed_pass_hat(one))
            errors.append([value - truth for value in foretold])
    found = np.sqrt((np.array(errors) ** 2).mean(axis=0)).tolist()
    return found[0], found[1], found[2]


def _observed_pass_hat(paths: RunPaths) -> float:
    """The unbiased estimate ``mean of C(c, k) / C(n, k)`` over tasks with k trials or more."""
    counts = task_counts(paths)
    values = []
    for c, n in zip(counts.successes, counts.trials, strict=True):
        if n >= _TRIALS:
            values.append(float(np.prod([max(c - i, 0) / (n - i) for i in range(_TRIALS)])))
    return float(np.mean(values))
