"""The words of the language: which are reserved, and which mean something only where they stand so.

PRISM and Storm keep words for themselves everywhere. Here only PRISM's are reserved; Storm's (``T``, ``LRA``,
``steps``, ``rew`` ...) and the names of functions remain free for constants and variables, and are recognised by what
stands around them. The lexer therefore reads them as identifiers, and :class:`WordsInContext` gives them their
terminal before the parser sees them: it looks at the list of tokens, in time linear in its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from tracebridge.pctl.ast import Function

if TYPE_CHECKING:
    from lark import Token

# fmt: off
PRISM_WORDS = frozenset({
    "A", "bool", "C", "clock", "const", "ctmc", "double", "dtmc", "E", "endinit", "endinvariant", "endmodule",
    "endobservables", "endrewards", "endsystem", "F", "false", "filter", "formula", "func", "G", "global", "I",
    "init", "int", "invariant", "label", "max", "mdp", "min", "module", "nondeterministic", "observable",
    "observables", "of", "P", "Pmax", "Pmin", "pomdp", "popta", "prob", "probabilistic", "pta", "R", "rate",
    "rewards", "Rmax", "Rmin", "S", "stochastic", "system", "true", "U", "W", "X",
})
"""Reserved everywhere in a PRISM model or property file (``PrismParser.jj``)."""

STORM_WORDS = PRISM_WORDS | {
    "ceil", "floor", "LRA", "ma", "MP", "multi", "player", "quantile", "rew", "smg", "T", "time",
}
"""Reserved in Storm's formulas and PRISM input, PRISM's own included."""
# fmt: on

FUNCTIONS: tuple[str, ...] = get_args(Function)
"""The functions of the expression language."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_OPERATORS = dict.fromkeys(("T", "Tmin", "Tmax"), "EXPECTED_TIME") | dict.fromkeys(
    ("LRA", "LRAmin", "LRAmax", "Smin", "Smax"), "LONG_RUN"
)
_CALLED = {"filter": "FILTER", "quantile": "QUANTILE", "multi": "MULTI", "multilex": "MULTI"}
_MEASURES = {"steps": "STEPS", "time": "STEPS", "rew": "REW"}

_CLOSERS = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_TEMPORAL = {"NEXT", "EVENTUALLY", "GLOBALLY", "UNTIL", "WEAK_UNTIL", "R"}
_SUM_SIGNS = {"PLUS", "MINUS", "STAR", "SLASH"}
_PLAIN_ATOMS = {"NUMBER", "STRING", "IDENTIFIER", "TRUE", "FALSE"}
_OPERAND_STARTS = _PLAIN_ATOMS | {
    "LPAR", "BANG", "P", "PMIN", "PMAX", "RMIN", "RMAX", "S", "NEXT", "EVENTUALLY", "GLOBALLY", "OPEN_COALITION",
    "OPEN_OPPONENTS", "FUNCTION", "EXPECTED_TIME", "LONG_RUN", "QUANTIFIER", "FILTER", "QUANTILE", "MULTI", "AUTOMATON",
}  # fmt: skip
_OPERAND_ENDS = _PLAIN_ATOMS | {"RPAR", "RSQB", "RBRACE", "S", "CUMULATIVE"}


def is_identifier(name: str) -> bool:
    """Whether a name can stand unquoted in PRISM and Storm, or as a label there: ASCII letters, digits, underscores."""
    return _IDENTIFIER.fullmatch(name) is not None


class WordsInContext:
    """The filter between lexer and parser (lark's ``postlex``)."""

    always_accept = ("JUNK",)  # no rule takes this terminal, and the lexer shall know it all the same

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """The tokens, with the terminal that each word has where it stands."""
        tokens = list(stream)
        line = _Line(tokens)
        line.name_words()
        line.name_bounds()
        line.name_filter_braces()
        return iter(tokens)


class _Line:
    """All tokens of a text; ``kind`` is the terminal at a place, empty beyond the end."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._closers = self._matching_brackets()
        self._bound_braces: set[int] = set()

    def _matching_brackets(self) -> dict[int, int]:
        """From each opening bracket to the one that closes it."""
        closers: dict[int, int] = {}
        still_open: list[int] = []
        for place, token in enumerate(self._tokens):
            if token.type in _CLOSERS:
                still_open.append(place)
            elif still_open and token.type == _CLOSERS[self._tokens[still_open[-1]].type]:
                closers[still_open.pop()] = place
        return closers

    def _kind(self, place: int) -> str:
        return self._tokens[place].type if place < len(self._tokens) else ""

    # ------------------------------------------------------------ words that one or two neighbours decide

    def name_words(self) -> None:
        for place, token in enumerate(self._tokens):
            if token.type == "LSQB" and self._opens_opponents(place):
                token.type = "OPEN_OPPONENTS"
            if token.type not in ("IDENTIFIER", "MIN", "MAX"):
                continue
            following = self._kind(place + 1)
            if following == "LPAR" and token in FUNCTIONS:
                token.type = "FUNCTION"
            elif following == "LPAR" and token in _CALLED:
                token.type = _CALLED[token]
            elif following == "LSQB" and token in ("A", "E"):
                token.type = "QUANTIFIER"
            elif following == "COLON" and token == "HOA" and self._kind(place + 2) == "LBRACE":  # noqa: S105
                token.type = "AUTOMATON"
            elif token in _OPERATORS and self._heads_operator(place + 1):
                token.type = _OPERATORS[token]

    def _opens_opponents(self, place: int) -> bool:
        """Whether ``[[p1, p2]]`` stands here."""
        if self._kind(place + 1) != "LSQB":
            return False
        end = self._after_bracket(place + 1)
        first = self._kind(place + 2)
        return self._kind(end) == "RSQB" and first in ("IDENTIFIER", "NUMBER", "STAR", "RSQB")

    def _heads_operator(self, place: int) -> bool:
        """Whether ``=?``, or a threshold and ``[``, follow the letter of an operator."""
        if self._kind(place) == "LBRACE":
            place = self._after_bracket(place)
        if self._kind(place) in ("MIN", "MAX"):
            place += 1
        if self._kind(place) == "EQUAL":
            return self._kind(place + 1) == "QMARK"
        if self._kind(place) != "COMPARISON":
            return False
        end = self._after_sum(place + 1)
        return end is not None and self._kind(end) == "LSQB"

    # ------------------------------------------------------------ steps, time, rew and discount

    def name_bounds(self) -> None:
        """``F steps<=5 a`` has a bound, ``F steps<=5`` compares a constant: an operand has to follow the bounds."""
        for place, token in enumerate(self._tokens):
            if token.type in _TEMPORAL:
                self._name_bounds(place + 1, operand_follows=True)
            elif token.type == "CUMULATIVE":
                end = self._name_bounds(place + 1, operand_follows=False)
                if self._kind(end) == "IDENTIFIER" and self._tokens[end] == "discount":
                    self._tokens[end].type = "DISCOUNT"

    def _name_bounds(self, start: int, *, operand_follows: bool) -> int:
        """Name the words of the bounds that start here; the place after them, or the start if there are none."""
        place = start + (self._kind(start) == "CIRCUMFLEX")
        braced = self._kind(place) == "LBRACE" and not self._is_structure(place)
        braces = {place} if braced else set()
        words = []
        place += braced
        while True:
            word = self._kind(place) == "IDENTIFIER" and self._tokens[place] in _MEASURES
            if word:
                words.append(place)
                place += 1
            if self._is_structure(place) and (not word or self._tokens[place - 1] == "rew"):
                braces.add(place)
                place += 3
            end = self._after_bound(place)
            if end is None:
                return start
            place = end
            if self._kind(place) != "COMMA":
                break
            place += 1
        if braced and self._kind(place) != "RBRACE":
            return start
        place += braced
        if operand_follows and not braced and not self._starts_operand(place):
            return start
        for index in words:
            self._tokens[index].type = _MEASURES[self._tokens[index]]
        self._bound_braces |= braces
        return place

    def _after_bound(self, place: int) -> int | None:
        """The place after ``<= sum``, ``= sum`` or ``[sum, sum]``."""
        if self._kind(place) in ("COMPARISON", "EQUAL"):
            return self._after_sum(place + 1)
        return self._after_bracket(place) if self._kind(place) == "LSQB" else None

    def _is_structure(self, place: int) -> bool:
        """Whether ``{"name"}`` stands here, and after it a bound."""
        return (
            self._kind(place) == "LBRACE"
            and self._kind(place + 1) == "STRING"
            and self._kind(place + 2) == "RBRACE"
            and self._kind(place + 3) in ("COMPARISON", "EQUAL", "LSQB")
        )

    def _starts_operand(self, place: int) -> bool:
        if self._kind(place) == "R":  # the reward operator, or release
            return self._heads_operator(place + 1)
        return self._kind(place) in _OPERAND_STARTS

    def _after_sum(self, place: int) -> int | None:
        """The place after the longest sum of numbers, names, calls and parentheses; None if none starts here."""
        while True:
            while self._kind(place) == "MINUS":
                place += 1
            if self._kind(place) in ("FUNCTION", "IDENTIFIER", "MIN", "MAX") and self._kind(place + 1) == "LPAR":
                if self._tokens[place] not in FUNCTIONS:
                    return place + 1  # the name of a bound, and an operand in parentheses
                place = self._after_bracket(place + 1)
            elif self._kind(place) == "LPAR":
                place = self._after_bracket(place)
            elif self._kind(place) in _PLAIN_ATOMS:
                place += 1
            else:
                return None
            if self._kind(place) not in _SUM_SIGNS:
                return place
            place += 1

    def _after_bracket(self, place: int) -> int:
        """The place after the bracket that closes the one here; the end of the text if none does."""
        return self._closers.get(place, len(self._tokens)) + 1

    # ------------------------------------------------------------ braces

    def name_filter_braces(self) -> None:
        """``{`` after a complete operand begins a filter of PRISM's old style, unless it belongs to a bound of C."""
        for place, token in enumerate(self._tokens):
            after_operand = place > 0 and self._tokens[place - 1].type in _OPERAND_ENDS
            if token.type == "LBRACE" and after_operand and place not in self._bound_braces:
                token.type = "FILTER_BRACE"
