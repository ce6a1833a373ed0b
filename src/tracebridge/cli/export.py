"""``tracebridge export``: a model in the files of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from tracebridge.cli.console import emit, say
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.options import PATH, common, model_constants, output
from tracebridge.cli.values import parse_constants
from tracebridge.errors import UsageError

if TYPE_CHECKING:
    from tracebridge.chain import DecisionProcess, MarkovChain
    from tracebridge.checking.models import Model
    from tracebridge.report import OutputFolder

#: What can be written.
_TARGETS = ("prism", "explicit", "storm-explicit", "drn", "umb", "json")
_ALL = "all"
_SHOWN = 10
_OF_PROCESSES = ("prism", "drn", "umb", "json")


@click.command(
    cls=Verb,
    epilog="\b\nExamples: for PRISM and Storm with the properties; in every format\n"
    "  tracebridge export chain.json --to prism --properties my.props -o out\n"
    "  tracebridge export chain.json --to all -o out",
)
@click.argument("model", type=PATH)
@click.option(
    "--to",
    "target",
    type=click.Choice((*_TARGETS, _ALL)),
    default="prism",
    show_default=True,
    help="What to write: PRISM's language, PRISM's or Storm's explicit files (.tra, .lab and so on), Storm's DRN, UMB, "
    "or our own document; all writes each of them to a folder of its name.",
)
@click.option(
    "--intervals",
    "level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="LEVEL",
    help="With --to prism, and for a fitted chain: write an interval chain, each transition between the ends of its "
    "Clopper-Pearson interval, all of them at once at this level, such as 0.95 (see check --robust).",
)
@click.option(
    "--properties",
    "properties",
    metavar="FILE",
    type=PATH,
    help="Also write this property file, rewritten for the exported model.",
)
@output
@model_constants
@common
def export(
    model: str,
    target: str,
    level: float | None,
    properties: str | None,
    output: str,
    force: bool,
    constants: tuple[str, ...],
    as_json: bool,
    seed: int,  # noqa: ARG001
) -> None:
    """Write a model for other tools, and the property file rewritten for it.

    MODEL is a chain.json, a PRISM program, or a file that export writes.
    """
    from tracebridge.chain import DecisionProcess
    from tracebridge.checking.models import read_model
    from tracebridge.checking.run import require_fit, resolve_for
    from tracebridge.export import rewrite_for_export
    from tracebridge.pctl import format_properties, read_properties
    from tracebridge.report import OutputFolder

    if level is not None and target != "prism":
        raise UsageError("intervals are written in PRISM's language only: --to prism")
    values = parse_constants(constants)
    source = None if properties is None else read_properties(Path(properties))
    declared = set() if source is None else {constant.name for constant in source.constants}
    read = read_model(model, constants={name: value for name, value in values.items() if name not in declared})
    for note in read.notes:
        say(f"note: {note}")
    if isinstance(read.described, DecisionProcess):
        if level is not None or source is not None:
            raise UsageError("intervals and rewritten properties are those of chains, and this is a decision process")
        folder = OutputFolder(output, marker="export.json", kind="tracebridge-export", force=force)
        _finish(_write_process(read.described, target, folder), folder, as_json=as_json)
        return
    chain = read.chain
    rewritten = None
    if source is not None:
        file = resolve_for(chain, source, {name: value for name, value in values.items() if name in declared})
        require_fit(chain, file, read.fitted)
        language: Literal["prism", "storm"] = "storm" if target in ("drn", "storm-explicit") else "prism"
        rewritten = format_properties(rewrite_for_export(file, chain), target=language)
    folder = OutputFolder(output, marker="export.json", kind="tracebridge-export", force=force)
    if level is not None:
        written = [folder.write("model.prism", _interval_text(read, level))]
    elif target == _ALL:
        written = _write_every(chain, folder)
    else:
        written = _write_model(chain, target, folder)
    if rewritten is not None:
        written.append(folder.write("properties.props", rewritten))
    _finish(written, folder, as_json=as_json)


def _finish(written: list[Path], folder: OutputFolder, *, as_json: bool) -> None:
    """The manifest, which makes the folder ours, and what was written."""
    files = [path.relative_to(folder.path).as_posix() for path in written]
    manifest = {"kind": "tracebridge-export", "schema_version": 1, "files": files}
    folder.write_json("export.json", manifest)
    if as_json:
        emit({**manifest, "folder": str(folder.path)})
    else:
        shown = ", ".join(str(path) for path in written) if len(written) <= _SHOWN else f"{len(written)} files"
        say(f"wrote {shown} to {folder.path}" if len(written) > _SHOWN else f"wrote {shown}")


def _write_process(process: DecisionProcess, target: str, folder: OutputFolder) -> list[Path]:
    """A decision process in the formats that we write it in."""
    from tracebridge.checking.models import write_model

    if target not in (*_OF_PROCESSES, _ALL):
        raise UsageError(f"a decision process is written as {', '.join(_OF_PROCESSES)}, not as {target}")
    written = []
    folder.path.mkdir(parents=True, exist_ok=True)
    for chosen in _OF_PROCESSES if target == _ALL else (target,):
        path = (folder.path / chosen if target == _ALL else folder.path) / f"model.{chosen}"
        path.parent.mkdir(exist_ok=True)
        write_model(process, path)
        written.append(path)
    return written


def _interval_text(read: Model, level: float) -> str:
    """The interval chain of a fit in PRISM's language."""
    from tracebridge.export.prism_intervals import format_prism_intervals
    from tracebridge.inference.interval_entries import interval_chain_of_fit

    if read.fit is None:
        reason = (
            "the states of this fit remember more" if read.expanded else "this model has no counts of runs behind it"
        )
        raise UsageError(f"intervals come from the counts of a first-order fit, and {reason}")
    chain = interval_chain_of_fit(read.fit, method="clopper-pearson", level=level, together="chain")
    return format_prism_intervals(chain)


def _write_every(chain: MarkovChain, folder: OutputFolder) -> list[Path]:
    """Each format that can hold the model, in a folder of its name."""
    from tracebridge.export.prism import MAX_STATES
    from tracebridge.report import OutputFolder

    left_out = {}
    if chain.n_states > MAX_STATES:
        left_out["prism"] = f"the model has {chain.n_states} states, and PRISM's language is written up to {MAX_STATES}"
    if chain.is_exact:
        left_out["storm-explicit"] = "Storm's explicit files have doubles only, and this model is rational: take drn"
    written = []
    for target in _TARGETS:
        if target in left_out:
            say(f"note: {target} is left out: {left_out[target]}")
            continue
        inner = OutputFolder(folder.path / target, marker="../export.json", kind="tracebridge-export", force=True)
        written += _write_model(chain, target, inner)
    return written


def _write_model(chain: MarkovChain, target: str, folder: OutputFolder) -> list[Path]:
    from tracebridge.chain import chain_to_dict
    from tracebridge.export import format_prism
    from tracebridge.export.drn import write_drn
    from tracebridge.export.explicit import write_explicit
    from tracebridge.export.umb import write_umb

    if target == "prism":
        return [folder.write("model.prism", format_prism(chain))]
    if target == "json":
        return [folder.write_json("model.json", chain_to_dict(chain))]
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        if target == "umb":
            write_umb(chain, folder.path / "model.umb")
            return [folder.path / "model.umb"]
        if target == "drn":
            write_drn(chain, folder.path / "model.drn")
            return [folder.path / "model.drn"]
        return write_explicit(chain, folder.path / "model", dialect="storm" if target == "storm-explicit" else "prism")
    except OSError as error:
        raise UsageError(f"{folder.path} cannot be written to: {error.strerror}") from error
