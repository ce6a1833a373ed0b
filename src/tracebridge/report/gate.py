"""A gate: may this agent go on, by the verdicts of its evidence, or beside the evidence of a baseline?

Alone, evidence passes if every property is satisfied or answered, the engines agree, and the certificate does not
reject the chain. Against a baseline it passes if no property got worse as far as the statistics support it (see
`tracebridge.report.regression`), whatever the verdicts are; one that the baseline does not have is judged by its
verdict, and engines that disagree never pass. Numbers of one engine
alone, and a chain that no certificate accepts, pass and are named; where the gate is strict they do not pass. A
property with ``//@ severity advisory`` is told and blocks nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import worst_exit_code
from tracebridge.errors import UsageError
from tracebridge.report.evidence import Evidence
from tracebridge.report.evidence_diff import compare_evidence
from tracebridge.report.junit import Case, is_advisory
from tracebridge.report.markdown import bullets, escape, table
from tracebridge.report.regression import DEFAULT_LEVEL, DEFAULT_MARGIN, Judgement, judge_changes
from tracebridge.report.soundness import altered_files, unsoundness
from tracebridge.report.standings import told_once
from tracebridge.report.table import NOTHING, format_number
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.report.direction import Worse
    from tracebridge.report.evidence_diff import EvidenceDiff

_SHOWN = 5
_ROUNDING = 1e-12

_ONE_ENGINE = "one engine"

#: What a gate passes and names: it was not decided, not cross-checked, or not certified.
_OPEN = ("inconclusive", _ONE_ENGINE, "none", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """One thing that the gate looks at.

    Attributes:
        name: of the property, or of what else it is. status: in one or two words.
        exit_code: 0 if it does not stand in the way. message: one sentence, without a full stop; empty if all is well.
        judgement: against the baseline.
    """

    name: str
    status: str
    exit_code: int
    message: str = ""
    judgement: Judgement | None = None

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        shown = {"name": self.name, "status": self.status, "exit_code": self.exit_code, "message": self.message}
        return {**shown, "judgement": None if self.judgement is None else self.judgement.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """What a gate found.

    Attributes:
        checks: everything that was looked at. notes: what to know about the comparison, one sentence each.
        baseline: the digest of the evidence that it was held against; None without one. digest: that of the evidence.
        level, margin: see `judge_changes`; None without a baseline.
    """

    checks: tuple[GateCheck, ...]
    digest: str
    notes: tuple[str, ...] = ()
    baseline: str | None = None
    level: float | None = None
    margin: float | None = None

    @property
    def exit_code(self) -> int:
        """0 if nothing stands in the way; else 1 violated or a regression, 4 undecided, 6 engines disagree."""
        return worst_exit_code([check.exit_code for check in self.checks])

    @property
    def sentence(self) -> str:
        """What came of it, in one sentence."""
        if not self.exit_code:
            left = [f"{check.name} ({check.status})" for check in self.checks if check.status in _OPEN]
            return "the gate passes" + (f"; left open: {_listed(left)}" if left else "")
        stopped = [check for check in self.checks if check.exit_code]
        return f"the gate does not pass: {_listed([f'{check.name} ({check.status})' for check in stopped])}"

    def __repr__(self) -> str:
        return f"<GateReport: {self.sentence}>"

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            "kind": "tracebridge-gate",
            "schema_version": 1,
            "digest": self.digest,
            "baseline": self.baseline,
            "level": self.level,
            "margin": self.margin,
            "sentence": self.sentence,
            "checks": [check.to_dict() for check in self.checks],
            "notes": list(self.notes),
            "exit_code": self.exit_code,
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One record a check."""
        records = []
        for check in self.checks:
            judgement = {} if check.judgement is None else check.judgement.to_dict()
            records.append({**judgement, "name": check.name, "status": check.status, "message": check.message})
        return records

    def cases(self) -> Iterator[Case]:
        """Test cases for JUnit XML: a check that does not pass is a failure, one that says more is skipped."""
        for check in self.checks:
            quiet = not check.message or check.status in ("passed", "satisfied", "answered")
            yield Case(
                suite="gate",
                name=check.name,
                outcome="failure" if check.exit_code else "passed" if quiet else "skipped",
                kind=check.status,
                message=": ".join(part for part in (check.status, check.message) if part),
            )

    def markdown(self) -> str:
        """A section of GitHub-flavoured Markdown."""
        judged = [check for check in self.checks if check.judgement is not None]
        parts = [f"## {'Passed' if not self.exit_code else 'Not passed'}", f"{escape(self.sentence.capitalize())}."]
        if judged:
            parts.append(table(COLUMNS, rows(judged)))
        told = [check for check in self.checks if check.message]
        parts.append(bullets(escape(f"{check.name}: {check.status}: {check.message}"[:500]) for check in told))
        parts.append(bullets(map(escape, self.notes)))
        return "\n\n".join(part for part in parts if part) + "\n\n"


#: The columns of `rows`.
COLUMNS = ("property", "status", "baseline", "new", "worse by", "at most", "P(worse)", "adjusted p")


def rows(checks: list[GateCheck]) -> list[list[str]]:
    """A table of judgements: numbers before and after, the worsening, its bound, what Holm's procedure saw."""
    found = []
    for check in checks:
        each = check.judgement
        assert each is not None  # noqa: S101 - asked of judged ones only
        worsening = 0.0 if each.worsening is not None and abs(each.worsening) < _ROUNDING else each.worsening
        numbers = (each.old, each.new, worsening, each.bound, each.probability_worse, each.p_adjusted)
        shown = [NOTHING if value is None else format_number(value, 4) for value in numbers]
        found.append([check.name, check.status, *shown])
    return found


def gate(
    evidence: Evidence,
    baseline: Evidence | None = None,
    *,
    level: float = DEFAULT_LEVEL,
    margin: float = DEFAULT_MARGIN,
    strict: bool = False,
    worse: Mapping[str, Worse] | None = None,
) -> GateReport:
    """Judge an evidence file by its own verdicts, or against that of a baseline.

    Args:
        level, margin, worse: see `judge_changes`.
        strict: what is left open does not pass (exit code 4): a worsening by more than the margin must be excluded,
            two engines must agree, and, without a baseline, the certificate must accept the chain.

    Raises:
        UsageError: see `judge_changes`. ModelError, PropertyError: a document that holds no fit or no properties.
    """
    for each in (evidence, *(() if baseline is None else (baseline,))):
        if not isinstance(each, Evidence):
            raise UsageError(f"gate takes evidence, as read_evidence(path) gives, not a {type(each).__name__}")
    sealed = [*_seal("evidence", evidence), *(() if baseline is None else _seal("baseline", baseline))]
    if sealed:  # verdicts of an altered file are nobody's
        return GateReport(checks=tuple(sealed), digest=evidence.digest)
    if baseline is None:
        checks = [*_verdicts(evidence.results), *_lone_engine(evidence.results, strict)]
        return GateReport(checks=(*checks, *_certificates(evidence.results, strict)), digest=evidence.digest)
    diff = compare_evidence(baseline, evidence, level=2 * level - 1 if 0.5 < level < 1 else DEFAULT_LEVEL)
    runs = baseline.results["corpus"]["n_runs"], evidence.results["corpus"]["n_runs"]
    judgements = judge_changes(diff.properties, runs, level=level, margin=margin, worse=worse)
    checks = [_check(judgement, strict) for judgement in judgements]
    checks += [_missing(name, baseline.results) for name in diff.properties_removed]
    checks += _verdicts(evidence.results, only=diff.properties_added)
    checks += [*_disagreements(evidence.results), *_lone_engine(evidence.results, strict)]
    return GateReport(
        checks=tuple(checks),
        digest=evidence.digest,
        notes=tuple(_notes(diff, baseline, evidence)),
        baseline=baseline.digest,
        level=level,
        margin=margin,
    )


def _seal(name: str, evidence: Evidence) -> Iterator[GateCheck]:
    """Nothing goes through a gate on numbers that are not those that were written."""
    if reasons := (*unsoundness(evidence), *altered_files(evidence)):
        told = f"{'; '.join(reasons)}; its verdicts are withheld; `tracebridge replay` tells more"
        yield GateCheck(name=name, status="altered", exit_code=6, message=told)


# ---------------------------------------------------------------- alone


def _verdicts(results: Mapping[str, Any], only: Collection[str] | None = None) -> Iterator[GateCheck]:
    """Every property by its verdict, or those of some names, which a baseline does not have."""
    for position, item in enumerate(results["properties"], start=1):
        if only is not None and _told(item) not in only:
            continue
        verdict = item["verdict"] or "answered"
        failed = any(found["verdict"] == "error" for found in item["engines"])
        code = 1 if verdict == "violated" else 4 if failed or verdict not in ("satisfied", "answered") else 0
        advisory = is_advisory(item)
        code = 6 if item["agree"] is False else 0 if advisory else code
        reason = item["reason"] or ""
        if advisory and verdict not in ("satisfied", "answered"):
            reason = "; ".join(part for part in ("advisory, so that it blocks nothing", reason) if part)
        if only is not None:
            reason = "; ".join(part for part in ("not in the baseline, and so judged by its verdict", reason) if part)
        yield GateCheck(name=_name(item, position), status=verdict, exit_code=code, message=reason)


def _certificates(results: Mapping[str, Any], strict: bool) -> Iterator[GateCheck]:
    """What the certificate says of each scope; it stands in the way where numbers that can block need the scope."""
    standing_of = [item["standing"] for item in results["properties"] if not is_advisory(item)]
    needed = {"timing", *(standing["scope"] for standing in standing_of if standing is not None)}
    stops = {"reject", *(("inconclusive", "none", "refused") if strict else ())}
    for scopes, standing in told_once(results["standings"]).items():
        asked = not needed.isdisjoint(scopes.split(" and "))
        reasons = standing["reasons"] if asked else ["no number here that could block needs it", *standing["reasons"]]
        yield GateCheck(
            name=f"certificate for {scopes}",
            status=standing["verdict"],
            exit_code=4 if asked and standing["verdict"] in stops else 0,
            message="; ".join(reasons),
        )


def _told(item: Mapping[str, Any]) -> str:
    return str(item["name"] or item["formula"])


def _name(item: Mapping[str, Any], position: int) -> str:
    return str(item["name"] or f"#{position}")


# ---------------------------------------------------------------- against a baseline


def _check(judgement: Judgement, strict: bool) -> GateCheck:
    codes = {"regression": 1, "not comparable": 4, "inconclusive": 4 if strict else 0}
    code = 0 if judgement.advisory else codes.get(judgement.status, 0)
    message = _message(judgement)
    if judgement.advisory and judgement.status in codes:
        message = f"advisory, so that it blocks nothing; {message}"
    return GateCheck(name=judgement.name, status=judgement.status, exit_code=code, message=message, judgement=judgement)


def _message(judgement: Judgement) -> str:
    if judgement.reason is not None:
        return judgement.reason
    worsening, bound, margin = judgement.worsening, judgement.bound, judgement.margin
    if judgement.status == "passed" or worsening is None or bound is None or margin is None:
        return ""
    told = f"worse by {worsening:.4g}" if worsening > 0 else f"better by {-worsening:.4g}"
    if abs(worsening) < _ROUNDING:
        told = "no different"
    told += f", and with the runs at hand it may be worse by up to {bound:.4g}"
    if judgement.status == "regression":
        return f"{told}; adjusted p = {judgement.p_adjusted:.3g}"
    told += f", where {margin:.4g} matters"
    if judgement.more_runs is not None:
        return f"{told}; {counted(judgement.more_runs, 'more run')} would decide, if they go on as these do"
    if judgement.more_of_both is not None:
        return (
            f"{told}; {counted(judgement.more_of_both, 'more run')} of each, of the baseline, too, would "
            "decide, if they go on as these do"
        )
    return f"{told}; no number of runs is known that would decide"


def _missing(name: str, results: Mapping[str, Any]) -> GateCheck:
    """A property that only the baseline has: leaving it out is no way through the gate."""
    item = next(each for each in results["properties"] if _told(each) == name)
    return GateCheck(
        name=name,
        status="not comparable",
        exit_code=0 if is_advisory(item) else 4,
        message="the baseline has this property, and the new evidence has not",
    )


def _lone_engine(results: Mapping[str, Any], strict: bool) -> Iterator[GateCheck]:
    """Properties that no second engine answered: nothing tells whether their numbers are right."""
    alone = [(at, item) for at, item in enumerate(results["properties"], start=1) if item["agree"] is None]
    if alone:
        names = _listed([_name(item, position) for position, item in alone])
        yield GateCheck(
            name="cross-check",
            status=_ONE_ENGINE,
            exit_code=4 if strict and not all(is_advisory(item) for _, item in alone) else 0,
            message=f"fewer than two engines answered {names}: nothing confirms these numbers",
        )


def _disagreements(results: Mapping[str, Any]) -> Iterator[GateCheck]:
    for position, item in enumerate(results["properties"], start=1):
        if item["agree"] is False:
            told = f"the engines disagree by {item['gap']}, where {item['allowed']} is allowed"
            yield GateCheck(name=f"{_name(item, position)} by all engines", status="error", exit_code=6, message=told)


def _notes(diff: EvidenceDiff, baseline: Evidence, evidence: Evidence) -> Iterator[str]:
    """What else differs, so that a difference may not be the agent's."""
    for whose, each in (("the new evidence", evidence), ("the baseline", baseline)):
        for scopes, standing in told_once(each.results["standings"]).items():
            if standing["verdict"] != "accept":
                yield f"certificate for {scopes} of {whose}: {'; '.join([standing['verdict'], *standing['reasons']])}"
    yield (
        "runs are taken as independent: where runs of the same task are alike, the same tasks in both make this gate "
        "slower to alarm, and other tasks make it quicker"
    )
    if diff.options:
        shown = ", ".join(f"{each.what}: {each.old} before, {each.new} now" for each in diff.options[:_SHOWN])
        yield f"the evidence was made in another way, so that a difference may come from that: {shown}"
    if diff.states_added or diff.states_removed:
        sides = [(diff.states_added, "new"), (diff.states_removed, "gone")]
        parts = [f"{counted(len(names), 'state')} {word} ({_listed(names)})" for names, word in sides if names]
        yield f"the chains have other states, which properties that name them may depend on: {', '.join(parts)}"
    unmet = [
        f"{_name(item, position)} ({item['verdict']})"
        for position, item in enumerate(evidence.results["properties"], start=1)
        if item["verdict"] in ("violated", "undecided")
        and not is_advisory(item)
        and _told(item) not in diff.properties_added
    ]
    if unmet:
        yield (
            f"by verdict alone, which a gate against a baseline does not ask for: {_listed(unmet)}; "
            "`tracebridge gate EVIDENCE` does"
        )
    common = {each["sha256"] for each in baseline.document["inputs"] if each["role"] == "traces"} & {
        each["sha256"] for each in evidence.document["inputs"]
    }
    if common:
        yield f"{counted(len(common), 'file')} of traces is behind both: their numbers are no independent samples"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
