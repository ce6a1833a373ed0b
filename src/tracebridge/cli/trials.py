"""``tracebridge trials``: repeated trials of tasks: pass^k, and whether trials share the difficulty of their task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, say
from tracebridge.cli.corpus import Corpus, ended_under, judged_at
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, fit_options, fitting, interval_level, reading
from tracebridge.cli.trials_report import show_trials, trials_document
from tracebridge.errors import NothingToCheckError, UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.inference import Interval, RepeatedTrials, SharedDifficulty, TaskCounts

_MOST_TRIALS = 1_000


@click.command(
    cls=Verb,
    epilog="\b\nExample: how likely do 8 trials of a task all succeed, each within 15 steps?\n"
    "  tracebridge trials runs.jsonl --k 1,2,4,8 --d 15",
)
@click.argument("paths", nargs=-1, required=True, metavar="TRACES...", type=PATH)
@click.option("--k", "ks", default="1,2,4,8", show_default=True, metavar="K,...", help="Numbers of trials.")
@click.option(
    "--d",
    "budget",
    type=click.IntRange(1, 100_000),
    help="Each trial must succeed within this many steps. [default: no limit]",
)
@click.option("--max-classes", type=click.IntRange(1, 20), help="At most so many latent classes of tasks. [default: 6]")
@interval_level
@click.option(
    "--replicates",
    type=click.IntRange(100, 10_000),
    default=400,
    show_default=True,
    help="Bootstrap replicates, of whole tasks, behind the intervals.",
)
@click.option(
    "--draws",
    type=click.IntRange(1, 100_000),
    default=4_000,
    show_default=True,
    help="Draws from the posterior of the chain, for the interval of R(d)^k.",
)
@reading
@fitting
@common
def trials(
    paths: tuple[str, ...],
    ks: str,
    budget: int | None,
    max_classes: int | None,
    level: float,
    replicates: int,
    draws: int,
    as_json: bool,
    seed: int,
    **options: Any,
) -> None:
    """Estimate pass^k, the probability that k trials of a task all succeed, from tasks that were tried repeatedly.

    Where tasks differ in difficulty, pass^k is above R^k and pass@k below 1 - (1 - R)^k, R being the reliability over
    all tasks. So it is tested first whether trials of a task agree beyond chance. Three estimates follow: the unbiased
    C(c,k)/C(n,k) from tasks with n >= k trials and c successes; a mixture fitted to the tasks, which also reaches
    beyond the trials there are; and R(d)^k of a chain, which takes all tasks as alike.
    """
    wanted = _parse_ks(ks)
    corpus = Corpus(paths, options)
    with progress_line() as progress:
        progress("reading traces and resampling tasks")
        counts = _task_counts(corpus, budget, options["censored"])
        progress("fitting a chain")
        fit = _fitted(corpus, options)
        found = TrialFigures.of(
            counts,
            fit,
            wanted,
            budget,
            max_classes=max_classes,
            level=level,
            replicates=replicates,
            draws=draws,
            seed=seed,
        )
    if as_json:
        emit(trials_document(found, corpus, budget, level, replicates, draws, seed))
        return
    corpus.say_remarks(fit.notes)
    show_trials(found, budget, level)
    if fit.weighted is not None:
        say("note: the weights of runs are in the column of the chain alone; all else takes trials as they are")


def _parse_ks(text: str) -> list[int]:
    ks = [int(part) if part.isdecimal() and len(part) < 9 else 0 for part in map(str.strip, text.split(","))]
    if any(not 1 <= k <= _MOST_TRIALS for k in ks):
        raise UsageError(f"--k takes numbers of trials such as 1,2,4,8, each 1 to {_MOST_TRIALS:,}; not {text!r}")
    return sorted(set(ks))


# ---------------------------------------------------------------- computing


def _task_counts(corpus: Corpus, budget: int | None, policy: str) -> TaskCounts:
    from tracebridge.inference import TaskCounts

    counts = TaskCounts.from_traces(judged_at(ended_under(corpus, policy), budget))
    if not counts.tasks:
        reasons, hints = [], []
        if counts.n_censored:
            reasons.append(f"{counted(counts.n_censored, 'run')} censored, so that no end was seen")
            hints.append("--censored failure counts censored runs as failures")
        if counts.n_without_task:
            reasons.append(f"{counted(counts.n_without_task, 'run')} without the name of a task")
            hints.append("--map task=COLUMN names the column of the task in flat files")
        why = "; ".join(reasons) or "there is no run"
        raise NothingToCheckError(
            f"no trial of a named task was seen to end: {why}" + (f" ({'; '.join(hints)})" if hints else "")
        )
    return counts


def _fitted(corpus: Corpus, options: Mapping[str, Any]) -> ChainFit:
    from tracebridge.chain import fit_chain

    return fit_chain(corpus, **fit_options(options))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFigures:
    """All that is shown; ``chain`` has R^k and its interval for each k."""

    counts: TaskCounts
    shared: SharedDifficulty | str
    repeated: RepeatedTrials
    chain: Sequence[tuple[float, Interval | None]]

    @classmethod
    def of(
        cls,
        counts: TaskCounts,
        fit: ChainFit,
        ks: Sequence[int],
        budget: int | None,
        *,
        max_classes: int | None,
        level: float,
        replicates: int,
        draws: int,
        seed: int,
    ) -> TrialFigures:
        """Estimate all of it; ``budget`` limits the steps of the chain as it did those of the counts."""
        from tracebridge.closedform import pass_hat_k
        from tracebridge.inference import property_uncertainty, repeated_trials, shared_difficulty

        try:
            shared: SharedDifficulty | str = shared_difficulty(counts, level=level, replicates=replicates, seed=seed)
        except UsageError as error:
            shared = str(error)
        within = "F" if budget is None else f"F<={budget}"
        texts = [f'pow(P=? [ {within} "success" ], {k});' for k in ks]
        uncertain = property_uncertainty(fit, "\n".join(texts), draws=draws, seed=seed, level=level)
        return cls(
            counts=counts,
            shared=shared,
            repeated=repeated_trials(
                counts, ks, max_classes=max_classes, level=level, replicates=replicates, seed=seed
            ),
            chain=[
                (float(pass_hat_k(fit.chain, k, d=budget)), each.interval)
                for k, each in zip(ks, uncertain, strict=True)
            ],
        )
