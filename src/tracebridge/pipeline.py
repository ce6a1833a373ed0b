"""The whole flow as one function: traces and a property file in; a chain, its PRISM form and verdicts out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import Agreement, compare, worst_exit_code
from tracebridge.chain import ChainFit, document_text, fit_chain
from tracebridge.checking import ENGINE_NAMES, iter_check
from tracebridge.errors import Location, NothingToCheckError, PropertyError
from tracebridge.export import format_prism, is_rewritten, rewrite_for_export
from tracebridge.pctl import ast, format_properties, read_properties, resolve_constants
from tracebridge.report import OutputFolder, key_figures, results_document, summary_markdown
from tracebridge.resources import packaged
from tracebridge.traces import TraceTally, open_traces

if TYPE_CHECKING:
    from tracebridge.report import KeyFigures

#: Told what is being done, so that a caller can show it.
Progress = Callable[[str], None]

#: The largest chain that is written as PRISM text; the tools read larger ones too slowly.
MAX_PRISM_STATES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FittedCorpus:
    """A fit and what was read for it.

    Attributes:
        fit: the fitted chain. corpus: counts of the corpus, its files, and what was skipped, as JSON values.
    """

    fit: ChainFit
    corpus: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assessment:
    """What `assess` found.

    Attributes:
        fitted: the fit and its corpus. agreements: one a property. figures: headline numbers, or why there are none.
        engines: engine name to version. folder: where the files are, None if nothing was written.
        document: the same as JSON values, which is also what results.json holds.
    """

    fitted: FittedCorpus
    agreements: tuple[Agreement, ...]
    figures: KeyFigures | str
    engines: Mapping[str, str]
    folder: Path | None
    document: Mapping[str, Any]

    @property
    def exit_code(self) -> int:
        """The worst over all properties; see the README for the codes."""
        return worst_exit_code([agreement.exit_code for agreement in self.agreements])


def fit_files(
    paths: Sequence[str | Path],
    *,
    trace_format: str | None = None,
    mapping: Mapping[str, str] | None = None,
    skip_bad: bool = False,
    **fit_options: Any,
) -> FittedCorpus:
    """Read trace files and fit a chain in one pass; see `open_traces` and `fit_chain` for the options."""
    stream = open_traces(paths, format=trace_format, mapping=mapping, skip_bad=skip_bad)
    tally = TraceTally()
    fit = fit_chain((tally.add(trace) for trace in stream), **fit_options)
    corpus = {
        **tally.summary().to_dict(),
        "files": [file.to_dict() for file in stream.files],
        "n_skipped": stream.log.n_skipped,
        "problems": [str(problem) for problem in stream.log.listing()],
        "notes": [str(note) for note in stream.log.notes],
    }
    return FittedCorpus(fit=fit, corpus=corpus)


def assess(
    paths: Sequence[str | Path],
    properties: str | Path | None = None,
    *,
    output: str | Path | None = None,
    force: bool = False,
    engines: Sequence[str] = ("closed-form", "storm"),
    exact: bool = False,
    constants: Mapping[str, Fraction | bool] | None = None,
    time_limit: float | None = None,
    progress: Progress = lambda message: None,
    **options: Any,
) -> Assessment:
    """Fit, export, check, compare and report.

    Args:
        paths: trace files, folders or patterns. properties: a property file; the packaged reliability.props by default.
        output: folder for chain.json, model.prism, the property files, results.json and summary.md; nothing is written
            without one. force: also into a non-empty folder that is not ours.
        engines, exact, constants, time_limit: see `check`. options: see `fit_files`.

    Raises:
        TracebridgeError: as the stages do; nothing is written then.
    """
    file = read_properties(properties if properties is not None else packaged("properties", "reliability.props"))
    if is_rewritten(file):
        raise PropertyError(
            "these properties were rewritten for an exported model; give the ones that they were written from",
            location=Location(path=file.path),
        )
    resolved = resolve_constants(file, constants or {})
    if not resolved.properties:
        raise NothingToCheckError(f"{file.path} holds no property")
    folder = (
        None if output is None else OutputFolder(output, marker="results.json", kind="tracebridge-results", force=force)
    )
    progress("reading traces and fitting the chain")
    fitted = fit_files(paths, propositions=propositions_of(resolved), **options)
    chain = fitted.fit.chain
    figures = key_figures(chain)
    results = []
    for result in iter_check(chain, resolved, engines=engines, exact=exact, time_limit=time_limit):
        progress(f"{result.engine}: {result.property.name or result.property.text}")
        results.append(result)
    shared: dict[str, Any] = {
        "corpus": fitted.corpus,
        "fit": fitted.fit,
        "figures": figures,
        "agreements": tuple(compare(results)),
        "engines": {ENGINE_NAMES[name]: engine_version(name) for name in engines},
        "exact": exact,
    }
    texts = _texts(fitted.fit, file, resolved)
    texts["summary.md"] = summary_markdown(**shared)
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(texts.items())}
    document = results_document(**shared, files=hashes)
    if folder is not None:
        for name, text in texts.items():
            folder.write(name, text)
        folder.write_json("results.json", document)
    return Assessment(
        fitted=fitted,
        agreements=shared["agreements"],
        figures=figures,
        engines=shared["engines"],
        folder=None if folder is None else folder.path,
        document=document,
    )


def _texts(fit: ChainFit, file: ast.PropertyFile, resolved: ast.PropertyFile) -> dict[str, str]:
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


def engine_version(name: str) -> str:
    """The version of an engine, as reports show it."""
    from importlib.metadata import PackageNotFoundError, version

    from tracebridge.version import __version__

    if ENGINE_NAMES[name] == ENGINE_NAMES["closed-form"]:
        return __version__
    try:
        return version("stormpy")
    except PackageNotFoundError:
        return "missing"
