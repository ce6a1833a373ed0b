"""What a replay found: whether an evidence file is what it says, number by number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracebridge.errors import InputError, Location, ModelError, Problem, TracebridgeError
from tracebridge.report.chain_files import text_hashes
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_document import RENDERED, digest_of
from tracebridge.report.evidence_reading import hash_beside
from tracebridge.report.markdown import printable
from tracebridge.report.replay.account import (
    ABSOLUTE_ROUNDING,
    RELATIVE_ROUNDING,
    Account,
    Difference,
    NotRecomputed,
)
from tracebridge.report.replay.allowances import MONTE_CARLO_ERRORS
from tracebridge.report.replay.consistency import inconsistencies
from tracebridge.report.replay.recomputation import recomputed_document, refitted
from tracebridge.report.tool import tool_document

if TYPE_CHECKING:
    from tracebridge.chain.expanded.fit import ExpandedFit
    from tracebridge.chain.fit import ChainFit
    from tracebridge.report.run_findings import RunFindings

_MOST_CHARACTERS = 200
_MOST_OTHERS = 10
_MOST_REFUSALS, _MOST_CHARACTERS_OF_A_REFUSAL = 20, 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """What the traces say, read again.

    Attributes:
        fit: fitted to them. findings: what only they can tell. corpus: what was read.
    """

    fit: ChainFit | ExpandedFit
    findings: RunFindings
    corpus: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replay:
    """What became of an evidence file that was computed again.

    Attributes:
        name: of the file. digest: that is recorded. with_traces: the traces were read again.
        differences: all that is not as recorded: the digest, files beside it, inputs, contradictions within the
            document, and values that were computed again.
        not_recomputed: values that were not, and why. files: how many files beside it have the recorded hash.
        equal, rounded, allowed: values that were computed again and are equal, differ by rounding, or by no more than
            the Monte-Carlo error or the bounds of an engine allow other versions. largest: of those by rounding.
        versions: what is here in another version than recorded: name to both.
        notes: what else a reader of the folder should know, one sentence each.
    """

    name: str
    digest: str
    with_traces: bool
    differences: tuple[Difference, ...]
    not_recomputed: tuple[NotRecomputed, ...]
    files: int
    equal: int
    rounded: int
    allowed: int
    largest: float
    versions: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing differs."""
        return not self.differences

    @property
    def exit_code(self) -> int:
        """0 if nothing differs, 6 otherwise."""
        return 0 if self.ok else 6

    @property
    def unknown(self) -> int:
        """How many values were not computed again."""
        return sum(each.values for each in self.not_recomputed)

    @property
    def verdict(self) -> str:
        """One sentence."""
        counted = self.equal + self.rounded + self.allowed
        if self.ok:
            told = f"replayed: {counted:,} values were computed again, and all are as recorded"
            if not self.unknown:
                return told
            how = "" if self.with_traces else " (give --traces to compute more of them)"
            return f"{told}; {self.unknown:,} were NOT verified{how}"
        number = len(self.differences)
        places = "1 place differs" if number == 1 else f"{number:,} places differ"
        return f"NOT AS RECORDED: {places}, {counted:,} values are as recorded, {self.unknown:,} not computed again"

    def __repr__(self) -> str:
        return f"<Replay of {self.name}: {self.verdict}>"

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "kind": "tracebridge-replay",
            "schema_version": 1,
            "evidence": self.name,
            "digest": self.digest,
            "verdict": self.verdict,
            "ok": self.ok,
            "with_traces": self.with_traces,
            "differences": [each.to_dict() for each in self.differences],
            "values": {
                "equal": self.equal,
                "within_rounding": self.rounded,
                "largest_rounding": self.largest,
                "within_tolerance": self.allowed,
                "different": sum(each.kind == "recomputed" for each in self.differences),
                "not_recomputed": self.unknown,
            },
            "tolerances": {
                "rounding_relative": RELATIVE_ROUNDING,
                "rounding_absolute": ABSOLUTE_ROUNDING,
                "monte_carlo_errors": MONTE_CARLO_ERRORS,
            },
            "files_as_recorded": self.files,
            "other_versions": {name: {"recorded": old, "here": new} for name, (old, new) in self.versions.items()},
            "not_recomputed": [each.to_dict() for each in self.not_recomputed],
            "notes": list(self.notes),
        }


def replay_evidence(
    evidence: Evidence,
    *,
    folder: Path | None,
    name: str = "evidence.json",
    runs: Runs | None = None,
    differences: tuple[Difference, ...] = (),
    prism: str | Path | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> Replay:
    """Check an evidence file and compute it again.

    Args:
        folder: where the files beside it are; None to leave them out. name: of the file.
        runs: what the traces say; without it, what takes them is not computed again.
        differences: what was found before, such as other traces. prism: see `tracebridge.checking.check`.
    """
    account = Account(words=evidence.document["tool"]["version"] != tool_document({})["version"])
    found = list(differences)
    if (expected := digest_of(evidence.document)) != evidence.digest:
        found.append(
            Difference(
                path="digest",
                kind="digest",
                recorded=evidence.digest,
                found=expected,
                message="the document is not the one that was sealed",
            )
        )
    files = 0
    if folder is not None:
        missing: list[NotRecomputed] = []
        for each in _files_beside(evidence, folder):
            if isinstance(each, Difference):
                found.append(each)
            elif isinstance(each, NotRecomputed):
                missing.append(each)
            else:
                files += 1
        account.not_recomputed += missing
    found += inconsistencies(evidence)
    progress("computing the numbers again")
    _recompute(evidence, account, runs, prism, progress)
    found += account.differences
    if not found and folder is not None and not account.words:
        found += _of_report(evidence, folder)
    return Replay(
        name=name,
        digest=evidence.digest,
        with_traces=runs is not None,
        differences=tuple(found),
        not_recomputed=tuple(account.not_recomputed),
        files=files,
        equal=account.equal,
        rounded=account.rounded,
        allowed=account.allowed,
        largest=account.largest,
        versions=_versions(evidence),
        notes=() if folder is None else tuple(_folder_notes(evidence, folder, name)),
    )


def _recompute(
    evidence: Evidence,
    account: Account,
    runs: Runs | None,
    prism: str | Path | None,
    progress: Callable[[str], None],
) -> None:
    recorded = {key: value for key, value in evidence.document.items() if key != "digest"}
    try:
        fit = refitted(evidence.document["chain"]) if runs is None else runs.fit
        document = recomputed_document(
            evidence,
            fit,
            runs=None if runs is None else runs.findings,
            corpus=None if runs is None else runs.corpus,
            prism=prism,
            progress=progress,
        )
    except TracebridgeError as error:
        account.differences += _refusals(error)
        reason = "computing it again stopped at the difference above"
        count = Account()
        count.compare(recorded, recorded)
        account.not_recomputed.append(NotRecomputed(path="", values=count.equal, reason=reason))
        return
    account.compare(recorded, document)


def _refusals(error: TracebridgeError) -> Iterator[Difference]:
    """Each thing that is wrong with the document, at its place."""
    problems = error.problems if isinstance(error, InputError) else [Problem(location=Location(), message=str(error))]
    for problem in problems[:_MOST_REFUSALS]:
        message = str(replace(problem, location=Location()))[:_MOST_CHARACTERS_OF_A_REFUSAL]
        yield Difference(path=str(problem.location) or "chain", kind="recomputed", message=message)


def _files_beside(evidence: Evidence, folder: Path) -> Iterator[Difference | NotRecomputed | str]:
    """The name of each file that is as recorded, and what is wrong with the others."""
    for name, sha256 in evidence.document["files"].items():
        try:
            found = hash_beside(folder, name)
        except ModelError as error:
            if not (folder / name).exists() and "plain name" not in str(error):
                yield NotRecomputed(path=f"files[{name!r}]", values=1, reason="there is no such file beside it")
                continue
            message = error.problems[0].message
            yield Difference(path=name[:_MOST_CHARACTERS], kind="file", recorded=sha256, message=message)
            continue
        if found == sha256:
            yield name
        else:
            message = "the file beside it is not the one that was recorded"
            yield Difference(path=name, kind="file", recorded=sha256, found=found, message=message)


def _of_report(evidence: Evidence, folder: Path) -> Iterator[Difference]:
    """The report is not hashed, because it shows the digest: it is rendered again."""
    from tracebridge.report.html import render_html  # its templates are needed nowhere else

    try:
        found = hash_beside(folder, RENDERED)
    except ModelError:
        return
    if found != text_hashes({RENDERED: render_html(evidence)})[RENDERED]:
        message = "the page beside it is not the one that this evidence gives; `tracebridge report` makes it again"
        yield Difference(path=RENDERED, kind="file", message=message)


def _folder_notes(evidence: Evidence, folder: Path, name: str) -> Iterator[str]:
    """A report that is not there, and what lies there that the record does not know."""
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError:
        return
    if RENDERED not in names:
        yield f"there is no {RENDERED} beside it; `tracebridge report` makes it from the evidence"
    known = {name, RENDERED, *evidence.document["files"], *(each["name"] for each in evidence.document["inputs"])}
    others = [each for each in names if each not in known]
    if others:
        more = f" and {len(others) - _MOST_OTHERS:,} more" if len(others) > _MOST_OTHERS else ""
        listed = ", ".join(printable(each[:_MOST_CHARACTERS]) for each in others[:_MOST_OTHERS])
        yield f"beside it, but not of the record, so that nothing vouches for them: {listed}{more}"


def _versions(evidence: Evidence) -> dict[str, tuple[str, str]]:
    recorded = evidence.document["tool"]
    here = tool_document({})
    pairs = {"tracebridge": (recorded["version"], here["version"]), "Python": (recorded["python"], here["python"])}
    pairs["platform"] = recorded["platform"], here["platform"]
    pairs |= {name: (old, here["packages"].get(name, "unknown")) for name, old in recorded["packages"].items()}
    return {name: (old, new) for name, (old, new) in pairs.items() if old != new}
