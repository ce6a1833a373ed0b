"""Whole property files as text: the canonical form, and what can be given to PRISM or Storm."""

from __future__ import annotations

from tracebridge.pctl.ast import Annotation, Constant, LabelDefinition, Property, PropertyFile
from tracebridge.pctl.portability import TOOLS, portability, reserves
from tracebridge.pctl.printer import Names, Target, format_formula, quote
from tracebridge.pctl.references import expand_labels

_Item = Constant | LabelDefinition | Property


def format_properties(file: PropertyFile, *, target: Target | None = None, names: Names | None = None) -> str:
    """The text of a property file: everything in its order, with comments and annotations, each item ended by ``;``.

    Args:
        file: the file; with positions (as parsed) its order is kept, without them declarations come first.
        target: None for the canonical form, which parses to the same file; or the tool that shall load the text. Label
            definitions and references to properties are then expanded, what the tool lacks is rewritten where an
            equivalent exists, and a property that the tool cannot take becomes a comment that says why.
        names: for a tool, from a label, reward structure or property name to the name to write.

    Raises:
        PropertyError: label definitions or references cannot be expanded.
    """
    if target is not None:
        file = expand_labels(file)
    lines: list[str] = []
    for item in _in_file_order(file):
        lines.extend(_comment_lines(item.comments))
        if isinstance(item, Property):
            lines.extend(_annotation_lines(item.annotations))
        lines.extend(_item_lines(item, target, names))
    lines.extend(_comment_lines(file.trailing_comments))
    lines.extend(_annotation_lines(file.unattached))
    return "".join(f"{line}\n" for line in lines).lstrip("\n")


def _item_lines(item: _Item, target: Target | None, names: Names | None) -> list[str]:
    match item:
        case Constant():
            value = f" = {format_formula(item.value, target=target)}" if item.value is not None else ""
            line = f"const {item.type} {item.name}{value};"
            if target is not None and reserves(target, item.name):
                return [f"// {TOOLS[target]} keeps the word {item.name} for itself", f"// {line}"]
            return [line]
        case LabelDefinition():
            return [f"label {quote(item.name)} = {format_formula(item.formula)};"]
        case Property():
            if target is None:
                return [_property(item, None, None)]
            obstacles = portability(item, target, names)
            if obstacles:
                return [f"// {line}" for line in [*(found.message for found in obstacles), _property(item, None, None)]]
            return [_property(item, target, names)]


def _property(item: Property, target: Target | None, names: Names | None) -> str:
    name = f"{quote(names(item.name) if names else item.name)}: " if item.name else ""
    return f"{name}{format_formula(item.formula, target=target, names=names)};"


def _in_file_order(file: PropertyFile) -> list[_Item]:
    items: list[_Item] = [*file.constants, *file.labels, *file.properties]
    placed = [(item.span.line, item.span.column, item) for item in items if item.span is not None]
    if len(placed) < len(items):
        return items
    return [item for _, _, item in sorted(placed, key=lambda entry: entry[:2])]


def _comment_lines(comments: tuple[str, ...]) -> list[str]:
    lines = [" ".join(comment.splitlines()) for comment in comments]
    return [line if line.startswith("//") or not line else f"// {line}" for line in lines]


def _annotation_lines(annotations: tuple[Annotation, ...]) -> list[str]:
    return [" ".join(f"//@ {note.key} {note.value}".splitlines()).rstrip() for note in annotations]
