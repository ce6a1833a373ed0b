"""The rows of a flat trace file in JSON Lines."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from tracebridge.traces.json_text import JsonTextError, decode_strictly, has_escaped_colon
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.columns import find_columns
from tracebridge.traces.readers.row_block import Row, RowBlock
from tracebridge.traces.readers.step_values import NUMBER_KINDS
from tracebridge.traces.readers.table import Table, lines_of, stripped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class JsonTable(Table):
    """Rows that are JSON objects, one a line."""

    _known_keys: tuple[str, ...] | None = None
    _known_columns: dict[str, str]

    def __iter__(self) -> Iterator[RowBlock]:
        first = 1
        for piece in self._pieces():
            block = self._block(piece, first) or RowBlock.of(list(self._rows(lines_of(piece), first)))
            if block.lines:
                yield block
            first += piece.count(b"\n")

    def _block(self, piece: bytes, first: int) -> RowBlock | None:
        """The rows of lines that are all objects of the same keys and plain values, and name their runs; else None."""
        try:
            records = list(map(_decode, piece.removesuffix(b"\n").split(b"\n")))
            if set(map(type, records)) != {dict} or len(shapes := set(map(tuple, records))) != 1:
                return None
            keys = shapes.pop()
            if not _has_single_keys(piece, records, len(keys)):
                return None
        except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError):
            return None
        columns = self._needed(self._columns_of(keys))
        if "run_id" not in columns:
            return None
        cells: dict[str, Sequence[Any]] = {}
        for name, column in columns.items():
            if (found := _cells(name, list(map(itemgetter(column), records)))) is None:
                return None
            cells[name] = found
        if "" in cells["run_id"]:
            return None
        return RowBlock(range(first, first + len(records)), tuple(cells), tuple(cells.values()), {})

    def _rows(self, lines: Sequence[bytes], first: int) -> Iterator[Row]:
        """Each row by itself, with what is wrong with it."""
        for number, line in enumerate(lines, first):
            if line.isspace():
                continue
            try:
                record = decode_strictly(line)
            except JsonTextError as error:
                yield Row(number, self._salvaged(line), self._problem(str(error), line=number, column=error.column))
                continue
            if not isinstance(record, dict):
                yield Row(number, {}, self._problem(f"a row is a JSON object, this is {shown(record)}", line=number))
                continue
            columns = self._columns_of(tuple(record))
            values, flaw = {}, None
            if "run_id" not in columns:
                flaw = self._no_run_column(list(record), number)
            for name, column in columns.items():
                text = _text(record[column])
                if text is not None:
                    values[name] = text
                elif flaw is None:
                    message = f"one value was expected, got {shown(record[column])}"
                    flaw = self._problem(message, line=number, field=escaped(column))
            yield Row(number, values, flaw)

    def _columns_of(self, keys: tuple[str, ...]) -> dict[str, str]:
        if keys != self._known_keys:
            self._known_keys = keys
            self._known_columns = self._found(keys)
        return self._known_columns

    def _salvaged(self, line: bytes) -> dict[str, str]:
        """The run that a damaged row names, if that much can be told."""
        try:
            record = json.loads(line.decode(errors="replace"), object_pairs_hook=_Pairs)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(record, _Pairs):
            return {}
        column = find_columns([key for key, _ in record], self._mapping).get("run_id")
        texts = [_text(value) for key, value in record if key == column]
        text = texts[0] if len(texts) == 1 else None
        return {"run_id": text} if text and "\N{REPLACEMENT CHARACTER}" not in text else {}


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its keys, those that stand twice too."""


def _has_single_keys(text: bytes, records: list[dict[str, Any]], n_keys: int) -> bool:
    """Whether no key stands twice in an object: there are no more colons than keys, or they are in the values."""
    n_colons = text.count(b":")
    if n_colons == n_keys * len(records):
        return True
    return _encode(records).count(b":") == n_colons and not has_escaped_colon(text)


def _cells(name: str, values: Sequence[Any]) -> Sequence[Any] | None:
    """The values of a field as texts, or as they are if they are what the field has; None if any is a container."""
    kinds = set(map(type, values))
    if kinds == {str}:
        return stripped(values)
    if kinds <= {int, float}:
        return values if kinds == NUMBER_KINDS.get(name, frozenset()) else list(map(str, values))
    if kinds == {bool}:
        return ["true" if value else "false" for value in values]
    texts = [text for text in map(_text, values) if text is not None]
    return texts if len(texts) == len(values) else None


def _text(value: Any) -> str | None:
    """A JSON value as the text that a CSV cell would hold; None for a container."""
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) else None
