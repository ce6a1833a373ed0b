"""What ``tracebridge trials`` found, for people and as a document."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tracebridge.cli.console import print_table, say, write
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.cli.corpus import Corpus
    from tracebridge.cli.trials import TrialFigures
    from tracebridge.inference import Interval, RepeatedTrials, SharedDifficulty

_P_LEVEL = 0.05


def show_trials(found: TrialFigures, budget: int | None, level: float) -> None:
    """The diagnostic, pass^k by every method, and the mixtures."""
    from tracebridge.inference.few_units import FEW_UNITS, too_few

    counts, repeated = found.counts, found.repeated
    fewest, most = min(counts.trials), max(counts.trials)
    each = counted(most, "completed trial") if fewest == most else f"{fewest} to {most} completed trials"
    write(
        f"{counted(len(counts.tasks), 'task')} with {each} each, {sum(counts.trials)} in all, "
        f"{sum(counts.successes)} {'success' if sum(counts.successes) == 1 else 'successes'}"
        + ("" if budget is None else f" within {counted(budget, 'step')}")
        + f"; left out: {counts.n_censored} censored, {counts.n_without_task} without a task"
    )
    write("")
    for line in _about_difficulty(found.shared):
        write(line)
    write("")
    R = "R_inf" if budget is None else f"R({budget})"
    preferred = "latent classes" if repeated.preferred == "classes" else "beta distribution"
    rows = []
    for row, (value, interval) in zip(repeated.rows, found.chain, strict=True):
        by_classes = repeated.preferred == "classes"
        mixture = (row.classes, row.classes_interval) if by_classes else (row.beta, row.beta_interval)
        rows.append(
            [
                str(row.k),
                "no task" if row.unbiased is None else _with(row.unbiased, row.unbiased_interval),
                str(row.n_tasks),
                _with(*mixture) + (" *" if row.beyond else ""),
                f"{row.independent:.3f}",
                _with(value, interval),
            ]
        )
    title = f"pass^k: all of k trials of a task succeed; {100 * level:g} % intervals"
    print_table(
        ["k", "unbiased C(c,k)/C(n,k)", "tasks", f"by {preferred}", "p^k", f"{R}^k of the chain"], rows, title=title
    )
    if max(found.counts.trials) == 1:
        write("  * every task was tried once: nothing tells whether tasks differ, and this takes them as alike")
    elif any(row.beyond for row in repeated.rows):
        write("  * beyond the trials of any task: this rests on the form of the mixture alone")
    shown = [row.unbiased_interval for row in repeated.rows]
    shown += [row.classes_interval if repeated.preferred == "classes" else row.beta_interval for row in repeated.rows]
    if any(interval is not None and interval.method.startswith("Wilson") for interval in shown):
        alike = "all trials ended alike, and so do all resampled tasks: intervals of the first two columns follow"
        if 0 < sum(counts.successes) < sum(counts.trials):
            alike = "where all resampled tasks have the same figure, its interval follows"
        write(f"  {alike} from Wilson's score interval of p, each task counting once")
    if len(counts.tasks) < FEW_UNITS:
        write(f"  {too_few(len(counts.tasks), 'task')}")
    write("")
    for line in _about_mixtures(repeated):
        write(line)
    say(
        "note: intervals in the first two columns resample whole tasks, widened by Student's t where these are few, "
        f"and so are about tasks like these; p^k and {R}^k take all tasks as alike, and the interval of {R}^k is the "
        "posterior of the chain"
    )


def _about_difficulty(shared: SharedDifficulty | str) -> Iterator[str]:
    if isinstance(shared, str):
        yield f"do trials share the difficulty of their task? Cannot be told: {shared}"
        return
    gap = shared.gap
    least = 1 / (gap.permutations + 1)
    p = f"p <= {least:.3g}" if gap.p_value <= least else f"p = {gap.p_value:.3g}"
    if gap.p_value <= _P_LEVEL:
        yield f"trials share the difficulty of their task ({p}): pass^k is higher than p^k, and R^k of a chain too low"
    else:
        yield f"no shared difficulty is shown ({p}): trials of a task agree no more than chance would make them"
    correlation = "" if shared.correlation is None else f"; correlation of two trials {shared.correlation:.3f}"
    yield (
        f"  variance of the reliability over tasks {_with(gap.gap, shared.interval)}{correlation}; unbiased, so that "
        "it may be negative"
    )
    yield (
        f"  from {counted(shared.n_tasks, 'task')} with two trials or more ({shared.n_left_out} with one left out); "
        f"null: {counted(gap.permutations, 'random deal')} of the outcomes over all trials"
    )


def _about_mixtures(repeated: RepeatedTrials) -> Iterator[str]:
    classes, beta = repeated.classes, repeated.beta
    parts = [
        f"{weight:.0%} of tasks succeed with probability {p:.3f}"
        for weight, p in zip(classes.weights, classes.reliabilities, strict=True)
    ]
    better = (
        "the classes fit better and stand" if repeated.preferred == "classes" else "the beta fits better and stands"
    )
    yield f"latent classes of tasks: {', '.join(parts)}"
    yield f"beta distribution of reliabilities: mean {beta.mean:.3f}, correlation of two trials {beta.correlation:.3f}"
    yield f"  BIC {classes.bic:.1f} for classes, {beta.bic:.1f} for beta: {better} in the table"


def _with(value: float, interval: Interval | None) -> str:
    return f"{value:.3f}" + ("" if interval is None else f" [{interval.lower:.3f}, {interval.upper:.3f}]")


def trials_document(
    found: TrialFigures, corpus: Corpus, budget: int | None, level: float, replicates: int, draws: int, seed: int
) -> dict[str, Any]:
    """The JSON document ``tracebridge-trials``."""
    counts, repeated = found.counts, found.repeated
    rows = []
    for row, (value, interval) in zip(repeated.rows, found.chain, strict=True):
        plain = asdict(row)
        for name in ("unbiased_interval", "classes_interval", "beta_interval"):
            own: Interval | None = getattr(row, name)
            plain[name] = None if own is None else own.to_dict()
        rows.append({**plain, "chain": value, "chain_interval": None if interval is None else interval.to_dict()})
    shared = found.shared
    return {
        "kind": "tracebridge-trials",
        "schema_version": 1,
        "corpus": corpus.document(),
        "d": budget,
        "level": level,
        "replicates": replicates,
        "draws": draws,
        "seed": seed,
        "tasks": {
            task: {"successes": c, "trials": n}
            for task, c, n in zip(counts.tasks, counts.successes, counts.trials, strict=True)
        },
        "n_censored": counts.n_censored,
        "n_without_task": counts.n_without_task,
        "shared_difficulty": {"reason": shared}
        if isinstance(shared, str)
        else {**asdict(shared), "interval": None if shared.interval is None else shared.interval.to_dict()},
        "pass_hat_k": rows,
        "latent_classes": asdict(repeated.classes),
        "beta_distribution": asdict(repeated.beta),
        "preferred": repeated.preferred,
    }
