"""What a check of a property file has to say about one place in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tracebridge.pctl.ast import LabelDefinition, Node, Property, PropertyFile, Span, walk

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding: an error keeps the property from being checked, a warning is likely a mistake, a note informs.

    ``property`` is the name of the property it is about, where there is one.
    """

    severity: Severity
    message: str
    span: Span | None = None
    hint: str | None = None
    property: str | None = None

    def __str__(self) -> str:
        place = f"{self.span.line}:{self.span.column}: " if self.span else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.severity}: {self.message}{hint}"

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        span = self.span
        return {
            "severity": self.severity,
            "message": self.message,
            "hint": self.hint,
            "property": self.property,
            "line": span.line if span else None,
            "column": span.column if span else None,
            "end_line": span.end_line if span else None,
            "end_column": span.end_column if span else None,
        }


def entries(file: PropertyFile) -> list[Property | LabelDefinition]:
    """Everything in a file that findings are about."""
    return [*file.labels, *file.properties]


def nodes(file: PropertyFile) -> Iterator[tuple[Property | LabelDefinition, Node]]:
    """Every node of these, with what it stands in."""
    for entry in entries(file):
        for node in walk(entry.formula):
            yield entry, node


def error_at(
    entry: Property | LabelDefinition, message: str, hint: str | None = None, node: Node | None = None
) -> Finding:
    """An error at a node, or at the entry that it is about."""
    span = node.span if node is not None and node.span is not None else entry.span
    return Finding(severity="error", message=message, span=span, hint=hint, property=name_of(entry))


def name_of(entry: Property | LabelDefinition) -> str | None:
    """The name of a property, for a finding."""
    return entry.name if isinstance(entry, Property) else None
