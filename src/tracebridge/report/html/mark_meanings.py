"""What the marks of a page mean, each of them once: the words that stand beside verdicts and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracebridge.inference.certificate import NOT_CERTIFIED
from tracebridge.inference.expanded.standing import REJECTED
from tracebridge.report.findings import NO_END_SEEN, RELATIVE_TO_SUPPORT

if TYPE_CHECKING:
    from tracebridge.report.html.verdict_table import RecordedProperty

Document = Mapping[str, Any]

_MEANING = {
    REJECTED: "The runs are not those of such a chain: the numbers describe the chain, not the agent",
    NOT_CERTIFIED: "Whether such a chain describes the runs is open",
    RELATIVE_TO_SUPPORT: "It holds if nothing happens that no run did; the blocks of the properties list what that is",
    NO_END_SEEN: "No run was seen to succeed or to fail, so what is said of ends rests on no observation",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkMeaning:
    """A mark of the page.

    Attributes:
        mark: the words. beside: where they stand. meaning: what they say; empty for words of another version.
        reasons: of the certificate, by scope where the scopes have different ones.
    """

    mark: str
    beside: str
    meaning: str
    reasons: Sequence[str]


def mark_meanings(results: Document, properties: Sequence[RecordedProperty]) -> list[MarkMeaning]:
    """The marks of headline figures, and then those of properties, in the order in which they are met."""
    of_figures = results["mark"].split(", ") if results["mark"] else []
    of_properties = [mark for each in properties for mark in each.found["marks"]]
    found = []
    for mark in dict.fromkeys([*of_figures, *of_properties]):
        number = of_properties.count(mark)
        places = [f"{number} of {len(properties)} verdicts"] if number else []
        places += ["the figures of the chain"] if mark in of_figures else []
        found.append(
            MarkMeaning(
                mark=mark,
                beside=" and ".join(places),
                meaning=_MEANING.get(mark, ""),
                reasons=_reasons(results["standings"], mark),
            )
        )
    return found


def _reasons(standings: Document, mark: str) -> list[str]:
    """Why a certificate says so; once where it says the same for every scope."""
    found = {scope: tuple(each["reasons"]) for scope, each in standings.items() if each["mark"] == mark}
    if len(set(found.values())) == 1:
        return [*next(iter(found.values()))]
    return [f"{scope}: {reason}" for scope, reasons in found.items() for reason in reasons]
