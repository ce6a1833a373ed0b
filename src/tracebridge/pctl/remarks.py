"""Comments and annotations: which item of a property file each belongs to."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tracebridge.errors import Problem
from tracebridge.pctl import ast
from tracebridge.pctl.source import Source

ANNOTATION_KEYS = ("requirement", "credible", "severity", "note")
"""The annotations that tracebridge knows; a file may carry others, and ``lint`` names them."""

DECIDING_KEYS = ("credible", "severity")
"""The annotations that verdicts and gates depend on: what may be a slip in one of them is refused."""

_LIKENESS = 0.7  # `credble` and `Credible` are like `credible`, `credits` is not
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"|//[^\r\n]*')

Item = ast.Constant | ast.LabelDefinition | ast.Property


@dataclass(slots=True)
class Remarks:
    """The comments and annotations that wait for the item they belong to."""

    comments: list[str] = field(default_factory=list)
    annotations: list[ast.Annotation] = field(default_factory=list)
    last_line: int = 0

    def reach(self, line: int) -> None:
        """Note that something stands on this line; blank lines before it become one empty comment."""
        if self.last_line and line > self.last_line + 1 and self.comments[-1:] != [""]:
            self.comments.append("")
        self.last_line = line

    def add(self, text: str, span: ast.Span) -> None:
        """Keep a comment or an annotation that stands there."""
        self.reach(span.line)
        if not text.startswith("//@"):
            self.comments.append(text.rstrip())
            return
        key, *rest = text[3:].split(maxsplit=1) or [""]
        value = " ".join(rest[0].splitlines()).strip() if rest else ""  # Unicode has more line ends
        if key in DECIDING_KEYS and len(words := value.split(maxsplit=1)) > 1:
            value = words[0]
            self.comments.append(f"// {words[1]}")
        self.annotations.append(ast.Annotation(key=key, value=value, span=span))

    def take_comments(self) -> tuple[str, ...]:
        """The comments that wait, which wait no more."""
        comments, self.comments = tuple(self.comments), []
        return comments

    def take_annotations(self) -> tuple[ast.Annotation, ...]:
        """The annotations that wait, which wait no more."""
        annotations, self.annotations = tuple(self.annotations), []
        return annotations


def mistaken_annotations(file: ast.PropertyFile, source: Source) -> Iterator[Problem]:
    """Annotations that are meant to decide something and would decide nothing: misspelt, or before no property."""
    for note in (note for each in file.properties for note in each.annotations):
        meant = difflib.get_close_matches(note.key.lower(), DECIDING_KEYS, n=1, cutoff=_LIKENESS)
        if meant and note.key not in ANNOTATION_KEYS and note.span is not None:
            message = f"the annotation {note.key[:80]!r} is unknown, and would decide nothing"
            yield source.problem(note.span, message, f"did you mean {meant[0]}?")
    for note in file.unattached:
        if note.key in DECIDING_KEYS and note.span is not None:
            yield source.problem(
                note.span, f"no property follows the annotation {note.key}", "put it before its property"
            )


def _comments(source: Source) -> Iterator[tuple[str, ast.Span]]:
    for match in _STRING_OR_COMMENT.finditer(source.text):
        if match[0].startswith("//"):
            yield match[0], source.position(match.start(), len(match[0]))


def attach_remarks(items: list[Item], source: Source) -> tuple[list[Item], Remarks]:
    """Give each item the comments before it and on its own lines; annotations wait for the next property."""
    remaining = list(_comments(source))[::-1]
    waiting = Remarks()
    attached: list[Item] = []
    for item in items:
        assert item.span is not None  # noqa: S101 - the parser gives every item a span
        while remaining and remaining[-1][1].line < item.span.line:
            waiting.add(*remaining.pop())
        waiting.reach(item.span.line)
        while remaining and remaining[-1][1].line <= item.span.end_line:
            waiting.add(*remaining.pop())
        waiting.last_line = item.span.end_line
        if isinstance(item, ast.Property):
            annotations = waiting.take_annotations()
            attached.append(replace(item, comments=waiting.take_comments(), annotations=annotations))
        else:
            attached.append(replace(item, comments=waiting.take_comments()))
    for comment in reversed(remaining):
        waiting.add(*comment)
    return attached, waiting
