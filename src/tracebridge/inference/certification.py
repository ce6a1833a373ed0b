"""Certify a fitted chain: draw the corpus anew from it, many times, and see whether the real one stands out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform import long_run_reliability, mean_time_to_absorption
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.inference.certificate import (
    Certificate,
    CovariateResult,
    CurveDeparture,
    FitFigures,
    ReferenceEffects,
    StatisticResult,
)
from tracebridge.inference.corpus_counts import PathCounts
from tracebridge.inference.counting import path_counts, split_counts
from tracebridge.inference.homogeneity import CovariateTest, covariate_test
from tracebridge.inference.localisation import Departure, StateShare, departures, state_shares
from tracebridge.inference.misfit import (
    Misfit,
    aalen_johansen,
    context_names,
    context_tables,
    largest_gap,
    misfit,
)
from tracebridge.inference.null_distribution import NullDistribution, holm
from tracebridge.inference.path_tables import FAILURE, SUCCESS, PathTables
from tracebridge.inference.published_rule import PaperProfile, paper_profile
from tracebridge.inference.resolution import detectable_gap, detectable_nats
from tracebridge.inference.run_sample import RunSample
from tracebridge.inference.simulation import Simulation
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.fit import ChainFit
    from tracebridge.chain.markov import MarkovChain
    from tracebridge.traces.model import Trace

#: Replicates of the bootstrap: the smallest p-value is 1 / (1 + this).
DEFAULT_REPLICATES = 199

_OUTCOMES = ("success", "failure")
_SHOWN_STATES = 5
_SHOWN_CELLS = 5
_COARSE = 0.5  # a test that sees no smaller distance of two distributions


def certify(
    fit: ChainFit,
    runs: PathCounts | Iterable[Trace],
    *,
    held_out: bool | PathCounts = False,
    covariates: Sequence[str] = (),
    replicates: int = DEFAULT_REPLICATES,
    seed: int = 0,
    level: float = 0.05,
    effects: ReferenceEffects | None = None,
) -> Certificate:
    """Test whether the runs of a fit are those of a first-order chain with fixed probabilities.

    What is tested is the state space and the chain's assumptions, not its prior: the chain is refitted with a prior of
    mass one a row, to the corpus as to every replicate.

    Args:
        fit: the chain, fitted to these runs, or to these and those held out.
        runs: `path_counts` of the runs, or the runs themselves.
        held_out: judge runs that the chain was not fitted to. True splits the given traces in two halves by task;
            counts of such runs are taken as they are.
        covariates: what runs might differ by: ``task_id``, ``trial``, ``model``, or keys of their attributes. Counts
            must have been made with them.
        replicates: of bootstrap and permutations, at least 19. About half a microsecond for each simulated step; of
            many runs, the time does not depend on their number.
        seed: decides the replicates.
        level: of the tests.
        effects: what the corpus must be able to show before its chain is accepted.

    Raises:
        UsageError: for options out of range, a fit of other runs, or covariates that the counts do not know.
        NothingToCheckError: if in no run it was seen what followed a step.
        FitError, TraceError: for traces that do not fit the states.
    """
    if isinstance(replicates, bool) or replicates < 19 or not 0 < level < 1:
        raise UsageError(f"replicates={replicates} must be at least 19, and level={level} between 0 and 1")
    if len(set(covariates)) != len(covariates):
        raise UsageError(f"a covariate is named twice in {', '.join(covariates)}")
    judged, first, fitted_to = _corpora(fit, runs, held_out, covariates)
    both = judged if first is None else first + judged
    tables = _over(judged, both.states)
    reference = None if first is None else _over(first, both.states)
    if not len(tables.clock.keys) or (reference is not None and not len(reference.clock.keys)):
        raise NothingToCheckError("in no run it was seen what followed a step: there is nothing to certify")
    bootstrap, *for_covariates = np.random.SeedSequence(seed).spawn(1 + len(covariates))

    observed = misfit(tables, fitted_to=reference)
    simulation = Simulation([tables] if reference is None else [tables, reference])
    an_end_was_seen = any(judged.runs_by_outcome()[word] for word in _OUTCOMES)
    used = slice(0 if an_end_was_seen else 1, None)  # the first statistic is about ends
    values = []
    for drawn in simulation.replicates(replicates, bootstrap):
        values.append(misfit(drawn[0], fitted_to=drawn[1] if reference is not None else None).values[:, used])
    null = NullDistribution(observed=observed.values[0, used], replicates=np.concatenate(values), level=level)
    statistics = _statistic_results(null, observed, judged, observed.names[used])
    sample = _sample_with(both, covariates)
    tests = [
        covariate_test(sample, covariate, both.states, replicates=replicates, seed=child)
        for covariate, child in zip(covariates, for_covariates, strict=True)
    ]
    covariate_results = _covariate_results(tests)
    contexts = context_tables(tables, fitted_to=reference)
    names = [each.name for each in statistics if each.name in contexts and each.p <= level]
    shares: list[StateShare] = []
    found: list[Departure] = []
    for name in names if null.p <= level else []:
        shares += state_shares(name, observed.deviances[name], both.states, limit=_SHOWN_STATES)
        words = context_names(name, both.states)
        found += departures(name, contexts[name], both.states, words, limit=_SHOWN_CELLS)
    for test, result in zip(tests, covariate_results, strict=True):
        if result.p_holm is not None and result.p_holm <= level:
            found += departures(test.covariate, test.events, both.states, test.values, limit=_SHOWN_CELLS)
    paper = paper_profile(tables)
    return Certificate(
        p=null.p,
        level=level,
        replicates=replicates,
        seed=seed,
        held_out=reference is not None,
        runs=judged.runs_by_outcome(),
        n_states=len(both.states),
        n_events=judged.n_events,
        effects=effects or ReferenceEffects(),
        statistics=statistics,
        covariates=covariate_results,
        curve=CurveDeparture(
            outcome=_OUTCOMES[int(observed.gap.outcome[0])],
            step=int(observed.gap.step[0]),
            observed=float(observed.gap.observed[0]),
            fitted=float(observed.gap.fitted[0]),
        )
        if an_end_was_seen
        else None,
        shares=tuple(shares),
        departures=tuple(found),
        figures=_figures(fit, fitted_to),
        paper=paper,
        notes=_notes(fit, both, paper, covariate_results, replicates, level, simulation.n_stopped),
    )


# ---------------------------------------------------------------- the corpus


def _corpora(
    fit: ChainFit, runs: PathCounts | Iterable[Trace], held_out: bool | PathCounts, covariates: Sequence[str]
) -> tuple[PathCounts, PathCounts | None, PathCounts]:
    """The corpus to judge, the one that its chain is estimated from if that is another, and that of the fit."""
    first: PathCounts | None = None
    if not isinstance(runs, PathCounts):
        if isinstance(held_out, PathCounts):
            raise UsageError("give the runs as counts too if those held out are")
        if held_out:
            first, judged = split_counts(fit, runs, covariates=covariates)
        else:
            judged = path_counts(fit, runs, covariates=covariates)
    elif isinstance(held_out, PathCounts):
        first, judged = runs, held_out
    elif held_out:
        raise UsageError("counts cannot be split: give the traces, or hold out the counts of some of them")
    else:
        judged = runs
    candidates = [judged] if first is None else [first, first + judged]
    fitted_to = next((counts for counts in candidates if _is_fitted_to(fit, counts)), None)
    if fitted_to is None:
        raise UsageError("the chain was not fitted to these runs, under its censoring policy")
    return judged, first, fitted_to


def _is_fitted_to(fit: ChainFit, counts: PathCounts) -> bool:
    rows = fit.counts.under(fit.policy)
    rows = rows.restricted(rows.visits > 0)
    if rows.states != counts.states:
        return False
    i, j = rows.counts.tocoo().coords
    order = np.lexsort((j, i))
    keys = i[order].astype(np.int64) * (len(rows.states) + 2) + j[order]
    events = counts.tables.clock.pooled()
    empty = counts.tables.ends[0, [SUCCESS, FAILURE], 0]
    return (
        np.array_equal(keys, events.keys)
        and np.array_equal(rows.counts.tocoo().data[order], events.counts)
        and np.array_equal(rows.starts, np.concatenate([counts.tables.starts[0], empty]))
    )


def _over(counts: PathCounts, states: tuple[str, ...]) -> PathTables:
    position = {name: i for i, name in enumerate(states)}
    return counts.tables.relabelled([position[name] for name in counts.states], len(states))


def _sample_with(counts: PathCounts, covariates: Sequence[str]) -> RunSample:
    known = () if counts.sample is None else counts.sample.covariates
    for covariate in covariates:
        if covariate not in known:
            raise UsageError(f"the runs were counted without the covariate {covariate!r}; known: {', '.join(known)}")
    return counts.sample or RunSample(covariates=())


# ---------------------------------------------------------------- results


def _statistic_results(
    null: NullDistribution, observed: Misfit, judged: PathCounts, names: Sequence[str]
) -> tuple[StatisticResult, ...]:
    completed = sum(judged.runs_by_outcome()[word] for word in _OUTCOMES)
    results = []
    for k, name in enumerate(names):
        value, critical, spread = float(null.observed[k]), float(null.critical[k]), float(null.spread[k])
        found = observed.deviances.get(name)
        if found is None:
            n_events, effect = completed, value
            resolution = detectable_gap(critical, n_events)
        else:
            n_events, effect = int(found.n_events[0]), float(found.nats[0])
            resolution = detectable_nats(critical, math.sqrt(float(found.variance.sum())), n_events)
        results.append(
            StatisticResult(
                name=name,
                value=value,
                p=float(null.p_values[k]),
                z=(value - float(null.mean[k])) / spread if spread else 0.0,
                effect=effect,
                unit="gap" if found is None else "nats",
                resolution=resolution if spread else None,
                g2=None if found is None else float(found.g2.sum()),
                g2_expected=None if found is None else float(found.mean.sum()),
                n_events=n_events,
            )
        )
    return tuple(results)


def _covariate_results(tests: Sequence[CovariateTest]) -> tuple[CovariateResult, ...]:
    able = [test.p for test in tests if test.p is not None]
    adjusted = iter(holm(able))
    return tuple(
        CovariateResult(
            covariate=test.covariate,
            n_runs=test.n_runs,
            n_values=test.n_values,
            over=test.over,
            p=test.p,
            p_holm=None if test.p is None else next(adjusted),
            p_path=test.p_path,
            p_outcome=test.p_outcome,
            nats_path=test.nats_path,
            nats_outcome=test.nats_outcome,
        )
        for test in tests
    )


def _figures(fit: ChainFit, fitted_to: PathCounts) -> FitFigures:
    """The chain beside the runs that it was fitted to; their rate and length by their weights, if they have some."""
    tables = fitted_to.tables
    completed = tables.ends[0, [SUCCESS, FAILURE]]
    n_runs = int(completed.sum())
    if not n_runs:
        return FitFigures(pass_rate=None, mean_length=None, reliability=None, mean_time=None, gap=None)
    n_steps = int((completed.sum(axis=0) * np.arange(completed.shape[1])).sum())
    try:
        reliability: float | None = float(long_run_reliability(fit.chain))
        mean_time: float | None = float(mean_time_to_absorption(fit.chain).overall)
    except ModelError:  # some runs of the chain never end
        reliability = mean_time = None
    rate: float | None = int(completed[0].sum()) / n_runs
    length: float | None = n_steps / n_runs
    if fit.weighted is not None:
        weighted = (each(fit.policy) for each in (fit.weighted.weighted.pass_rate, fit.weighted.weighted.mean_length))
        rate, length = (None if each is None else float(each) for each in weighted)
    observed = aalen_johansen(tables)
    fitted = _end_curves(fit.chain, observed.shape[2] - 1)
    return FitFigures(
        pass_rate=rate,
        mean_length=length,
        reliability=reliability,
        mean_time=mean_time,
        gap=float(largest_gap(observed, fitted[None], tables.longest).size[0]),
    )


def _end_curves(chain: MarkovChain, longest: int) -> NDArray[np.float64]:
    """Probabilities to be in success, and in failure, after 0, ..., longest steps: shape (2, longest + 1)."""
    ends = np.stack([chain.label(word) for word in _OUTCOMES]).astype(np.float64)
    step = chain.transitions.T.tocsr()
    now = chain.initial
    curves = np.empty((2, longest + 1))
    for d in range(longest + 1):
        curves[:, d] = ends @ now
        now = step @ now
    return curves


def _notes(
    fit: ChainFit,
    counts: PathCounts,
    paper: PaperProfile,
    covariates: Sequence[CovariateResult],
    replicates: int,
    level: float,
    n_stopped: int,
) -> tuple[str, ...]:
    notes = []
    if fit.policy != "censored" and fit.counts.censored.n_runs:
        treated = "counted as failures" if fit.policy == "failure" else "left out"
        notes.append(f"{counted(fit.counts.censored.n_runs, 'censored run')} {treated}, as in the fit")
    if fit.weighted is not None:
        notes.append("the certificate is about the runs as they are: it leaves their weights aside")
    if n_stopped:
        notes.append(f"{counted(n_stopped, 'drawn run')} stopped for being far longer than any real run")
    sample = counts.sample
    if sample is not None:
        if not sample.is_complete:
            notes.append(
                f"covariates were tested on {len(sample.runs)} of {counted(sample.n_seen, 'run')}, chosen at random"
            )
        tasks = [run.task for run in sample.runs if run.task]
        if len(set(tasks)) < len(tasks) and not any(result.covariate == "task_id" for result in covariates):
            notes.append(
                "some tasks have several runs, which the chain takes as independent: test the covariate task_id"
            )
    for result in covariates:
        if result.p is None:
            values, runs = counted(result.n_values, "value"), counted(result.n_runs, "run")
            notes.append(f"covariate {result.covariate}: {values} among {runs}, no test")
    if covariates and len(covariates) > level * (replicates + 1):
        notes.append(f"{replicates} replicates cannot give {len(covariates)} covariates a p-value low enough: use more")
    if paper.aic_is_vacuous:
        notes.append(
            f"the published order comparison accepts any dependence on the previous state here: its G2 is at most "
            f"{paper.largest_g2:.4g}, and would have to exceed {2 * paper.df_full} "
            f"({counted(paper.n_events, 'event')}, {counted(paper.df_full, 'degree')} of freedom)"
        )
    if paper.ks_resolution is None:
        notes.append("the published test of times to success sees nothing: no run succeeded")
    else:
        power = ", which is next to no power" if paper.ks_resolution > _COARSE else ""
        notes.append(
            f"the published test of times to success sees {counted(paper.n_success, 'run')}, and no distance below "
            f"{paper.ks_resolution:.2g} of at most 1{power}; it sees neither failures nor the pass rate"
        )
    return tuple(notes)
