"""``tracebridge check``: properties on any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracebridge.cli.console import emit, progress_line, say
from tracebridge.cli.options import checking, common, judging
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement
    from tracebridge.chain import ChainFit
    from tracebridge.inference.uncertainty import KnownDraws
    from tracebridge.pctl import Experiment
    from tracebridge.pctl.ast import PropertyFile
    from tracebridge.report import PropertyFinding

_NO_CERTIFICATE = (
    "note: chain.json records no certificate: whether such a chain describes its runs was not tested here "
    "(tracebridge certify TRACES tests it, and so does assess)"
)

Point = Mapping[str, Fraction | bool]


@click.command()
@click.argument("model")
@click.argument("properties")
@checking
@judging
@common
def check(
    model: str,
    properties: str,
    engines: tuple[str, ...],
    exact: bool,
    constants: tuple[str, ...],
    time_limit: float | None,
    draws: int,
    futures: int,
    as_json: bool,
    seed: int,
) -> int:
    """Check the PROPERTIES file on MODEL with both engines and compare them.

    MODEL is a chain.json or a PRISM file. --const gives values to constants of the property file, and to undefined
    constants of a PRISM model. --const d=1:50, or d=1:5:50 with a step, is an experiment: every property is checked for
    every value, and for every combination where several constants vary.

    For a fitted chain every number has the interval that its runs leave, every property the share of the posterior in
    which it holds, and properties with `//@ credible 0.95` are decided by that.
    """
    from tracebridge.agreement import worst_exit_code
    from tracebridge.checking import ENGINE_NAMES
    from tracebridge.cli.verdicts import ExperimentTable, print_findings
    from tracebridge.pctl import Experiment, read_properties
    from tracebridge.pipeline import engine_version

    if model == properties == "-":
        raise click.UsageError("only one of MODEL and PROPERTIES can be standard input")
    names: tuple[str, ...] = engines or tuple(ENGINE_NAMES)
    file = read_properties(Path(properties) if properties != "-" else "-")
    experiment = Experiment.parse(part for text in constants for part in text.split(","))
    data = _Data(draws=draws, futures=0 if experiment.varying else futures, seed=seed)
    points = _points(model, file, experiment, data, engines=names, exact=exact, time_limit=time_limit)
    shown: dict[str, Any] = {}
    if experiment.varying:
        table = ExperimentTable(experiment.varying)
        documents = []
        for point, findings in points:
            table.add(point, findings)
            if as_json:
                documents.append(_point_document(point, findings))
        codes = table.exit_codes
        shown = {"varying": list(experiment.varying), "points": documents}
        if not as_json:
            table.print()
    else:
        ((_, findings),) = points
        codes = [each.agreement.exit_code for each in findings]
        if as_json:
            shown = {"properties": [each.to_dict() for each in findings]}
        else:
            print_findings(findings)
    code = worst_exit_code(codes)
    if as_json:
        tool = {
            "name": "tracebridge",
            "version": __version__,
            "engines": {ENGINE_NAMES[name]: engine_version(name) for name in names},
        }
        kind = "tracebridge-experiment" if experiment.varying else "tracebridge-check"
        head = {"kind": kind, "schema_version": 1, "tool": tool, "model": model, "exact": exact}
        emit({**head, **shown, "certificate": None, "exit_code": code})
    return code


def _points(
    model: str,
    file: PropertyFile,
    experiment: Experiment,
    data: _Data,
    *,
    engines: tuple[str, ...],
    exact: bool,
    time_limit: float | None,
) -> Iterator[tuple[Point, list[PropertyFinding]]]:
    """What was found at every point: the model is read once for each combination of its own constants."""
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
                if read.fit is not None:
                    say(_NO_CERTIFICATE)
            results = iter_points(
                model_for(read, file), file, of_file.points(), engines=engines, exact=exact, time_limit=time_limit
            )
            agreements: list[Agreement] = []
            while group := list(islice(results, len(engines))):  # one property at one point
                point, result = group[-1]
                progress(f"{result.engine}: {result.property.name or result.property.text}")
                agreements.append(compare_property([result for _, result in group]))
                if len(agreements) == len(file.properties):
                    yield {**model_point, **point}, data.judge(read.fit, file, point, agreements, progress)
                    agreements = []


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """What is asked of the data behind a model."""

    draws: int
    futures: int
    seed: int
    known: KnownDraws = field(default_factory=dict)

    def judge(
        self,
        fit: ChainFit | None,
        file: PropertyFile,
        constants: Point,
        agreements: list[Agreement],
        progress: Callable[[str], None],
    ) -> list[PropertyFinding]:
        """The agreements with what the data say; as they are for a model without counts."""
        from tracebridge.inference import property_uncertainty
        from tracebridge.inference.judgement import judged, plans_of_undecided
        from tracebridge.inference.qualitative import is_relative_to_support, qualitative_basis
        from tracebridge.report import PropertyFinding, marks_of

        if fit is None:
            return [PropertyFinding(agreement=agreement) for agreement in agreements]
        if self.draws:
            progress(f"{self.draws} draws of the posterior")
            found = property_uncertainty(
                fit, file, draws=self.draws, seed=self.seed, constants=constants, known=self.known
            )
            agreements = judged(agreements, found)
        resolved = replace(file, properties=tuple(agreement.property for agreement in agreements))
        plans = plans_of_undecided(fit, resolved, agreements, futures=self.futures, seed=self.seed)
        findings = []
        for agreement, plan in zip(agreements, plans, strict=True):
            basis = qualitative_basis(fit, agreement.property.formula) if is_relative_to_support(fit) else ()
            findings.append(PropertyFinding(agreement=agreement, marks=marks_of(basis), plan=plan, basis=basis))
        return findings


def _point_document(point: Point, findings: list[PropertyFinding]) -> dict[str, Any]:
    from tracebridge.agreement import worst_exit_code
    from tracebridge.checking.result import number_to_json

    return {
        "constants": {
            name: value if isinstance(value, bool) else number_to_json(value) for name, value in point.items()
        },
        "properties": [each.to_dict() for each in findings],
        "exit_code": worst_exit_code([each.agreement.exit_code for each in findings]),
    }
