"""``tracebridge compare``: two agents, or two versions of one: what differs, by how much, and what it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain as chained
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.compare_report import comparison_document, show_comparison
from tracebridge.cli.console import emit, progress_line
from tracebridge.cli.corpus import Corpus, ended_under, fit_over_states_of, read_abstraction_of, read_richer
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, counting, fit_options, given_fit_options, interval_level, reading
from tracebridge.errors import ModelError, NothingToCheckError, UsageError
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.inference import (
        AgentComparison,
        Decomposition,
        Difference,
        RowDifference,
        TaskComparison,
        TaskCounts,
    )


@click.command(
    cls=Verb,
    epilog="\b\nExample: what did the new version change?\n  tracebridge compare old_runs.jsonl new_runs.jsonl --d 15",
)
@click.argument("first", metavar="A", type=PATH)
@click.argument("second", metavar="B", type=PATH)
@click.option(
    "--d", "budget", type=click.IntRange(1, 100_000), default=10, show_default=True, help="The step budget d of R(d)."
)
@click.option(
    "--chain",
    "chain",
    metavar="FILE",
    type=PATH,
    help="Take the states of this chain.json instead of making them of A and B.",
)
@interval_level
@click.option(
    "--replicates",
    type=click.IntRange(100, 100_000),
    default=2_000,
    show_default=True,
    help="Bootstrap replicates behind the intervals.",
)
@reading
@counting
@common
def compare(
    first: str,
    second: str,
    budget: int,
    chain: str | None,
    level: float,
    replicates: int,
    as_json: bool,
    seed: int,
    **options: Any,
) -> None:
    """Compare the runs in A with those in B; every difference is B minus A.

    A and B are trace files, folders or patterns. Where both attempted the same tasks, these are compared with each
    other and drawn together. R_inf, R(d) and the mean number of steps are those of chains fitted without a prior over
    states that both share; their difference is attributed, exactly, to the states whose transitions changed. All runs
    count alike: there are no weights here.
    """
    if first == second:
        raise UsageError("A and B are the same; name two corpora")
    corpora = Corpus([first], options), Corpus([second], options)
    with progress_line() as progress:
        progress("reading both corpora and fitting a chain to each")
        fits = _fits(corpora, chain, options)
        progress(f"resampling {counted(replicates, 'time')}")
        found = Comparison.of(corpora, fits, budget, level, replicates, seed)
    if as_json:
        emit(comparison_document(found, corpora, level, replicates, seed))
        return
    for name, corpus, fit in zip("AB", corpora, fits, strict=True):
        corpus.say_remarks(f"{name}: {note}" for note in fit.notes if note.startswith(("censored", "no run", "what")))
    show_comparison(found, corpora, fits, level)


# ---------------------------------------------------------------- computing


def _fits(corpora: Sequence[Corpus], chain: str | None, options: Mapping[str, Any]) -> list[ChainFit]:
    """Maximum likelihood over common states."""
    from tracebridge.chain import fit_chain

    if chain is None:
        template = fit_chain(chained(*corpora), prior="none", **fit_options(options))
    else:
        if given := [option for option in given_fit_options() if option != "--censored"]:
            raise UsageError(f"--chain brings its own states: leave out {', '.join(given)}")
        template = read_abstraction_of(chain, read_richer(chain))
    same = {"prior": "none", "support": "full", "start": "observed", "profile": None, "policy": options["censored"]}
    return [fit_over_states_of(template, corpus, **same) for corpus in corpora]


@dataclass(frozen=True, slots=True)
class ChangedTask:
    """A task of both with another pass rate: successes and trials in A and in B."""

    task: str
    first: tuple[int, int]
    second: tuple[int, int]

    @property
    def gain(self) -> float:
        """How much higher the pass rate is in B."""
        return self.second[0] / self.second[1] - self.first[0] / self.first[1]

    @classmethod
    def among(cls, first: TaskCounts, second: TaskCounts) -> list[ChangedTask]:
        """All of them, the largest losses first."""
        sides = [
            dict(zip(side.tasks, zip(side.successes, side.trials, strict=True), strict=True))
            for side in (first, second)
        ]
        found = [cls(task, *(side[task] for side in sides)) for task in first.tasks if task in sides[1]]
        return sorted((each for each in found if each.gain), key=lambda each: (each.gain, each.task))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All differences; where a part is missing the reason stands in its place."""

    n_runs: tuple[int, int]
    pass_rate: Difference
    tasks: TaskComparison | str
    changed: Sequence[ChangedTask]
    agents: AgentComparison
    ever: Decomposition | str
    within: Decomposition | str
    rows: Sequence[RowDifference]

    @classmethod
    def of(
        cls,
        corpora: Sequence[Corpus],
        fits: Sequence[ChainFit],
        budget: int,
        level: float,
        replicates: int,
        seed: int,
    ) -> Comparison:
        """Compare the runs of both, with chains that were fitted to them over common states."""
        from tracebridge.inference import TaskCounts, compare_agents, compare_pass_rates, compare_rows, compare_tasks

        (a, b), (fit_a, fit_b) = corpora, fits
        tasks = [TaskCounts.from_traces(ended_under(corpus, fits[0].policy)) for corpus in corpora]
        common = set(tasks[0].tasks) & set(tasks[1].tasks)
        paired: TaskComparison | str = "no task was attempted in both, so that nothing can be paired"
        if common:
            paired = compare_tasks(*tasks, level=level, replicates=replicates, seed=seed)
        rates = [_completed(fit, name) for fit, name in zip(fits, "AB", strict=True)]
        return cls(
            n_runs=(fit_a.counts.n_runs, fit_b.counts.n_runs),
            pass_rate=compare_pass_rates(rates[0], rates[1], level=level),
            tasks=paired,
            changed=ChangedTask.among(tasks[0], tasks[1]),
            agents=compare_agents(fit_a, a, fit_b, b, d=budget, level=level, replicates=replicates, seed=seed),
            ever=_decomposed(fits, None),
            within=_decomposed(fits, budget),
            rows=compare_rows(fit_a, fit_b, seed=seed),
        )


def _completed(fit: ChainFit, name: str) -> tuple[int, int]:
    """Successes and runs with a known end."""
    runs = fit.counts.runs_by_outcome()
    lost = runs["censored"] if fit.policy == "failure" else 0
    completed = runs["success"] + runs["failure"] + lost
    if not completed:
        raise NothingToCheckError(f"no run of {name} has an end that was seen: there is no pass rate to compare")
    return runs["success"], completed


def _decomposed(fits: Sequence[ChainFit], d: int | None) -> Decomposition | str:
    from tracebridge.inference import decompose_reliability

    try:
        return decompose_reliability(fits[0].chain, fits[1].chain, d=d)
    except ModelError as error:  # some runs of a chain without a prior were never seen to end
        return str(error)
