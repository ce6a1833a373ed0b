"""The whole flow: traces and a property file in; a chain, its PRISM form, verdicts and evidence out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tracebridge.agreement import Agreement
from tracebridge.chain import document_text
from tracebridge.chain.expanded.naming import VARIABLES
from tracebridge.checking import ENGINE_NAMES
from tracebridge.checking.run import DEFAULT_ENGINES
from tracebridge.errors import Location, NothingToCheckError, PropertyError
from tracebridge.export import is_rewritten
from tracebridge.inference import DEFAULT_REPLICATES, Certificate
from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.ladder import Ladder
from tracebridge.inference.expanded.modelling import AUTO, fit_named, is_first_order
from tracebridge.inference.expanded.remembered import require_remembered
from tracebridge.inference.judgement import PLAN_FUTURES
from tracebridge.inference.posterior import DEFAULT_DRAWS
from tracebridge.pctl import parse_properties, resolve_constants
from tracebridge.pctl.parser import read_property_text
from tracebridge.pipeline.fitting import FittedCorpus, fit_files, propositions_of
from tracebridge.report import Findings, KeyFigures, OutputFolder, results_document, summary_markdown
from tracebridge.report.chain_files import chain_files, text_hashes
from tracebridge.report.command import command_document
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import (
    RENDERED,
    constants_to_json,
    corpus_inputs,
    evidence_document,
    input_document,
)
from tracebridge.report.judging import ask_engines, judge_chain
from tracebridge.report.run_findings import Effort, find_in_runs
from tracebridge.report.tool import engine_version, tool_document
from tracebridge.resources import packaged
from tracebridge.states.model_form import FIRST_ORDER, parse_model

#: Told what is being done, so that a caller can show it.
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assessment:
    """What `assess` found.

    Attributes:
        fitted: the first-order fit and its corpus. findings: everything.
        folder: where the files are, None if nothing was written.
        document: the findings as JSON values, which is also what results.json holds.
        evidence: these with the chain and all that is needed to find them again, which is what evidence.json holds.
    """

    fitted: FittedCorpus
    findings: Findings
    folder: Path | None
    document: Mapping[str, Any]
    evidence: Evidence

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

    def to_records(self) -> list[dict[str, Any]]:
        """One record a property; see `Evidence.to_records`."""
        return self.evidence.to_records()

    def __repr__(self) -> str:
        number = len(self.findings.properties)
        certificate = self.certificate if isinstance(self.certificate, str) else repr(self.certificate)
        noun = "property" if number == 1 else "properties"
        return f"<Assessment of {number} {noun}: exit code {self.exit_code}, {certificate}>"

    def _repr_html_(self) -> str:
        return self.evidence._repr_html_()

    @property
    def ladder(self) -> Ladder | None:
        """How the form of the chain was found, if that was asked for."""
        return self.findings.ladder

    @property
    def exit_code(self) -> int:
        """The worst over all properties, and 4 for a rejected chain; see the README for the codes."""
        return self.findings.exit_code


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
        output: folder for report.html, evidence.json, chain.json, model.prism, the property files, results.json and
            summary.md; nothing is written without one. force: also into a non-empty folder that is not ours.
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
    effort = Effort(
        seed=seed,
        draws=draws,
        resamples=resamples,
        replicates=replicates,
        futures=futures,
        covariates=covariates,
        robust=robust,
    )
    path = properties if properties is not None else packaged("properties", "reliability.props")
    text = read_property_text(path)
    file = parse_properties(text, path="<stdin>" if str(path) == "-" else str(path))
    if is_rewritten(file):
        raise PropertyError(
            "these properties were rewritten for an exported model; give the ones that they were written from",
            location=Location(path=file.path),
        )
    plain = is_first_order(model)
    given = constants or {}
    resolved = resolve_constants(file, given, variables=() if plain else VARIABLES)
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
    settings: dict[str, Any] = {"exact": exact, "time_limit": time_limit}
    agreements = ask_engines(fit, resolved, engines, **settings, prism=prism, progress=progress)
    versions = {ENGINE_NAMES[name]: engine_version(name, prism=prism) for name in engines}
    findings = judge_chain(
        fit,
        resolved,
        agreements,
        find_in_runs(fitted.fit, fitted.traces, richer, effort, progress=progress),
        effort,
        corpus=fitted.corpus,
        engines=versions,
        exact=exact,
        progress=progress,
    )
    texts = chain_files(fit, file, resolved)
    texts["summary.md"] = summary_markdown(findings)
    document = results_document(findings, files=text_hashes(texts))
    texts["results.json"] = document_text(document)
    chosen = {**asdict(effort), "model": model, "engines": list(engines), **settings}
    evidence = Evidence(
        document=evidence_document(
            tool=tool_document(versions),
            command=command_document("assess", chosen, options),
            inputs=[
                *corpus_inputs(fitted.corpus),
                *_state_map_input(options.get("states")),
                input_document("properties", path, text.encode()),
            ],
            fit=fit,
            properties={"source": text, "constants": constants_to_json(given)},
            resolved=resolved,
            results=document,
            files=text_hashes(texts),
        )
    )
    texts["evidence.json"] = document_text(evidence.document)
    if folder is not None:
        for name_of_file, content in texts.items():
            folder.write(name_of_file, content)
        for name_of_file, content in _rendered(evidence).items():
            folder.write(name_of_file, content)
    return Assessment(
        fitted=fitted,
        findings=findings,
        folder=None if folder is None else folder.path,
        document=document,
        evidence=evidence,
    )


def _rendered(evidence: Evidence) -> dict[str, str]:
    """The files that are made of the evidence alone, and can be made of it again: name to text."""
    from tracebridge.report.html import render_html  # its templates are needed nowhere else

    return {RENDERED: render_html(evidence)}


def _state_map_input(states: Any) -> list[dict[str, Any]]:
    """The file of a map of states, which was read for the fit; none for one that Python gave."""
    return [input_document("states", states, Path(states).read_bytes())] if isinstance(states, str | Path) else []
