"""What stands twice in an evidence file, or follows from what else stands there: it must be the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import combinations
from math import inf, isinf, isnan
from typing import Any

from tracebridge.agreement import worst_exit_code
from tracebridge.chain.document import document_text
from tracebridge.checking import ENGINE_NAMES
from tracebridge.checking.result import number_from_json
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import BESIDE_CORPUS, corpus_inputs
from tracebridge.report.replay.account import Difference
from tracebridge.report.replay.recorded_options import recorded_options
from tracebridge.traces.run_dates import RunDates

#: What a contradiction between hashes means.
_MEANING = {
    "files['chain.json']": "the chain in the document is not that of the file",
    "files['results.json']": "the results in the document are not those of the file",
    "inputs: properties": "the properties in the document are not those that were read",
}

_DECIDED = {"satisfied": True, "violated": False}


def inconsistencies(evidence: Evidence) -> Iterator[Difference]:
    """Everything in a document that contradicts something else in it; nothing is computed again for this."""
    for path, recorded, expected in _pairs(evidence):
        for place, one, other in _apart(path, recorded, expected):
            yield Difference(path=place, kind="inconsistent", recorded=one, found=other, message=_MEANING.get(path))
    for i, entry in enumerate(evidence.results["properties"]):
        yield from _of_property(entry, f"results.properties[{i}]")


def _apart(path: str, recorded: Any, expected: Any) -> Iterator[tuple[str, Any, Any]]:
    """The innermost objects' fields in which two values of one shape differ; the values where they have no such."""
    if recorded == expected:
        return
    match recorded, expected:
        case dict(), dict() if recorded.keys() == expected.keys():
            for name, value in recorded.items():
                yield from _apart(f"{path}.{name}", value, expected[name])
        case [dict(), *_], list() if len(recorded) == len(expected):
            for i, pair in enumerate(zip(recorded, expected, strict=True)):
                yield from _apart(f"{path}[{i}]", *pair)
        case _:
            yield path, recorded, expected


def _pairs(evidence: Evidence) -> Iterator[tuple[str, Any, Any]]:
    """Place, what stands there, and what should by another place."""
    document, results, options = evidence.document, evidence.results, evidence.options
    tool, files = document["tool"], document["files"]
    yield "results.tool.version", results["tool"]["version"], tool["version"]
    yield "results.tool.engines", results["tool"]["engines"], tool["engines"]
    yield "command.options.engines", [ENGINE_NAMES.get(name, name) for name in options["engines"]], [*tool["engines"]]
    yield "results.exact", results["exact"], options["exact"]
    yield from _of_fit(evidence)
    yield from recorded_options(evidence)
    for name, sha256 in results["files"].items():
        yield f"results.files[{name!r}]", sha256, files.get(name)
    yield "files['chain.json']", files.get("chain.json"), _sha256(document_text(document["chain"]))
    yield "files['results.json']", files.get("results.json"), _sha256(document_text(results))
    source = document["properties"]["source"]
    given = [each for each in document["inputs"] if each["role"] == "properties"]
    yield "inputs: properties", [each["sha256"] for each in given], [_sha256(source)]
    size = len(source.encode())
    yield (
        "inputs: properties",
        [each.get("bytes", size) for each in given],
        [size],
    )  # earlier versions did not record it
    read = [each for each in document["inputs"] if each["role"] not in BESIDE_CORPUS]
    yield "inputs: files that were read", read, corpus_inputs(results["corpus"])
    yield from _of_corpus(results["corpus"])
    yield from _of_certificate(evidence)
    codes = [_exit_code(entry) for entry in results["properties"]]
    standings = [*results["standings"].values(), *(entry["standing"] for entry in results["properties"])]
    needed = [results["standings"]["timing"], *(entry["standing"] for entry in results["properties"])]
    codes += [4 for standing in needed if standing is not None and standing["verdict"] == "reject"]
    yield "results.exit_code", results["exit_code"], worst_exit_code(codes)
    for i, standing in enumerate(standings):
        if standing is not None:
            scope = standing["scope"]
            where = f"results.standings.{scope}" if i < 2 else f"results.properties[{i - 2}].standing"
            yield where, standing, results["standings"][scope]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _of_fit(evidence: Evidence) -> Iterator[tuple[str, Any, Any]]:
    chain, fit = evidence.document["chain"], evidence.results["fit"]
    base = chain.get("base", {}) if "form" in chain else chain
    yield "results.fit.censored", fit["censored"], base.get("policy")
    yield "results.fit.support", fit["support"], base.get("support")


def _of_corpus(corpus: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    lengths = {int(length): number for length, number in corpus["lengths"].items()}
    n_runs, n_steps = corpus["n_runs"], corpus["n_steps"]
    yield "results.corpus.lengths: runs", sum(lengths.values()), n_runs
    yield "results.corpus.lengths: steps", sum(length * number for length, number in lengths.items()), n_steps
    yield "results.corpus.outcomes: runs", sum(corpus["outcomes"].values()), n_runs
    if lengths and n_runs:
        told = corpus["length"]
        yield "results.corpus.length.min", told["min"], min(lengths)
        yield "results.corpus.length.max", told["max"], max(lengths)
        yield "results.corpus.length.mean", told["mean"], n_steps / n_runs
    named = sum(each["n"] for each in corpus["steps"].values())
    yield "results.corpus.steps", named + corpus["n_other_names_steps"], n_steps
    tasks = {int(runs): number for runs, number in corpus["runs_per_task"].items()}
    yield "results.corpus.runs_per_task: tasks", sum(tasks.values()), corpus["n_tasks"]
    dates = corpus["dates"]
    if None in dates.values() or not dates["n_runs"]:
        yield "results.corpus.dates", dates, RunDates().to_dict()
    else:
        yield "results.corpus.dates.first", dates["first"], min(dates["first"], dates["last"])
        yield "results.corpus.dates.n_runs", dates["n_runs"], min(dates["n_runs"], n_runs)
    runs = sum(each * number for each, number in tasks.items())
    yield "results.corpus.runs_per_task: runs", runs + corpus["n_without_task"], n_runs


def _of_certificate(evidence: Evidence) -> Iterator[tuple[str, Any, Any]]:
    certificate, options = evidence.results["certificate"], evidence.options
    if "missing" in certificate:
        return
    yield "results.certificate.replicates", certificate.get("replicates"), options["replicates"]
    yield "results.certificate.seed", certificate.get("seed"), options["seed"]
    if certificate.get("kind") == "certificate":
        outcomes = evidence.results["corpus"]["outcomes"]
        yield "results.certificate.runs", certificate.get("runs"), _under(outcomes, options["policy"])


def _under(outcomes: Mapping[str, int], policy: str) -> dict[str, int]:
    """How runs ended, by what censored ones count as."""
    if policy == "censored":
        return dict(outcomes)
    failure = outcomes["failure"] + (outcomes["censored"] if policy == "failure" else 0)
    return {**outcomes, "failure": failure, "censored": 0}


def _exit_code(entry: Mapping[str, Any]) -> int:
    """See `Agreement.exit_code`."""
    if entry["agree"] is False:
        return 6
    if entry["verdict"] == "violated":
        return 1
    failed = any(result["verdict"] == "error" for result in entry["engines"])
    return 0 if entry["verdict"] in (None, "satisfied") and not failed else 4


def _of_property(entry: Mapping[str, Any], place: str) -> Iterator[Difference]:
    """Bounds that are no bounds, engines that are farther apart than the gap, a verdict that no engine has."""
    for path, enclosure in _enclosures(entry, place):
        lower, value, upper = (_number(enclosure[name]) for name in ("lower", "value", "upper"))
        undefined = isnan(value) and (lower, upper) == (-inf, inf)
        if not (lower <= value <= upper or undefined):
            message = "the value lies outside of its bounds"
            yield Difference(path=path, kind="inconsistent", recorded=enclosure, message=message)
    interval = (entry["uncertainty"] or {}).get("interval")
    if interval is not None and _number(interval["lower"]) > _number(interval["upper"]):
        message = "the lower end is above the upper one"
        yield Difference(path=f"{place}.uncertainty.interval", kind="inconsistent", recorded=interval, message=message)
    answered = [each for each in entry["engines"] if each["verdict"] not in ("unsupported", "error")]
    if (len(answered) >= 2) != (entry["agree"] is not None):
        message = f"{len(answered)} engines answered"
        yield Difference(path=f"{place}.agree", kind="inconsistent", recorded=entry["agree"], message=message)
    gap = None if entry["gap"] is None else _number(entry["gap"])
    for one, other in combinations(answered, 2):
        apart = _distance(one["value"], other["value"])
        if apart is not None and gap is not None and apart > gap * (1 + 1e-9) + 1e-15 and _is_operator(entry):
            yield Difference(
                path=f"{place}.gap",
                kind="inconsistent",
                recorded=entry["gap"],
                found=apart,
                amount=apart - gap,
                message=f"{one['engine']} and {other['engine']} are farther apart than the gap",
            )
    verdicts = {each["verdict"] for each in answered}
    if entry["at_estimate"] in _DECIDED and entry["at_estimate"] not in verdicts:
        message = "no engine has this verdict"
        yield Difference(
            path=f"{place}.at_estimate", kind="inconsistent", recorded=entry["at_estimate"], message=message
        )
    for j, each in enumerate(answered):
        if each["verdict"] in _DECIDED and each["truth"] is not _DECIDED[each["verdict"]]:
            yield Difference(
                path=f"{place}.engines[{j}].truth",
                kind="inconsistent",
                recorded=each["truth"],
                found=_DECIDED[each["verdict"]],
                message="the verdict says otherwise",
            )


def _is_operator(entry: Mapping[str, Any]) -> bool:
    """The number is that of its one operator, which the gap is about."""
    return all(len(each["operators"]) == 1 for each in entry["engines"])


def _enclosures(entry: Mapping[str, Any], place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for j, each in enumerate(entry["engines"]):
        where = f"{place}.engines[{j}]"
        if each["value"] is not None:
            yield f"{where}.value", each["value"]
        for k, operator in enumerate(each["operators"]):
            yield f"{where}.operators[{k}].start", operator["start"]


def _distance(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> float | None:
    """Relative where the number is above one; None where there is none."""
    if one is None or other is None:
        return None
    a, b = _number(one["value"]), _number(other["value"])
    if isnan(a) or isnan(b) or isinf(a) or isinf(b):
        return None
    return abs(a - b) / max(1.0, abs(a))


def _number(value: float | str) -> float:
    try:
        return float(number_from_json(value))
    except (OverflowError, ValueError, ZeroDivisionError):
        return float("nan")
