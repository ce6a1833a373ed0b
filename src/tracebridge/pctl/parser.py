"""Reading property texts and files: text -> typed tree, or an error that shows the place and says what was expected."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from importlib import resources
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.pctl.ast import Constant, Formula, LabelDefinition, Property, PropertyFile
from tracebridge.pctl.nesting import MAX_DEPTH, check_depth
from tracebridge.pctl.remarks import attach_remarks, mistaken_annotations
from tracebridge.pctl.source import MAX_PROBLEMS, Source
from tracebridge.pctl.typecheck import check_file, check_formula

if TYPE_CHECKING:
    from lark import Lark, Token

    from tracebridge.pctl.tree_builder import ParsedProperty

MAX_BYTES = 200_000
"""The largest property file that is read."""


def parse_properties(text: str, *, path: str | None = None) -> PropertyFile:
    """Read a property text: named properties, ``const`` and ``label`` declarations, comments and annotations.

    Args:
        text: the text; a byte order mark at its start is ignored.
        path: where it came from, for messages.

    Raises:
        PropertyError: the text does not parse, something in it has the wrong type, or an annotation that verdicts
            depend on is misspelt or belongs to no property; every error, up to ``MAX_PROBLEMS``, with its source line
            and a caret.
    """
    source = Source(_checked_size(text, path).removeprefix("\ufeff"), path)
    items = _parse_file(source)
    _check_separation(items, source)
    plain = [item if isinstance(item, Constant | LabelDefinition) else item.property for item in items]
    for item in plain:
        formula = item.value if isinstance(item, Constant) else item.formula
        if formula is not None:
            check_depth(formula, source)
    plain, trailing = attach_remarks(plain, source)
    file = PropertyFile(
        properties=tuple(_with_text(item, source) for item in plain if isinstance(item, Property)),
        constants=tuple(item for item in plain if isinstance(item, Constant)),
        labels=tuple(item for item in plain if isinstance(item, LabelDefinition)),
        unattached=tuple(trailing.annotations),
        trailing_comments=tuple(trailing.comments),
        path=path,
    )
    if mistaken := [*islice(mistaken_annotations(file, source), MAX_PROBLEMS)]:
        raise PropertyError(mistaken)
    check_file(file, source)
    return file


def parse_formula(text: str) -> Formula:
    """Read one formula, without a name, declarations or ``;``.

    Raises:
        PropertyError: as for :func:`parse_properties`.
    """
    source = Source(_checked_size(text, None))
    formula = _parse_alone(source)
    check_depth(formula, source)
    check_formula(formula, source)
    return formula


def read_properties(path: str | Path) -> PropertyFile:
    """Read a property file (``.props``, ``.pctl``), in UTF-8; ``-`` is standard input.

    Raises:
        PropertyError: as for :func:`read_property_text` and :func:`parse_properties`.
    """
    return parse_properties(read_property_text(path), path=_name_of(path))


def read_property_text(path: str | Path) -> str:
    """The text of a property file; ``-`` is standard input.

    Raises:
        PropertyError: no such file, not UTF-8, or too large.
    """
    name = _name_of(path)
    location = Location(path=name)
    if str(path) == "-":
        data = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_BYTES + 1)
        except FileNotFoundError:
            raise PropertyError("no such property file", location=location) from None
        except IsADirectoryError:
            raise PropertyError("this is a directory, not a property file", location=location) from None
        except OSError as error:
            raise PropertyError(f"cannot be read: {error.strerror}", location=location) from error
    if len(data) > MAX_BYTES:
        raise _too_large(name)
    if data.lstrip()[:1] == b"{":
        raise PropertyError(
            "this is JSON, not a property file (a model is named before its properties)", location=location
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise PropertyError(
            f"byte {data[error.start]:#04x} is not UTF-8; save the file in UTF-8",
            location=Location(path=name, line=line),
        ) from error


def _name_of(path: str | Path) -> str:
    return "<stdin>" if str(path) == "-" else str(path)


# ---------------------------------------------------------------- tokens to items


@cache
def _grammar() -> Lark:
    """The parser for both start rules; built once, when the first text is parsed."""
    from lark import Lark

    from tracebridge.pctl.tree_builder import TreeBuilder
    from tracebridge.pctl.words import WordsInContext

    grammar = (resources.files("tracebridge.pctl") / "pctl.lark").read_text(encoding="utf-8")
    return Lark(
        grammar,
        parser="lalr",
        lexer="basic",  # operator letters are reserved everywhere, as in PRISM; other words are named by their context
        postlex=WordsInContext(),
        start=["file", "formula"],
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=TreeBuilder(),  # any object with the callbacks will do
    )


class _Mistake(NamedTuple):
    """What is wrong, and the number of the token at which the parser noticed."""

    problem: Problem
    noticed: int


def _tokens(source: Source) -> list[Token]:
    """All tokens; what is no token of the language is one of the kind JUNK."""
    lexing: Any = _grammar().parse_interactive(source.text, start="file")
    return list(lexing.lexer_thread.lex(lexing.parser_state))


def _parse_alone(source: Source) -> Formula:
    parsed = _parse(source, _tokens(source), 0, "formula")
    if isinstance(parsed, _Mistake):
        raise PropertyError(parsed.problem)
    formula: Formula = parsed
    return formula


def _parse_file(source: Source) -> list[Constant | LabelDefinition | ParsedProperty]:
    """The items of a file. After an error the parser goes on with the next item that can be told."""
    tokens = _tokens(source)
    problems: list[Problem] = []
    start: int | None = 0
    while start is not None and len(problems) < MAX_PROBLEMS:
        parsed = _parse(source, tokens, start, "file")
        if not isinstance(parsed, _Mistake):
            break
        problems.append(parsed.problem)
        start = _next_item(source, tokens, parsed.noticed, start)
    if problems:
        raise PropertyError(problems)
    items: list[Constant | LabelDefinition | ParsedProperty] = parsed
    return items


def _parse(source: Source, tokens: list[Token], start: int, rule: str) -> Any:
    """What the rule makes of the tokens from a place on, or the first mistake in them."""
    from lark.exceptions import UnexpectedToken

    from tracebridge.pctl.diagnosis import diagnose
    from tracebridge.pctl.tree_builder import Rejection

    state: Any = _grammar().parse_interactive(start=rule)
    place = start
    try:
        for place in range(start, len(tokens)):
            state.feed_token(tokens[place])
        place = len(tokens)
        return state.feed_eof(tokens[-1] if start < len(tokens) else None)
    except UnexpectedToken as unexpected:
        return _Mistake(diagnose(source, unexpected.token, lambda: _accepted(state)), place)
    except Rejection as rejection:
        return _Mistake(source.problem(rejection.span, rejection.message, rejection.hint), place)


def _accepted(state: Any) -> set[str]:
    """The terminals that could have come next; none are named at a depth where trying each would take too long."""
    accepted: set[str] = state.accepts() if len(state.parser_state.state_stack) <= MAX_DEPTH else set()
    return accepted


def _next_item(source: Source, tokens: list[Token], noticed: int, start: int) -> int | None:
    """Where to go on after a mistake: behind the next ``;``, or where a line begins an item; None at the end."""
    from tracebridge.pctl.diagnosis import begins_item

    for place in range(max(noticed, start), len(tokens)):
        if tokens[place].type == "SEMICOLON":
            return place + 1
        offset = tokens[place].start_pos
        assert offset is not None  # noqa: S101 - every token of the lexer has a place
        if place > start and begins_item(source.text, offset):
            return place
    return None


def _checked_size(text: str, path: str | None) -> str:
    if len(text) > MAX_BYTES:
        raise _too_large(path)
    return text


def _too_large(path: str | None) -> PropertyError:
    return PropertyError(f"a property text of more than {MAX_BYTES:,} bytes; split it", location=Location(path=path))


def _check_separation(items: list[Constant | LabelDefinition | ParsedProperty], source: Source) -> None:
    """A property without ``;`` is over at the end of its line; anything else is a typing mistake inside it."""
    from tracebridge.pctl.diagnosis import diagnose_leftover

    problems: list[Problem] = []
    reported = 0  # the line of the last one: what follows on it is no second mistake
    for previous, following in pairwise(items):
        if isinstance(previous, Constant | LabelDefinition) or previous.terminated:
            continue
        end = previous.property.span
        span = following.span if isinstance(following, Constant | LabelDefinition) else following.property.span
        if end is not None and span is not None and end.end_line == span.line != reported:
            problems.append(diagnose_leftover(source, span))
            reported = span.line
    if problems:
        raise PropertyError(problems[:MAX_PROBLEMS])


def _with_text(item: Property, source: Source) -> Property:
    span = item.formula.span
    return replace(item, text=source.slice(span)) if span is not None else item
