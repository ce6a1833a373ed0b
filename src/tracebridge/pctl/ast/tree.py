"""What every part of the tree is: a value that can be compared and hashed at any depth, and its place in the text."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Where in a property text something stands; lines and columns count from 1, the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Tree:
    """Equality and hash of the whole tree, by value and without recursion: trees may be thousands of levels deep."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            ours, theirs = pairs.pop()
            if ours is theirs:
                continue
            if type(ours) is not type(theirs) and isinstance(ours, Tree | tuple):
                return False
            if isinstance(ours, Tree):
                pairs += [(getattr(ours, name), getattr(theirs, name)) for name in _compared_fields(type(ours))]
            elif isinstance(ours, tuple):
                if len(ours) != len(theirs):
                    return False
                pairs += zip(ours, theirs, strict=True)
            elif ours != theirs:
                return False
        return True

    def __hash__(self) -> int:
        flat: list[Any] = []
        stack: list[Any] = [self]
        while stack:
            part = stack.pop()
            if isinstance(part, Tree):
                flat.append(type(part))
                stack += [getattr(part, name) for name in _compared_fields(type(part))]
            elif isinstance(part, tuple):
                flat.append(len(part))
                stack += part
            else:
                flat.append(part)
        return hash(tuple(flat))


@dataclass(frozen=True, slots=True, eq=False)
class Placed(Tree):
    """A tree with its place in the text it was read from; None where it was made otherwise."""

    span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


def _compared_fields(kind: type[Tree]) -> tuple[str, ...]:
    return tuple(entry.name for entry in fields(cast(Any, kind)) if entry.compare)
