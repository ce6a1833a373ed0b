"""The whole flow as one function: traces and a property file in; a chain, its PRISM form and verdicts out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tracebridge.agreement import Agreement, compare
from tracebridge.chain import ChainFit, LengthCounts, document_text, fit_chain
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.chain.expanded.naming import VARIABLES
from tracebridge.checking import ENGINE_NAMES, iter_check
from tracebridge.checking.prism_process import find_prism
from tracebridge.checking.run import DEFAULT_ENGINES
from tracebridge.errors import Location, NothingToCheckError, PropertyError, UsageError
from tracebridge.export import format_prism, is_rewritten, rewrite_for_export
from tracebridge.inference import (
    DEFAULT_REPLICATES,
    Certificate,
    PathCounts,
    SecondOpinion,
    certify,
    property_uncertainty,
    second_opinions,
)
from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES
from tracebridge.inference.expanded.advice import advice
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.ladder import Ladder
from tracebridge.inference.expanded.modelling import AUTO, FittedModel, fit_named, is_first_order
from tracebridge.inference.expanded.posterior import FitDraws
from tracebridge.inference.expanded.remembered import require_remembered
from tracebridge.inference.expanded.scope import required_scope
from tracebridge.inference.expanded.standing import standings
from tracebridge.inference.figure_uncertainty import FigureUncertainty, figure_uncertainty
from tracebridge.inference.homogeneity import differing_covariates
from tracebridge.inference.identification import reliability_bounds
from tracebridge.inference.judgement import PLAN_FUTURES, judged, plans_of_undecided
from tracebridge.inference.planning import Plan
from tracebridge.inference.posterior import DEFAULT_DRAWS
from tracebridge.inference.qualitative import is_relative_to_support, qualitative_basis
from tracebridge.inference.robust_guarantee import RobustGuarantee, robust_guarantees
from tracebridge.inference.run_evidence import STANDARD_COVARIATES, count_runs, varying_covariates
from tracebridge.pctl import ast, format_properties, read_properties, resolve_constants
from tracebridge.report import (
    Findings,
    KeyFigures,
    OutputFolder,
    PropertyFinding,
    key_figures,
    marks_of,
    observed_curve,
    results_document,
    summary_markdown,
)
from tracebridge.report.figures import HORIZON_GAP
from tracebridge.resources import packaged
from tracebridge.states.model_form import FIRST_ORDER, parse_model
from tracebridge.traces import Trace, TraceTally, open_traces

#: Told what is being done, so that a caller can show it.
Progress = Callable[[str], None]

#: Fewer replicates could not reject at the level of the certificate.
LEAST_REPLICATES = 19

#: The largest chain that is written as PRISM text; the tools read larger ones too slowly.
MAX_PRISM_STATES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedCorpus:
    """A fit and what was read for it.

    Attributes:
        fit: the fitted chain, of first order.
        corpus: counts of the corpus, its files, and what was skipped, as JSON values.
        traces: the runs once more; every iteration reads the files again, unless they can be read only once.
    """

    fit: ChainFit
    corpus: Mapping[str, Any]
    traces: Iterable[Trace]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assessment:
    """What `assess` found.

    Attributes:
        fitted: the first-order fit and its corpus. findings: everything.
        folder: where the files are, None if nothing was written.
        document: the findings as JSON values, which is also what results.json holds.
    """

    fitted: FittedCorpus
    findings: Findings
    folder: Path | None
    document: Mapping[str, Any]

    @property
    def figures(self) -> KeyFigures | str:
        """Headline numbers, or why there are none."""
        return self.findings.figures

    @property
    def agreements(self) -> tuple[Agreement, ...]:
        """What the engines and the data say, one a property."""
        return tuple(each.agreement for each in self.findings.properties)

    @property
    def certificate(self) -> Certificate | ModelCertificate | str:
        """Whether the runs are those of such a chain, or why that was not tested."""
        return self.findings.certificate

    @property
    def ladder(self) -> Ladder | None:
        """How the form of the chain was found, if that was asked for."""
        return self.findings.ladder

    @property
    def exit_code(self) -> int:
        """The worst over all properties, and 4 for a rejected chain; see the README for the codes."""
        return self.findings.exit_code


def fit_files(
    paths: Sequence[str | Path],
    *,
    trace_format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    outcomes: Sequence[str | Path] | None = None,
    endings: str | Path | None = None,
    skip_bad: bool = False,
    keep: bool = False,
    **fit_options: Any,
) -> FittedCorpus:
    """Read trace files and fit a chain in one pass; see `open_traces` and `fit_chain` for the options.

    Args:
        keep: keep the runs in memory if one of the paths, such as standard input, can be read only once.
    """
    stream = open_traces(
        paths, format=trace_format, mapping=mapping, outcomes=outcomes, endings=endings, skip_bad=skip_bad
    )
    tally = TraceTally()
    kept: list[Trace] | None = [] if keep and any(map(_is_read_once, paths)) else None

    def passing() -> Iterator[Trace]:
        for trace in stream:
            if kept is not None:
                kept.append(trace)
            yield tally.add(trace)

    fit = fit_chain(passing(), **fit_options)
    corpus = {
        **tally.summary().to_dict(),
        "files": [file.to_dict() for file in stream.files],
        "n_skipped": stream.log.n_skipped,
        "problems": [str(problem) for problem in stream.log.listing()],
        "notes": [str(note) for note in stream.log.notes],
    }
    return FittedCorpus(fit=fit, corpus=corpus, traces=stream if kept is None else tuple(kept))


def _is_read_once(path: str | Path) -> bool:
    return str(path) == "-" or (Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir())


def assess(
    paths: Sequence[str | Path],
    properties: str | Path | None = None,
    *,
    output: str | Path | None = None,
    force: bool = False,
    model: str = FIRST_ORDER,
    engines: Sequence[str] = DEFAULT_ENGINES,
    exact: bool = False,
    constants: Mapping[str, Fraction | bool] | None = None,
    time_limit: float | None = None,
    prism: str | Path | None = None,
    seed: int = 0,
    draws: int = DEFAULT_DRAWS,
    resamples: int = DEFAULT_RESAMPLES,
    replicates: int = DEFAULT_REPLICATES,
    covariates: Sequence[str] | None = None,
    futures: int = PLAN_FUTURES,
    robust: float | None = None,
    progress: Progress = lambda message: None,
    **options: Any,
) -> Assessment:
    """Fit, certify, export, check, compare, judge by the data, and report.

    Args:
        paths: trace files, folders or patterns. properties: a property file; the packaged reliability.props by default.
        output: folder for chain.json, model.prism, the property files, results.json and summary.md; nothing is written
            without one. force: also into a non-empty folder that is not ours.
        model: what a state remembers, see `parse_model`; or ``auto``, which climbs the ladder and takes what passes.
        engines, exact, constants, time_limit, prism: see `check`. options: see `fit_files`.
        seed: of everything that is drawn.
        draws: of the posterior, for intervals, P(satisfied | data) and properties with ``credible``. resamples: of the
            bootstrap. replicates: of the certificate. futures: for each number of further runs, for properties that the
            data leave undecided. Each of these can be 0, which turns it off.
        covariates: what the certificate tests runs for differing by; by default task, trial and model, as far as known.
        robust: the level of the conservative guarantee, see `robust_guarantees`; None for none.

    Raises:
        TracebridgeError: as the stages do; nothing is written then.
    """
    effort = _Effort(
        seed=seed,
        draws=draws,
        resamples=resamples,
        replicates=replicates,
        futures=futures,
        covariates=covariates,
        robust=robust,
    )
    file = read_properties(properties if properties is not None else packaged("properties", "reliability.props"))
    if is_rewritten(file):
        raise PropertyError(
            "these properties were rewritten for an exported model; give the ones that they were written from",
            location=Location(path=file.path),
        )
    plain = is_first_order(model)
    resolved = resolve_constants(file, constants or {}, variables=() if plain else VARIABLES)
    if not plain:
        require_remembered(resolved, None if model == AUTO else parse_model(model))
    if not resolved.properties:
        raise NothingToCheckError(f"{file.path} holds no property")
    folder = (
        None if output is None else OutputFolder(output, marker="results.json", kind="tracebridge-results", force=force)
    )
    progress("reading traces and fitting the chain")
    fitted = fit_files(paths, propositions=propositions_of(resolved), keep=True, **options)
    richer = None
    if not plain:
        richer = fit_named(fitted.fit, fitted.traces, model, replicates=replicates, seed=seed, progress=progress)
    fit = fitted.fit if richer is None else richer.fit
    agreements = _checked(fit, resolved, engines, exact=exact, time_limit=time_limit, prism=prism, progress=progress)
    versions = {ENGINE_NAMES[name]: engine_version(name, prism=prism) for name in engines}
    findings = _judged(fitted, richer, resolved, agreements, effort, engines=versions, exact=exact, progress=progress)
    texts = _texts(fit, file, resolved)
    texts["summary.md"] = summary_markdown(findings)
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(texts.items())}
    document = results_document(findings, files=hashes)
    if folder is not None:
        for name, text in texts.items():
            folder.write(name, text)
        folder.write_json("results.json", document)
    return Assessment(
        fitted=fitted, findings=findings, folder=None if folder is None else folder.path, document=document
    )


def _checked(
    fit: ChainFit | ExpandedFit,
    file: ast.PropertyFile,
    engines: Sequence[str],
    *,
    exact: bool,
    time_limit: float | None,
    prism: str | Path | None,
    progress: Progress,
) -> list[Agreement]:
    """What the engines say, property by property."""
    results = []
    for result in iter_check(fit, file, engines=engines, exact=exact, time_limit=time_limit, prism=prism):
        progress(f"{result.engine}: {result.property.name or result.property.text}")
        results.append(result)
    return compare(results)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Effort:
    """How much is drawn, and from which seed; see `assess`.

    Raises:
        UsageError: for a negative number, or too few replicates.
    """

    seed: int
    draws: int
    resamples: int
    replicates: int
    futures: int
    covariates: Sequence[str] | None
    robust: float | None

    def __post_init__(self) -> None:
        if min(self.seed, self.draws, self.resamples, self.replicates, self.futures) < 0:
            raise UsageError("a seed and numbers of draws, resamples, replicates and futures are not negative")
        if 0 < self.replicates < LEAST_REPLICATES:
            raise UsageError(
                f"a certificate takes at least {LEAST_REPLICATES} replicates, or 0 for none, not {self.replicates}"
            )


def _judged(
    fitted: FittedCorpus,
    richer: FittedModel | None,
    file: ast.PropertyFile,
    agreements: list[Agreement],
    effort: _Effort,
    *,
    engines: Mapping[str, str],
    exact: bool,
    progress: Progress,
) -> Findings:
    """What the runs say about the chain, about each property and about each headline number."""
    base, seed = fitted.fit, effort.seed
    fit = base if richer is None else richer.fit
    notes: list[str] = []
    source = FitDraws.of_fit(fit)
    if effort.draws:
        progress(f"{source.number(effort.draws)} draws of the posterior")
        agreements = judged(agreements, property_uncertainty(fit, file, draws=effort.draws, seed=seed, source=source))
    else:
        notes.append("no posterior was drawn: there are no intervals, and properties with credible stay undecided")
    progress("counting runs")
    runs, counted_paths = count_runs(base, fitted.traces, effort.covariates or STANDARD_COVARIATES)
    lengths = LengthCounts.from_lengths(runs.lengths, runs.outcomes)
    covariates: Mapping[str, float] = {}
    if richer is not None and effort.replicates:
        progress("do runs differ by a covariate?")
        asked = effort.covariates or varying_covariates(counted_paths)
        covariates = differing_covariates(counted_paths, asked, replicates=effort.replicates, seed=seed)
    drawn = runs if effort.resamples and fit.weighted is None else None
    opinions: list[SecondOpinion | None] = [None] * len(agreements)
    if effort.resamples:
        progress(f"{effort.resamples} resamples of the runs")
        opinions = [*second_opinions(fit, file, runs=drawn, resamples=effort.resamples, seed=seed)]
        if drawn is None:
            notes.append("no bootstrap: runs with weights are not drawn again, their sampling design is not known")
    ladder = None if richer is None else richer.ladder
    certificate: Certificate | ModelCertificate | str
    if richer is None:
        progress(f"certificate: {effort.replicates} replicates")
        certificate = _certificate(base, counted_paths, effort)
    else:
        certificate = richer.certificate
    plans: Sequence[Plan | None] = [None] * len(agreements)
    if isinstance(fit, ChainFit):
        progress("planning")
        plans = plans_of_undecided(fit, file, agreements, futures=effort.futures, seed=seed)
    guarantees: Sequence[RobustGuarantee | None] = [None] * len(agreements)
    if effort.robust is not None:
        guarantees = robust_guarantees(fit, [each.property for each in agreements], level=effort.robust)
    properties = []
    standing_of = standings(certificate if ladder is None else ladder)
    for agreement, opinion, plan, guarantee in zip(agreements, opinions, plans, guarantees, strict=True):
        formula = agreement.property.formula
        basis = qualitative_basis(base, formula) if is_relative_to_support(base) else ()
        standing = standing_of[required_scope(formula)]
        marks = marks_of(basis, standing.mark)
        properties.append(
            PropertyFinding(
                agreement=agreement,
                standing=standing,
                marks=marks,
                opinion=opinion,
                plan=plan,
                basis=basis,
                guarantee=guarantee,
            )
        )
    if isinstance(fit, ExpandedFit) and fit.form.classes > 1:
        powers = [each.agreement.property for each in properties if _takes_a_power(each.agreement.property.formula)]
        if powers:
            names = ", ".join(each.name or each.text for each in powers)
            notes.append(
                f"{names}: pow of a probability takes trials as independent, and here trials of a task share its "
                "class; the table of pass^k in the summary, and the property below it, do not"
            )
    figures = key_figures(fit.chain)
    budgets = [] if isinstance(figures, str) else list(figures.curve)
    uncertainty: Mapping[str, FigureUncertainty] = {}
    if effort.draws and not isinstance(figures, str):
        progress("intervals of the headline numbers")
        uncertainty = figure_uncertainty(
            fit,
            budgets,
            runs=drawn,
            draws=effort.draws,
            resamples=effort.resamples,
            seed=seed,
            horizon_gap=HORIZON_GAP,
            source=source,
        )
    return Findings(
        corpus=fitted.corpus,
        fit=fit,
        figures=figures,
        figure_uncertainty=uncertainty,
        properties=tuple(properties),
        engines=engines,
        exact=exact,
        certificate=certificate,
        ladder=ladder,
        observed=observed_curve(fit, lengths, budgets),
        bounds=reliability_bounds(lengths.under(fit.policy)),
        advice=advice(certificate, covariates) if isinstance(certificate, ModelCertificate) else (),
        notes=tuple(notes),
    )


def _takes_a_power(formula: ast.Formula) -> bool:
    """Whether a property raises a probability to a power, as pass^k of independent trials does."""
    return any(
        isinstance(node, ast.Call)
        and node.function == "pow"
        and any(isinstance(part, ast.Probability) for part in ast.walk(node.arguments[0]))
        for node in ast.walk(formula)
    )


def _certificate(fit: ChainFit, paths: PathCounts, effort: _Effort) -> Certificate | str:
    """Whether the runs are those of a first-order chain, or why that is not tested."""
    if not effort.replicates:
        return "no replicates were asked for"
    tested = effort.covariates or varying_covariates(paths)
    try:
        return certify(fit, paths, covariates=tested, replicates=effort.replicates, seed=effort.seed)
    except NothingToCheckError as error:
        return str(error)


def _texts(fit: ChainFit | ExpandedFit, file: ast.PropertyFile, resolved: ast.PropertyFile) -> dict[str, str]:
    """The files of the chain and its properties: name to text."""
    texts = {"chain.json": document_text(fit.to_dict()), "properties.source.props": format_properties(file)}
    if fit.chain.n_states <= MAX_PRISM_STATES:
        texts["model.prism"] = format_prism(fit.chain)
        texts["properties.props"] = format_properties(rewrite_for_export(resolved, fit.chain), target="prism")
    return texts


def propositions_of(file: ast.PropertyFile) -> list[str]:
    """The labels that the properties name, sorted: what must be constant on every state."""
    labels = {node.name for item in file.properties for node in ast.walk(item.formula) if isinstance(node, ast.Label)}
    return sorted(labels)


def engine_version(name: str, *, prism: str | Path | None = None) -> str:
    """The version of an engine, as reports show it.

    Args:
        prism: see `check`.
    """
    from importlib.metadata import PackageNotFoundError, version

    from tracebridge.version import __version__

    if name == "closed-form":
        return __version__
    if name == "prism":
        executable = find_prism(prism)
        return "missing" if executable is None else executable.version() or "unknown"
    try:
        return version("stormpy")
    except PackageNotFoundError:
        return "missing"
