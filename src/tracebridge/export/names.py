"""Identifiers for names: legal in PRISM and Storm, readable, and reversible.

Both tools take only ``[A-Za-z_][A-Za-z0-9_]*`` for labels, reward structures and property names, and not every word of
that form. A name that is one already stands for itself. Every other character becomes ``_x<hex>_``, its code point
(``tool-call`` is ``tool_x2d_call``), and the empty escape ``_x_`` keeps an identifier away from a digit at its start
(``_x_1st``), from being empty (``_x_``) and from a reserved word (``min_x_``). A literal underscore that could be read
as the start of an escape is escaped too: two names never share an identifier, whatever other names there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from tracebridge.errors import UsageError
from tracebridge.pctl.words import PRISM_WORDS, STORM_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

# What Storm's model parser refuses beyond the words of the property language (PrismParserGrammar.h).
_STORM_MODEL_WORDS = ("atLeastOneOf", "atMostOneOf", "ctmdp", "endplayer", "exactlyOneOf", "player", "pomdp", "smg")

# Labels that the tools set themselves; the last is Storm's.
_BUILT_IN_LABELS = ("deadlock", "init", "overlap_guards")

#: Words that no identifier may be.
RESERVED_WORDS = PRISM_WORDS | STORM_WORDS | {*_STORM_MODEL_WORDS, *_BUILT_IN_LABELS}

_TO_ESCAPE = re.compile(
    r"[^A-Za-z0-9_]"  # not of an identifier
    r"|_(?=x[0-9a-f]*+(?![A-Za-z0-9]))"  # an underscore that, with what may follow, would read as an escape
)
_ESCAPE = re.compile(r"_x([0-9a-f]*)_")


def identifier_of(name: str) -> str:
    """The identifier that stands for a name; injective over all strings."""
    escaped = _TO_ESCAPE.sub(lambda match: f"_x{ord(match[0]):x}_", name)
    if not escaped or escaped[0].isdigit():
        return f"_x_{escaped}"
    return f"{escaped}_x_" if escaped in RESERVED_WORDS else escaped


def name_of(identifier: str) -> str:
    """The name that an identifier stands for: the inverse of `identifier_of`.

    Raises:
        UsageError: for a text that is no identifier, or one that no name is written as.
    """
    try:
        name = _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "", identifier)
    except (ValueError, OverflowError):  # beyond the last code point
        name = None
    if name is None or identifier_of(name) != identifier:
        raise UsageError(f"{identifier!r} is not an identifier that a name is written as")
    return name


class NameMap:
    """The identifiers of a set of names, both ways, in the order in which the names were given.

    The identifier of a name does not depend on the other names, so that a property file written beside one model fits
    every other model that has the same labels.
    """

    __slots__ = ("_identifiers", "_names")

    def __init__(self, names: Iterable[str]) -> None:
        identifiers = {name: identifier_of(name) for name in names}
        self._identifiers: Mapping[str, str] = MappingProxyType(identifiers)
        self._names: Mapping[str, str] = MappingProxyType(
            {identifier: name for name, identifier in identifiers.items()}
        )

    def __len__(self) -> int:
        return len(self._identifiers)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Pairs of a name and its identifier."""
        return iter(self._identifiers.items())

    def __contains__(self, name: object) -> bool:
        return name in self._identifiers

    def identifier(self, name: str) -> str:
        """The identifier of one of the names. Raises UsageError for any other."""
        try:
            return self._identifiers[name]
        except KeyError:
            raise UsageError(f"{name!r} is not among the names of this map") from None

    def name(self, identifier: str) -> str:
        """The name behind an identifier. Raises UsageError where there is none."""
        try:
            return self._names[identifier]
        except KeyError:
            raise UsageError(f"no name of this map is written as {identifier!r}") from None


def unused_identifier(wanted: str, taken: Collection[str]) -> str:
    """``wanted``, or if that is taken ``_x_<wanted>``, which no name is ever written as.

    ``wanted`` starts with a letter; ``taken`` are identifiers made by `identifier_of`.
    """
    return wanted if wanted not in taken else f"_x_{wanted}"
