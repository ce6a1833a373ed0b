"""``tracebridge audit``: routing, calibration and commitment of agents that state a confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, progress_line, say, write
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, checking, common, output
from tracebridge.cli.values import parse_constants, parse_pairs
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.auditing import AuditRun
    from tracebridge.confidence.formal_model import FormalModel


@click.command(
    cls=Verb,
    epilog="\b\nExample: simulated deliberations that come with tracebridge\n"
    "  tracebridge audit --demo -o audit\n"
    "\b\nExample: one line an item, with the polls of its agents\n"
    "  tracebridge audit polls.jsonl -o audit",
)
@click.argument("paths", nargs=-1, metavar="[POLLS]...", type=PATH)
@output
@click.option("--demo", is_flag=True, help="Audit the packaged deliberations instead of files.")
@click.option(
    "--labels",
    multiple=True,
    metavar="FILE",
    type=PATH,
    help="Files that say which answers are correct, for logs that do not.",
)
@click.option(
    "--map",
    "mapping",
    multiple=True,
    metavar="FIELD=COLUMN,...",
    help="Column names of plain polls, such as candidate=response,confidence=p; FIELD=- says that there is none.",
)
@click.option("--scale", metavar="0-1|0-100|1-100", help="The scale of stated confidence, where files do not state it.")
@click.option("--skip-bad", is_flag=True, help="Count and skip bad records instead of stopping with the list of them.")
@click.option(
    "--cluster",
    "cluster_key",
    type=click.Choice(["cluster_id", "problem_uid", "trace_id"]),
    default="cluster_id",
    show_default=True,
    help="What makes deliberations dependent; this is what the bootstrap draws again.",
)
@click.option("--judge", metavar="NAME", help="Whose verdicts on equivalence count. [default: the first]")
@click.option(
    "--undecided",
    "undecided_policy",
    type=click.Choice(["exclude", "divergent", "equivalent"]),
    default="exclude",
    show_default=True,
    help="What a pair counts as on which the judge did not decide.",
)
@click.option(
    "--missing-label",
    "on_missing_label",
    type=click.Choice(["drop", "wrong", "error"]),
    default="drop",
    show_default=True,
    help="What becomes of a valid poll that nobody labelled.",
)
@click.option(
    "--route-by",
    "route_files",
    multiple=True,
    metavar="NAME=FILE",
    help="Also compare the router that selects the highest of these scores: JSON Lines with trace_id, block_id, agent "
    "and score, such as a surrogate's readouts.",
)
@click.option(
    "--properties", metavar="FILE", type=PATH, help="Properties of the chain. [default: the packaged broadcast.props]"
)
@click.option(
    "--routing-properties",
    metavar="FILE",
    type=PATH,
    help="Properties of the routing MDPs. [default: the packaged routing.props]",
)
@click.option(
    "--replicates",
    type=click.IntRange(min=2, max=1_000_000),
    default=2_000,
    show_default=True,
    help="Resamples of clusters behind each interval.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
@click.option(
    "--certificate-replicates",
    type=click.IntRange(0, 1_000_000),
    default=199,
    show_default=True,
    help="Corpora drawn from the chain to test whether it describes the deliberations; at least 19, 0 turns it off.",
)
@checking
@common
def audit(paths: tuple[str, ...], demo: bool, as_json: bool, **options: Any) -> int:
    """Audit agents that state a confidence and a router that selects who speaks.

    POLLS are deliberations (broadcast-trace/0.1, AgentVerse-style logs) or plain polls: one line a poll with item,
    agent, candidate, confidence and correct, or one line an item with its polls. Whether the router selects correct
    answers, whether confidence is calibrated, whether agents say what they were polled on; what other routers would
    have done; and, for whole deliberations, a chain and routing MDPs that every engine checks.
    """
    from tracebridge.auditing import audit as run_audit
    from tracebridge.checking import default_engines
    from tracebridge.confidence.score_scale import parse_scale
    from tracebridge.resources import packaged

    if demo == bool(paths):
        raise click.UsageError("give files of polls, or --demo")
    with progress_line() as progress:
        run = run_audit(
            [packaged("demo", "deliberations.jsonl.gz")] if demo else paths,
            labels=options["labels"] or None,
            output=options["output"],
            force=options["force"],
            mapping=parse_pairs(options["mapping"], "--map") or None,
            scale=None if options["scale"] is None else parse_scale(options["scale"]),
            route_files=parse_pairs(options["route_files"], "--route-by"),
            engines=options["engines"] or default_engines(options["prism"]),
            constants=parse_constants(options["constants"]),
            progress=progress,
            **{name: options[name] for name in _PASSED_ON},
        )
    if as_json:
        emit(run.document)
    else:
        _show(run)
    return run.exit_code


_PASSED_ON = (
    "skip_bad",
    "cluster_key",
    "judge",
    "undecided_policy",
    "on_missing_label",
    "properties",
    "routing_properties",
    "prism",
    "exact",
    "time_limit",
    "replicates",
    "certificate_replicates",
    "seed",
    "level",
)


def _show(run: AuditRun) -> None:
    from tracebridge.report.confidence_summary import (
        METRIC_COLUMNS,
        ROUTER_COLUMNS,
        audit_notes,
        headline_rows,
        router_rows,
    )

    for problem in (*run.corpus.problems, *run.corpus.findings, *audit_notes(run.audit, run.corpus)):
        say(f"note: {problem}")
    counts, scale = run.audit.counts, run.corpus.scale
    sizes = (("traces", "deliberation"), ("clusters", "cluster"), ("blocks", "block"), ("polls", "poll"))
    write(", ".join(counted(counts[name], word) for name, word in sizes))
    write(f"confidence on {scale.minimum:g} to {scale.maximum:g} ({scale.origin})")
    write("")
    print_table(list(METRIC_COLUMNS), headline_rows(run.audit))
    write("")
    print_table(list(ROUTER_COLUMNS), router_rows(run.audit))
    for name, reason in run.audit.undefined.items():
        say(f"note: {name} is undefined: {reason}")
    write("")
    if isinstance(run.model, str):
        write(f"no chain of these deliberations: {run.model}")
    else:
        _show_models(run, run.model)
    if run.folder is not None:
        write("")
        write(f"written to {run.folder}; start with summary.md and card.md")


def _show_models(run: AuditRun, model: FormalModel) -> None:
    from tracebridge.cli.verdicts import print_findings
    from tracebridge.report.confidence_summary import DELIBERATION_COLUMNS, deliberation_rows
    from tracebridge.report.table import verdict_columns, verdict_rows

    rejected = [test for test in model.ignorability if test.p_holm < _LEVEL_OF_ASSUMPTION]
    for test in rejected:
        say(
            f"note: {test.outcome} depends on how a poll came to be selected ({test.group}: p = {test.p_holm:.4f}); "
            "P(pass) under other routers, and the best and the worst, rest on the contrary"
        )
    write("whole deliberations under each router, without a prior:")
    print_table(list(DELIBERATION_COLUMNS), deliberation_rows(model))
    write("")
    if run.assessment is not None:
        print_findings(run.assessment.findings.properties)
        write("")
    write("every router that selects valid polls:")
    agreements = model.review("valid").agreements
    print_table(verdict_columns(agreements), verdict_rows(agreements))


_LEVEL_OF_ASSUMPTION = 0.05
