"""Evidence in, what of it does not come out again: from the recorded counts, and from the traces where given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tracebridge.errors import ModelError, UsageError
from tracebridge.inference.expanded.modelling import fit_named, is_first_order
from tracebridge.pipeline.assessing import Progress
from tracebridge.pipeline.fitting import fit_files, propositions_of
from tracebridge.report.command import fit_arguments
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import BESIDE_CORPUS
from tracebridge.report.evidence_reading import read_evidence
from tracebridge.report.replay import Difference, Replay, Runs, inconsistencies, replay_evidence
from tracebridge.report.run_findings import Effort, find_in_runs
from tracebridge.traces import open_traces


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
    if not isinstance(path, str | Path):
        raise UsageError(f"replay takes the path of evidence.json, beside which the other files lie, not {path!r}")
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
