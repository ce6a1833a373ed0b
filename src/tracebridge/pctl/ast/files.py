"""Property files: what is declared in one, and what is said about it in comments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.html_table import html_table
from tracebridge.pctl.ast.tree import Placed, Tree

if TYPE_CHECKING:
    from tracebridge.pctl.ast.nodes import Formula

ConstantType = Literal["int", "double", "bool"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constant(Placed):
    """``const int d = 8;``; without a value it must be given from outside."""

    name: str
    type: ConstantType
    value: Formula | None = None
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LabelDefinition(Placed):
    """``label "name" = formula;``: a shorthand over the labels of the model."""

    name: str
    formula: Formula
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Annotation(Placed):
    """A ``//@ key value`` line; it belongs to the property that follows."""

    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Property(Placed):
    """A named property of a file; ``text`` is the formula as the user wrote it."""

    formula: Formula
    name: str | None = None
    annotations: tuple[Annotation, ...] = ()
    text: str = field(default="", compare=False)
    comments: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def annotation(self, key: str) -> str | None:
        """The value of the last annotation with this key, or None."""
        return next((note.value for note in reversed(self.annotations) if note.key == key), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PropertyFile(Tree):
    """A whole property file, in file order.

    ``comments`` of an item are the lines of comments before it, with their ``//`` (an empty one is a blank line);
    ``unattached`` are the annotations, and ``trailing_comments`` the comments, that nothing follows.
    """

    properties: tuple[Property, ...]
    constants: tuple[Constant, ...] = ()
    labels: tuple[LabelDefinition, ...] = ()
    unattached: tuple[Annotation, ...] = field(default=(), compare=False)
    trailing_comments: tuple[str, ...] = field(default=(), compare=False, repr=False)
    path: str | None = field(default=None, compare=False)

    def to_records(self) -> list[dict[str, Any]]:
        """One record a property: ``name``, ``formula``, and its annotations by key."""
        return [
            {"name": each.name, "formula": each.text, **{note.key: note.value for note in each.annotations}}
            for each in self.properties
        ]

    def _repr_html_(self) -> str:
        rows = [
            (each.name, each.text, "; ".join(f"{note.key} {note.value}" for note in each.annotations))
            for each in self.properties
        ]
        caption = f"PropertyFile {self.path or ''} of {len(rows)} properties"
        return html_table(("property", "formula", "annotations"), rows, caption=caption, noun="properties")
