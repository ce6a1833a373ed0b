"""R(d) of the chain with its band over what was observed with its own: a drawing and a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from tracebridge.closedform import reliability_curve
from tracebridge.report.html.data_table import Cell, Column, DataTable
from tracebridge.report.html.recorded_numbers import interval_of, number_text, sortable
from tracebridge.report.html.svg import area, drawing, element, polyline, ticks
from tracebridge.report.table import NOTHING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.report.html.svg import Point

Document = Mapping[str, Any]

_WIDTH, _HEIGHT = 760.0, 330.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 92.0, 14.0, 44.0
_MOST_TICKS = 10


def reliability_drawing(chain: MarkovChain, results: Document) -> Markup:
    """The drawing; the results have figures.

    The line of the chain is the closed form at every d, its band the recorded intervals at the budgets of the table.
    """
    figures, observed = results["figures"], results["observed"]
    budgets = [int(d) for d in figures["R"]]
    last = max(budgets[-1], 2)
    curve = reliability_curve(chain, last).tolist()

    def at(d: float, share: float) -> Point:
        width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
        return _LEFT + width * d / last, _TOP + height * (1 - share)

    parts = [*_axes(last, at)]
    points = _observed_points(observed)
    if points:
        known = [(d, each) for d, each in points if each["lower"] is not None]
        upper = [at(d, float(each["upper"])) for d, each in known]
        parts.append(
            element("path", d=area(upper, [at(d, float(e["lower"])) for d, e in known]), class_="band observed")
        )
    band = [(d, figures["uncertainty"][f"R({d})"]["posterior"]) for d in budgets if f"R({d})" in figures["uncertainty"]]
    band = [(d, each) for d, each in band if each is not None]
    if band:
        upper = [at(d, float(each["upper"])) for d, each in band]
        parts.append(element("path", d=area(upper, [at(d, float(e["lower"])) for d, e in band]), class_="band chain"))
    if points:
        path = [at(d, float(each["value"])) for d, each in points]
        parts.append(element("path", d=polyline(path), class_="line observed"))
        parts += [element("circle", cx=x, cy=y, r=3, class_="point observed") for x, y in path]
    parts.append(element("path", d=polyline(at(d, value) for d, value in enumerate(curve)), class_="line chain"))
    limit = float(figures["R_inf"])
    (x, y), (x2, _) = at(0, limit), at(last, limit)
    parts.append(element("path", d=polyline([(x, y), (x2, y)]), class_="limit"))
    parts.append(element("text", f"R_inf {limit:.3g}", x=x2 + 8, y=y + 3.5, class_="label"))
    seen = f"The observed curve has {len(points)} points." if points else "There is no observed curve."
    return drawing(
        _WIDTH,
        _HEIGHT,
        *parts,
        key="reliability",
        title="Probability of success within d steps, R(d)",
        description=(
            f"R(d) of the chain rises from {curve[0]:.3g} at 0 steps to {curve[-1]:.3g} at {last} steps; its limit is "
            f"{limit:.4g}. {seen} The table below has the numbers."
        ),
    )


def _axes(last: int, at: Any) -> list[Markup]:
    parts = []
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1.0):
        (x, y), (x2, _) = at(0, share), at(last, share)
        parts.append(element("path", d=polyline([(x, y), (x2, y)]), class_="axis" if share == 0 else "grid"))
        parts.append(element("text", f"{share:g}", x=x - 8, y=y + 3.5, text_anchor="end", class_="tick"))
    for d in ticks(last, _MOST_TICKS):
        if d == int(d):
            x, y = at(d, 0)
            parts.append(element("path", d=polyline([(x, y), (x, y + 4)]), class_="axis"))
            parts.append(element("text", f"{d:g}", x=x, y=y + 16, text_anchor="middle", class_="tick"))
    x, y = at(last / 2, 0)
    parts.append(element("text", "step budget d", x=x, y=y + 35, text_anchor="middle", class_="label"))
    return parts


def _observed_points(observed: Document | None) -> Sequence[tuple[int, Document]]:
    if observed is None:
        return []
    return [(int(d), each) for d, each in observed["R"].items() if each["value"] is not None]


def reliability_table(results: Document) -> DataTable:
    """The same numbers, and what the censored runs could make of them."""
    figures, observed = results["figures"], results["observed"]
    seen: Document = {} if observed is None else observed["R"]
    extremes: Document = {} if observed is None else observed["if_all_censored"]
    columns = [Column("d", numeric=True), Column("R(d)", numeric=True)]
    if figures["uncertainty"]:
        columns.append(Column("95 % interval", numeric=True))
    if seen:
        columns += [Column("observed", numeric=True), Column("95 % interval (observed)", numeric=True)]
    if extremes:
        columns.append(Column("if all censored runs failed .. succeeded", numeric=True))
    rows = []
    for d, value in figures["R"].items():
        row = [Cell(d, sort=float(d)), Cell(number_text(value, 6), sort=sortable(value))]
        if figures["uncertainty"]:
            row.append(Cell(interval_of(figures["uncertainty"][f"R({d})"]["posterior"])))
        if seen:
            point = seen[d]
            ends = NOTHING
            if point["lower"] is not None:
                ends = f"[{number_text(point['lower'])}, {number_text(point['upper'])}]"
            row += [Cell(number_text(point["value"]), sort=sortable(point["value"])), Cell(ends)]
        if extremes:
            row.append(Cell(_between(extremes.get(f"R({d})"))))
        rows.append(row)
    return DataTable(caption="R(d), the probability of success within d steps", columns=columns, rows=rows)


def _between(extreme: Document | None) -> str:
    return NOTHING if extreme is None else f"{number_text(extreme['fail'])} .. {number_text(extreme['succeed'])}"


_FIGURES = (
    ("R_inf", "R_inf", "R_inf, long-run probability of success", 6),
    ("MTTA", "MTTA", "MTTA, mean steps until a run ends", 6),
    ("deviation", "MTTA_standard_deviation", "standard deviation of these steps", 4),
    ("horizon", "horizon_0.01", "horizon: smallest d with R_inf - R(d) at most 0.01", 6),
    ("median", "median_steps_to_success", "median steps of a success", 6),
    ("steps_per_failure", "steps_per_failure", "steps run for each run that does not succeed, MTTA / (1 - R_inf)", 6),
)


def figure_table(results: Document) -> DataTable:
    """The headline numbers of the chain with their intervals."""
    figures, observed = results["figures"], results["observed"]
    uncertainty = figures["uncertainty"]
    extremes: Document = {} if observed is None else observed["if_all_censored"]
    columns = [Column("figure"), Column("value", numeric=True)]
    if uncertainty:
        columns += [Column("95 % interval", numeric=True), Column("by other methods", prose=True)]
    if extremes:
        columns.append(Column("if all censored runs failed .. succeeded", numeric=True))
    rows = []
    for name, key, text, digits in _FIGURES:
        value = figures[key]
        shown = "none" if value in ("Infinity", "NaN") and name in ("horizon", "median") else number_text(value, digits)
        row = [Cell(text), Cell(shown)]
        if uncertainty:
            others = "; ".join(f"{each['method']} {interval_of(each)}" for each in uncertainty[name]["others"])
            row += [Cell(interval_of(uncertainty[name]["posterior"])), Cell(others or NOTHING)]
        if extremes:
            between = _between(extremes.get(name))
            row.append(Cell(f"at least {number_text(extremes['MTTA']['fail'])}" if name == "MTTA" else between))
        rows.append(row)
    return DataTable(caption="Headline figures of the chain", columns=columns, rows=rows)
