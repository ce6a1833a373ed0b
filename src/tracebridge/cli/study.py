"""``tracebridge study``: run the studies of the literature again, and see what holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from textwrap import fill
from typing import TYPE_CHECKING

import click

from tracebridge.cli.completing import completing
from tracebridge.cli.console import WIDTH, emit, print_table, progress_line, say, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import common
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.studies import Statement, StudyResult
    from tracebridge.studies.result import Cell

_STYLES = {"holds": "green", "within error": "yellow", "fails": "bold red"}

#: The names of the studies, which shells complete: loading the studies takes seconds.
NAMES = (
    "closed-form",
    "perturbation",
    "correlation",
    "exponential-limit",
    "case-study",
    "goodness-of-fit",
    "uncertainty-tables",
    "held-out",
    "certificate",
    "coverage",
    "ladder",
    "broadcast",
    "all",
)


@click.command(
    cls=Verb,
    epilog="\b\nExamples: which studies there are; one of them\n"
    "  tracebridge study --list\n"
    "  tracebridge study closed-form",
)
@click.argument("names", metavar="NAME...|all", nargs=-1, shell_complete=completing(lambda: NAMES))
@click.option(
    "--replicates",
    type=click.IntRange(min=1),
    help="Replicates of each case. [default: a minute's work; --list has the number for full studies]",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes to use; their number does not change the result. [default: one a core]",
)
@click.option(
    "--cluster",
    metavar="tcp://HOST:PORT",
    help="Use the workers of this Dask scheduler, which need the same version of tracebridge; the result is the same.",
)
@click.option("--list", "only_list", is_flag=True, help="List the studies instead of running any.")
@common
def study(
    names: tuple[str, ...],
    replicates: int | None,
    jobs: int | None,
    cluster: str | None,
    only_list: bool,
    as_json: bool,
    seed: int,
) -> int:
    """Re-run studies of the paper, with its figures beside ours, in the order in which they are named.

    Each study asserts statements: the number it measured, its bound and its Monte-Carlo standard error. One that is
    outside of its bound by no more than chance explains is "within error": more replicates will tell. The exit code is
    1 if one fails.
    """
    from tracebridge.studies import STUDIES, chosen_studies, run_study

    if only_list:
        if as_json:
            keys = ("name", "title", "source", "replicates", "full")
            emit([{key: getattr(each, key) for key in keys} for each in STUDIES.values()])
        else:
            print_table(
                ["study", "what it shows", "in the paper", "replicates", "full"],
                [[s.name, s.title, s.source, _count(s.replicates), _count(s.full)] for s in STUDIES.values()],
            )
        return 0
    if not names:
        raise click.UsageError(f"name a study, or all: {', '.join(STUDIES)}")
    if cluster is not None and jobs is not None:
        raise click.UsageError("--jobs is for this machine, a --cluster uses all of its workers: give one of them")
    results = []
    chosen = chosen_studies(names)
    for position, each in enumerate(chosen):
        if replicates is not None and not each.replicates:
            say(f"note: {each.name} draws nothing: --replicates leaves it as it is")
        name = each.name if len(chosen) == 1 else f"{each.name} ({position + 1} of {len(chosen)})"
        with progress_line() as line, _workers(cluster):
            line(name)
            results.append(
                run_study(each, replicates=replicates, seed=seed, jobs=jobs or -1, progress=_rate(name, line))
            )
        if not as_json:
            if position:
                write("")
            _print(results[-1])
    failed = [(result, statement) for result in results for statement in result.failed]
    code = 1 if failed else 0
    if as_json:
        emit(
            {
                "kind": "tracebridge-studies",
                "schema_version": 1,
                "seed": seed,
                "studies": [result.to_dict() for result in results],
                "exit_code": code,
            }
        )
    _say_outcome(results)
    for result, statement in failed:
        say(f"fails: {result.name}: {statement.text}: {_number(statement.measured)}, not {statement.bound}")
    return code


def _workers(address: str | None) -> AbstractContextManager[None]:
    """The workers of a cluster, or those of this machine."""
    if address is None:
        return nullcontext()
    from tracebridge.sharding.cluster import cluster

    return cluster(address)


def _rate(name: str, line: Callable[[str], None]) -> Callable[[int, int], None]:
    start = time.monotonic()

    def progress(done: int, total: int) -> None:
        passed = max(time.monotonic() - start, 1e-3)
        line(f"{name}: {done} of {counted(total, 'replicate')}, {done / passed:.3g} a second")

    return progress


# ---------------------------------------------------------------- showing


def _print(result: StudyResult) -> None:
    write(f"{result.name}: {result.title} ({result.source})")
    if result.replicates:
        write(f"{counted(result.replicates, 'replicate')} of each case (full: {result.full}), seed {result.seed}")
    for table in result.findings.tables:
        write("")
        print_table(table.columns, [[_cell(cell) for cell in row] for row in table.rows], title=table.title)
    write("")
    print_table(
        ["", "statement", "measured", "bound", "std. error", "over"],
        [_statement_row(statement) for statement in result.findings.statements],
        styles=_STYLES,
    )
    for heading, lines in (("Not reproduced", result.findings.not_reproduced), ("Note", result.findings.notes)):
        for text in lines:
            write("\n" + fill(f"{heading}: {text}.", WIDTH))


def _statement_row(statement: Statement) -> list[str]:
    error = _number(statement.standard_error, 2) if statement.sample else "-"
    return [
        statement.verdict,
        statement.text,
        _number(statement.measured),
        statement.bound,
        error,
        statement.sample or "-",
    ]


def _say_outcome(results: list[StudyResult]) -> None:
    verdicts = [statement.verdict for result in results for statement in result.findings.statements]
    unsettled = verdicts.count("within error")
    text = (
        f"{counted(len(verdicts), 'statement')}: {_do(verdicts.count('holds'), 'hold')}, "
        f"{_do(verdicts.count('fails'), 'fail')}"
    )
    if unsettled:
        text += f", {unsettled} within error (outside of the bound by what chance explains: run more replicates)"
    say(text)


def _do(number: int, verb: str) -> str:
    return f"{number} {verb}s" if number == 1 else f"{number} {verb}"


def _cell(cell: Cell) -> str:
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return _number(cell) if isinstance(cell, float) else str(cell)


def _count(number: int) -> str:
    return str(number) if number else "-"


def _number(value: float, digits: int = 4) -> str:
    from tracebridge.report.table import format_number

    return format_number(value, digits)
