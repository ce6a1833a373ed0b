"""``tracebridge check``: properties on any model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, say
from tracebridge.cli.options import checking, common
from tracebridge.cli.verdicts import ExperimentTable, print_verdicts
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement
    from tracebridge.pctl import Experiment
    from tracebridge.pctl.ast import PropertyFile

Point = Mapping[str, Fraction | bool]


@click.command()
@click.argument("model")
@click.argument("properties")
@checking
@common
def check(
    model: str,
    properties: str,
    engines: tuple[str, ...],
    exact: bool,
    constants: tuple[str, ...],
    time_limit: float | None,
    as_json: bool,
    seed: int,  # noqa: ARG001
) -> int:
    """Check the PROPERTIES file on MODEL with both engines and compare them.

    MODEL is a chain.json or a PRISM file. --const gives values to constants of the property file, and to undefined
    constants of a PRISM model. --const d=1:50, or d=1:5:50 with a step, is an experiment: every property is checked for
    every value, and for every combination where several constants vary.
    """
    from tracebridge.agreement import worst_exit_code
    from tracebridge.checking import ENGINE_NAMES
    from tracebridge.pctl import Experiment, read_properties
    from tracebridge.pipeline import engine_version

    if model == properties == "-":
        raise click.UsageError("only one of MODEL and PROPERTIES can be standard input")
    names: tuple[str, ...] = engines or tuple(ENGINE_NAMES)
    file = read_properties(Path(properties) if properties != "-" else "-")
    experiment = Experiment.parse(part for text in constants for part in text.split(","))
    points = _points(model, file, experiment, engines=names, exact=exact, time_limit=time_limit)
    shown: dict[str, Any] = {}
    if experiment.varying:
        table = ExperimentTable(experiment.varying)
        documents = []
        for point, agreements in points:
            table.add(point, agreements)
            if as_json:
                documents.append(_point_document(point, agreements))
        codes = table.exit_codes
        shown = {"varying": list(experiment.varying), "points": documents}
        if not as_json:
            table.print()
    else:
        ((_, agreements),) = points
        codes = [agreement.exit_code for agreement in agreements]
        if as_json:
            shown = {"properties": [agreement.to_dict() for agreement in agreements]}
        else:
            print_verdicts(agreements)
    code = worst_exit_code(codes)
    if as_json:
        tool = {
            "name": "tracebridge",
            "version": __version__,
            "engines": {ENGINE_NAMES[name]: engine_version(name) for name in names},
        }
        kind = "tracebridge-experiment" if experiment.varying else "tracebridge-check"
        head = {"kind": kind, "schema_version": 1, "tool": tool, "model": model, "exact": exact}
        emit({**head, **shown, "exit_code": code})
    return code


def _points(
    model: str,
    file: PropertyFile,
    experiment: Experiment,
    *,
    engines: tuple[str, ...],
    exact: bool,
    time_limit: float | None,
) -> Iterator[tuple[Point, list[Agreement]]]:
    """The agreements at every point: the model is read once for each combination of its own constants."""
    from tracebridge.agreement import compare_property
    from tracebridge.checking import iter_points
    from tracebridge.checking.models import model_for, read_model
    from tracebridge.pctl import Experiment

    declared = {constant.name for constant in file.constants}
    of_model = Experiment(values={name: values for name, values in experiment.values.items() if name not in declared})
    of_file = Experiment(values={name: values for name, values in experiment.values.items() if name in declared})
    if of_model.varying and model == "-":
        raise click.UsageError(f"a model from standard input is read once; {', '.join(of_model.varying)} cannot vary")
    with progress_line() as progress:
        for model_point in of_model.points():
            read = read_model(model, constants=model_point, time_limit=time_limit)
            if not of_model.varying:
                for note in read.notes:
                    say(f"note: {note}")
            results = iter_points(
                model_for(read, file), file, of_file.points(), engines=engines, exact=exact, time_limit=time_limit
            )
            agreements: list[Agreement] = []
            while group := list(islice(results, len(engines))):  # one property at one point
                point, result = group[-1]
                progress(f"{result.engine}: {result.property.name or result.property.text}")
                agreements.append(compare_property([result for _, result in group]))
                if len(agreements) == len(file.properties):
                    yield {**model_point, **point}, agreements
                    agreements = []


def _point_document(point: Point, agreements: list[Agreement]) -> dict[str, Any]:
    from tracebridge.agreement import worst_exit_code
    from tracebridge.checking.result import number_to_json

    return {
        "constants": {
            name: value if isinstance(value, bool) else number_to_json(value) for name, value in point.items()
        },
        "properties": [agreement.to_dict() for agreement in agreements],
        "exit_code": worst_exit_code([agreement.exit_code for agreement in agreements]),
    }
