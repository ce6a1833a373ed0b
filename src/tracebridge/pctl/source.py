"""Places in a property text: from a span to the line and caret that an author is shown."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.pctl.ast import Span

MAX_PROBLEMS = 20
"""How many errors of one text are reported."""

_EXCERPT_WIDTH = 100
NO_PATH = "<text>"


class Source:
    """A property text and where it came from."""

    def __init__(self, text: str, path: str | None = None) -> None:
        self.text = text
        self.path = path or NO_PATH
        self._line_starts = [0, *(end.end() for end in re.finditer("\n", text))]

    def line(self, number: int) -> str:
        """The text of a line, counted from 1, without its end."""
        start = self._line_starts[number - 1]
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else len(self.text)].rstrip("\r")

    def offset(self, line: int, column: int) -> int:
        """The position in the text of a line and a column, both counted from 1."""
        return self._line_starts[line - 1] + column - 1

    def position(self, offset: int, length: int = 1) -> Span:
        """The place of ``length`` characters of one line."""
        line = bisect_right(self._line_starts, offset)
        column = offset - self._line_starts[line - 1] + 1
        return Span(line=line, column=column, end_line=line, end_column=column + length)

    def slice(self, span: Span) -> str:
        """The text of a span."""
        return self.text[self.offset(span.line, span.column) : self.offset(span.end_line, span.end_column)]

    def error(self, span: Span, message: str, hint: str | None = None) -> PropertyError:
        """A complaint about a place of this text, with the source line and a caret under it."""
        return PropertyError(self.problem(span, message, hint))

    def problem(self, span: Span, message: str, hint: str | None = None) -> Problem:
        """A complaint that may be one of several."""
        location = Location(path=self.path, line=span.line, column=span.column)
        return Problem(location=location, message=message, hint=hint, excerpt=_excerpt(self.line(span.line), span))


def locate(span: Span | None, path: str | None) -> Location:
    """The location of a span in a file whose text is no longer at hand."""
    return Location(path=path) if span is None else Location(path=path or NO_PATH, line=span.line, column=span.column)


def _excerpt(line: str, span: Span) -> str:
    """The line and its caret; a long line is cut to a window, and a control character becomes a dot."""
    start = span.column - 1
    end = span.end_column - 1 if span.end_line == span.line else len(line)
    first = max(0, start - _EXCERPT_WIDTH // 2) if len(line) > _EXCERPT_WIDTH else 0
    window = line[first : first + _EXCERPT_WIDTH].replace("\t", " ")
    shown = "".join(char if char.isprintable() else "·" for char in window)
    lead = "…" if first else ""
    tail = "…" if first + _EXCERPT_WIDTH < len(line) else ""
    indent = _columns(lead + shown[: start - first])
    width = max(1, _columns(shown[start - first : end - first]))
    return f"    {lead}{shown}{tail}\n    {' ' * indent}^{'~' * (width - 1)}"


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    zero = sum(unicodedata.combining(char) != 0 for char in text)
    return len(text) + wide - zero
