"""One block a property: its formula read aloud, what each engine says, what the data say, and what would decide it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import Verdict
from tracebridge.inference.planning import Outlook, Plan
from tracebridge.report.findings import RELATIVE_TO_SUPPORT
from tracebridge.report.html.data_table import Cell, Column, DataTable
from tracebridge.report.html.recorded_numbers import bounds_text, enclosure_of, interval_of, number_text
from tracebridge.report.html.verdict_table import RecordedProperty, engine_value
from tracebridge.report.table import NOTHING, SHOWN_VALUES, enclosure_text, level_text
from tracebridge.report.uncertainty import SHOWN_EDGES, contrary_opinions, plan_text

if TYPE_CHECKING:
    from tracebridge.pctl import ast

Document = Mapping[str, Any]

_DIGITS = 12
_SHOWN_STARTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyBlock:
    """What stands under the name of a property.

    Attributes:
        recorded: the property. formula: as its author wrote it. facts: name and text of what is said in one line.
        tables: of engines, other methods and listings. remarks: sentences.
    """

    recorded: RecordedProperty
    formula: str
    facts: Sequence[tuple[str, str]]
    tables: Sequence[DataTable]
    remarks: Sequence[str]


def property_block(recorded: RecordedProperty) -> PropertyBlock:
    """The block of one property."""
    found = recorded.found
    tables = [_engines(found), *_opinions(found), *_listings(found)]
    remarks = [*_reasons(found), *_plan(found, recorded.resolved), *_basis(found)]
    return PropertyBlock(
        recorded=recorded,
        formula=found["formula"],
        facts=list(_facts(recorded)),
        tables=tables,
        remarks=list(dict.fromkeys(remarks)),
    )


def _facts(recorded: RecordedProperty) -> Iterator[tuple[str, str]]:
    found = recorded.found
    yield from ((note.key, note.value) for note in recorded.resolved.annotations)
    if found["agree"] is None:
        yield "engines", "fewer than two engines answered: nothing was cross-checked"
    elif found["agree"] and found["gap"] is None:
        yield "engines", "agree that the value is undefined"
    else:
        said = "agree" if found["agree"] else "DISAGREE"
        yield "engines", f"{said}; gap {recorded.gap}, allowed {number_text(found['allowed'], 2)}"
    if found["at_estimate"] is not None and found["at_estimate"] != found["verdict"]:
        yield "fitted chain alone", str(found["at_estimate"])
    if (data := found["uncertainty"]) is not None:
        if (interval := data["interval"]) is not None:
            errors = data["quantile_errors"]
            error = "" if errors is None else f"; Monte-Carlo error of the ends {max(map(float, errors)):.1g}"
            yield f"{level_text(data['level'])} interval", f"{interval_of(interval)}, {interval['method']}{error}"
        if data["satisfied"] is not None:
            error = "" if data["share_error"] is None else f" (standard error {number_text(data['share_error'], 1)})"
            yield "P(satisfied | data)", number_text(data["satisfied"]) + error
        yield "draws", f"{data['draws']}, seed {data['seed']}"
    if (guarantee := found.get("guarantee")) is not None:
        yield "conservative guarantee", _guarantee(guarantee)
    if (standing := found["standing"]) is not None:
        reasons = "; ".join(standing["reasons"])
        yield f"certificate for {standing['scope']}", f"{standing['verdict']}{f': {reasons}' if reasons else ''}"


def _guarantee(guarantee: Document) -> str:
    if guarantee["lower"] is None or guarantee["upper"] is None:
        return f"none: {guarantee['reason']}"
    between = f"[{number_text(guarantee['lower'])}, {number_text(guarantee['upper'])}]"
    verdict = "" if guarantee["verdict"] is None else f", {guarantee['verdict']} in all of these chains"
    return f"{between} at {level_text(guarantee['level'])}{verdict}; {guarantee['method']}"


def _engines(found: Document) -> DataTable:
    columns = [
        Column("engine"),
        Column("verdict"),
        Column("value", numeric=True),
        Column("bounds on rounding", numeric=True),
        Column("arithmetic"),
    ]
    rows = [
        [
            Cell(each["engine"]),
            Cell(each["verdict"] or "answered"),
            Cell(engine_value(each, digits=_DIGITS)),
            Cell(NOTHING if each["value"] is None else bounds_text(each["value"])),
            Cell("rationals" if each["exact"] else "doubles"),
        ]
        for each in found["engines"]
    ]
    return DataTable(caption="What each engine computed", columns=columns, rows=rows)


def _opinions(found: Document) -> Iterator[DataTable]:
    """Intervals and shares by methods that owe nothing to a prior."""
    opinion = found["second_opinion"]
    if opinion is None:
        return
    intervals = {each["method"]: interval_of(each) for each in opinion["intervals"]}
    shares = opinion["satisfied"]
    methods = list(dict.fromkeys([*intervals, *shares]))
    if not methods:
        return
    columns = [Column("method"), Column("interval", numeric=True)]
    rows = [[Cell(method), Cell(intervals.get(method, NOTHING))] for method in methods]
    if shares:
        columns.append(Column("holds in", numeric=True, meaning="share of its draws in which the property holds"))
        rows = [[*row, Cell(number_text(shares.get(method)))] for row, method in zip(rows, methods, strict=True)]
    yield DataTable(caption="Second opinions, which owe nothing to a prior", columns=columns, rows=rows)


def _listings(found: Document) -> Iterator[DataTable]:
    """Values in several states, and in several start states."""
    answers = [each for each in found["engines"] if each["verdict"] not in ("unsupported", "error")]
    for listing in answers[0].get("listings", ()) if answers else ():
        rows = [[Cell(state), Cell(_listed(value))] for state, value in list(listing["values"].items())[:SHOWN_VALUES]]
        more = "" if listing["total"] <= len(rows) else f" (the first {len(rows)} of {listing['total']})"
        caption = f"{listing['filter']}{more}"
        yield DataTable(caption=caption, columns=[Column("state"), Column("value", numeric=True)], rows=rows)
    for operator in answers[0]["operators"] if answers else ():
        starts: Document = operator.get("start_states", {})
        rows = [
            [Cell(state), Cell(enclosure_text(enclosure_of(value), 10))]
            for state, value in list(starts.items())[:_SHOWN_STARTS]
        ]
        if rows:
            more = "" if len(starts) <= len(rows) else f" (the first {len(rows)} of {len(starts)})"
            caption = f"{operator['operator']} by start state{more}"
            yield DataTable(caption=caption, columns=[Column("start"), Column("value", numeric=True)], rows=rows)


def _listed(value: Any) -> str:
    if value is None:
        return "undecided"
    return str(value).lower() if isinstance(value, bool) else enclosure_text(enclosure_of(value), 10)


def _reasons(found: Document) -> Iterator[str]:
    """Why the verdict is what it is, and what is to be known about the numbers."""
    data, opinion = found["uncertainty"], found["second_opinion"]
    if found["reason"]:
        yield found["reason"]
    yield from contrary_opinions(found)
    for each in found["engines"]:
        if each["reason"]:
            yield f"{each['engine']}: {each['reason']}"
        for note in each["notes"]:
            yield f"{each['engine']}: {note['text']}"
    if data is not None:
        yield from data["notes"]
        if data["verdict"] == str(Verdict.UNSUPPORTED):
            yield f"no interval: {data['reason']}"
        if data["undefined"]:
            yield f"{data['undefined']} of {data['draws']} draws leave the number undefined"
    if opinion is not None:
        yield from opinion["notes"]


def _plan(found: Document, property_: ast.Property) -> Iterator[str]:
    plan = found["plan"]
    if plan is None:
        return
    names = ("n_more", "factor", "satisfied", "violated", "futures")
    yield plan_text(
        Plan(
            property=property_,
            level=plan["level"],
            verdict=Verdict(plan["verdict"]),
            outlooks=tuple(Outlook(**{name: each[name] for name in names}) for each in plan["outlooks"]),
            seed=plan["seed"],
            reason=plan["reason"],
        )
    )


def _basis(found: Document) -> Iterator[str]:
    """What the qualitative operators rest on."""
    for basis in found["rests_on"]:
        support = basis["support"]
        about = f"{RELATIVE_TO_SUPPORT}: {basis['operator']}"
        if support is None:
            yield f"{about}: which unseen transitions it rests on is not listed, because {basis['reason']}"
            continue
        if support["holds_as_observed"] is not None and support["holds_as_observed"] is not support["holds"]:
            yield f"{about}: on the observed transitions and starts alone the answer would be the opposite"
        edges = sorted(support["edges"], key=lambda edge: (-edge["bound"], edge["source"], edge["target"]))
        if not edges:
            yield f"{about}: no single unseen transition would change it"
            continue
        shown = "; ".join(
            f"{edge['source']} → {edge['target']} (at most {edge['bound']:.2g})" for edge in edges[:SHOWN_EDGES]
        )
        more = f"; and {len(edges) - SHOWN_EDGES} more" if len(edges) > SHOWN_EDGES else ""
        yield f"{about}: each of these unseen transitions would change it (one-sided 95 % bounds): {shown}{more}"
