"""``tracebridge fit``: a chain from traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, progress_line, say, write
from tracebridge.cli.corpus import say_reading
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import (
    PATH,
    chain_model,
    common,
    fit_options,
    fitting,
    output_file,
    reading,
    reading_options,
)
from tracebridge.cli.shards import sharded, sharding
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain import ChainFit
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.pipeline import FittedCorpus
    from tracebridge.states import Abstraction

#: States that `fit` prints.
_MAX_SHOWN = 50


@click.command(
    cls=Verb,
    epilog="\b\nExamples: states by what steps are; states that remember more, as far as the runs ask for it\n"
    "  tracebridge fit runs/ -o chain.json\n"
    "  tracebridge fit runs/ --model auto --jobs 4 -o chain.json",
)
@click.argument("paths", nargs=-1, required=True, metavar="TRACES...", type=PATH)
@output_file("The chain.json to write; - is standard output.")
@chain_model(
    "What a state remembers beside what its step is. auto finds out (see assess --model). Or parts joined by +: "
    "order2 (the step before), dwell4 (how long it has stayed, up to 4), clock (the number of the step, in bins that "
    "cross-validation chooses; or clock:log, clock:quantiles, clock:steps, clock:unrolled, clock:0,1,2,4), phases:4 "
    "(hidden phases from left to right; phases:4:full in any order; :shared and :full-shared if all states leave them "
    "alike), classes:2 (hidden classes of tasks, from 3 or more trials of a task), group:ATTRIBUTE (a chain for each "
    "value of task, trial, model or an attribute)."
)
@reading
@sharding
@fitting
@common
def fit(paths: tuple[str, ...], output: str, model: str, as_json: bool, seed: int, **options: Any) -> None:
    """Fit a chain to TRACES (files, folders or patterns) and write it with its counts.

    With --model the states of the chain remember more than their step: it is fitted to the same runs, and written with
    them.
    """
    from tracebridge.chain import write_document
    from tracebridge.inference.expanded.modelling import is_first_order
    from tracebridge.pipeline import fit_files

    plain = is_first_order(model)
    with progress_line() as progress, sharded(options, progress) as places:
        fitted = fit_files(
            list(paths),
            trace_format=options["trace_format"],
            skip_bad=options["skip_bad"],
            keep=not plain,
            **reading_options(options),
            **places,
            **fit_options(options),
        )
    corpus = fitted.corpus
    say_reading(corpus["problems"], corpus["n_skipped"], corpus["notes"])
    result = fitted.fit if plain else _richer(fitted, model, seed)
    for remark in result.notes:
        say(f"note: {remark}")
    document = result.to_dict()
    if output == "-" or as_json:
        emit(document)
    if output != "-":
        write_document(output, document)
        say(f"wrote {result.chain.n_states} states to {output}")
        if not as_json and fitted.fit.abstraction is not None:
            _print_states(fitted.fit.abstraction)


def _richer(fitted: FittedCorpus, model: str, seed: int) -> ChainFit | ExpandedFit:
    """The chain of a model, fitted to the runs behind a first-order fit, which are read once more."""
    from tracebridge.inference.expanded.certification import DEFAULT_REPLICATES
    from tracebridge.inference.expanded.modelling import AUTO, fit_named
    from tracebridge.report.model_certificate import ladder_lines

    replicates = DEFAULT_REPLICATES if model == AUTO else 0
    with progress_line() as progress:
        progress("reading whole runs")
        found = fit_named(fitted.fit, fitted.traces, model, replicates=replicates, seed=seed, progress=progress)
    for line in [] if found.ladder is None else ladder_lines(found.ladder):
        say(line)
    return found.fit


def _print_states(abstraction: Abstraction) -> None:
    """What is in each state, the most frequent first."""
    ordered = sorted(abstraction.descriptions, key=lambda each: (-each.steps, each.state))
    rows = [
        [each.state, str(each.steps), f"{each.share:.1%}", f"{each.purity:.0%}", each.dominant()]
        for each in ordered[:_MAX_SHOWN]
    ]
    print_table(["state", "steps", "share", "purity", "what prevails in its steps"], rows)
    if len(ordered) > _MAX_SHOWN:
        write(f"and {counted(len(ordered) - _MAX_SHOWN, 'more state')}; the written file describes all")
