"""Which transitions a property hangs on: where engineering pays, and where more runs pay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tracebridge.chain.expanded.fit import ExpandedFit
from tracebridge.checking.gradient import property_gradient
from tracebridge.checking.run import resolve_for
from tracebridge.errors import EngineError
from tracebridge.inference.transition_effects import transition_effects
from tracebridge.pctl import ast, format_formula
from tracebridge.report.html.data_table import Cell, Column, DataTable
from tracebridge.report.html.recorded_numbers import percent
from tracebridge.report.table import NOTHING, format_number

if TYPE_CHECKING:
    from tracebridge.inference.transition_effects import TransitionEffects
    from tracebridge.report.evidence import Evidence

#: So many properties are ranked, in the order of the file, and so many transitions are shown of each.
MOST_RANKED = 4
TOP = 8

#: A chain with more transitions is not ranked: the ranking would take longer than the report.
MOST_TRANSITIONS = 20_000

_LEAST_SHARE = 0.0001  # of a variance, below which its digits say nothing


_SEEN = "how often runs took it; at 0 the probability is that of the prior alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the transitions do to one property.

    Attributes:
        name: of the property. summary: its value and deviation, or why there is no ranking. tables: none, or two.
    """

    name: str
    summary: str
    tables: Sequence[DataTable]


def rankings(evidence: Evidence) -> list[Ranking]:
    """Of the first properties that have one number, equal ones once; none for a chain of too many transitions."""
    fit = evidence.fit
    if fit.chain.transitions.nnz > MOST_TRANSITIONS:
        return []
    resolved = resolve_for(fit.chain, evidence.properties, evidence.constants).properties
    undefined = [_undefined(each) for each in evidence.results["properties"]]
    found: list[Ranking] = []
    seen: set[str] = set()
    for position, property_ in enumerate(resolved, start=1):
        operator = _operator_text(property_)
        if operator in seen:
            continue
        seen.add(operator)
        reason = undefined[position - 1]
        if reason is not None:
            name = property_.name or f"#{position}"
            found.append(Ranking(name=name, summary=f"no ranking: the number is undefined; {reason}", tables=()))
        else:
            found.append(_ranking(evidence, property_, position))
        if len(found) == MOST_RANKED:
            break
    return found


def _undefined(found: Mapping[str, Any]) -> str | None:
    """Why the number of a property is undefined; None if it is not."""
    values = [each["value"] for each in found["engines"] if each["value"] is not None]
    return found["reason"] if values and all(each["value"] == "NaN" for each in values) else None


def _operator_text(property_: ast.Property) -> str:
    """The number that a property is about, without the bound that it is held against."""
    formula = property_.formula
    if isinstance(formula, ast.Quantitative) and formula.threshold is not None:
        formula = replace(formula, threshold=None)
    return format_formula(formula)


def _ranking(evidence: Evidence, property_: ast.Property, position: int) -> Ranking:
    name = property_.name or f"#{position}"
    fit = evidence.fit
    try:
        gradient = property_gradient(fit.chain, property_)
    except EngineError as error:
        return Ranking(name=name, summary=f"no ranking: {error}", tables=())
    effects = transition_effects(gradient, None if isinstance(fit, ExpandedFit) else fit)
    summary = f"value {format_number(effects.value, 6)}"
    if effects.deviation is not None:
        summary += f", posterior standard deviation {effects.deviation:.4g} by the delta method"
    if effects.start_share is not None:
        start = (
            percent(effects.start_share)
            if effects.start_share >= _LEAST_SHARE
            else f"less than {percent(_LEAST_SHARE)}"
        )
        summary += f"; where runs start causes {start} of its variance"
    return Ranking(name=name, summary=summary, tables=[_by_slope(effects), *_by_spread(effects)])


def _by_slope(effects: TransitionEffects) -> DataTable:
    rows = [
        [
            Cell(each.source),
            Cell(each.target),
            Cell(f"{each.probability:.4g}", sort=each.probability),
            *(() if each.times_seen is None else (Cell(f"{each.times_seen:,}", sort=each.times_seen),)),
            Cell(f"{each.slope / 100:+.3g}", sort=each.slope),
        ]
        for each in effects.transitions[:TOP]
    ]
    columns = [
        Column("from"),
        Column("to"),
        Column("probability", numeric=True),
        *([Column("seen", numeric=True, meaning=_SEEN)] if effects.deviation is not None else ()),
        Column("effect of +0.01", numeric=True, meaning="taken from the other transitions of its state, in proportion"),
    ]
    return DataTable(
        caption="Where engineering pays: one more percentage point on a transition", columns=columns, rows=rows
    )


def _by_spread(effects: TransitionEffects) -> list[DataTable]:
    ranked = effects.by_spread()[:TOP]
    if not ranked:
        return []
    rows = [
        [
            Cell(each.source),
            Cell(each.target),
            Cell(f"{each.probability:.4g}", sort=each.probability),
            Cell(NOTHING if each.deviation is None else f"{each.deviation:.3g}", sort=each.deviation),
            Cell(NOTHING if each.spread is None else f"{each.spread:.3g}", sort=each.spread),
            Cell(percent(each.variance_share), sort=each.variance_share, share=each.variance_share),
        ]
        for each in ranked
    ]
    columns = [
        Column("from"),
        Column("to"),
        Column("probability", numeric=True),
        Column("deviation", numeric=True, meaning="posterior standard deviation of the probability"),
        Column("effect of one deviation", numeric=True),
        Column("of the variance", numeric=True),
    ]
    return [DataTable(caption="Where more runs pay: a transition one deviation off", columns=columns, rows=rows)]
