"""Everything a run found, as the results document, the summary and the terminal show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import nan
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import Agreement, worst_exit_code
from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.result import CheckResult, Verdict
from tracebridge.closedform.enclosure import Enclosure
from tracebridge.inference.expanded.standing import Standing, standings
from tracebridge.inference.identification import NO_END_REASON, has_seen_an_end
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from tracebridge.agreement import Ends
    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.certificate import Certificate
    from tracebridge.inference.ending_choices import EndingChoices
    from tracebridge.inference.expanded.certificate import ModelCertificate
    from tracebridge.inference.expanded.ladder import Ladder
    from tracebridge.inference.expanded.scope import Scope
    from tracebridge.inference.figure_uncertainty import FigureUncertainty
    from tracebridge.inference.identification import ReliabilityBounds
    from tracebridge.inference.planning import Plan
    from tracebridge.inference.qualitative import QualitativeBasis
    from tracebridge.inference.robust_guarantee import RobustGuarantee
    from tracebridge.inference.second_opinion import SecondOpinion
    from tracebridge.report.figures import KeyFigures
    from tracebridge.report.observed import ObservedCurve

#: Stands beside a qualitative verdict on a chain that lacks what was not seen.
RELATIVE_TO_SUPPORT = "relative to support"

#: Stands beside everything about a chain of runs none of which was seen to end.
NO_END_SEEN = "no end was seen"

#: Stands beside a number on the chain of such runs that is not about their ends.
OF_RUNS_THAT_GO_ON = "no run was seen to end: the number says which steps follow which, as long as a run goes on"

_UNDEFINED = Enclosure.exactly(nan)
_ENDS = frozenset({"success", "failure", "absorbed"})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyFinding:
    """One property with all that is said about it.

    Attributes:
        agreement: what the engines and the data say.
        standing: what the certificate says for the scope that the property needs; None where none was looked for.
        marks: words that stand beside its verdict and numbers wherever they are shown.
        opinion: intervals by other methods. plan: how many more runs would decide it. basis: what its qualitative
            operators rest on, on a chain that lacks unseen transitions. guarantee: what holds for all chains that the
            counts do not exclude; None where it was not asked for.
    """

    agreement: Agreement
    standing: Standing | None = None
    marks: tuple[str, ...] = ()
    opinion: SecondOpinion | None = None
    plan: Plan | None = None
    basis: tuple[QualitativeBasis, ...] = ()
    guarantee: RobustGuarantee | None = None

    @property
    def interval(self) -> Ends | None:
        """The posterior interval of its number."""
        return None if self.agreement.uncertainty is None else self.agreement.uncertainty.interval

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            **self.agreement.to_dict(),
            "standing": None if self.standing is None else self.standing.to_dict(),
            "marks": list(self.marks),
            "second_opinion": None if self.opinion is None else self.opinion.to_dict(),
            "plan": None if self.plan is None else self.plan.to_dict(),
            "rests_on": [each.to_dict() for each in self.basis],
            **({} if self.guarantee is None else {"guarantee": self.guarantee.to_dict(self.interval)}),
        }


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """What `assess` found, before it is written.

    Attributes:
        corpus: what was read, as `TraceSummary.to_dict` and the reader say. fit: the fit.
        figures: its headline numbers, or why there are none. figure_uncertainty: what the data say about them, by name;
            empty if draws were turned off.
        properties: one a property. engines: engine name to version. exact: whether rationals were asked for.
        certificate: whether the runs are those of such a chain, or why that was not tested.
        ladder: how the form of the chain was found; None for one that was named.
        observed: the empirical curve beside the chain's.
        bounds: what the runs say of R_inf where some were still going at the last step that was seen.
        ending_choices: the headline numbers if runs that did not succeed had been counted otherwise; None where there
            is nothing to choose.
        advice: what can be done about a richer chain that is not accepted, one sentence each.
        notes: what was left out and why, one sentence each.
    """

    corpus: Mapping[str, Any]
    fit: ChainFit | ExpandedFit
    figures: KeyFigures | str
    properties: tuple[PropertyFinding, ...]
    engines: Mapping[str, str]
    exact: bool
    certificate: Certificate | ModelCertificate | str
    ladder: Ladder | None = None
    figure_uncertainty: Mapping[str, FigureUncertainty] = field(default_factory=dict)
    observed: ObservedCurve | None = None
    bounds: ReliabilityBounds | None = None
    ending_choices: EndingChoices | None = None
    advice: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not end_was_seen(self.fit):
            object.__setattr__(self, "properties", tuple(map(without_an_end, self.properties)))

    @property
    def standings(self) -> Mapping[Scope, Standing]:
        """What the certificate, or the ladder, says for each scope."""
        return standings(self.certificate if self.ladder is None else self.ladder)

    @property
    def mark(self) -> str | None:
        """What stands beside every headline number of a chain that is not accepted, or that rests on no end of a run.

        Headline numbers are about when runs end and how.
        """
        marks = [self.standings["timing"].mark, None if end_was_seen(self.fit) else NO_END_SEEN]
        return ", ".join(mark for mark in marks if mark is not None) or None

    @property
    def exit_code(self) -> int:
        """The worst over all properties; 4 if the chain is rejected for headline numbers or for a property."""
        codes = [each.agreement.exit_code for each in self.properties]
        needed = [self.standings["timing"], *(each.standing for each in self.properties)]
        if any(standing is not None and standing.verdict == "reject" for standing in needed):
            codes.append(4)
        return worst_exit_code(codes)


def marks_of(basis: Sequence[QualitativeBasis], mark: str | None = None) -> tuple[str, ...]:
    """The words beside the verdict of a property: of the certificate, and of the support that it rests on.

    Args:
        basis: of a property on a chain that lacks unseen transitions, else empty. mark: of the certificate.
    """
    return (*(() if mark is None else (mark,)), *((RELATIVE_TO_SUPPORT,) if basis else ()))


def end_was_seen(fit: ChainFit | ExpandedFit) -> bool:
    """Whether some run behind a fit succeeded or failed, under its policy for censored runs."""
    return has_seen_an_end(fit.base if isinstance(fit, ExpandedFit) else fit)


def without_an_end(finding: PropertyFinding) -> PropertyFinding:
    """A finding about runs none of which was seen to end: marked, and undefined if it is about how runs end, or when.

    Engines give such a property a value, for the chain takes its ends from its prior, or the last observation of every
    run for its last step. Nothing of that was measured. A property about the steps on the way has its value, and it is
    said of which runs. Engines that disagree stay as they are.
    """
    agreement = finding.agreement
    if agreement.agree is False or not any(each.answered for each in agreement.results):
        return replace(finding, marks=(*finding.marks, NO_END_SEEN))
    if not is_about_ends(agreement.property.formula):
        told = "; ".join([*([agreement.reason] if agreement.reason else []), OF_RUNS_THAT_GO_ON])
        return replace(finding, agreement=replace(agreement, reason=told), marks=(*finding.marks, NO_END_SEEN))
    reason = "; ".join([*([agreement.reason_at_estimate] if agreement.reason_at_estimate else []), NO_END_REASON])
    guarantee = finding.guarantee
    if guarantee is not None:
        guarantee = replace(guarantee, lower=None, upper=None, verdict=None, reason=NO_END_REASON)
    return PropertyFinding(
        agreement=replace(
            agreement,
            gap=None,
            allowed=None,
            verdict=Verdict.UNDECIDED,
            reason=reason,
            at_estimate=Verdict.UNDECIDED,
            reason_at_estimate=reason,
            results=tuple(_undefined(each) if each.answered else each for each in agreement.results),
            uncertainty=None,
        ),
        standing=finding.standing,
        marks=(*(mark for mark in finding.marks if mark != RELATIVE_TO_SUPPORT), NO_END_SEEN),
        guarantee=guarantee,
    )


def is_about_ends(formula: ast.Formula) -> bool:
    """It names an end, or asks for what is summed up or goes on until there is one."""
    nodes = [*ast.walk(formula)]
    names = {node.name for node in nodes if isinstance(node, ast.Label)}
    endless = (ast.SteadyState, ast.LongRunReward)
    total = any(
        isinstance(node, ast.CumulativeReward) and node.bound is None and not node.reward_bounds for node in nodes
    )
    return bool(names & _ENDS) or total or any(isinstance(node, endless) for node in nodes)


def _undefined(result: CheckResult) -> CheckResult:
    """What an engine found for a number that is undefined."""
    is_number = result.value is not None or result.range is not None
    return CheckResult(
        property=result.property,
        engine=result.engine,
        exact=result.exact,
        verdict=Verdict.UNDECIDED,
        value=_UNDEFINED if is_number else None,
        reason=NO_END_REASON,
    )
