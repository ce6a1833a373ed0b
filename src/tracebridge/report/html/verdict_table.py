"""The verdict table: what a reviewer reads first, one row a property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.checking.result import number_from_json
from tracebridge.errors import ModelError
from tracebridge.report.html.data_table import Cell, Column, DataTable, Tone
from tracebridge.report.html.recorded_numbers import enclosure_of, interval_of, number_text, sortable
from tracebridge.report.table import NOTHING, answer_text, bound_text, common_level, distance_text, level_text
from tracebridge.report.uncertainty import contrary_opinions

if TYPE_CHECKING:
    from tracebridge.pctl import ast
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

#: So many different reasons are told below the table; the blocks of the properties have all.
_MOST_REASONS = 12


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
    def value(self) -> str:
        """The value of the first engine that decided, or else answered."""
        return NOTHING if self._answer is None else engine_value(self._answer, digits=6)

    @property
    def bound(self) -> str:
        """What the value is held against, in brackets; empty for a query."""
        return bound_text(self.resolved).strip() if self._answer is not None and self._answer["value"] else ""

    @property
    def _answer(self) -> Document | None:
        return next((each for each in self.answers if each["verdict"] != "undecided"), next(iter(self.answers), None))

    @property
    def gap(self) -> str:
        """How far the engines are apart."""
        gap = self.found["gap"]
        return distance_text(
            None if gap is None else number_from_json(gap), exact=all(each["exact"] for each in self.answers)
        )


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
    value, ends = result["value"], result.get("range")
    return answer_text(
        value=None if value is None else enclosure_of(value),
        ends=None if ends is None else [enclosure_of(end) for end in ends],
        truth=result["truth"],
        digits=digits,
    )


def verdict_table(properties: Sequence[RecordedProperty]) -> DataTable:
    """One row a property, in the order of the file."""
    has_data = any(each.found["uncertainty"] is not None for each in properties)
    level = common_level([each.found["uncertainty"]["level"] for each in properties if each.found["uncertainty"]])
    columns = [
        Column("property"),
        Column("verdict"),
        Column("value", numeric=True, meaning="mean over the start; in brackets the bound it is held against"),
        *(
            [
                Column(f"{level} interval", numeric=True, meaning="what the data leave open, if the chain holds"),
                Column("P(sat.)", numeric=True, meaning="share of the posterior in which the property holds"),
            ]
            if has_data
            else []
        ),
        Column("gap", numeric=True, meaning="largest difference between engines over all operators and states"),
        Column("by each engine", numeric=True, meaning="the value that each engine computed"),
    ]
    return DataTable(
        caption="Verdict of each property",
        columns=columns,
        rows=[_row(each, level if has_data else None) for each in properties],
        sortable=True,
        stacks=True,
        keys=[each.verdict for each in properties],
    )


def _row(each: RecordedProperty, level: str | None) -> list[Cell]:
    """The cells of a property; intervals have this level unless they say otherwise, None without intervals."""
    value = each.answers[0]["value"] if each.answers else None
    engines = [Cell(f"{found['engine']} {engine_value(found, digits=10)}") for found in each.found["engines"]]
    return [
        Cell(each.name, href=each.anchor, lines=[Cell(each.requirement)] if each.requirement else []),
        Cell(each.verdict, tone=each.tone, lines=[Cell(mark, tone="open") for mark in each.found["marks"]]),
        Cell(
            each.value,
            sort=None if value is None else sortable(value["value"]),
            lines=[Cell(each.bound)] if each.bound else [],
        ),
        *([] if level is None else _data(each.found["uncertainty"], level)),
        Cell(each.gap, sort=sortable(each.found["gap"])),
        Cell(engines[0].text, sort=None if value is None else sortable(value["value"]), lines=engines[1:]),
    ]


def _data(uncertainty: Document | None, level: str) -> list[Cell]:
    """The interval of the value, and the share of the posterior in which the property holds."""
    if uncertainty is None:
        return [Cell(NOTHING), Cell(NOTHING)]
    interval, own, share = uncertainty["interval"], level_text(uncertainty["level"]), uncertainty["satisfied"]
    return [
        Cell(
            interval_of(interval),
            sort=None if interval is None else sortable(interval["lower"]),
            lines=[Cell(own)] if interval is not None and own != level else [],
        ),
        Cell(number_text(share), sort=sortable(share)),
    ]


def verdict_counts(properties: Sequence[RecordedProperty]) -> list[tuple[str, int, Tone]]:
    """How many properties have each verdict, in the order in which they are met first."""
    words = [each.verdict for each in properties]
    return [(word, words.count(word), _TONES.get(word, "open")) for word in dict.fromkeys(words)]


def told_reasons(properties: Sequence[RecordedProperty]) -> list[str]:
    """Why verdicts are not simply those of the engines, and who does not share them; what several have is said once."""
    names: dict[str, list[str]] = {}
    for each in properties:
        for reason in filter(None, [each.found["reason"], *contrary_opinions(each.found)]):
            names.setdefault(reason, []).append(each.name)
    return [f"{', '.join(found)}: {reason}" for reason, found in list(names.items())[:_MOST_REASONS]]
