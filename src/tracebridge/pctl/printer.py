"""Text from trees: the canonical form, and the forms that PRISM and Storm read.

The canonical form parses to the same tree. It writes the parentheses that the grammar needs, and those around the
operands of a temporal operator that help a reader. Where PRISM has a construct its spelling is taken, else Storm's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Literal, NamedTuple

from tracebridge.pctl import ast

Target = Literal["prism", "storm"]
Names = Callable[[str], str]

BINDING = {
    "=>": 1,
    "<=>": 2,
    "|": 3,
    "&": 4,
    "=": 6,
    "!=": 6,
    "<": 7,
    "<=": 7,
    ">": 7,
    ">=": 7,
    "+": 8,
    "-": 8,
    "*": 9,
    "/": 9,
}
"""How strongly the binary operators bind, weakest first."""
_TEMPORAL, _CONDITIONAL, _NOT, _SUM, _PRODUCT, _SIGNED, _ATOM = -1, 0, 5, 8, 9, 10, 11
_LONGEST_DECIMAL = 4_000
_ZERO = ast.Number(Fraction(0), integer=True)
_ONE = ast.Number(Fraction(1), integer=True)


def format_formula(
    formula: ast.Formula | ast.PathFormula, *, target: Target | None = None, names: Names | None = None
) -> str:
    """The text of a formula.

    Args:
        formula: any formula; labels must be expanded already where the target cannot define them.
        target: None for the canonical form, or the tool whose syntax to use. What that tool's syntax cannot say is
            written as in the canonical form; :func:`tracebridge.pctl.portability` tells beforehand.
        names: from the user's label to the name in the tool's model.

    Raises:
        PropertyError: the formula without the operators that the target lacks would be too large.
    """
    if target is not None:
        from tracebridge.pctl.tool_syntax import tool_form

        formula = tool_form(formula, target)
    spelling = _Spelling(names or (lambda name: name))
    text: list[str] = []
    waiting: list[_Piece] = [_Part(formula, _TEMPORAL)]
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, str):
            text.append(piece)
        else:
            waiting.extend(reversed(spelling.pieces(piece)))
    return "".join(text)


def negation(formula: ast.Formula) -> ast.Formula:
    """Not the formula; a double negation is left out, and not true is false."""
    match formula:
        case ast.Unary(operator="!"):
            return formula.operand
        case ast.Truth():
            return ast.Truth(not formula.value, span=formula.span)
        case _:
            return ast.Unary("!", formula, span=formula.span)


def quote(name: str) -> str:
    """A name in double quotes; what is no printable character is escaped."""
    escaped = "".join(
        f"\\{char}" if char in '"\\' else char if char.isprintable() else _escape(ord(char)) for char in name
    )
    return f'"{escaped}"'


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


class _Part(NamedTuple):
    """A node where the grammar wants one that binds at least as strongly as ``minimum``."""

    node: ast.Node
    minimum: int


_Piece = str | _Part


class _Spelling:
    """What each node is made of: pieces of text, and the nodes below it."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def pieces(self, part: _Part) -> list[_Piece]:
        node = part.node
        pieces, level = self._formula(node) if isinstance(node, ast.Formula) else self._path(node)
        return pieces if level >= part.minimum else ["(", *pieces, ")"]

    # ------------------------------------------------------------ formulas

    def _formula(self, formula: ast.Formula) -> tuple[list[_Piece], int]:
        match formula:
            case ast.Truth():
                return ["true" if formula.value else "false"], _ATOM
            case ast.Number():
                text, level = _number(formula)
                return [text], level
            case ast.Label():
                return [self._quoted(formula.name)], _ATOM
            case ast.Identifier():
                return [formula.name], _ATOM
            case ast.Unary():
                level = _NOT if formula.operator == "!" else _SIGNED
                return [formula.operator, _Part(formula.operand, level)], level
            case ast.Binary():
                level = BINDING[formula.operator]
                left, right = _Part(formula.left, level), _Part(formula.right, level + 1)
                return [left, f" {formula.operator} ", right], level
            case ast.Conditional():
                test, then = _Part(formula.test, 1), _Part(formula.then, 1)
                return [test, " ? ", then, " : ", _Part(formula.otherwise, _CONDITIONAL)], _CONDITIONAL
            case ast.Call():
                return [f"{formula.function}(", *_listed(formula.arguments), ")"], _ATOM
            case ast.Filter():
                operands = [formula.operand] if formula.states is None else [formula.operand, formula.states]
                return [f"filter({formula.kind}, ", *_listed(operands), ")"], _ATOM
            case ast.Multi():
                return [f"{formula.kind}(", *_listed(formula.objectives), ")"], _ATOM
            case ast.Quantile():
                variables = [f"{v.optimum} {v.name}, " if v.optimum else f"{v.name}, " for v in formula.variables]
                return ["quantile(", *variables, _Part(formula.operator, _CONDITIONAL), ")"], _ATOM
            case ast.Coalition():
                players = ",".join(formula.players)
                brackets = f"[[{players}]] " if formula.opponents else f"<<{players}>> "
                return [brackets, _Part(formula.operator, _ATOM)], _ATOM
            case _:
                return self._operator(formula), _ATOM

    def _operator(self, operator: ast.Probability | ast.Reward | ast.SteadyState | ast.Quantified) -> list[_Piece]:
        match operator:
            case ast.Probability():
                head = [f"P{operator.optimum or ''}", *_requirement(operator.threshold)]
                return [*head, " [ ", *self._given(_Part(operator.path, _TEMPORAL), operator.condition), " ]"]
            case ast.Reward():
                head = [*self._reward_head(operator), operator.optimum or "", *_requirement(operator.threshold)]
                return [*head, " [ ", *self._given(_Part(operator.path, _TEMPORAL), operator.condition), " ]"]
            case ast.SteadyState():
                head = [f"S{operator.optimum or ''}", *_requirement(operator.threshold)]
                return [*head, " [ ", _Part(operator.operand, _CONDITIONAL), " ]"]
            case ast.Quantified():
                return [f"{operator.quantifier} [ ", _Part(operator.path, _TEMPORAL), " ]"]

    @staticmethod
    def _given(path: _Part, condition: ast.PathFormula | None) -> list[_Piece]:
        return [path] if condition is None else [path, " || ", _Part(condition, _TEMPORAL)]

    def _reward_head(self, operator: ast.Reward) -> list[_Piece]:
        match operator.structure:
            case None:
                return ["R"]
            case ast.OnePerStep():
                return ["T"]
            case str(name):
                return [f"R{{{self._quoted(name)}}}"]
            case number:
                return ["R{", _Part(number, _CONDITIONAL), "}"]

    # ------------------------------------------------------------ paths

    def _path(self, path: ast.PathFormula | ast.RewardPath) -> tuple[list[_Piece], int]:
        match path:
            case ast.Next() | ast.Eventually() | ast.Globally():
                bound = [] if isinstance(path, ast.Next) else self._bounds(path.bound, path.reward_bounds)
                return [path.letter, *bound, " ", *_operand(path.operand, after_letter=True)], _TEMPORAL
            case ast.Until() | ast.WeakUntil() | ast.Release():
                operator = [f" {path.letter}", *self._bounds(path.bound, path.reward_bounds), " "]
                return [*_operand(path.left), *operator, *_operand(path.right)], _TEMPORAL
            case ast.PathNot():
                return ["!", _Part(path.operand, _NOT)], _NOT
            case ast.PathBinary():
                level = BINDING[path.operator]
                return [_Part(path.left, level), f" {path.operator} ", _Part(path.right, level + 1)], level
            case ast.AutomatonPath():
                pieces: list[_Piece] = [f"HOA: {{{quote(path.file)}"]
                for proposition in path.propositions:
                    pieces += [f", {quote(proposition.name)} -> ", _Part(proposition.formula, _CONDITIONAL)]
                return [*pieces, "}"], _TEMPORAL
            case ast.ReachReward():
                return ["F ", *_operand(path.operand, after_letter=True)], _TEMPORAL
            case ast.PathReward():
                return [_Part(path.path, _TEMPORAL)], _TEMPORAL
            case ast.CumulativeReward():
                return self._cumulative(path), _TEMPORAL
            case ast.InstantaneousReward():
                return ["I=", _Part(path.time, _SUM)], _TEMPORAL
            case ast.LongRunReward():
                return ["S"], _TEMPORAL

    def _cumulative(self, path: ast.CumulativeReward) -> list[_Piece]:
        steps = None if path.bound is None else ast.StepBound(upper=path.bound, upper_strict=path.strict)
        if steps is not None and path.bound is not None and not path.reward_bounds:
            bounds: list[_Piece] = ["<" if path.strict else "<=", _Part(path.bound, _SUM)]
        else:
            bounds = self._bounds(steps, path.reward_bounds)
        if path.discount is None:
            return ["C", *bounds]
        # Storm reads C<=5 discount=0.9, but Cdiscount=0.9 only without the space
        return ["C", *bounds, " discount=" if bounds else "discount=", _Part(path.discount, _SUM)]

    def _bounds(self, steps: ast.StepBound | None, rewards: tuple[ast.RewardBound, ...]) -> list[_Piece]:
        if not rewards:
            return [] if steps is None else _ends(steps)
        if steps is None and len(rewards) == 1 and rewards[0].structure is not None:
            return [f"{{{self._quoted(rewards[0].structure)}}}", *_ends(rewards[0].bound)]
        pieces: list[_Piece] = []
        for reward in rewards:
            structure = "" if reward.structure is None else f"{{{self._quoted(reward.structure)}}}"
            pieces += [",", f"rew{structure}", *_ends(reward.bound)]
        if steps is not None:
            pieces += [",", "steps", *_ends(steps)]
        return ["^{", *pieces[1:], "}"]

    def _quoted(self, name: str) -> str:
        return quote(self._names(name))


def _listed(formulas: Iterable[ast.Formula]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for formula in formulas:
        pieces += [", ", _Part(formula, _CONDITIONAL)]
    return pieces[1:]


def _requirement(threshold: ast.Threshold | None) -> list[_Piece]:
    return ["=?"] if threshold is None else [threshold.comparison, _Part(threshold.value, _SUM)]


def _operand(operand: ast.Formula | ast.PathFormula, *, after_letter: bool = False) -> list[_Piece]:
    """An operand in parentheses, unless it is one word, an operator, or the negation of one; X F stands without."""
    negations = 0
    inner = operand
    while isinstance(inner, ast.PathNot) or (isinstance(inner, ast.Unary) and inner.operator == "!"):
        inner, negations = inner.operand, negations + 1
    if after_letter and not negations and isinstance(inner, ast.Next | ast.Eventually | ast.Globally):
        return [_Part(inner, _TEMPORAL)]
    return ["!" * negations, _Part(inner, _ATOM)]


def _ends(bound: ast.StepBound) -> list[_Piece]:
    lower, upper = bound.lower, bound.upper
    if bound.exact and upper is not None:
        return ["=", *_end(upper)]
    if upper is None:
        return [">" if bound.lower_strict else ">=", *_end(lower or _ZERO)]
    if lower is None:
        return ["<" if bound.upper_strict else "<=", *_end(upper)]
    first = ast.Binary("+", lower, _ONE) if bound.lower_strict else lower
    last = ast.Binary("-", upper, _ONE) if bound.upper_strict else upper
    return ["[", _Part(first, _SUM), ",", _Part(last, _SUM), "]"]


def _end(formula: ast.Formula) -> list[_Piece]:
    """The end of a bound: PRISM reads ``F<=k (a)`` as meant, but ``F<=2*k (a)`` as a call of k."""
    part = _Part(formula, _ATOM)
    return ["(", part, ")"] if isinstance(formula, ast.Call) else [part]


def _number(number: ast.Number) -> tuple[str, int]:
    """A number and how strongly its text binds; a value that is no decimal is written as a fraction."""
    value = number.value
    if value < 0:
        text, level = _number(ast.Number(-value, number.integer))
        return f"-{text}", min(level, _SIGNED)
    if number.integer:
        return str(value), _ATOM if value.denominator == 1 else _PRODUCT
    digits, shift = _decimal(value)
    if digits is None:
        return f"{value.numerator}/{value.denominator}", _PRODUCT
    if shift > 20 or len(digits) > shift + 20:
        return f"{digits.rstrip('0')}e{len(digits) - len(digits.rstrip('0')) - shift}", _ATOM
    digits = digits.zfill(shift + 1)
    return f"{digits[: len(digits) - shift]}.{digits[len(digits) - shift :] or '0'}", _ATOM


def _decimal(value: Fraction) -> tuple[str | None, int]:
    """The digits of a decimal number and how many of them stand after the point; no digits if it is none."""
    rest = value.denominator
    twos = (rest & -rest).bit_length() - 1
    rest >>= twos
    fives = 0
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    shift = max(twos, fives)
    if rest != 1 or shift > _LONGEST_DECIMAL:
        return None, 0
    digits = str(value.numerator * 10**shift // value.denominator)
    return (digits, shift) if len(digits) <= _LONGEST_DECIMAL else (None, 0)
