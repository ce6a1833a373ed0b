"""The whole flow as one function: traces and a property file in; a chain, its PRISM form and verdicts out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tracebridge.agreement import Agreement
from tracebridge.chain import ChainFit, document_text, fit_chain
from tracebridge.chain.expanded.naming import VARIABLES
from tracebridge.chain.fit_corpus import fit_features
from tracebridge.checking import ENGINE_NAMES
from tracebridge.checking.run import DEFAULT_ENGINES
from tracebridge.errors import Location, ModelError, NothingToCheckError, PropertyError, UsageError
from tracebridge.export import is_rewritten
from tracebridge.inference import DEFAULT_REPLICATES, Certificate
from tracebridge.inference.bootstrap import DEFAULT_RESAMPLES
from tracebridge.inference.expanded.certificate import ModelCertificate
from tracebridge.inference.expanded.ladder import Ladder
from tracebridge.inference.expanded.modelling import AUTO, fit_named, is_first_order
from tracebridge.inference.expanded.remembered import require_remembered
from tracebridge.inference.judgement import PLAN_FUTURES
from tracebridge.inference.posterior import DEFAULT_DRAWS
from tracebridge.pctl import ast, parse_properties, resolve_constants
from tracebridge.pctl.parser import read_property_text
from tracebridge.report import Findings, KeyFigures, OutputFolder, results_document, summary_markdown
from tracebridge.report.chain_files import chain_files, text_hashes
from tracebridge.report.command import command_document, fit_arguments
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import (
    BESIDE_CORPUS,
    RENDERED,
    constants_to_json,
    corpus_inputs,
    evidence_document,
    input_document,
)
from tracebridge.report.evidence_reading import read_evidence
from tracebridge.report.judging import ask_engines, judge_chain
from tracebridge.report.replay import Difference, Replay, Runs, inconsistencies, replay_evidence
from tracebridge.report.run_findings import Effort, find_in_runs
from tracebridge.report.tool import engine_version, tool_document
from tracebridge.resources import packaged
from tracebridge.sharding import OnProgress, ShardOptions, read_shards
from tracebridge.states import StateMap, TextCorpus, read_state_map
from tracebridge.states.grouping import text_choice
from tracebridge.states.model_form import FIRST_ORDER, parse_model
from tracebridge.traces import Trace, TraceStream, TraceTally, is_read_once, open_traces

#: Told what is being done, so that a caller can show it.
Progress = Callable[[str], None]


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


def fit_files(
    paths: Sequence[str | Path],
    *,
    trace_format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    outcomes: Sequence[str | Path] | None = None,
    endings: str | Path | None = None,
    skip_bad: bool = False,
    keep: bool = False,
    jobs: int | None = None,
    manifest: str | Path | None = None,
    on_progress: OnProgress = lambda progress: None,
    **fit_options: Any,
) -> FittedCorpus:
    """Read trace files and fit a chain in one pass; see `open_traces` and `fit_chain` for the options.

    Files are read as shards, by as many processes as there are jobs, and the result is the same for any number. Where
    states, weights or texts depend on a function of the user, or weights come with states by a map or by texts, this
    process reads all files in one pass instead.

    Args:
        keep: the runs are wanted afterwards: where their states come from rule-based features they are kept in a
            temporary file, without what their steps say; otherwise the files are read once more for them, and those
            that can be read only once, such as standard input, are kept in memory.
        jobs, manifest, on_progress: see `read_shards`.
    """
    reading = {"format": trace_format, "mapping": mapping, "outcomes": outcomes, "endings": endings}
    stream = open_traces(paths, skip_bad=skip_bad, **reading)  # type: ignore[arg-type]
    states, weight = fit_options.get("states"), fit_options.get("weight")
    if isinstance(states, str | Path):
        fit_options["states"] = states = read_state_map(states)
    texts = text_choice(fit_options.get("text_features"))
    plain = states is None and texts is None
    of_functions = callable(states) or callable(weight) or (texts is not None and texts.encoder is not None)
    both = states is not None and texts is not None  # which is refused there
    read_twice = keep and not plain and any(map(is_read_once, paths))
    if of_functions or both or (weight is not None and not plain) or read_twice:
        return _fit_in_one_pass(paths, stream, keep=keep, **fit_options)
    options = ShardOptions.of(
        **reading,  # type: ignore[arg-type]
        runs=plain and (keep or weight is not None),
        state_map=states if isinstance(states, StateMap) else None,
        texts=texts is not None,
    )
    shards = read_shards(paths, options, jobs=jobs, manifest=manifest, on_progress=on_progress)
    shards.require_usable(skip_bad=skip_bad)
    if weight is not None and shards.runs is not None:
        fit = fit_chain(shards.runs, **fit_options)
    else:
        others = {name: value for name, value in fit_options.items() if name not in ("weight", "text_features")}
        corpus_of_texts = None
        if texts is not None and shards.texts is not None:
            corpus_of_texts = TextCorpus(texts)
            corpus_of_texts.update(shards.texts)
        fit = fit_features(shards.features.counts(), texts=corpus_of_texts, **others)
    corpus = {**shards.tally.summary().to_dict(), **shards.document()}
    return FittedCorpus(fit=fit, corpus=corpus, traces=stream if shards.runs is None else shards.runs)


def _fit_in_one_pass(
    paths: Sequence[str | Path], stream: TraceStream, *, keep: bool, **fit_options: Any
) -> FittedCorpus:
    tally = TraceTally()
    kept: list[Trace] | None = [] if keep and any(map(is_read_once, paths)) else None

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
        "endings": stream.endings.to_dict(),
    }
    return FittedCorpus(fit=fit, corpus=corpus, traces=stream if kept is None else tuple(kept))


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


def propositions_of(file: ast.PropertyFile) -> list[str]:
    """The labels that the properties name, sorted: what must be constant on every state."""
    labels = {node.name for item in file.properties for node in ast.walk(item.formula) if isinstance(node, ast.Label)}
    return sorted(labels)


def replay(
    path: str | Path,
    traces: Sequence[str | Path] | None = None,
    *,
    outcomes: Sequence[str | Path] | None = None,
    endings: str | Path | None = None,
    prism: str | Path | None = None,
    progress: Progress = lambda message: None,
) -> Replay:
    """Check an evidence file and compute every number in it again, as far as it can be.

    The digest, the files beside it and what stands twice are looked at first. From the recorded counts come the fit,
    every property by every engine that is here, posterior intervals and headline numbers; the traces give the rest.

    Args:
        path: of evidence.json. traces: the files that it was made of. outcomes, endings: likewise; see `fit_files`.
        prism: see `check`.

    Raises:
        ModelError: the file is no evidence. UsageError: an option that takes the traces, without them, or one of
            Python's own functions, which the evidence cannot give back. TraceError: as `fit_files` does.
    """
    evidence = read_evidence(path)
    place = Path(path)
    found: tuple[Difference, ...] = ()
    runs = None
    if traces is not None:
        found = _other_inputs(evidence, traces, outcomes, endings)
        if not found:
            try:
                runs = _runs_again(evidence, traces, outcomes, endings, progress=progress)
            except ModelError:  # counts of which no fit can be made are told of below
                pass
            except UsageError:
                if not any(each.path.startswith("command.options") for each in inconsistencies(evidence)):
                    raise  # and else so is the option that is wrong
    elif outcomes or endings:
        raise UsageError("outcomes and endings are about traces: give these too")
    return replay_evidence(
        evidence, folder=place.parent, name=place.name, runs=runs, differences=found, prism=prism, progress=progress
    )


def _other_inputs(
    evidence: Evidence,
    traces: Sequence[str | Path],
    outcomes: Sequence[str | Path] | None,
    endings: str | Path | None,
) -> tuple[Difference, ...]:
    """What of the files is not what was read, by their hashes; their names do not matter."""
    options = evidence.options
    stream = open_traces(
        traces,
        format=options["trace_format"],
        mapping=options["mapping"],
        outcomes=outcomes,
        endings=endings,
        skip_bad=options["skip_bad"],
    )
    for _ in stream:
        pass
    recorded = [each["sha256"] for each in evidence.document["inputs"] if each["role"] not in BESIDE_CORPUS]
    found = [file.sha256 for file in stream.files]
    if recorded == found:
        return ()
    names = [file.path for file in stream.files if file.sha256 not in recorded]
    missing = [each["name"] for each in evidence.document["inputs"] if each["sha256"] in set(recorded) - set(found)]
    message = "the files given are not those that were read"
    message += f"; others are {', '.join(names)}" if names else ""
    message += f"; missing are {', '.join(map(str, missing))}" if missing else ""
    message += "; they are in another order" if not names and not missing else ""
    message += "; nothing was computed from them"
    return (Difference(path="inputs", kind="input", recorded=recorded, found=found, message=message),)


def _runs_again(
    evidence: Evidence,
    traces: Sequence[str | Path],
    outcomes: Sequence[str | Path] | None,
    endings: str | Path | None,
    *,
    progress: Progress,
) -> Runs:
    """What the traces say, by the recorded options."""
    options = evidence.options
    arguments, missing = fit_arguments(evidence.document["command"], evidence.base)
    lost = [name for name in missing if name not in ("outcomes", "endings")]
    if lost:
        raise UsageError(f"the evidence cannot give back {', '.join(lost)}, a function of Python's; leave traces out")
    progress("reading traces and fitting the chain")
    fitted = fit_files(
        traces,
        propositions=propositions_of(evidence.resolved),
        keep=True,
        outcomes=outcomes,
        endings=endings,
        **arguments,
    )
    effort = Effort(**{name: options[name] for name in Effort.__dataclass_fields__})
    richer = None
    if not is_first_order(options["model"]):
        named: dict[str, Any] = {"replicates": effort.replicates, "seed": effort.seed, "progress": progress}
        richer = fit_named(fitted.fit, fitted.traces, options["model"], **named)
    corpus = {**fitted.corpus, "files": _with_recorded_names(evidence, fitted.corpus["files"])}
    findings = find_in_runs(fitted.fit, fitted.traces, richer, effort, progress=progress)
    return Runs(fit=fitted.fit if richer is None else richer.fit, findings=findings, corpus=corpus)


def _with_recorded_names(evidence: Evidence, files: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The files by the names that they had: those with the same bytes are the same files."""
    names = {each["sha256"]: each["name"] for each in evidence.document["inputs"]}
    return [{**file, "path": names.get(file["sha256"], file["path"])} for file in files]
