"""``tracebridge assess`` and ``tracebridge demo``: the main job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, say, write
from tracebridge.cli.options import checking, common, fitting, output, parse_constants, parse_pairs, reading
from tracebridge.cli.verdicts import print_verdicts
from tracebridge.pipeline import assess as run_assessment
from tracebridge.resources import packaged
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.pipeline import Assessment


_PROPERTY_ENDINGS = (".props", ".pctl", ".csl", ".prctl")


@click.command()
@click.argument("arguments", nargs=-1, required=True, metavar="TRACES... [PROPERTIES]")
@output
@reading
@fitting
@checking
@common
def assess(arguments: tuple[str, ...], as_json: bool, seed: int, **options: Any) -> int:  # noqa: ARG001
    """Fit a chain to traces, export it, check every property with two engines, compare them, and report.

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
    return _run(paths, properties, options, as_json=as_json)


@click.command()
@click.option("-o", "--output", "output", default="tracebridge-demo", show_default=True, help="Folder to write to.")
@click.option("--force", is_flag=True, help="Write into a non-empty folder that tracebridge did not write.")
@common
def demo(as_json: bool, seed: int, **options: Any) -> int:  # noqa: ARG001
    """Run the main job on a packaged corpus: 240 simulated runs of a refund agent."""
    if not as_json:
        say("The packaged corpus: 240 simulated runs of a refund agent, 60 tasks tried 4 times each.")
        say(f"This runs: tracebridge assess refund_agent.jsonl reliability.props -o {options['output']}")
    return _run([str(packaged("demo", "refund_agent.jsonl"))], None, options, as_json=as_json, expect_verdicts=False)


def _run(
    paths: Sequence[str],
    properties: str | None,
    options: Mapping[str, Any],
    *,
    as_json: bool,
    expect_verdicts: bool = True,
) -> int:
    with progress_line() as progress:
        assessment = run_assessment(
            paths,
            properties,
            output=options["output"],
            force=options["force"],
            engines=options.get("engines") or ("closed-form", "storm"),
            exact=options.get("exact", False),
            constants=parse_constants(options.get("constants", ())),
            time_limit=options.get("time_limit"),
            progress=progress,
            trace_format=options.get("trace_format"),
            mapping=parse_pairs(options.get("mapping", ()), "--map") or None,
            skip_bad=options.get("skip_bad", False),
            **fit_options(options),
        )
    if as_json:
        emit(assessment.document)
    else:
        _show(assessment)
    return assessment.exit_code if expect_verdicts or assessment.exit_code != 1 else 0


def fit_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `fit_chain` from the command line's options; those not given keep their defaults."""
    names = {"k_max": "k_max", "min_count": "min_count", "top": "top", "support": "support", "profile": "profile"}
    chosen = {name: options[key] for key, name in names.items() if options.get(key) is not None}
    if options.get("prior") is not None:
        chosen["prior"] = options["prior"]
    if options.get("censored") is not None:
        chosen["policy"] = options["censored"]
    return chosen


def _show(assessment: Assessment) -> None:
    corpus, fit = assessment.fitted.corpus, assessment.fitted.fit
    for problem in corpus["problems"]:
        say(f"skipped: {problem}")
    for note in [*corpus["notes"], *fit.notes]:
        say(f"note: {note}")
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in corpus["outcomes"].items())
    runs, steps = counted(corpus["n_runs"], "run"), counted(corpus["n_steps"], "step")
    write(f"{runs} ({outcomes}), {steps}; {counted(corpus['n_skipped'], 'record')} skipped")
    rates = []
    for policy in ("censored", "failure", "drop"):
        rate = fit.counts.pass_rate(policy)
        rates.append(
            f"{'none' if rate is None else f'{float(rate):.4f}'} {policy}{' (chosen)' if policy == fit.policy else ''}"
        )
    write(f"pass rate by treatment of censored runs: {', '.join(rates)}")
    write(f"chain of {fit.chain.n_states} states; prior {fit.prior}, {fit.support} support")
    figures = assessment.figures
    if isinstance(figures, str):
        write(f"no reliability figures: {figures}")
    else:
        write(
            f"R_inf {figures.reliability:.4f}, mean steps {figures.mean_time:.2f}, "
            f"R(d) within 0.01 of R_inf from d = {figures.horizon:g} on"
        )
    write("")
    print_verdicts(assessment.agreements)
    if assessment.folder is not None:
        write("")
        write(f"written to {assessment.folder}: {', '.join(['results.json', *assessment.document['files']])}")
