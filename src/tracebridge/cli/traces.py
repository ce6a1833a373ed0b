"""``tracebridge traces``: look at trace files, check them, convert them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, progress_line, say, write
from tracebridge.cli.corpus import say_reading
from tracebridge.cli.help_sections import Verbs
from tracebridge.cli.options import PATH, common, output_file, reading, reading_options
from tracebridge.cli.shards import sharded, sharding
from tracebridge.traces import OUTCOME_WORDS, Outcome, known_readers, open_traces, write_traces
from tracebridge.traces.problems import ProblemLog, counted
from tracebridge.traces.readers import plug_ins
from tracebridge.traces.readers.plug_ins import PlugInReader
from tracebridge.traces.run_dates import dates_text
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.sharding import ShardedCorpus


@click.group(cls=Verbs)
def traces() -> None:
    """Look at trace files, check them, convert them."""


@traces.command(
    epilog="\b\nExample: the field that each format takes as the outcome\n  tracebridge traces formats | less"
)
@common
def formats(as_json: bool, seed: int) -> None:  # noqa: ARG001
    """List the formats, and what each takes as a step.

    Also what is an error, an outcome, and the reason for an end in each.
    """
    readers = list(known_readers().values())
    words = {word: str(outcome) for word, outcome in OUTCOME_WORDS.items()}
    broken = plug_ins().problems()
    if as_json:
        described = [
            {"name": each.name, "description": each.description, "origin": _origin(each), "details": _details(each)}
            for each in readers
        ]
        unused = [str(problem) for problem in broken]
        emit({"schema_version": 1, "formats": described, "unused_plug_ins": unused, "outcome_words": words})
        return
    for problem in broken:
        say(f"note: {problem}")
    for reader in readers:
        origin = f" [{_origin(reader)}]" if isinstance(reader, PlugInReader) else ""
        write(f"{reader.name}: {reader.description}{origin}\n\n{_details(reader)}\n")
    for outcome in dict.fromkeys(words.values()):
        write(f"words for {outcome}: {', '.join(word for word, meaning in words.items() if meaning == outcome)}")


@traces.command(epilog="\b\nExample: a table to start an --endings file from\n  tracebridge traces endings")
@common
def endings(as_json: bool, seed: int) -> None:  # noqa: ARG001
    """List the outcome that each reason for an end means.

    Other verbs take --endings FILE, which changes it.
    """
    from tracebridge.traces.readers.endings import known_endings

    rows = [ending.to_dict() for ending in known_endings()]
    if as_json:
        emit({"schema_version": 1, "endings": rows})
        return
    print_table(list(rows[0]), [list(row.values()) for row in rows])


@traces.command(
    epilog="\b\nExample: a folder of files, whose outcomes stand in the column passed\n"
    "  tracebridge traces summary runs/ --map outcome=passed"
)
@click.argument("paths", nargs=-1, required=True, metavar="TRACES...", type=PATH)
@reading
@sharding
@common
def summary(paths: tuple[str, ...], as_json: bool, seed: int, **options: Any) -> None:  # noqa: ARG001
    """Count runs, outcomes, lengths, steps and tasks.

    Also the reasons for which runs ended, steps with an error, models, and when runs began.
    """
    corpus = _counted(paths, options)
    corpus.require_usable(skip_bad=options["skip_bad"])
    found = corpus.tally.summary()
    if as_json:
        emit({**found.to_dict(), **corpus.document()})
        return
    _say_log(corpus.log)
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in found.outcomes.items())
    write(f"{counted(found.n_runs, 'run')} ({outcomes}), {counted(found.n_steps, 'step')}")
    length = f"from {found.length_min} to {found.length_max}, median {found.length_median:g}"
    write(f"run length: {length}, mean {found.length_mean:.2f}")
    trials = ", ".join(f"{tasks} with {counted(runs, 'run')}" for runs, tasks in found.runs_per_task.items())
    write(f"tasks: {found.n_tasks}" + (f" ({trials})" if trials else "; runs name no task"))
    if found.models:
        write("models: " + ", ".join(f"{model} ({runs})" for model, runs in found.models.items()))
    write(f"runs began: {dates_text(found.dates.to_dict(), found.n_runs)}")
    if found.terminations:
        print_table(["termination", "runs"], [[name, str(n)] for name, n in found.terminations.items()])
    rows = [[name, str(count.n), str(count.n_errors)] for name, count in list(found.steps.items())[:40]]
    print_table(["step", "times", "with error"], rows)
    if len(found.steps) > 40:
        write(f"and {len(found.steps) - 40} more step names (--json lists them)")


@traces.command(
    epilog="\b\nExample: what is wrong with these files, before they are used\n"
    "  tracebridge traces validate runs/*.jsonl"
)
@click.argument("paths", nargs=-1, required=True, metavar="TRACES...", type=PATH)
@reading
@sharding
@click.option(
    "--max-problems", type=click.IntRange(min=1), default=1000, show_default=True, help="List at most this many."
)
@common
def validate(paths: tuple[str, ...], max_problems: int, as_json: bool, seed: int, **options: Any) -> int:  # noqa: ARG001
    """List every problem of trace files.

    Each has its file, record and field. The exit code is 3 if there is a problem, and 5 if there is no run.
    """
    corpus = _counted(paths, options, max_problems=max_problems)
    log, n_runs = corpus.log, corpus.tally.n_runs
    problems = log.listing()
    notes = [*map(str, log.notes), *_steps_like_ends(corpus)]
    if as_json:
        emit(
            {
                "schema_version": 1,
                "n_runs": n_runs,
                "n_skipped": log.n_skipped,
                "n_problems": log.n_problems,
                "files": [file.to_dict() for file in corpus.files],
                "problems": [
                    {
                        "path": problem.location.path,
                        "line": problem.location.line,
                        "record": problem.location.record,
                        "field": problem.location.field,
                        "message": problem.message,
                        "hint": problem.hint,
                    }
                    for problem in problems
                ],
                "notes": notes,
            }
        )
    else:
        for problem in problems:
            write(str(problem))
        for note in notes:
            say(f"note: {note}")
        if problems:
            write(f"fine: {counted(n_runs, 'run')}; not usable: {counted(log.n_skipped, 'record')}")
        else:
            write(f"{counted(n_runs, 'run')}, all fine" if n_runs else "there is no run")
    return 3 if problems else 0 if n_runs else 5


def _steps_like_ends(corpus: ShardedCorpus) -> list[str]:
    """Steps that are called like an outcome, which may be ends of runs that were recorded as steps."""
    names = corpus.tally.summary().steps if corpus.tally.n_runs else {}
    return [
        f"{counted(names[outcome].n, 'step')} called {outcome.value!r}: chains and properties call it "
        f"'step_{outcome.value}'; if it says how the run ended, it is no step, and the outcome says it"
        for outcome in Outcome
        if outcome in names
    ]


@traces.command(
    epilog="\b\nExample: one compressed file of native traces\n  tracebridge traces convert logs/ -o runs.jsonl.gz"
)
@click.argument("paths", nargs=-1, required=True, metavar="TRACES...", type=PATH)
@output_file("Native JSON lines; .gz and .zst compress; - is standard output.")
@reading
@common
def convert(paths: tuple[str, ...], output: str, as_json: bool, seed: int, **options: Any) -> None:  # noqa: ARG001
    """Write traces of any known format as native JSON lines."""
    stream = open_traces(
        list(paths),
        format=options["trace_format"],
        skip_bad=options["skip_bad"],
        **reading_options(options),
    )
    n_runs = write_traces(stream, output)
    _say_log(stream.log)
    if as_json and output != "-":
        emit({"schema_version": 1, "n_runs": n_runs, "output": output, "n_skipped": stream.log.n_skipped})
    else:
        say(f"wrote {counted(n_runs, 'run')} to {'standard output' if output == '-' else output}")


def _say_log(log: ProblemLog) -> None:
    say_reading(log.listing(), log.n_skipped, log.notes)


def _counted(paths: tuple[str, ...], options: dict[str, Any], *, max_problems: int = 100) -> ShardedCorpus:
    """Read trace files for what is counted of them, wherever the user wants that to be done."""
    from tracebridge.sharding import ShardOptions, read_shards

    with progress_line() as progress, sharded(options, progress) as places:
        asked = ShardOptions.of(
            format=options["trace_format"],
            max_problems=max_problems,
            features=False,
            **reading_options(options),
        )
        return read_shards(paths, asked, **places)


def _origin(reader: object) -> str:
    return reader.origin if isinstance(reader, PlugInReader) else f"tracebridge {__version__}"


def _details(reader: object) -> str:
    from inspect import cleandoc

    return reader.details if isinstance(reader, PlugInReader) else cleandoc(type(reader).__doc__ or "")
