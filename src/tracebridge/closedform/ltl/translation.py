"""Path formulas of the property language in negation normal form, over the states where their operands hold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import step_window
from tracebridge.closedform.ltl.normal_form import FALSE, TRUE, Form, Formulas, Last
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ast

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]
    Holds = Callable[[ast.Formula], Mask]

#: Operators of a path formula may be nested so deeply.
MAX_DEPTH = 40


class Translation:
    """Translates path formulas about one chain and numbers their operands.

    Operands that hold in the same states are one, and so are an operand and its negation; those that hold everywhere or
    nowhere are none.
    """

    def __init__(self, formulas: Formulas, holds: Holds) -> None:
        self.operands: list[Mask] = []
        self._formulas = formulas
        self._holds = holds
        self._numbers: dict[bytes, int] = {}

    def form(self, path: ast.PathFormula) -> Form:
        """The normal form of a path formula.

        Raises:
            PropertyError: for a step bound that is no integer or is negative.
            UnsupportedError: for reward bounds, automata from files, and formulas nested deeper than `MAX_DEPTH`.
        """
        _require_shallow(path)
        return _OfOnePath(self._formulas, self._literal).form(path, negated=False)

    def _literal(self, operand: ast.Formula, negated: bool) -> Form:
        mask = np.asarray(self._holds(operand), dtype=np.bool_) ^ negated
        if mask.all():
            return TRUE
        if not mask.any():
            return FALSE
        positive = bool(mask[0])  # of an operand and its negation, the one that holds in the first state
        key = (mask if positive else ~mask).tobytes()
        number = self._numbers.setdefault(key, len(self.operands))
        if number == len(self.operands):
            self.operands.append(mask if positive else ~mask)
        return self._formulas.literal(number, positive=positive)


class _OfOnePath:
    """The recursion over one tree; a subtree is translated once with each sign."""

    def __init__(self, formulas: Formulas, literal: Callable[[ast.Formula, bool], Form]) -> None:
        self._formulas = formulas
        self._literal = literal
        self._known: dict[tuple[int, bool], Form] = {}

    def form(self, node: ast.Formula | ast.PathFormula, *, negated: bool) -> Form:
        key = id(node), negated
        if key not in self._known:
            self._known[key] = self._form(node, negated=negated)
        return self._known[key]

    def _form(self, node: ast.Formula | ast.PathFormula, *, negated: bool) -> Form:
        join = self._formulas
        match node:
            case ast.PathNot():
                return self.form(node.operand, negated=not negated)
            case ast.PathBinary():
                return self._boolean(node, negated=negated)
            case ast.Next():
                return join.later(1, self.form(node.operand, negated=negated))
            case ast.Eventually() | ast.Globally():
                dual = negated ^ isinstance(node, ast.Globally)
                return self._until(node, FALSE if dual else TRUE, self.form(node.operand, negated=negated), dual=dual)
            case ast.Until() | ast.Release():
                left, right = (self.form(side, negated=negated) for side in (node.left, node.right))
                return self._until(node, left, right, dual=negated ^ isinstance(node, ast.Release))
            case ast.WeakUntil():
                return self._weak_until(node, negated=negated)
            case ast.AutomatonPath():
                raise UnsupportedError("the closed form reads no automata from files")
            case _:
                return self._literal(node, negated)

    def _boolean(self, node: ast.PathBinary, *, negated: bool) -> Form:
        join = self._formulas

        def both(left: bool, right: bool) -> Form:
            return join.conjunction([self.form(node.left, negated=not left), self.form(node.right, negated=not right)])

        def either(left: bool, right: bool) -> Form:
            return join.disjunction([self.form(node.left, negated=not left), self.form(node.right, negated=not right)])

        match node.operator:
            case "&":
                return either(False, False) if negated else both(True, True)
            case "|":
                return both(False, False) if negated else either(True, True)
            case "=>":
                return both(True, False) if negated else either(False, True)
            case "<=>":
                return join.disjunction([both(True, not negated), both(False, negated)])

    def _until(self, node: ast.Temporal, left: Form, right: Form, *, dual: bool) -> Form:
        """``left U right`` in the window of the node, or the dual, ``left R right``.

        The steps before the window are taken first: the left side holds at each of them, or for the dual at one.
        """
        join = self._formulas
        first, last = _window(node)
        if last < first:
            return TRUE if dual else FALSE
        if dual:
            early = join.until(TRUE, left, first - 1)
            return join.disjunction([early, join.later(first, join.release(left, right, last - first))])
        early = join.release(FALSE, left, first - 1)
        return join.conjunction([early, join.later(first, join.until(left, right, last - first))])

    def _weak_until(self, node: ast.WeakUntil, *, negated: bool) -> Form:
        """``a W b`` is ``(!a | b) R (a | b)``, its negation ``(a & !b) U (!a & !b)``.

        Without a first step before which the operands could end it, ``b R (a | b)`` is the same.
        """
        join = self._formulas
        left, right = (self.form(side, negated=negated) for side in (node.left, node.right))
        opposite = self.form(node.left, negated=not negated)
        from_start = _window(node)[0] == 0
        if negated:
            waiting = right if from_start else join.conjunction([opposite, right])
            return self._until(node, waiting, join.conjunction([left, right]), dual=False)
        releasing = right if from_start else join.disjunction([opposite, right])
        return self._until(node, releasing, join.disjunction([left, right]), dual=True)


def _window(node: ast.Temporal) -> tuple[int, Last]:
    """The first and the last step at which an operator looks."""
    if isinstance(node, ast.Next):
        return 0, math.inf
    if node.reward_bounds:
        raise UnsupportedError("the closed form takes no reward bounds inside a path formula of LTL")
    window = step_window(node.bound)
    return window.first, math.inf if window.last is None else window.last


def _require_shallow(path: ast.PathFormula) -> None:
    level: list[ast.Formula | ast.PathFormula] = [path]
    for _ in range(MAX_DEPTH + 1):
        level = [child for node in level if isinstance(node, ast.PathFormula) for child in _operands(node)]
        if not level:
            return
    raise UnsupportedError(
        f"the closed form takes path formulas of LTL of at most {MAX_DEPTH} operators inside each other"
    )


def _operands(path: ast.PathFormula) -> list[ast.Formula | ast.PathFormula]:
    match path:
        case ast.Until() | ast.WeakUntil() | ast.Release() | ast.PathBinary():
            return [path.left, path.right]
        case ast.AutomatonPath():
            return []
        case _:
            return [path.operand]
