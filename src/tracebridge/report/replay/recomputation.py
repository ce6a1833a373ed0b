"""The document of an evidence file once more, from the counts that it records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracebridge.chain.expanded.fit import ExpandedFit, fit_expanded
from tracebridge.chain.fit import ChainFit
from tracebridge.checking import ENGINE_NAMES
from tracebridge.report.chain_files import chain_files, text_hashes
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import evidence_document
from tracebridge.report.judging import ask_engines, judge_chain
from tracebridge.report.replay.account import Unknown, Within
from tracebridge.report.replay.allowances import allow_for_versions, leave_out_engines, other_versions
from tracebridge.report.replay.recorded_runs import recorded_runs, without_its_numbers
from tracebridge.report.results import results_document
from tracebridge.report.run_findings import Effort, RunFindings
from tracebridge.report.summary import summary_markdown
from tracebridge.report.tool import MISSING, engine_version

#: Why something cannot be found in counts.
NEEDS_TRACES = "what only the runs can tell: give them with --traces"

#: Why what nothing else in the document tells is not computed again, by part.
GIVEN = {
    "tool": "the versions that computed the record, which no replay can confirm",
    "command": "the options, with which the rest was computed again; those that the results contradict are told",
    "inputs": "which files were read; --traces compares the traces with their hashes",
    "properties": "the questions that the rest answers",
    "chain": "the counts that the rest was computed from; --traces counts the runs again",
}

#: What in the document of a fit is counted, and not computed from something else there.
_COUNTED = frozenset({"abstraction", "counts", "declared", "paths", "vocabulary", "weighted"})


def refitted(chain: Mapping[str, Any]) -> ChainFit | ExpandedFit:
    """The fit that follows from the counts, or the runs, in the document of a fit.

    Parameters of hidden phases and of classes of tasks are those of the document, as far as the runs allow them: a
    search for them takes as long as the fit did.

    Raises:
        ModelError: there is none; also, for a chain that remembers more than its state, if its parameters are not those
            of its runs.
    """
    if "form" not in chain:
        return ChainFit.refitted(chain, "chain")
    fit = ExpandedFit.from_dict(chain, "chain")
    if fit.paths is None or _is_searched_for(fit):
        return fit
    return fit_expanded(fit.base, fit.paths, fit.form, kappa=fit.kappa, seed=fit.seed, remarks=fit.remarks)


def _is_searched_for(fit: ExpandedFit) -> bool:
    """The parameters are found by a search, from random starts."""
    return fit.form.phases > 1 or fit.form.classes > 1


def recomputed_document(
    evidence: Evidence,
    fit: ChainFit | ExpandedFit,
    *,
    runs: RunFindings | None = None,
    corpus: Mapping[str, Any] | None = None,
    prism: str | Path | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> dict[str, Any]:
    """What the document should say, by what its counts, options and properties say.

    `Unknown` stands for what takes the runs themselves, or an engine that is not here, and `Within` for numbers that
    other versions of packages and engines may have found a little otherwise.

    Args:
        fit: of `refitted`, or fitted to the traces again. runs, corpus: what these say, where they are at hand.
        prism: see `tracebridge.checking.check`.

    Raises:
        TracebridgeError: the properties do not fit the chain, or a certificate does not follow from its own numbers.
    """
    recorded, options = evidence.results, evidence.options
    resolved = evidence.resolved
    effort = Effort(**{name: options[name] for name in Effort.__dataclass_fields__})
    versions = {name: engine_version(name, prism=prism) for name in options["engines"]}
    here = [name for name, version in versions.items() if version != MISSING]
    settings: dict[str, Any] = {"exact": options["exact"], "time_limit": options["time_limit"]}
    agreements = ask_engines(fit, resolved, here, **settings, prism=prism, progress=progress)
    findings = judge_chain(
        fit,
        resolved,
        agreements,
        recorded_runs(recorded) if runs is None else runs,
        effort,
        corpus=recorded["corpus"] if corpus is None else corpus,
        engines=evidence.document["tool"]["engines"],
        exact=options["exact"],
        progress=progress,
    )
    texts = chain_files(fit, evidence.properties, resolved)
    if runs is not None and not other_versions(evidence):
        texts["summary.md"] = summary_markdown(findings)
    found = results_document(findings, files=text_hashes(texts))
    found["tool"] = {**found["tool"], "version": recorded["tool"]["version"]}
    found["files"] = _known_files(recorded["files"], found["files"])
    if runs is None:
        found = _with_gaps(found, recorded, fit)
    missing = {
        ENGINE_NAMES[name]: f"{ENGINE_NAMES[name]} is not here" for name in options["engines"] if name not in here
    }
    leave_out_engines(found["properties"], recorded["properties"], missing)
    if missing and any(each["agree"] is False for each in recorded["properties"]):
        found["exit_code"] = Unknown(reason="; ".join(missing.values()))
    allow_for_versions(found, recorded, evidence, versions)
    document = evidence_document(
        tool=evidence.document["tool"],
        command=evidence.document["command"],
        inputs=evidence.document["inputs"],
        fit=fit,
        properties=evidence.document["properties"],
        resolved=resolved,
        results=_filled(found, recorded),  # the limits are told by all results, known or not
        files={},
    )
    del document["digest"]
    given = {name: Unknown(reason=GIVEN[name]) for name in ("tool", "command", "inputs", "properties")}
    if runs is not None:
        given["inputs"] = Unknown(reason="which files were read; the traces have the recorded hashes")
    files = _known_files(evidence.document["files"], text_hashes(texts))
    chain = document["chain"] if runs is not None else _without_what_was_given(document["chain"], fit)
    return {**document, **given, "chain": chain, "results": found, "files": files}


def _without_what_was_given(chain: Mapping[str, Any], fit: ChainFit | ExpandedFit) -> dict[str, Any]:
    """The document of a fit, where that is unknown which the rest was computed from."""
    known = {key: Unknown(reason=GIVEN["chain"]) if key in _COUNTED else value for key, value in chain.items()}
    if isinstance(fit, ExpandedFit):
        known["base"] = _without_what_was_given(chain["base"], fit.base)
        if fit.paths is None or _is_searched_for(fit):
            known["parameters"] = Unknown(reason=f"the search for them is not made again; {NEEDS_TRACES}")
    return known


def _filled(found: Any, recorded: Any) -> Any:
    """What was found, with the record where nothing was."""
    match found:
        case Unknown():
            return recorded
        case Within():
            return found.value
        case Mapping():
            old = recorded if isinstance(recorded, Mapping) else {}
            return {key: _filled(value, old.get(key)) for key, value in found.items()}
        case list() | tuple():
            before = recorded if isinstance(recorded, list) else []
            return [_filled(value, before[i] if i < len(before) else None) for i, value in enumerate(found)]
    return found


# ---------------------------------------------------------------- what takes the runs


def _with_gaps(found: dict[str, Any], recorded: Mapping[str, Any], fit: ChainFit | ExpandedFit) -> dict[str, Any]:
    """The results, where what only the runs can tell is unknown."""
    unknown = Unknown(reason=NEEDS_TRACES)
    found = {**found, "corpus": _corpus(recorded["corpus"], fit), "observed": unknown, "reliability_bounds": unknown}
    found["ending_choices"] = unknown
    found["certificate"] = without_its_numbers(found["certificate"], NEEDS_TRACES)
    if found["ladder"] is not None:
        found["ladder"] = unknown
    if found["advice"]:
        found["advice"] = unknown
    uncertainty = dict(found["figures"]["uncertainty"])
    for name, each in uncertainty.items():
        others = recorded["figures"].get("uncertainty", {}).get(name, {}).get("others", [])
        uncertainty[name] = {**each, "others": _without_resamples(each["others"], others)}
    found["figures"] = {**found["figures"], "uncertainty": uncertainty}
    found["properties"] = [
        {**each, "second_opinion": _opinion(each["second_opinion"], old["second_opinion"])}
        for each, old in zip(found["properties"], recorded["properties"], strict=False)
    ] + found["properties"][len(recorded["properties"]) :]
    return found


def _corpus(recorded: Mapping[str, Any], fit: ChainFit | ExpandedFit) -> dict[str, Any]:
    """Of the corpus the counts know how many runs and steps there were, and how runs ended."""
    counts = fit.counts
    n_steps = sum(flow.n_steps for flow in (counts.success, counts.failure, counts.censored))
    known = {
        "n_runs": counts.n_runs,
        "n_steps": n_steps,
        "outcomes": counts.runs_by_outcome(),
        "schema_version": recorded["schema_version"],
    }
    return {key: known.get(key, Unknown(reason=NEEDS_TRACES)) for key in recorded}


def _known_files(recorded: Mapping[str, str], found: Mapping[str, str]) -> dict[str, Any]:
    """The hashes of the files that follow from the counts; of the others it is seen whether the files have them."""
    reason = "hashes, compared with the files themselves"
    return {**{name: Unknown(reason=reason) for name in recorded if name not in found}, **found}


def _opinion(found: Mapping[str, Any] | None, recorded: Mapping[str, Any] | None) -> Any:
    if found is None or recorded is None:
        return found
    shares = {name: Unknown(reason=NEEDS_TRACES) for name in recorded["satisfied"] if _is_resampled(name)}
    return {
        **found,
        "intervals": _without_resamples(found["intervals"], recorded["intervals"]),
        "satisfied": {**shares, **found["satisfied"]},
        "notes": found["notes"] if found["notes"] == recorded["notes"] else Unknown(reason=NEEDS_TRACES),
    }


def _without_resamples(found: Sequence[Mapping[str, Any]], recorded: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Intervals in the order of the record, in which those of runs that are drawn again are unknown."""
    methods = {each["method"] for each in found}
    waiting: Iterator[Any] = iter(found)
    aligned: list[Any] = [
        Unknown(reason=NEEDS_TRACES)
        if _is_resampled(each["method"]) and each["method"] not in methods
        else next(waiting, None)
        for each in recorded
    ]
    return [*(each for each in aligned if each is not None), *waiting]


def _is_resampled(method: str) -> bool:
    return method.startswith(("trace bootstrap", "task bootstrap"))
