"""The tables of ``summary.md`` about a chain's numbers: its headline figures, and R(d) beside the observed curve."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isinf
from typing import TYPE_CHECKING

from tracebridge.report.markdown import escape, table
from tracebridge.report.table import NOTHING, interval_text
from tracebridge.traces.problems import counted

if TYPE_CHECKING:
    from tracebridge.inference.intervals import Interval
    from tracebridge.report.figures import KeyFigures
    from tracebridge.report.findings import Findings
    from tracebridge.report.observed import ObservedCurve


def figure_table(findings: Findings, figures: KeyFigures) -> str:
    """The headline numbers with their intervals, and what the censored runs could make of them."""
    rows = [
        ("R_inf", "R_inf, long-run probability of success", f"{figures.reliability:.6g}"),
        ("MTTA", "MTTA, mean steps until a run ends", f"{figures.mean_time:.6g}"),
        ("deviation", "standard deviation of these steps", f"{figures.standard_deviation:.4g}"),
        ("horizon", "horizon: smallest d with R_inf - R(d) <= 0.01", _steps(figures.horizon)),
        ("median", "median steps of a success", _steps(figures.median_success)),
        (
            "steps_per_failure",
            "steps run for each run that does not succeed, MTTA / (1 - R_inf)",
            f"{figures.steps_per_failure:.6g}",
        ),
    ]
    columns = ["figure", _marked("value", findings)]
    shown = [[text, value] for _, text, value in rows]
    if found := findings.figure_uncertainty:
        columns += ["95 % interval", "by other methods"]
        for row, (name, _, _) in zip(shown, rows, strict=True):
            row += [interval_text(found[name].posterior), _others(found[name].others)]
    if bounds := _bounds(findings.observed):
        columns.append("if all censored runs failed .. succeeded")
        for row, (name, _, _) in zip(shown, rows, strict=True):
            row.append(bounds.get(name, NOTHING))
    return table(columns, shown)


def curve_table(findings: Findings, figures: KeyFigures) -> str:
    """``R(d)`` of the chain with its intervals, the empirical curve, and the two extremes."""
    observed, found = findings.observed, findings.figure_uncertainty
    columns = ["d", _marked("R(d)", findings)]
    shown = [[str(d), f"{value:.6g}"] for d, value in figures.curve.items()]
    if found:
        columns.append("95 % interval")
        for row, d in zip(shown, figures.curve, strict=True):
            row.append(interval_text(found[f"R({d})"].posterior))
    if observed is not None and observed.points:
        columns.append("observed (Aalen-Johansen)")
        for row, point in zip(shown, observed.points, strict=True):
            ends = "" if point.lower is None or point.upper is None else f" [{point.lower:.4g}, {point.upper:.4g}]"
            row.append("no run was seen for so long" if point.value is None else f"{point.value:.4g}{ends}")
    if bounds := _bounds(observed):
        columns.append("if all censored runs failed .. succeeded")
        for row, d in zip(shown, figures.curve, strict=True):
            row.append(bounds[f"R({d})"])
    return table(columns, shown)


def curve_notes(findings: Findings) -> Iterator[str]:
    """Why there is no interval, and how the observed curve and the last column are to be read."""
    if any(each.posterior is None for each in findings.figure_uncertainty.values()):
        yield (
            "There is no 95 % interval where some draws have no such number or, in a chain without a prior, all have "
            "the same: no draw then gives a chance to what was never seen."
        )
    observed = findings.observed
    if observed is None:
        return
    if not isinstance(findings.fit.start, str):
        yield (
            "The chain starts where it was told to, and not as the runs did: neither their curve nor their pass rate "
            "stands beside its numbers."
        )
    elif observed.points:
        yield from _about_observed_curve(findings, observed)
    if observed.bounds:
        yield (
            f"The last column is about the {counted(observed.n_censored, 'censored run')}: the chain if all of them "
            "had failed with their last step, and if all had succeeded. However their ends are shared out, R_inf and "
            "R(d) lie between; a run that would have gone on makes the mean time longer."
        )
    elif observed.missing is not None:
        yield f"No bounds for the {counted(observed.n_censored, 'censored run')}: {escape(observed.missing)}."


def _about_observed_curve(findings: Findings, observed: ObservedCurve) -> Iterator[str]:
    yield (
        "The observed curve needs no chain: it is the share of runs that succeeded within d steps, censored runs "
        "counted for as long as they were seen, with its 95 % score interval."
        + (" Runs have weights; the observed curve leaves them aside." if findings.fit.weighted is not None else "")
    )
    if observed.n_censored:
        yield (
            "A censored run counts there as not ended by its last step; the fit leaves out what followed that step. "
            "Where many short runs are censored, above all not by a step cap, the two differ for that reason alone."
        )


def _marked(head: str, findings: Findings) -> str:
    return head if findings.mark is None else f"{head} ({findings.mark})"


def _others(intervals: Iterable[Interval]) -> str:
    return "; ".join(f"{each.method} {interval_text(each)}" for each in intervals) or NOTHING


def _bounds(observed: ObservedCurve | None) -> dict[str, str]:
    """The two extremes of each number, as text; of the mean time its lower bound."""
    if observed is None:
        return {}
    return {
        name: f"at least {each.all_fail:.4g}" if name == "MTTA" else f"{each.all_fail:.4g} .. {each.all_succeed:.4g}"
        for name, each in observed.bounds.items()
    }


def _steps(d: float) -> str:
    return "none" if isinf(d) or d != d else counted(int(d), "step")  # noqa: PLR0124 - NaN
