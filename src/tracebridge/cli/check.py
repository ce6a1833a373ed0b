"""``tracebridge check``: properties on any model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

import click

from tracebridge.cli.console import emit, progress_line, say
from tracebridge.cli.gate_files import gate_files, write_gate_files
from tracebridge.cli.guarantee import guaranteeing, print_guarantees
from tracebridge.cli.help_sections import Verb
from tracebridge.cli.named_properties import named_properties
from tracebridge.cli.options import PATH, checking, common, judging
from tracebridge.version import __version__

if TYPE_CHECKING:
    from tracebridge.agreement import Agreement
    from tracebridge.chain import ChainFit
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.checking.models import Model
    from tracebridge.inference.expanded.posterior import FitDraws
    from tracebridge.inference.expanded.scope import Scope
    from tracebridge.inference.expanded.standing import Standing
    from tracebridge.inference.planning import Plan
    from tracebridge.inference.qualitative import QualitativeBasis
    from tracebridge.inference.robust_guarantee import RobustGuarantee
    from tracebridge.inference.uncertainty import KnownDraws
    from tracebridge.pctl import Experiment
    from tracebridge.pctl.ast import PropertyFile
    from tracebridge.report import PropertyFinding
    from tracebridge.report.recorded import RecordedStandings

_NO_CERTIFICATE = (
    "chain.json records no certificate: whether such a chain describes its runs was not tested here "
    "(tracebridge certify TRACES tests it, and so does assess)"
)

_NO_RUNS = "no intervals: its runs were too many for this document, and these intervals draw runs again"

Point = Mapping[str, Fraction | bool]


@click.command(
    cls=Verb,
    epilog="\b\nExamples: a file; one property; a file in rationals at three budgets, for a CI system\n"
    "  tracebridge check chain.json my.props\n"
    "  tracebridge check chain.json 'P=? [ F<=8 \"success\" ]'\n"
    "  tracebridge check chain.json my.props --exact --const d=4:2:8 --junit check.xml",
)
@click.argument("model", type=PATH)
@click.argument("properties", type=PATH)
@checking
@judging
@guaranteeing
@gate_files
@common
def check(
    model: str,
    properties: str,
    engines: tuple[str, ...],
    prism: str | None,
    exact: bool,
    constants: tuple[str, ...],
    time_limit: float | None,
    draws: int,
    futures: int,
    robust: float | None,
    junit: str | None,
    undecided: Literal["fail", "skip"],
    summary: str | None,
    as_json: bool,
    seed: int,
) -> int:
    """Check PROPERTIES, a file or the text of one, on MODEL with every engine and compare them.

    MODEL is a chain.json, a PRISM program, or a file that export writes. --const gives values to constants of the
    property file, and to undefined constants of a PRISM model. --const d=1:50, or d=1:5:50 with a step, is an
    experiment: every property is checked for every value, and for every combination where several constants vary.

    For a fitted chain every number has the interval that its runs leave, every property the share of the posterior in
    which it holds, and properties with `//@ credible 0.95` are decided by that. The verdict of the certificate that
    assess recorded in a results.json beside that very file stands beside every property.
    """
    from tracebridge.agreement import worst_exit_code
    from tracebridge.checking import ENGINE_NAMES, default_engines
    from tracebridge.cli.verdicts import ExperimentTable, print_findings
    from tracebridge.pctl import Experiment
    from tracebridge.report.recorded import recorded_standings
    from tracebridge.report.tool import engine_version

    if model == properties == "-":
        raise click.UsageError("only one of MODEL and PROPERTIES can be standard input")
    if as_json and summary == "-":
        raise click.UsageError("with --json standard output carries that document alone; give --summary a file")
    documented = as_json or junit is not None or summary is not None
    names = engines or default_engines(prism)
    file = named_properties(properties)
    experiment = Experiment.parse(part for text in constants for part in text.split(","))
    recorded = None if model == "-" else recorded_standings(model)
    standings = None if recorded is None else recorded.standings
    data = _Data(
        draws=draws, futures=0 if experiment.varying else futures, seed=seed, robust=robust, standings=standings or {}
    )
    note = _certificate_note(recorded)
    points = _points(
        model, file, experiment, data, note, engines=names, prism=prism, exact=exact, time_limit=time_limit
    )
    shown: dict[str, Any] = {}
    if experiment.varying:
        table = ExperimentTable(experiment.varying)
        documents = []
        for point, findings in points:
            table.add(point, findings)
            if documented:
                documents.append(_point_document(point, findings))
        codes = table.exit_codes
        shown = {"varying": list(experiment.varying), "points": documents}
        if not as_json:
            table.print()
            if robust is not None:
                say("note: the guarantee at each point is in the document that --json writes")
    else:
        ((_, findings),) = points
        codes = [each.agreement.exit_code for each in findings]
        if documented:
            shown = {"properties": [each.to_dict() for each in findings]}
        if not as_json:
            print_findings(findings)
            print_guarantees(findings)
    code = worst_exit_code(codes)
    if documented:
        tool = {
            "name": "tracebridge",
            "version": __version__,
            "engines": {ENGINE_NAMES[name]: engine_version(name, prism=prism) for name in names},
        }
        kind = "tracebridge-experiment" if experiment.varying else "tracebridge-check"
        head = {"kind": kind, "schema_version": 1, "tool": tool, "model": model, "exact": exact}
        certificate = None if recorded is None or not recorded.standings else recorded.to_dict()
        document = {**head, **shown, "certificate": certificate, "exit_code": code}
        write_gate_files(document, junit=junit, undecided=undecided, summary=summary)
        if as_json:
            emit(document)
    return code


def _points(
    model: str,
    file: PropertyFile,
    experiment: Experiment,
    data: _Data,
    about_certificate: str,
    *,
    engines: tuple[str, ...],
    prism: str | None,
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
            notes = [] if of_model.varying else _notes(read, about_certificate)
            described = model_for(read, file)
            results = iter_points(
                read.fitted if read.fitted is not None and described is read.described else described,
                file,
                of_file.points(),
                engines=engines,
                exact=exact,
                time_limit=time_limit,
                prism=prism,
            )
            agreements: list[Agreement] = []
            while group := list(islice(results, len(engines))):  # one property at one point
                while notes:  # which would stand in the way of what is wrong with the properties
                    say(f"note: {notes.pop(0)}")
                point, result = group[-1]
                progress(f"{result.engine}: {result.property.name or result.property.text}")
                agreements.append(compare_property([result for _, result in group]))
                if len(agreements) == len(file.properties):
                    yield (
                        {**model_point, **point},
                        data.judge(read.fitted, file, point, agreements, progress),
                    )
                    agreements = []


def _notes(read: Model, about_certificate: str) -> list[str]:
    """What to know about the model beside its numbers."""
    notes = [*read.notes]
    if read.fitted is not None:
        notes.append(about_certificate)
    if read.expanded is not None and read.expanded.paths is None:
        notes.append(_NO_RUNS)
    return notes


def _certificate_note(recorded: RecordedStandings | None) -> str:
    """What is known about a certificate of a fitted chain."""
    if recorded is None:
        return _NO_CERTIFICATE
    if recorded.standings is None:
        return f"{_NO_CERTIFICATE}; {recorded.path} beside it is about another chain.json"
    verdicts = {scope: each.verdict for scope, each in recorded.standings.items()}
    parts = [f"{verdict} for {scope}" for scope, verdict in verdicts.items()]
    if len(set(verdicts.values())) == 1:
        parts = [str(verdicts["path"])]
    open_ = [each for each in recorded.standings.values() if each.verdict != "accept"]
    reasons = "; ".join(dict.fromkeys(reason for each in open_ for reason in each.reasons))
    summary = recorded.path.with_name("summary.md")
    why = f" ({reasons})" if reasons else ""
    return f"certificate, as {recorded.path} records it: {', '.join(parts)}{why}; {summary} says more"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Data:
    """What is asked of the data behind a model, and what was recorded of its certificate."""

    draws: int
    futures: int
    seed: int
    robust: float | None
    standings: Mapping[Scope, Standing]
    known: KnownDraws = field(default_factory=dict)
    sources: list[FitDraws] = field(default_factory=list)  # that of the fit, made when it is first asked for

    def judge(
        self,
        fit: ChainFit | ExpandedFit | None,
        file: PropertyFile,
        constants: Point,
        agreements: list[Agreement],
        progress: Callable[[str], None],
    ) -> list[PropertyFinding]:
        """The agreements with what the data say; as they are for a model without counts."""
        from tracebridge.chain.expanded.fit import ExpandedFit
        from tracebridge.inference import property_uncertainty
        from tracebridge.inference.expanded.posterior import FitDraws
        from tracebridge.inference.expanded.scope import required_scope
        from tracebridge.inference.judgement import judged, plans_of_undecided
        from tracebridge.inference.qualitative import is_relative_to_support, qualitative_basis
        from tracebridge.inference.robust_guarantee import robust_guarantees
        from tracebridge.report import PropertyFinding, marks_of
        from tracebridge.report.findings import end_was_seen, without_an_end

        if fit is None:
            if self.robust is not None:
                say("note: no guarantee: this model has no counts of runs behind it")
            return [PropertyFinding(agreement=agreement) for agreement in agreements]
        if self.draws and not (isinstance(fit, ExpandedFit) and fit.paths is None):
            progress(f"{self.draws} draws of the posterior")
            if not self.sources:
                self.sources.append(FitDraws.of_fit(fit))
            found = property_uncertainty(
                fit,
                file,
                draws=self.draws,
                seed=self.seed,
                constants=constants,
                known=self.known,
                source=self.sources[0],
            )
            agreements = judged(agreements, found)
        plans: Sequence[Plan | None] = [None] * len(agreements)
        if not isinstance(fit, ExpandedFit):
            resolved = replace(file, properties=tuple(agreement.property for agreement in agreements))
            plans = plans_of_undecided(fit, resolved, agreements, futures=self.futures, seed=self.seed)
        findings = []
        guarantees: Sequence[RobustGuarantee | None] = [None] * len(agreements)
        if self.robust is not None:
            guarantees = robust_guarantees(fit, [each.property for each in agreements], level=self.robust)
        for agreement, plan, guarantee in zip(agreements, plans, guarantees, strict=True):
            formula = agreement.property.formula
            basis: tuple[QualitativeBasis, ...] = ()
            if not isinstance(fit, ExpandedFit) and is_relative_to_support(fit):
                basis = qualitative_basis(fit, formula)
            standing = self.standings.get(required_scope(formula))
            marks = marks_of(basis, None if standing is None else standing.mark)
            findings.append(
                PropertyFinding(
                    agreement=agreement, standing=standing, marks=marks, plan=plan, basis=basis, guarantee=guarantee
                )
            )
        return findings if end_was_seen(fit) else [without_an_end(each) for each in findings]


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
