"""The rows of a flat trace file in JSON Lines."""

from __future__ import annotations

import json
from contextlib import suppress
from operator import attrgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tracebridge.traces.json_text import JsonTextError, decode_strictly, has_escaped_colon
from tracebridge.traces.problems import escaped, shown
from tracebridge.traces.readers.columns import find_columns
from tracebridge.traces.readers.row_block import Row, RowBlock
from tracebridge.traces.readers.step_values import own_values
from tracebridge.traces.readers.table import Table, lines_of, stripped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

T = TypeVar("T")

_UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError)
_MAX_REMEMBERED = 1 << 10
_MAX_KEYS = 1 << 8
_FEW_COLUMNS = 2
_any = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


class JsonTable(Table):
    """Rows that are JSON objects, one a line."""

    _row_type: _RowType | None = None

    def __iter__(self) -> Iterator[RowBlock]:
        self._n_lines = 0
        self._known_columns: dict[tuple[str, ...], dict[str, str]] = {}
        for piece in self._pieces(lambda: self._n_lines):
            first = self._n_lines + 1
            block = self._block(piece, first)
            if block is not None:
                self._n_lines += len(block.lines)
            else:
                lines = lines_of(piece)
                block = RowBlock.of(list(self._rows(lines, first)))
                self._n_lines += len(lines)
            if block.lines:
                yield block

    def _block(self, piece: bytes, first: int) -> RowBlock | None:
        """The rows of lines that are all objects of plain values and name their runs; else None."""
        try:
            values = self._values(piece)
        except _UNREADABLE:
            return None
        cells = {name: _cells(name, given, values.keys()) for name, given in values.items()}
        columns = {name: column for name, column in cells.items() if column is not None}
        if len(columns) < len(cells) or "" in columns.get("run_id", [""]):
            return None
        return RowBlock(range(first, first + len(columns["run_id"])), columns, {})

    def _values(self, piece: bytes) -> dict[str, Sequence[Any]]:
        """The values of each field, None where a row has none.

        Raises:
            MsgspecError, ValueError, RecursionError, OverflowError: the lines are no objects, a key stands twice, or a
                column is not the same field in all rows.
        """
        if self._row_type is not None:
            with suppress(*_UNREADABLE):
                return self._row_type.values(piece)
        records = _objects(_any, piece)
        if set(map(type, records)) != {dict} or not _has_single_keys(piece, records, sum(map(len, records))):
            raise ValueError("not an object a line")
        shapes = list(dict.fromkeys(map(tuple, records)))
        columns: dict[str, str] = {}
        for shape in shapes:
            columns |= self._columns_of(shape)
        for shape in shapes:
            if self._columns_of(shape) != {name: column for name, column in columns.items() if column in shape}:
                raise ValueError("a column that is not the same field in all rows")
        needed = self._needed(columns)
        if len(shapes) == 1 and len(shapes[0]) <= _MAX_KEYS:
            with suppress(ValueError):  # msgspec has no struct of such keys
                self._row_type = _RowType(shapes[0], needed)
        return {name: [record.get(column) for record in records] for name, column in needed.items()}

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
        if keys not in self._known_columns:
            if len(self._known_columns) == _MAX_REMEMBERED:
                self._known_columns.clear()
            self._known_columns[keys] = self._found(keys)
        return self._known_columns[keys]

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


class _RowType:
    """Objects that have all of some keys and no others: decoding them takes half the time that it does of any."""

    def __init__(self, keys: Sequence[str], columns: Mapping[str, str]) -> None:
        """Of the keys; the values that are asked for are those of ``columns``, by field. ValueError: of odd keys."""
        attributes = {key: f"key_{number}" for number, key in enumerate(keys)}
        struct = msgspec.defstruct(
            "Row",
            [(attribute, Any) for attribute in attributes.values()],
            rename={attribute: key for key, attribute in attributes.items()},
            forbid_unknown_fields=True,
            gc=False,
        )
        self._decoder = msgspec.json.Decoder(struct)
        self._n_keys = len(keys)
        self._getters = {name: attrgetter(attributes[column]) for name, column in columns.items()}
        self._places = {name: keys.index(column) for name, column in columns.items()}

    def values(self, piece: bytes) -> dict[str, Sequence[Any]]:
        """The values of each field in the lines of a piece.

        Raises:
            MsgspecError, ValueError: some line is no such object, or a key stands twice in it.
        """
        records = _objects(self._decoder, piece)
        if not _has_single_keys(piece, records, self._n_keys * len(records)):
            raise ValueError("a key twice in an object")
        if len(self._getters) <= _FEW_COLUMNS:
            return {name: list(map(get, records)) for name, get in self._getters.items()}
        columns = list(zip(*map(msgspec.structs.astuple, records), strict=True))
        return {name: columns[place] for name, place in self._places.items()}


def _objects(decoder: msgspec.json.Decoder[T], piece: bytes) -> list[T]:
    """The values of lines, one a line.

    Raises:
        MsgspecError: of some line.
    """
    n_lines = piece.count(b"\n") + (not piece.endswith(b"\n"))
    # where each line end parts two objects none is in an object, so that each line has at least one
    if piece.startswith(b"{") and piece.count(b"}\n{") == n_lines - 1:
        values = decoder.decode_lines(piece)
        if len(values) == n_lines:
            return values
    return list(map(decoder.decode, piece.removesuffix(b"\n").split(b"\n")))


def _has_single_keys(text: bytes, records: Sequence[Any], n_keys: int) -> bool:
    """Whether no key stands twice in an object: there are no more colons than keys, or they are in the values."""
    n_colons = text.count(b":")
    if n_colons == n_keys:
        return True
    return _encode(records).count(b":") == n_colons and not has_escaped_colon(text)


def _cells(name: str, values: Sequence[Any], fields: Collection[str]) -> Sequence[Any] | None:
    """The values of one of the fields as texts, or as they are if steps have such; None if any is a container."""
    if (found := own_values(name, values, fields)) is not None:
        return found
    with suppress(TypeError):  # not all are texts
        return stripped(values)
    kinds = set(map(type, values))
    if NoneType in kinds:
        values = ["" if value is None else value for value in values]
        kinds = kinds - {NoneType} | {str}
    if kinds == {str}:
        return stripped(values)
    return list(map(_text, values)) if kinds <= {str, int, float, bool} else None


def _text(value: Any) -> str | None:
    """A JSON value as the text that a CSV cell would hold; None for a container."""
    if value is None:
        return ""
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, str):
        return value.strip()
    return str(value) if isinstance(value, int | float) else None
