"""``tracebridge assess`` and ``tracebridge demo``: the main job."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, say, write
from tracebridge.cli.gate_files import gate_files, write_gate_files
from tracebridge.cli.guarantee import guaranteeing, print_guarantees
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import (
    PATH,
    chain_model,
    checking,
    common,
    fit_options,
    fitting,
    judging,
    output,
    reading,
)
from tracebridge.cli.shards import sharded, sharding
from tracebridge.cli.values import parse_constants, parse_pairs
from tracebridge.resources import packaged
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.chain import CensoringPolicy, TransitionCounts
    from tracebridge.pipeline import Assessment
    from tracebridge.report import Findings


_COVARIATES = {"task": "task_id"}
_PROPERTY_ENDINGS = (".props", ".pctl", ".csl", ".prctl")


@click.command(
    cls=Verb,
    epilog="\b\nExamples: by the packaged properties; by your own, with a model that describes the runs\n"
    "  tracebridge assess runs/ -o out\n"
    "  tracebridge assess runs/ my.props --model auto -o out",
)
@click.argument("arguments", nargs=-1, required=True, metavar="TRACES... [PROPERTIES]", type=PATH)
@output
@reading
@sharding
@fitting
@checking
@judging
@guaranteeing
@chain_model(
    "What a state remembers beside what its step is; fit --help lists the names. auto climbs a ladder of models, "
    "each certified on runs that it was not fitted to and then on all of them, and goes on with the one that passes."
)
@click.option(
    "--bootstrap",
    "resamples",
    type=click.IntRange(0, 1_000_000),
    default=2_000,
    show_default=True,
    help="Corpora drawn again from the runs, and from the tasks where runs have them: intervals that owe nothing to a "
    "prior. 0 turns all second opinions off.",
)
@click.option(
    "--certificate-replicates",
    "replicates",
    type=click.IntRange(0, 1_000_000),
    default=199,
    show_default=True,
    help="Corpora drawn from the chain to test whether it describes the runs; at least 19, and 0 turns it off.",
)
@click.option(
    "--covariate",
    "covariates",
    multiple=True,
    metavar="task|trial|model|ATTRIBUTE",
    help="Test whether runs differ by this; may be given more than once. [default: task, trial and model, as far as "
    "runs have them]",
)
@gate_files
@common
def assess(arguments: tuple[str, ...], as_json: bool, seed: int, **options: Any) -> int:
    """Fit a chain to traces, certify it, check every property with every engine and with the data, and report.

    TRACES are files, folders or patterns; a last argument that ends in .props, .pctl or .csl is the property file.
    Without one the packaged reliability.props is used.
    """
    paths, properties = list(arguments), None
    if paths[-1].endswith(_PROPERTY_ENDINGS):
        properties = paths.pop()
    if not paths:
        raise click.UsageError(f"{properties} is a property file; name the traces before it")
    if early := [path for path in paths if path.endswith(_PROPERTY_ENDINGS)]:
        raise click.UsageError(f"{early[0]} looks like a property file; put one property file behind the traces")
    if as_json and options["summary"] == "-":
        raise click.UsageError("with --json standard output carries that document alone; give --summary a file")
    return _run(paths, properties, options, seed=seed, as_json=as_json)


@click.command(cls=Verb, epilog="\b\nExample: into a folder of your choice\n  tracebridge demo -o out")
@click.option(
    "-o", "--output", "output", type=PATH, default="tracebridge-demo", show_default=True, help="Folder to write to."
)
@click.option("--force", is_flag=True, help="Write into a non-empty folder that tracebridge did not write.")
@common
def demo(as_json: bool, seed: int, **options: Any) -> int:
    """Run the main job on a packaged corpus: 240 simulated runs of a refund agent."""
    if not as_json:
        say("The packaged corpus: 240 simulated runs of a refund agent, 60 tasks tried 4 times each.")
        say(f"This runs: tracebridge assess refund_agent.jsonl reliability.props -o {options['output']}")
    code = _run([str(packaged("demo", "refund_agent.jsonl"))], None, options, seed=seed, as_json=as_json)
    if code not in {1, 4}:
        return code
    say(f"note: this is a demonstration, and its exit code 0; assess on these runs exits with {code}")
    return 0  # what a demonstration finds is no failure of it


def _run(
    paths: Sequence[str],
    properties: str | None,
    options: Mapping[str, Any],
    *,
    seed: int,
    as_json: bool,
) -> int:
    from tracebridge.checking import default_engines
    from tracebridge.pipeline import assess as run_assessment

    prism = options.get("prism")
    began = time.monotonic()
    with progress_line() as progress, sharded(options, progress) as places:
        assessment = run_assessment(
            paths,
            properties,
            output=options["output"],
            force=options["force"],
            engines=options.get("engines") or default_engines(prism),
            prism=prism,
            exact=options.get("exact", False),
            constants=parse_constants(options.get("constants", ())),
            time_limit=options.get("time_limit"),
            progress=progress,
            trace_format=options.get("trace_format"),
            mapping=parse_pairs(options.get("mapping", ()), "--map") or None,
            outcomes=options.get("outcomes"),
            endings=options.get("endings"),
            skip_bad=options.get("skip_bad", False),
            model=options.get("model", "first-order"),
            seed=seed,
            robust=options.get("robust"),
            covariates=[_COVARIATES.get(name, name) for name in options.get("covariates", ())] or None,
            **{name: options[name] for name in ("draws", "futures", "resamples", "replicates") if name in options},
            **places,
            **fit_options(options),
        )
    if as_json:
        emit(assessment.document)
    else:
        _show(assessment)
    write_gate_files(
        assessment.document,
        junit=options.get("junit"),
        undecided=options.get("undecided", "fail"),
        summary=options.get("summary"),
    )
    if assessment.ladder is not None:
        say(f"took {time.monotonic() - began:.0f} s in all")
    return assessment.exit_code


def _show(assessment: Assessment) -> None:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.cli.verdicts import print_findings
    from tracebridge.report.results import prior_text

    corpus, fit = assessment.fitted.corpus, assessment.findings.fit
    for problem in corpus["problems"]:
        say(f"skipped: {problem}")
    for note in [*corpus["notes"], *fit.notes]:
        say(f"note: {note}")
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in corpus["outcomes"].items())
    runs, steps = counted(corpus["n_runs"], "run"), counted(corpus["n_steps"], "step")
    write(f"{runs} ({outcomes}), {steps}; {counted(corpus['n_skipped'], 'record')} skipped")
    plain = "pass rate" if fit.weighted is None else "unweighted pass rate"
    write(f"{plain} by treatment of censored runs: {_rates(fit.counts, fit.policy)}")
    if fit.weighted is not None:
        write(f"weighted pass rate by treatment of censored runs: {_rates(fit.weighted.weighted, fit.policy)}")
    model = f"model {fit.form}; " if isinstance(fit, ExpandedFit) else ""
    smoothed = prior_text(str(fit.prior), fit.support)
    write(f"{model}chain of {counted(fit.chain.n_states, 'state')}; {smoothed}")
    for line in _certificate_lines(assessment.findings):
        write(line)
    write(_figure_line(assessment.findings))
    write("")
    print_findings(assessment.findings.properties)
    print_guarantees(assessment.findings.properties)
    for note in assessment.findings.notes:
        say(f"note: {note}")
    if assessment.folder is not None:
        write("")
        names = ["report.html", "evidence.json", *assessment.evidence.document["files"]]
        write(f"written to {assessment.folder}: {', '.join(names)}")


def _rates(counts: TransitionCounts, chosen: CensoringPolicy) -> str:
    """The pass rate under each policy for censored runs."""
    from tracebridge.report.results import POLICIES

    rates = []
    for policy in POLICIES:
        rate = counts.pass_rate(policy)
        shown = "undefined" if rate is None else f"{float(rate):.4f}"
        rates.append(f"{shown} {policy}{' (chosen)' if policy == chosen else ''}")
    return ", ".join(rates)


def _certificate_lines(findings: Findings) -> Iterator[str]:
    from tracebridge.inference.expanded.certificate import ModelCertificate
    from tracebridge.report.model_certificate import ladder_lines

    certificate = findings.certificate
    if findings.ladder is not None:
        yield from ladder_lines(findings.ladder)
    if isinstance(certificate, str):
        yield f"certificate: none, because {certificate}"
        return
    if isinstance(certificate, ModelCertificate):
        for scope, standing in findings.standings.items():
            mark = "" if standing.mark is None else f" (numbers of this scope are marked: {standing.mark})"
            yield f"certificate for {scope}: {standing.verdict.upper()}{mark}"
            yield from (f"  {reason}" for reason in standing.reasons)
        yield from (f"to do: {line}" for line in findings.advice)
        return
    yield f"certificate: {certificate.verdict.upper()}"
    for reason in certificate.reasons:
        yield f"  {reason}"
    if findings.mark is not None:
        where = "; summary.md says where runs depart from the chain" if certificate.verdict == "reject" else ""
        yield f"  every number below is marked: {findings.mark}{where}"


def _figure_line(findings: Findings) -> str:
    from tracebridge.report.table import interval_text

    figures, found = findings.figures, findings.figure_uncertainty
    bounds = "" if findings.bounds is None else f"; {findings.bounds}"
    if isinstance(figures, str):
        return f"no reliability figures: {figures}{bounds}"

    def interval(name: str) -> str:
        ends = found[name].posterior if name in found else None
        return "" if ends is None else f" {interval_text(ends)}"

    mark = bounds if findings.mark is None else f" ({findings.mark}){bounds}"
    return (
        f"R_inf {figures.reliability:.4f}{interval('R_inf')}, mean steps {figures.mean_time:.2f}{interval('MTTA')}, "
        f"R(d) within 0.01 of R_inf from d = {figures.horizon:g}{interval('horizon')} on{mark}"
    )
