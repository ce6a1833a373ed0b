"""Characters of a property file that nobody sees, and that can make it read otherwise than it is checked."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from tracebridge.pctl.ast import Formula, Label, PropertyFile, Reward, Span, walk
from tracebridge.pctl.finding import Finding

_HINT = "it may make the text read otherwise than it is checked: take it out"


def hidden_findings(file: PropertyFile) -> Iterator[Finding]:
    """A warning for each part that holds some: they turn the direction of text around, or have no width.

    An editor shows such text in another order than it stands in the file ("Trojan source"). The parts are what is
    checked, what is said of it in annotations, and the comments beside it.
    """
    for constant in file.constants:
        yield from _in(constant.comments, f"the comment at the constant {constant.name}", constant.span)
    for label in file.labels:
        yield from _in([label.name, *_names(label.formula)], "the definition of a label", label.span)
        yield from _in(label.comments, "the comment at the definition of a label", label.span)
    for entry in file.properties:
        texts = [entry.name or "", entry.text, *_names(entry.formula)]
        yield from _in(texts, "the property", entry.span, entry.name)
        yield from _in(entry.comments, "the comment at the property", entry.span, entry.name)
        for note in entry.annotations:
            yield from _in([note.key, note.value], "the annotation", note.span, entry.name)
    for note in file.unattached:
        yield from _in([note.key, note.value], "the annotation", note.span)
    yield from _in(file.trailing_comments, "the comment at the end", None)


def _names(formula: Formula) -> Iterator[str]:
    for node in walk(formula):
        if isinstance(node, Label):
            yield node.name
        elif isinstance(node, Reward) and isinstance(node.structure, str):
            yield node.structure


def _in(texts: Iterable[str], what: str, span: Span | None, name: str | None = None) -> Iterator[Finding]:
    hidden = dict.fromkeys(char for text in texts for char in text if unicodedata.category(char) == "Cf")
    if hidden:
        listed = ", ".join(f"U+{ord(char):04X} ({unicodedata.name(char, 'unnamed').lower()})" for char in hidden)
        message = f"{what} holds what nobody sees: {listed}"
        yield Finding(severity="warning", message=message, span=span, hint=_HINT, property=name)
