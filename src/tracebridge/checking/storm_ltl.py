"""Path formulas of LTL in Storm's language.

Storm has X, F, G and U with ``!``, ``&`` and ``|``, and step bounds with an upper end on F and U. The rest becomes

    a => b      (!a) | b                              a <=> b     (a & b) | (!a & !b)
    a W b       !((a & !b) U (!a & !b))               a R b       !(!a U !b)                    bounds stay on the U
    G<=k a      !(F<=k !a)
    F>=k a      X ... X (F a), k times                a U>=k b    a & X (a & X ... (a U b))     F[j,k], U[j,k] alike

Storm gives such formulas to Spot, whose automaton grows with every step of a bound and with every operator.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracebridge.checking.storm_steps import step_window
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ast

#: Automata get too large for Storm with formulas of more operators, operands or steps, or a longer text, than this.
MAX_OPERATORS = 60
MAX_OPERANDS = 12
MAX_STEPS = 100
MAX_LENGTH = 20_000


@dataclass(frozen=True, slots=True)
class AutomatonQuery:
    """A path formula as Storm is asked about it.

    Attributes:
        text: the operands are called ``a0``, ``a1``, ... operands: what these stand for.
        rewritten: whether it is more than the formula in Storm's own syntax.
    """

    text: str
    operands: tuple[ast.Formula, ...]
    rewritten: bool


def automaton_query(path: ast.PathFormula) -> AutomatonQuery:
    """The path formula in Storm's syntax.

    Raises:
        UnsupportedError: it has reward bounds, is an automaton, or would get too large for Storm.
    """
    writer = _Writer()
    operators = sum(1 for node in _path_nodes(path) if not isinstance(node, ast.Formula))
    if operators > MAX_OPERATORS:
        raise UnsupportedError(f"Storm is not given LTL formulas of more than {MAX_OPERATORS} operators")
    text = writer.write(path)
    return AutomatonQuery(text, tuple(writer.operands), writer.rewritten)


def _path_nodes(path: ast.PathFormula) -> list[ast.Node]:
    """The path formulas below and including this one, and their operands."""
    found: list[ast.Node] = []
    stack: list[ast.Node] = [path]
    while stack:
        node = stack.pop()
        found.append(node)
        match node:
            case ast.PathNot(operand) | ast.Next(operand) | ast.Eventually(operand) | ast.Globally(operand):
                stack.append(operand)
            case (
                ast.PathBinary(left=left, right=right)
                | ast.Until(left=left, right=right)
                | ast.WeakUntil(left=left, right=right)
                | ast.Release(left=left, right=right)
            ):
                stack += [left, right]
    return found


@dataclass(slots=True)
class _Writer:
    """Writes path formulas, and gives the operands their names; recursion is as deep as there are operators."""

    operands: list[ast.Formula] = field(default_factory=list)
    rewritten: bool = False
    steps: int = 0
    names: dict[ast.Label | ast.Truth | int, str] = field(default_factory=dict)

    def write(self, node: ast.Formula | ast.PathFormula) -> str:
        match node:
            case ast.PathNot(operand):
                return _not(self.write(operand))
            case ast.PathBinary(operator, left, right):
                return self._join(operator, self.write(left), self.write(right))
            case ast.Next(operand):
                return f"X {_grouped(self.write(operand))}"
            case ast.Eventually(operand):
                return self._until(node, None, self.write(operand))
            case ast.Globally(operand, None, ()):
                return f"G {_grouped(self.write(operand))}"
            case ast.Globally(operand):
                self.rewritten = True
                return _not(self._until(node, None, _not(self.write(operand))))
            case ast.Until(left, right):
                return self._until(node, self.write(left), self.write(right))
            case ast.WeakUntil(left, right):
                self.rewritten = True
                a, b = self.write(left), self.write(right)
                return _not(self._until(node, _and(a, _not(b)), _and(_not(a), _not(b))))
            case ast.Release(left, right):
                self.rewritten = True
                return _not(self._until(node, _not(self.write(left)), _not(self.write(right))))
            case ast.AutomatonPath():
                raise UnsupportedError("automata from files are not read")
            case _:
                return self._operand(node)

    def _operand(self, node: ast.Formula) -> str:
        # Storm takes the negation of a constant for the name of a label, so that constants are sets of states too.
        key = node if isinstance(node, ast.Label | ast.Truth) else id(node)
        if key not in self.names:
            if len(self.operands) == MAX_OPERANDS:
                raise UnsupportedError(f"Storm is not given LTL formulas of more than {MAX_OPERANDS} operands")
            self.names[key] = f'"a{len(self.operands)}"'
            self.operands.append(node)
        return self.names[key]

    def _join(self, operator: str, left: str, right: str) -> str:
        if operator in {"=>", "<=>"}:
            self.rewritten = True
        match operator:
            case "&":
                return _and(left, right)
            case "=>":
                return _or(_not(left), right)
            case "<=>":
                return _or(_and(left, right), _and(_not(left), _not(right)))
            case _:
                return _or(left, right)

    def _until(self, node: ast.Temporal, stay: str | None, goal: str) -> str:
        """``stay U goal`` within the bounds of the node, ``F goal`` without ``stay``."""
        if isinstance(node, ast.Next):  # X has no bounds
            raise TypeError("X is no until")
        if node.reward_bounds:
            raise UnsupportedError("Storm has no bounds on rewards inside LTL")
        first, last = step_window(node.bound)
        if last is not None and last < first:
            self.rewritten = True
            return self._operand(ast.Truth(False))
        self.steps += first if last is None else last
        if self.steps > MAX_STEPS:
            raise UnsupportedError(f"Storm unfolds step bounds inside LTL; it is not asked for more than {MAX_STEPS}")
        bound = "" if last is None else f"<={last - first}"
        text = f"F{bound} {_grouped(goal)}" if stay is None else f"{_grouped(stay)} U{bound} {_grouped(goal)}"
        for _ in range(first):
            self.rewritten = True
            text = f"X {_grouped(text)}" if stay is None else _and(stay, f"X {_grouped(text)}")
        return text


def _grouped(text: str) -> str:
    if len(text) > MAX_LENGTH:
        raise UnsupportedError("this LTL formula gets too long in Storm's syntax")
    return f"({text})"


def _not(text: str) -> str:
    return f"!{_grouped(text)}"


def _and(left: str, right: str) -> str:
    return f"{_grouped(left)} & {_grouped(right)}"


def _or(left: str, right: str) -> str:
    return f"{_grouped(left)} | {_grouped(right)}"
