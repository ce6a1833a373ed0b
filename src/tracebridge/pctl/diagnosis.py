"""What is wrong with a text that does not parse, in the words of someone who writes properties.

A catalogue of the usual mistakes comes first: each entry looks at the text before and after the place where the parser
stopped. Then comes an opening bracket that is never closed, reported where it opens. What is left says what could have
stood at that place.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import NamedTuple

from lark import Token

from tracebridge.errors import Problem
from tracebridge.pctl.ast import Span
from tracebridge.pctl.source import Source
from tracebridge.pctl.words import FUNCTIONS

_CONTEXT = 400  # characters before and after the place that the catalogue looks at
_TOKEN = re.compile(
    r'(?P<skip>[ \t\f\r\n]+|//[^\r\n]*)|(?P<string>"(?:[^"\\\r\n]|\\[^\r\n])*")|(?P<word>[A-Za-z_][A-Za-z0-9_]*)'
    r"|(?P<number>[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)|(?P<sign><=>|=>|<=|>=|!=|.)",
    re.DOTALL,
)
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_ITEM = re.compile(
    r"(?:const|label)\b|(?:[PRST]|LRA)(?:min|max)?\s*[{=<>]|[AE]\s*\[|(?:filter|quantile|multi|multilex)\s*\("
    r'|"[^"\n]*"\s*:'
)


class Mistake(NamedTuple):
    """A usual mistake: what stands before and after the place where the parser stops, and what to say."""

    before: str
    after: str
    message: str
    hint: str | None = None


_HEAD = r"\b(?:[PRST]|LRA)(?:min|max)?\s*(?:\{[^{}]*\}\s*)?(?:min|max)?\s*"
_WORDS_CALLED = (*FUNCTIONS, "filter", "quantile", "multi", "multilex")

MISTAKES = (
    # -------------------------------------------------------- operator heads
    Mistake(
        rf"{_HEAD}(?:<=|>=|<|>)\s*$",
        r"\?",
        "a bound needs a number, and =? asks for the value",
        "write P>=0.9 [ ... ] or P=? [ ... ]",
    ),
    Mistake(
        rf"{_HEAD}=\s*$",
        r"[\d.]",
        "an operator cannot be compared with =",
        "write P>=0.5 [ ... ], or P=? [ ... ] to ask for the value",
    ),
    Mistake(rf"{_HEAD}=\s*$", r"\[", "the value is asked for with =?", "write P=? [ ... ]"),
    Mistake(
        r"\bR\s*$",
        r"[(\[]\s*\w+\s*[)\]]",
        "R is the mean of a reward; its variance or distribution cannot be asked for",
        'write R{"steps"}=? [ ... ]',
    ),
    Mistake(rf"{_HEAD}$", r"=[<>]", "a bound is written >= or <=", "write P>=0.9 [ ... ]"),
    Mistake(
        r"(?<![\w\"])(?:[prst]|Pr|[Pp]rob)(?:min|max)?\s*(?:<=|>=|<|>)\s*[\w./]+\s*$",
        r"[\[(]",
        "the operators are P (probability), R (reward), S (long run) and T (expected time), in capitals",
        "write P>=0.9 [ ... ]",
    ),
    Mistake(
        rf"{_HEAD}(?:<=|>=|<|>)\s*\d+\s*$", r",\s*\d", "numbers are written with a decimal point", "write 0.5, not 0,5"
    ),
    Mistake(
        rf"{_HEAD}(?:(?:<=|>=|<|>)\s*[\w./]+|=\s*\?)\s*$",
        r"\(|[FGX]\b",
        "what an operator is about stands in square brackets",
        'write P>=0.9 [ F "done" ]',
    ),
    Mistake(
        rf"{_HEAD}$",
        r"\[",
        "an operator needs =? or a bound before its brackets",
        "write P=? [ ... ] to ask for the value, or P>=0.9 [ ... ]",
    ),
    Mistake(
        r"\bR\s*\{\s*$",
        r"\}",
        "the braces after R name a reward structure",
        'write R{"steps"}=? [ ... ], or R=? [ ... ] for the first one',
    ),
    Mistake(r"\bR\s*\{[^{}]*$", r",", "one reward structure at a time", "write an operator for each"),
    Mistake(r"\bR\s*\{[^{}]*\}\s*$", r"/", "the ratio of two reward structures is not part of the language", None),
    Mistake(r"\b[AE]\s*=\s*$", r"\?", "A and E take no bound", 'write A [ F "done" ]'),
    Mistake(r"\b[AE]\s*[<>=]+[^\[\]]*$", r"\[", "A and E take no bound", 'write A [ F "done" ]'),
    Mistake(
        r"\b(?:T|LRA)\s*=\s*[\w.]+\s*$",
        r"\[",
        "an operator cannot be compared with =",
        "write T<=5 [ ... ], or T=? [ ... ] to ask for the value",
    ),
    Mistake(
        r"(?<![\w\"])(?!(?:[PR](?:min|max)?|S)\s*=\s*$)\w+\s*=\s*$",
        r"\?",
        "unknown operator before =?",
        "the operators are P (probability), R (reward), S (long run) and T (expected time)",
    ),
    Mistake(
        r"\b[FGUWR]\s*\^\s*$", r"[^{\s]", "after ^ the bounds stand in braces", 'as in F^{rew{"cost"}<=5, steps<=8}'
    ),
    # -------------------------------------------------------- filters
    Mistake(
        r"\bfilter\s*\(\s*$",
        r"[^\w&|+]",
        "a filter begins with its kind",
        'as in filter(max, P=? [ F "a" ], "init")',
    ),
    Mistake(
        r"\bfilter\s*\(\s*(?:\w+|[&|+])\s*$", r"[^,]", "a comma follows the kind of a filter", "as in filter(max, ...)"
    ),
    Mistake(
        r"\bquantile\s*\((?:[^()\[\]]*,)?\s*(?:min\b|max\b)?\s*$",
        r"[CFGIPRSUWX]\s*,",
        "this word is reserved and cannot name a variable",
        "choose another name",
    ),
    Mistake(
        r"\bquantile\s*\(\s*(?:\w+(?:\s+\w+)?\s*,\s*)*(?:min\b|max\b)?\s*$",
        r"\S",
        "the variables of a quantile come first",
        'as in quantile(min B, P>=0.9 [ F<=B "done" ])',
    ),
    Mistake(r"\}\s*\{\s*$", r"\w", "only {min} and {max} follow the states of a filter", None),
    # -------------------------------------------------------- words and signs of other languages
    Mistake(r"", r"<>", "eventually is written F", 'write P>=0.9 [ F "done" ]'),
    Mistake(r"\[\s*$", r"\[\s*\]", "always is written G", 'write P>=0.9 [ G "ok" ]'),
    Mistake(r"&\s*$", r"&", "the Boolean and is a single &", None),
    Mistake(r"", r"\|\|", "the Boolean or is a single |", "|| is the condition of P=? [ F a || F b ]"),
    Mistake(r"=\s*$", r"=", "equality is a single =", None),
    Mistake(r"", r"and\b", "the Boolean and is written &", None),
    Mistake(r"", r"or\b", "the Boolean or is written |", None),
    Mistake(r"\bnot\s*$", r"", "the Boolean not is written !", None),
    Mistake(r"<\s*$", r"->", "equivalence is written <=>", None),
    Mistake(r"", r"(?:implies\b|->)", "implication is written =>", None),
    Mistake(r"", r"(?:iff\b|<->)", "equivalence is written <=>", None),
    Mistake(r"", r"in\s*\{", "membership in a set is written x=1 | x=2", None),
    Mistake(r"", r"xor\b", "exclusive or is written !=, between two truth values in parentheses", None),
    Mistake(r"", r"[‘’'`]", "names stand in double quotes", 'write "success"'),
    Mistake(r"", r"[“”„«»]", "names stand in straight double quotes", 'write "success"'),
    Mistake(r"", r"\*\*|\^", "powers are written pow(x, k)", None),
    Mistake(r"\*\s*$", r"\*", "powers are written pow(x, k)", None),
    Mistake(r"/\s*$", r"\*", "comments start with //", None),
    Mistake(r"\d\s*$", r"%", "numbers are written as fractions of one", "0.9, not 90%"),
    Mistake(r"", r"/\*", "comments start with //", None),
    Mistake(r"", r"[#%]", "comments start with //", None),
    Mistake(r"", "\u00a0", "this is a non-breaking space", "replace it with an ordinary space"),
    Mistake(r"", r"[≤≥≠¬∧∨→⇒]", "operators are written in ASCII", "<= >= != ! & | =>"),
    Mistake(r"", r"[^\x00-\x7f]", "only a name in double quotes may hold this character", None),
    # -------------------------------------------------------- files
    Mistake(
        r"(?:^|[;\n])\s*formula\s*$", r"\w", "a formula definition belongs to a model file", 'write label "name" = ...;'
    ),
    Mistake(r"\blabel\s*$", r"\w", "the name of a label stands in double quotes", 'write label "done" = ...;'),
    Mistake(
        r"\bconst\s+(?:(?:int|double|bool)\s*)?$",
        r"[A-Z]\w*\b",
        "this word is reserved and cannot name a constant",
        "choose another name",
    ),
    Mistake(
        r"\bconst\s+(?:float|real|number|integer|boolean)\s*$",
        r"\w",
        "the types of constants are int, double and bool",
        None,
    ),
    Mistake(r"\bconst\b[^;]*=[^;]*[^;\s]\s*$", r"\S", "a constant ends with ;", None),
    # -------------------------------------------------------- temporal operators
    Mistake(
        r"[\w\"\])]\s*$",
        r"[FGX]\b",
        "two formulas stand side by side",
        "give each its own operator and join these with &, or write a U b",
    ),
    Mistake(
        r"\b[UWR]\b[^\[\]]*$",
        r"[UW]\b",
        "U, W and R do not chain",
        "use parentheses, as in a U (b U c)",
    ),
    Mistake(
        r"(?:^|[;:\n(&|!=>{])\s*$",
        r"[FGX]\b",
        "a temporal operator stands between the brackets of P",
        "write P=? [ F ... ]",
    ),
    Mistake(r"", r"[UW]\b", "U and W stand between the brackets of P", "write P=? [ a U b ]"),
)

_FORMULA_STARTS = {"STRING", "NUMBER", "IDENTIFIER"}
_EXPECTED_SIGNS = {
    "RPAR": ")",
    "RSQB": "]",
    "RBRACE": "}",
    "COMMA": ",",
    "EQUAL": "=",
    "COLON": ":",
    "LSQB": "[",
    "LBRACE": "{",
    "SEMICOLON": ";",
}


def diagnose(source: Source, unexpected: Token, accepted: Callable[[], set[str]]) -> Problem:
    """What is wrong with a text in which the grammar refuses a token, where it would have accepted others.

    These others are asked for only when there is nothing better to say.
    """
    ended = unexpected.type == "$END"
    offset = _end_of_text(source.text) if ended else unexpected.start_pos
    assert offset is not None  # noqa: S101 - every token of the lexer has a place
    return (
        _from_catalogue(source, offset)
        or _unclosed(source, offset)
        or _unknown_function(source, offset)
        or _expected(source, offset, accepted())
    )


def diagnose_leftover(source: Source, span: Span) -> Problem:
    """What is wrong with something that follows a complete property on its own line."""
    offset = source.offset(span.line, span.column)
    found = _from_catalogue(source, offset) or _unknown_function(source, offset)
    return found or source.problem(
        _token_span(source, offset),
        "a complete property ends before this",
        "begin the next property on a new line or after ;, or join the two with an operator such as & or |",
    )


def _from_catalogue(source: Source, offset: int) -> Problem | None:
    before = source.text[max(0, offset - _CONTEXT) : offset]
    after = source.text[offset : offset + _CONTEXT]
    for mistake in MISTAKES:
        if re.search(mistake.before, before) and re.match(mistake.after, after):
            return source.problem(_token_span(source, offset), mistake.message, mistake.hint)
    return None


def _unclosed(source: Source, offset: int) -> Problem | None:
    """An opening bracket before the place that nothing closes, when that is why the parser stopped."""
    if source.text.startswith('"', offset) and _token(source.text, offset) == '"':
        return source.problem(source.position(offset), 'this name has no closing "', "a name stays on one line")
    open_brackets: list[tuple[str, int]] = []
    for start, token in _tokens(source.text, offset):
        if token in _CLOSERS:
            open_brackets.append((token, start))
        elif token in _CLOSERS.values() and open_brackets and _CLOSERS[open_brackets[-1][0]] == token:
            open_brackets.pop()
    found = _token(source.text, offset)
    if not open_brackets:
        if found in _CLOSERS.values():
            return source.problem(source.position(offset), f"nothing is open that {found} could close", None)
        return None
    opener, start = open_brackets[-1]
    wrong_closer = found in _CLOSERS.values() and found != _CLOSERS[opener]
    if found in ("", ";") or wrong_closer or begins_item(source.text, offset):
        return source.problem(
            source.position(start), f"this {opener} is never closed", f"add the {_CLOSERS[opener]} that is missing"
        )
    return None


def begins_item(text: str, offset: int) -> bool:
    """Whether a new property or declaration seems to start here: first on its line, and it looks like one."""
    line_start = text.rfind("\n", 0, offset) + 1
    if line_start == 0 or text[line_start:offset].strip():
        return False
    return _ITEM.match(text, offset) is not None


def _unknown_function(source: Source, offset: int) -> Problem | None:
    """A word before the innermost open parenthesis, or before one that starts here, that is no function."""
    tokens = _tokens(source.text, offset)
    if _token(source.text, offset) == "(":
        tokens.append((offset, "("))
    open_at: list[int] = []
    for index, (_, token) in enumerate(tokens):
        if token in _CLOSERS:
            open_at.append(index)
        elif token in _CLOSERS.values() and open_at:
            open_at.pop()
    if not open_at or open_at[-1] == 0 or tokens[open_at[-1]][1] != "(":
        return None
    start, word = tokens[open_at[-1] - 1]
    bound = open_at[-1] > 1 and tokens[open_at[-1] - 2][1] in ("<=", "<", ">=", ">", "=")
    if bound or word in _WORDS_CALLED or not re.fullmatch(r"[A-Za-z_]\w+", word):
        return None
    near = difflib.get_close_matches(word, FUNCTIONS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the functions are {', '.join(FUNCTIONS)}"
    return source.problem(source.position(start, len(word)), f"unknown function {_shorten(word)}", hint)


def _expected(source: Source, offset: int, accepted: set[str]) -> Problem:
    found = _token(source.text, offset)
    shown = found if found.isprintable() else f"U+{ord(found[0]):04X}"
    what = f"unexpected {_shorten(shown)}" if found else "the text ends too early"
    expected = _expected_words(accepted)
    message = f"{what}; expected {expected}" if expected else what
    return source.problem(_token_span(source, offset), message)


def _expected_words(accepted: set[str]) -> str:
    words: list[str] = []
    if accepted >= _FORMULA_STARTS and "AMPERSAND" not in accepted:
        words.append("a temporal operator or a formula" if "NEXT" in accepted else "a formula")
    elif "STRING" in accepted and "NUMBER" not in accepted:
        words.append("a name in double quotes")
    elif "IDENTIFIER" in accepted and "NUMBER" not in accepted:
        words.append("a name")
    if "AMPERSAND" in accepted:
        words.append("an operator such as & or |")
    elif "PLUS" in accepted and "NUMBER" not in accepted:
        words.append("an operator such as +")
    if "COMPARISON" in accepted and "AMPERSAND" not in accepted and "PLUS" not in accepted:
        words.append("a comparison such as >=")
    formula_first = accepted >= _FORMULA_STARTS  # then a bracket may only begin an operand, and goes without saying
    words.extend(
        sign for name, sign in _EXPECTED_SIGNS.items() if name in accepted and not (formula_first and sign in "[{")
    )
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def _end_of_text(text: str) -> int:
    """The place after the last token."""
    return max((start + len(token) for start, token in _tokens(text, len(text))), default=0)


def _tokens(text: str, end: int) -> list[tuple[int, str]]:
    return [(match.start(), match[0]) for match in _TOKEN.finditer(text, 0, end) if match.lastgroup != "skip"]


def _token(text: str, offset: int) -> str:
    """The token at a place; empty at the end of the text."""
    match = _TOKEN.match(text, offset)
    return match[0] if match and match.lastgroup != "skip" else ""


def _token_span(source: Source, offset: int) -> Span:
    return source.position(offset, max(1, len(_token(source.text, offset))))


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else text[:39] + "…"
