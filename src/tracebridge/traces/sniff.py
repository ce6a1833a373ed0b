"""What the first bytes of a file look like, so that a format is recognised by content and not by extension."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal

import msgspec

from tracebridge.traces.problems import escaped, shown

_decode_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_values = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

LFS_POINTER = b"version https://git-lfs.github.com/spec/"

# The last alternative matches the opening quote of a string that the head cuts off: without it, every escaped quote
# inside would be tried as a new opening quote and the scan would be quadratic.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_find_token = re.compile(rb'(%s|[{}\[\],]|")' % _STRING, re.DOTALL).search
_match_to_bracket = re.compile(rb'(?:[^"{}\[\]]++|%s)*+([{}\[\]])' % _STRING, re.DOTALL).match


_OTHER_KINDS = {
    "zip": "a zip archive",
    "parquet": "a Parquet table",
    "utf-16": "UTF-16 text, where UTF-8 is needed",
    "binary": "binary data",
    "empty": "nothing",
}
_EMPTY_CONTAINER = re.compile(rb"\{\s*\}|\[\s*\]")
_ARRAY_OF_OBJECTS = re.compile(rb"\[\s*\{")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a file seems to hold.

    Attributes:
        kind: ``object`` (one JSON object, or the first of several), ``array`` (a JSON array), ``text``, ``zip``,
            ``parquet``, ``utf-16``, ``binary`` or ``empty``.
        keys: the keys of the object, or of the array's first element; of a cut-off object those seen so far.
        first_line: the first non-blank line of a text.
        is_empty: the object or array has nothing in it.
        has_objects: it is an object, or an array whose first element is one.
    """

    kind: Literal["object", "array", "text", "zip", "parquet", "utf-16", "binary", "empty"]
    keys: frozenset[str] = frozenset()
    first_line: str = ""
    is_empty: bool = False
    has_objects: bool = False

    def __str__(self) -> str:
        if self.kind in ("object", "array"):
            if self.is_empty:
                return f"an empty JSON {self.kind}"
            what = "a JSON object" if self.kind == "object" else "a JSON array whose first element is an object"
            if self.keys:
                return f"{what} with the keys {', '.join(map(escaped, sorted(self.keys)[:12]))}"
            return f"{what} that has no key" if self.has_objects else "a JSON array of something else than objects"
        if self.kind == "text":
            return f"text that starts {shown(self.first_line)}"
        return _OTHER_KINDS[self.kind]


_latest: dict[str, tuple[bytes, Shape]] = {"shape": (b"", Shape(kind="empty"))}


def shape(head: bytes) -> Shape:
    """The shape of a file that starts with ``head``; takes time linear in it, but none if asked the same again."""
    known, found = _latest["shape"]
    if known is not head:  # not by its value: to hash it would cost more than to tell its shape
        found = _told_shape(head)
        _latest["shape"] = head, found
    return found


def _told_shape(head: bytes) -> Shape:
    start = head.lstrip()
    if not start:
        return Shape(kind="empty")
    if head.startswith(b"PK\x03\x04"):
        return Shape(kind="zip")
    if head.startswith(b"PAR1"):
        return Shape(kind="parquet")
    if start[:1] in b"{[":
        is_array = start.startswith(b"[")
        return Shape(
            kind="array" if is_array else "object",
            keys=_decoded_keys(start, is_array=is_array),
            is_empty=_EMPTY_CONTAINER.match(start) is not None,
            has_objects=not is_array or _ARRAY_OF_OBJECTS.match(start) is not None,
        )
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Shape(kind="utf-16")
    if b"\0" in head:
        return Shape(kind="binary")
    try:
        line = start.split(b"\n", 1)[0].decode()
    except UnicodeDecodeError:
        return Shape(kind="binary")
    return Shape(kind="text", first_line=line.rstrip())


def plain_name(name: str) -> str:
    """A key or column name as people vary it: without regard to case, outer space, and ``-`` or space for ``_``."""
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _decoded_keys(head: bytes, *, is_array: bool) -> frozenset[str]:
    """The keys of the object or of the array's first element: decoded where the head holds all of it, else scanned."""
    for text in (head, head.partition(b"\n")[0]):
        try:
            if is_array:
                elements = _decode_elements(text)
                return frozenset(_decode_values(elements[0]) if elements else ())
            return frozenset(_decode_values(text))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue  # cut off, lines, or no JSON at all
    return _keys(head, 2 if is_array else 1)


def _keys(head: bytes, level: int) -> frozenset[str]:
    """The keys of the first object at nesting depth ``level``."""
    keys = []
    depth = 0
    key_may_follow = False
    at = 0
    while found := (_match_to_bracket if depth > level else _find_token)(head, at):
        token, at = found[1], found.end()
        if token in (b"{", b"["):
            depth += 1
            key_may_follow = depth == level and token == b"{"
            if depth == level and token == b"[":
                break
        elif token in (b"}", b"]"):
            depth -= 1
            if depth < level:
                break
        elif token == b",":
            key_may_follow = depth == level
        elif token == b'"':
            break
        elif key_may_follow and depth == level:
            key_may_follow = False
            try:
                keys.append(json.loads(token))
            except ValueError:
                break
    return frozenset(keys)
