"""A formula of a chain, asked in the state that a file adds before it (see `tracebridge.export.single_start`).

A path w of the chain is the path w' = start w of the file, so step bounds grow by one, and an operand that could
already decide at time 0, where only ``start`` holds, is guarded:

    X a          F=2 a                                          inside LTL  X X a
    F<=k a       F<=k+1 (!"start" & a)                          no guard with a lower bound: time 0 does not count
    G<=k a       G<=k+1 ("start" | a)
    a U<=k b     ("start" | a) U<=k+1 (!"start" & b)            W alike; R, its dual, with the guards exchanged
    other LTL    X of it, not and the Boolean operators part by part
    R [F a]      R [F (!"start" & a)]
    C<=k, I=k    C<=k+1, I=k+1
    C, S         unchanged: the added state earns nothing and is left at once, reward bounds are unchanged for it, too
    T [F a]      T [F (!"start" & a)] - 1
    discount=x   divided by x, as every step comes one later
    a || b       both, as above

Operators inside other operators are evaluated in each state, where nothing has changed. What is true or false outside
all of them, labels, A and E, asks about the states that runs start in: ``a`` becomes ``P>=1 [ X a ]``, it holds in all
of them. A filter goes over the states but ``start``.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, get_args

from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.rewrite import rewrite
from tracebridge.pctl.trampoline import Recursion, run

if TYPE_CHECKING:
    from collections.abc import Collection


_ONE = ast.Number(Fraction(1), integer=True)
_ASKING = (*get_args(ast.Operator), ast.Filter)


def from_first_state(formula: ast.Formula, start: ast.Label, variables: Collection[str] = ()) -> ast.Formula:
    """The formula whose value in the added first state is the mean of the formula's values where runs start.

    Args:
        formula: in the names of the file. start: the label that holds in the added state alone.
        variables: those of the model file, which are different from state to state.

    Raises:
        UnsupportedError: no formula says it; with the reason.
    """

    def without_added_state(node: ast.Formula) -> ast.Formula:
        if not isinstance(node, ast.Filter):
            return node
        return replace(node, states=_guarded(ast.Unary("!", start), node.states or ast.Truth(True)))

    guarded = rewrite(formula, without_added_state)
    return run(_Shift(guarded, start, variables).formula(guarded))


class _Shift:
    """The formula one step later, from the top down to the operators."""

    def __init__(self, formula: ast.Formula, start: ast.Label, variables: Collection[str]) -> None:
        self._start = start
        self._variables = variables
        self._asking: set[int] = set()  # the nodes that have an operator or a filter at or below them
        self._local: set[int] = (
            set()
        )  # the nodes that have a label or a variable, which is different from state to state
        for node in reversed(list(ast.walk(formula))):
            for found, is_one in ((self._asking, isinstance(node, _ASKING)), (self._local, self._is_local(node))):
                if is_one or any(id(child) in found for child in ast.children(node)):
                    found.add(id(node))

    def _is_local(self, node: ast.Node) -> bool:
        return isinstance(node, ast.Label) or (isinstance(node, ast.Identifier) and node.name in self._variables)

    def formula(self, formula: ast.Formula) -> Recursion[ast.Formula]:
        if isinstance(formula, _ASKING):
            return (yield self._asked(formula))  # type: ignore[no-any-return]
        if id(formula) not in self._asking and run(_is_condition(formula)):
            return _in_all_first_states(formula) if id(formula) in self._local else formula
        match formula:
            case ast.Unary():
                return replace(formula, operand=(yield self.formula(formula.operand)))
            case ast.Binary():
                left = yield self.formula(formula.left)
                return replace(formula, left=left, right=(yield self.formula(formula.right)))
            case ast.Conditional():
                test, then = (yield self.formula(formula.test)), (yield self.formula(formula.then))
                return replace(formula, test=test, then=then, otherwise=(yield self.formula(formula.otherwise)))
            case ast.Call():
                arguments = []
                for argument in formula.arguments:
                    arguments.append((yield self.formula(argument)))
                return replace(formula, arguments=tuple(arguments))
            case ast.Identifier() if self._is_local(formula):
                raise UnsupportedError(f"the variable {formula.name} has a value of its own in the added state")
            case _:
                return formula

    # ------------------------------------------------------------ operators and filters

    def _asked(self, node: ast.Operator | ast.Filter) -> Recursion[ast.Formula]:
        match node:
            case ast.Probability():
                condition = None if node.condition is None else (yield self._path(node.condition))
                return replace(node, path=(yield self._path(node.path)), condition=condition)
            case ast.Reward():
                return (yield self._reward(node))  # type: ignore[no-any-return]
            case ast.SteadyState():
                return node
            case ast.Quantified() | ast.Filter(kind="argmin" | "argmax"):
                return _in_all_first_states(node)
            case ast.Filter(kind="print" | "printall" | "values"):
                raise UnsupportedError(f"filter {node.kind} has a value of its own in the added state")
            case ast.Filter():
                return node
            case ast.Quantile():
                _refuse_variable_steps(node)
                return replace(node, operator=(yield self._unwrapped(node.operator, "a quantile")))
            case ast.Multi():
                objectives = []
                for objective in node.objectives:
                    objectives.append((yield self._unwrapped(objective, node.kind)))
                return replace(node, objectives=tuple(objectives))
            case ast.Coalition():
                return replace(node, operator=(yield self._unwrapped(node.operator, "a coalition")))

    def _unwrapped(self, formula: ast.Formula, around: str) -> Recursion[ast.Formula]:
        """An operator that stays one, as nothing else can stand where it does."""
        shifted: ast.Formula = yield self.formula(formula)
        if type(shifted) is not type(formula):
            raise UnsupportedError(f"inside {around} nothing can undo that the added state counts")
        return shifted

    # ------------------------------------------------------------ paths

    def _path(self, path: ast.PathFormula, *, alone: bool = True) -> Recursion[ast.PathFormula]:
        """The path formula of w', where it is one operator or a negation of one ``alone``, or a part of others."""
        if ast.is_pctl(path):
            return self._single(path, alone=alone)
        match path:
            case ast.PathNot():
                return replace(path, operand=(yield self._path(path.operand, alone=alone)))
            case ast.PathBinary():
                left, right = (yield self._side(path.left)), (yield self._side(path.right))
                return replace(path, left=left, right=right)
            case _:
                return ast.Next(path)

    def _side(self, part: ast.Formula | ast.PathFormula) -> Recursion[ast.Formula | ast.PathFormula]:
        if not isinstance(part, ast.Formula):
            return (yield self._path(part, alone=False))  # type: ignore[no-any-return]
        return part if isinstance(part, ast.Truth) else ast.Next(part)

    def _single(self, path: ast.PathFormula, *, alone: bool) -> ast.PathFormula:
        """One temporal operator over conditions."""
        match path:
            case ast.Next() if alone:
                two = ast.Number(Fraction(2), integer=True)
                return ast.Eventually(path.operand, ast.StepBound(lower=two, upper=two, exact=True), span=path.span)
            case ast.Next():
                return ast.Next(path)
            case ast.Eventually() | ast.Globally():
                operand = ast.state_operand(path.operand)
                if not _skips_time_zero(path.bound):
                    operand = self._false(operand) if isinstance(path, ast.Eventually) else self._true(operand)
                return replace(path, operand=operand, bound=_later(path.bound))
            case ast.Until() | ast.WeakUntil() | ast.Release():
                left, right = ast.state_operand(path.left), ast.state_operand(path.right)
                match path:
                    case ast.Until():
                        right = right if _skips_time_zero(path.bound) else self._false(right)
                        left = self._true(left)
                    case ast.WeakUntil():
                        left, right = self._true(left), self._false(right)
                    case ast.Release():
                        left, right = self._false(left), self._true(right)
                return replace(path, left=left, right=right, bound=_later(path.bound))
            case _:
                raise AssertionError(path)

    def _false(self, operand: ast.Formula) -> ast.Formula:
        """What the operand says, but false in the added state."""
        return _guarded(ast.Unary("!", self._start), operand)

    def _true(self, operand: ast.Formula) -> ast.Formula:
        """What the operand says, but true in the added state."""
        return operand if run(_at_added_state(operand)) is True else ast.Binary("|", self._start, operand)

    # ------------------------------------------------------------ rewards

    def _reward(self, operator: ast.Reward) -> Recursion[ast.Formula]:
        """The operator, whose value v may have become ``earned + factor * v``, and what undoes that."""
        path = operator.path
        condition = None if operator.condition is None else (yield self._path(operator.condition))
        shifted: ast.Reward = replace(operator, path=(yield self._reward_path(path)), condition=condition)
        earns = isinstance(operator.structure, ast.OnePerStep) and not isinstance(
            path, ast.InstantaneousReward | ast.LongRunReward
        )
        factor = path.discount if isinstance(path, ast.CumulativeReward) else None
        if not earns and factor is None:
            return shifted
        if isinstance(factor, ast.Number) and factor.value == 0:
            raise UnsupportedError("with the discount 0 only the first step counts, which is that of the added state")
        if operator.threshold is None:
            value = ast.Binary("-", shifted, _ONE) if earns else shifted
            return value if factor is None else ast.Binary("/", value, factor)
        least = operator.threshold.value if factor is None else _times(operator.threshold.value, factor)
        return replace(shifted, threshold=replace(operator.threshold, value=_plus_one(least) if earns else least))

    def _reward_path(self, path: ast.RewardPath) -> Recursion[ast.RewardPath]:
        match path:
            case ast.ReachReward():
                return replace(path, operand=self._false(path.operand))
            case ast.PathReward():
                return replace(path, path=(yield self._path(path.path, alone=False)))
            case ast.CumulativeReward(bound=bound) if bound is not None:
                return replace(path, bound=_plus_one(bound))
            case ast.InstantaneousReward():
                return replace(path, time=_plus_one(path.time))
            case ast.CumulativeReward() | ast.LongRunReward():
                return path


def _in_all_first_states(condition: ast.Formula) -> ast.Formula:
    return ast.Probability(ast.Next(condition), threshold=ast.Threshold(">=", _ONE), span=condition.span)


def _refuse_variable_steps(node: ast.Quantile) -> None:
    names = {variable.name for variable in node.variables}
    for part in ast.walk(node.operator):
        bound = getattr(part, "bound", None)
        ends = (bound.lower, bound.upper) if isinstance(bound, ast.StepBound) else (bound, getattr(part, "time", None))
        if any(end is not None and _mentions(end, names) for end in ends):
            raise UnsupportedError("a quantile of steps counts from the added state, which is one more")


# ---------------------------------------------------------------- one step later


def _later(bound: ast.StepBound | None) -> ast.StepBound | None:
    """The bound one step later."""
    if bound is None:
        return None
    return replace(bound, lower=bound.lower and _plus_one(bound.lower), upper=bound.upper and _plus_one(bound.upper))


def _skips_time_zero(bound: ast.StepBound | None) -> bool:
    """Whether the bound, one step later, leaves time 0 out."""
    return bound is not None and bound.lower is not None


def _plus_one(step: ast.Formula) -> ast.Formula:
    if isinstance(step, ast.Number):
        return replace(step, value=step.value + 1)
    return ast.Binary("+", step, _ONE)


def _times(left: ast.Formula, right: ast.Formula) -> ast.Formula:
    if isinstance(left, ast.Number) and isinstance(right, ast.Number):
        return ast.Number(left.value * right.value, integer=False, span=left.span)
    return ast.Binary("*", left, right)


def _mentions(node: ast.Node, names: set[str]) -> bool:
    return any(isinstance(part, ast.Identifier) and part.name in names for part in ast.walk(node))


# ---------------------------------------------------------------- conditions


def _is_condition(formula: ast.Formula) -> Recursion[bool]:
    """Whether a formula without operators is a truth value."""
    match formula:
        case ast.Truth() | ast.Label() | ast.Unary(operator="!"):
            return True
        case ast.Binary():
            return formula.operator not in {"+", "-", "*", "/"}
        case ast.Conditional():
            return (yield _is_condition(formula.then)) is True
        case _:
            return False


def _guarded(guard: ast.Formula, operand: ast.Formula) -> ast.Formula:
    """The operand and the guard, which is false in the added state; without it where the operand is false there."""
    if operand == ast.Truth(True):
        return guard
    return operand if run(_at_added_state(operand)) is False else ast.Binary("&", guard, operand)


def _at_added_state(formula: ast.Formula) -> Recursion[bool | None]:
    """The truth of a formula in the added state, where all labels of the chain are false; None if it is not plain."""
    match formula:
        case ast.Truth():
            return formula.value
        case ast.Label():
            return False
        case ast.Unary(operator="!"):
            inner = yield _at_added_state(formula.operand)
            return None if inner is None else not inner
        case ast.Binary(operator="&" | "|" | "=>"):
            left, right = (yield _at_added_state(formula.left)), (yield _at_added_state(formula.right))
            if formula.operator == "=>":
                left = None if left is None else not left
            decides = formula.operator != "&"
            if decides in (left, right):
                return decides
            return None if left is None or right is None else not decides
        case _:
            return None
