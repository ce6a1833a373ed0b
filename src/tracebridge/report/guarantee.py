"""The conservative guarantee beside the posterior interval, as a table for the terminal and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tracebridge.report.table import NOTHING, interval_text, property_name
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.agreement import Ends
    from tracebridge.inference.robust_guarantee import RobustGuarantee
    from tracebridge.report.findings import PropertyFinding

COLUMNS = ("property", "guaranteed", "in all of these chains", "posterior interval", "width ratio")


def has_guarantees(findings: Sequence[PropertyFinding]) -> bool:
    """Whether a guarantee was asked for."""
    return any(each.guarantee is not None for each in findings)


def guarantee_heading(findings: Sequence[PropertyFinding]) -> str:
    """What the guarantee is, one sentence."""
    first = next(each.guarantee for each in findings if each.guarantee is not None)
    return (
        f"Conservative guarantee: with a confidence of at least {100 * first.level:.6g} % every property lies between "
        f"its extremes over all chains whose {counted(first.transitions, 'uncertain transition')} lie in their "
        "Clopper-Pearson intervals, all at once (Bonferroni), whatever the prior; taken as given are the support, the "
        "start, and how often each state was left"
    )


def guarantee_rows(findings: Sequence[PropertyFinding]) -> list[list[str]]:
    """One row a property, aligned with `COLUMNS`."""
    return [
        [property_name(each.agreement, position), *_cells(each.guarantee, each.interval)]
        for position, each in enumerate(findings, start=1)
        if each.guarantee is not None
    ]


def missing_guarantees(findings: Sequence[PropertyFinding]) -> Iterator[tuple[str, str]]:
    """The name of a property with why there is no guarantee."""
    for position, each in enumerate(findings, start=1):
        if each.guarantee is not None and each.guarantee.reason is not None:
            yield property_name(each.agreement, position), f"no guarantee: {each.guarantee.reason}"


def _cells(guarantee: RobustGuarantee, interval: Ends | None) -> list[str]:
    between = NOTHING
    if guarantee.lower is not None and guarantee.upper is not None:
        between = f"[{guarantee.lower:.4g}, {guarantee.upper:.4g}]"
    ratio = guarantee.width_ratio(interval)
    return [
        between,
        NOTHING if guarantee.verdict is None else str(guarantee.verdict),
        interval_text(interval),
        NOTHING if ratio is None else f"{ratio:.3g}",
    ]
