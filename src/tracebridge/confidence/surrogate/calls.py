"""A tool call as canonical JSON, with the place of every argument's value in that text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tracebridge.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the agent may call: its name, what it is for, and the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that an agent proposes; arguments are JSON values."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallText:
    """A call as text.

    Attributes:
        text: canonical JSON: keys in ascending order, no blanks, so that the order of arguments changes nothing.
        name_start: where the name's characters begin; ``text[:name_start]`` is the same for every tool.
        values: by JSON pointer (RFC 6901) into the arguments, the characters ``[start, end)`` of each value that is no
            object and no list; quotes are left out, and so are empty texts, which have no character.
    """

    text: str
    name_start: int
    values: Mapping[str, tuple[int, int]]


def call_text(call: ToolCall) -> CallText:
    """The canonical text of a call.

    Raises:
        InputError: an argument is no JSON value, not finite, or nested more than 64 deep.
    """
    # The name comes first, so that it is chosen before its arguments are known.
    head = '{"name":'
    pieces = [head, _dumped(call.name), ',"arguments":']
    place = sum(map(len, pieces))
    values: dict[str, tuple[int, int]] = {}
    for piece, pointer in _pieces(call.arguments, "", 0):
        if pointer is not None:
            quotes = int(piece.startswith('"'))
            if len(piece) > 2 * quotes:
                values[pointer] = (place + quotes, place + len(piece) - quotes)
        pieces.append(piece)
        place += len(piece)
    return CallText(text="".join([*pieces, "}"]), name_start=len(head) + 1, values=values)


def _pieces(value: object, pointer: str, depth: int) -> Iterator[tuple[str, str | None]]:
    """The text in pieces; a piece that is a value comes with its pointer."""
    if depth > MAX_DEPTH:
        raise InputError(f"the argument {pointer[:80]!r} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        yield "{", None
        for place, key in enumerate(sorted(value, key=str)):
            if not isinstance(key, str):
                raise InputError(f"the argument {pointer[:80]!r} has the key {key!r:.80}, which is no text")
            yield f"{',' if place else ''}{_dumped(key)}:", None
            yield from _pieces(value[key], f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", depth + 1)
        yield "}", None
    elif isinstance(value, list | tuple):
        yield "[", None
        for place, held in enumerate(value):
            if place:
                yield ",", None
            yield from _pieces(held, f"{pointer}/{place}", depth + 1)
        yield "]", None
    else:
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"the argument {pointer[:80]!r} is {value}, which is no JSON number")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise InputError(f"the argument {pointer[:80]!r} is a {type(value).__name__}, which is no JSON value")
        yield _dumped(value), pointer


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
