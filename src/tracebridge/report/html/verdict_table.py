"""The verdict table: what a reviewer reads first, one row a property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.errors import ModelError
from tracebridge.pctl import ast, format_formula
from tracebridge.report.html.data_table import Cell, Column, DataTable, Tone
from tracebridge.report.html.recorded_numbers import enclosure_text, interval_of, number_text, sortable
from tracebridge.report.table import NOTHING

if TYPE_CHECKING:
    from tracebridge.report.evidence import Evidence

Document = Mapping[str, Any]

_TONES: Mapping[str, Tone] = {
    "satisfied": "good",
    "answered": "muted",
    "violated": "bad",
    "DISAGREE": "bad",
    "error": "bad",
    "undecided": "open",
    "unsupported": "open",
}

_NOT_ANSWERED = ("unsupported", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedProperty:
    """A property of the file with what was found.

    Attributes:
        position: in the file, from 1. resolved: the property, its constants in place.
        found: its part of the results. reading: in plain language.
    """

    position: int
    resolved: ast.Property
    found: Document
    reading: str

    @property
    def name(self) -> str:
        """Its name, or its number in the file."""
        return self.found["name"] or f"#{self.position}"

    @property
    def anchor(self) -> str:
        """The id of its block in the page."""
        return f"property-{self.position}"

    @property
    def requirement(self) -> str | None:
        """The id of the requirement that it stands for."""
        return self.resolved.annotation("requirement")

    @property
    def verdict(self) -> str:
        """The joint verdict in a word."""
        if self.found["agree"] is False:
            return "DISAGREE"
        return self.found["verdict"] or "answered"

    @property
    def tone(self) -> Tone:
        """How the verdict looks."""
        return _TONES.get(self.verdict, "open")

    @property
    def answers(self) -> list[Document]:
        """What the engines said that evaluated every operator."""
        return [each for each in self.found["engines"] if each["verdict"] not in _NOT_ANSWERED]

    @property
    def headline(self) -> str:
        """The value of the first engine that decided, or else answered, and the bound that it is held against."""
        if not self.answers:
            return NOTHING
        answer = next((each for each in self.answers if each["verdict"] != "undecided"), self.answers[0])
        formula = self.resolved.formula
        threshold = formula.threshold if isinstance(formula, ast.Quantitative) else None
        bound = f" ({threshold.comparison}{format_formula(threshold.value)})" if threshold and answer["value"] else ""
        return engine_value(answer, digits=6) + bound

    @property
    def gap(self) -> str:
        """How far the engines are apart."""
        gap = self.found["gap"]
        if gap is None:
            return NOTHING
        return "equal" if gap == 0 and all(each["exact"] for each in self.answers) else number_text(gap, 2)


def recorded_properties(evidence: Evidence) -> list[RecordedProperty]:
    """The properties of a file with their results.

    Raises:
        ModelError: they are not as many.
    """
    properties, results = evidence.resolved.properties, evidence.results["properties"]
    readings = evidence.document["readings"]
    if not len(properties) == len(results) == len(readings):
        raise ModelError(
            f"the evidence has {len(properties)} properties, {len(results)} results and {len(readings)} readings"
        )
    return [
        RecordedProperty(position=position, resolved=property_, found=found, reading=reading["text"])
        for position, (property_, found, reading) in enumerate(zip(properties, results, readings, strict=True), start=1)
    ]


def engine_value(result: Document, *, digits: int) -> str:
    """The value or truth that one engine found, or how it failed."""
    if result["verdict"] in _NOT_ANSWERED:
        return str(result["verdict"])
    if "range" in result:
        return f"[{', '.join(enclosure_text(end, digits) for end in result['range'])}]"
    if result["value"] is not None:
        return enclosure_text(result["value"], digits)
    return NOTHING if result["truth"] is None else str(result["truth"]).lower()


def verdict_table(properties: Sequence[RecordedProperty]) -> DataTable:
    """One row a property, in the order of the file."""
    engines = [each["engine"] for each in properties[0].found["engines"]] if properties else []
    has_data = any(each.found["uncertainty"] is not None for each in properties)
    has_marks = any(each.found["marks"] for each in properties)
    has_requirements = any(each.requirement for each in properties)
    level = common_level(properties)
    columns = [
        Column("property"),
        *([Column("requirement")] if has_requirements else []),
        Column("verdict"),
        *([Column("marks", meaning="what the verdict and the value must not be read without")] if has_marks else []),
        Column("value", numeric=True, meaning="mean over the start; in brackets the bound it is held against"),
        *(
            [
                Column(f"{level} interval", numeric=True, meaning="what the data leave open, if the chain holds"),
                Column("P(sat.)", numeric=True, meaning="share of the posterior in which the property holds"),
            ]
            if has_data
            else []
        ),
        *(Column(name, numeric=True, meaning=f"the value that {name} computed") for name in engines),
        Column("gap", numeric=True, meaning="largest difference between engines over all operators and states"),
    ]
    rows = [
        _row(each, level, has_data=has_data, has_marks=has_marks, has_requirements=has_requirements)
        for each in properties
    ]
    return DataTable(caption="Verdict of each property", columns=columns, rows=rows, sortable=True)


def _row(each: RecordedProperty, level: str, *, has_data: bool, has_marks: bool, has_requirements: bool) -> list[Cell]:
    found = each.found
    value = each.answers[0]["value"] if each.answers else None
    uncertainty = found["uncertainty"]
    data = [Cell(NOTHING), Cell(NOTHING)]
    if uncertainty is not None:
        interval, own = uncertainty["interval"], percent_level(uncertainty["level"])
        text = interval_of(interval) + (f" {own}" if interval is not None and own != level else "")
        share = uncertainty["satisfied"]
        data = [
            Cell(text, sort=None if interval is None else sortable(interval["lower"])),
            Cell(number_text(share), sort=sortable(share)),
        ]
    return [
        Cell(each.name, href=each.anchor),
        *([Cell(each.requirement or NOTHING)] if has_requirements else []),
        Cell(each.verdict, tone=each.tone),
        *([Cell(", ".join(found["marks"]) or NOTHING, tone="open" if found["marks"] else "")] if has_marks else []),
        Cell(each.headline, sort=None if value is None else sortable(value["value"])),
        *(data if has_data else []),
        *(
            Cell(engine_value(result, digits=10), sort=sortable(result["value"]["value"]) if result["value"] else None)
            for result in found["engines"]
        ),
        Cell(each.gap, sort=sortable(found["gap"])),
    ]


def percent_level(level: float) -> str:
    """``95 %``."""
    return f"{100 * level:.6g} %"


def common_level(properties: Sequence[RecordedProperty]) -> str:
    """The level of most intervals, which goes without saying in the cells."""
    found = (each.found["uncertainty"] for each in properties)
    levels = [percent_level(each["level"]) for each in found if each is not None]
    return max(dict.fromkeys(levels), key=levels.count) if levels else ""


def verdict_counts(properties: Sequence[RecordedProperty]) -> list[tuple[str, int, Tone]]:
    """How many properties have each verdict, in the order in which they are met first."""
    words = [each.verdict for each in properties]
    return [(word, words.count(word), _TONES.get(word, "open")) for word in dict.fromkeys(words)]
