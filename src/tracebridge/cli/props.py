"""``tracebridge props``: look at property files."""

from __future__ import annotations

import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, print_table, write
from tracebridge.cli.help_sections import Verbs
from tracebridge.cli.named_properties import named_properties
from tracebridge.cli.options import PATH, common, model_constants, reading, reading_options
from tracebridge.cli.values import parse_constants
from tracebridge.pctl import explain as explain_formula
from tracebridge.pctl import format_properties, portability, read_properties
from tracebridge.pctl import lint as lint_file
from tracebridge.pctl.printer import quote
from tracebridge.pctl.references import expand_labels

if TYPE_CHECKING:
    from tracebridge.chain import MarkovChain


@click.group(cls=Verbs)
def props() -> None:
    """Check, rewrite and explain property files, and list the labels they can use."""


@props.command(
    epilog="\b\nExample: also whether the labels are those of this chain\n"
    "  tracebridge props lint my.props --model chain.json"
)
@click.argument("file", type=PATH)
@click.option("--model", metavar="MODEL", type=PATH, help="Check labels and reward structures against this model.")
@model_constants
@common
def lint(file: str, model: str | None, constants: tuple[str, ...], as_json: bool, seed: int) -> int:  # noqa: ARG001
    """Look for mistakes; exit code 1 if there is an error or a warning."""
    properties = read_properties(file)
    labels: dict[str, Any] = {"labels": None}
    if model is not None:
        from tracebridge.checking.models import read_model
        from tracebridge.checking.run import mixed_labels

        read = read_model(model, constants=parse_constants(constants))
        chain = read.chain
        labels = {
            "labels": chain.label_names(),
            "reward_structures": list(chain.rewards),
            "names": chain.word_names(),
            "mixed": mixed_labels(read.fitted),
        }
    findings = lint_file(properties, **labels)
    serious = [finding for finding in findings if finding.severity != "note"]
    if as_json:
        emit({"schema_version": 1, "file": file, "findings": [finding.to_dict() for finding in findings]})
    else:
        for finding in findings:
            write(f"{file}:{finding}")
        write(f"{len(properties.properties)} properties, {len(serious)} findings")
    return 1 if serious else 0


@props.command(
    "format",
    epilog="\b\nExample: what Storm takes, and what it does not\n"
    "  tracebridge props format my.props --for storm > storm.props",
)
@click.argument("file", type=PATH)
@click.option(
    "--for",
    "target",
    type=click.Choice(["prism", "storm"]),
    help="Write what this tool accepts; what it cannot take is commented out.",
)
@common
def format_(file: str, target: str | None, as_json: bool, seed: int) -> None:  # noqa: ARG001
    """Write the file in canonical form to standard output."""
    properties = read_properties(file)
    text = format_properties(properties, target=target)  # type: ignore[arg-type]
    if not as_json:
        write(text)
        return
    lacking = (
        [finding.to_dict() for item in expand_labels(properties).properties for finding in portability(item, target)]  # type: ignore[arg-type]
        if target
        else []
    )
    emit({"schema_version": 1, "file": file, "target": target, "text": text, "findings": lacking})


@props.command(epilog="\b\nExample: read a property file of somebody else\n  tracebridge props explain my.props")
@click.argument("file", type=PATH)
@common
def explain(file: str, as_json: bool, seed: int) -> None:  # noqa: ARG001
    """Say in plain words what each property means.

    FILE may be the text itself.
    """
    readings = [(item, explain_formula(item.formula)) for item in named_properties(file).properties]
    if as_json:
        emit(
            {
                "schema_version": 1,
                "file": file,
                "properties": [{"name": p.name, "formula": p.text, "meaning": meaning} for p, meaning in readings],
            }
        )
        return
    for position, (item, meaning) in enumerate(readings, start=1):
        write(f"{item.name or f'#{position}'}\n    {item.text}\n    {meaning}\n")


@props.command(epilog="\b\nExample: what a property may name in quotes\n  tracebridge props labels chain.json")
@click.argument("source", metavar="MODEL|TRACES", type=PATH)
@reading
@model_constants
@common
def labels(source: str, as_json: bool, seed: int, **options: Any) -> None:  # noqa: ARG001
    """List the labels and reward structures that properties can use.

    Of a model, or of the chain that would be fitted to these traces.
    """
    chain = _chain(source, options)
    held = {name: [chain.states[i] for i in chain.label(name).nonzero()[0]] for name in chain.label_names()}
    if as_json:
        emit({"schema_version": 1, "labels": held, "reward_structures": list(chain.rewards)})
        return
    print_table(["label", "states", "holds in"], [[quote(n), str(len(s)), ", ".join(s[:6])] for n, s in held.items()])
    write("reward structures: " + ", ".join(map(quote, chain.rewards)))


def _chain(source: str, options: dict[str, Any]) -> MarkovChain:
    """The chain of a model, or one fitted to traces; what the source is is told by its content."""
    from tracebridge.checking.models import is_model, read_model
    from tracebridge.pipeline import fit_files

    with ExitStack() as stack:
        if source == "-":  # its content is looked at twice
            spool = stack.enter_context(tempfile.NamedTemporaryFile(prefix="standard-input-"))
            shutil.copyfileobj(sys.stdin.buffer, spool)
            spool.flush()
            source = spool.name
        if is_model(source) or not (Path(source).exists() or set(source) & set("*?[")):
            return read_model(source, constants=parse_constants(options["constants"])).chain
        read = reading_options(options)
        return fit_files([source], trace_format=options["trace_format"], skip_bad=options["skip_bad"], **read).fit.chain
