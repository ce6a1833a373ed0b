"""Everything a run found, as the results document, the summary and the terminal show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracebridge.agreement import Agreement, worst_exit_code
from tracebridge.inference.certificate import NOT_CERTIFIED

if TYPE_CHECKING:
    from tracebridge.chain.fit import ChainFit
    from tracebridge.inference.certificate import Certificate
    from tracebridge.inference.figure_uncertainty import FigureUncertainty
    from tracebridge.inference.planning import Plan
    from tracebridge.inference.qualitative import QualitativeBasis
    from tracebridge.inference.second_opinion import SecondOpinion
    from tracebridge.report.figures import KeyFigures
    from tracebridge.report.observed import ObservedCurve

#: Stands beside a qualitative verdict on a chain that lacks what was not seen.
RELATIVE_TO_SUPPORT = "relative to support"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyFinding:
    """One property with all that is said about it.

    Attributes:
        agreement: what the engines and the data say.
        marks: words that stand beside its verdict and numbers wherever they are shown.
        opinion: intervals by other methods. plan: how many more runs would decide it. basis: what its qualitative
            operators rest on, on a chain that lacks unseen transitions.
    """

    agreement: Agreement
    marks: tuple[str, ...] = ()
    opinion: SecondOpinion | None = None
    plan: Plan | None = None
    basis: tuple[QualitativeBasis, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A JSON document."""
        return {
            **self.agreement.to_dict(),
            "marks": list(self.marks),
            "second_opinion": None if self.opinion is None else self.opinion.to_dict(),
            "plan": None if self.plan is None else self.plan.to_dict(),
            "rests_on": [each.to_dict() for each in self.basis],
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
        observed: the empirical curve beside the chain's. notes: what was left out and why, one sentence each.
    """

    corpus: Mapping[str, Any]
    fit: ChainFit
    figures: KeyFigures | str
    properties: tuple[PropertyFinding, ...]
    engines: Mapping[str, str]
    exact: bool
    certificate: Certificate | str
    figure_uncertainty: Mapping[str, FigureUncertainty] = field(default_factory=dict)
    observed: ObservedCurve | None = None
    notes: tuple[str, ...] = ()

    @property
    def mark(self) -> str | None:
        """What stands beside every number of a chain that is not accepted."""
        return NOT_CERTIFIED if isinstance(self.certificate, str) else self.certificate.mark

    @property
    def exit_code(self) -> int:
        """The worst over all properties; 4 if the certificate rejects the chain."""
        codes = [each.agreement.exit_code for each in self.properties]
        if not isinstance(self.certificate, str) and self.certificate.verdict == "reject":
            codes.append(4)
        return worst_exit_code(codes)


def marks_of(basis: Sequence[QualitativeBasis], mark: str | None = None) -> tuple[str, ...]:
    """The words beside the verdict of a property: of the certificate, and of the support that it rests on.

    Args:
        basis: of a property on a chain that lacks unseen transitions, else empty. mark: of the certificate.
    """
    return (*(() if mark is None else (mark,)), *((RELATIVE_TO_SUPPORT,) if basis else ()))
