"""What the value of a formula is made of, and how an operator depends on its operands."""

from __future__ import annotations

from collections.abc import Iterator

from tracebridge.pctl import ast

#: Operands by their ids, each with 1 if it stands plain, -1 if negated, and 0 if both or neither can be said.
Signs = dict[int, tuple[ast.Formula, int]]


def evaluated_parts(formula: ast.Formula) -> Iterator[tuple[ast.Formula, bool]]:
    """The formulas whose values make up that of a formula, whole before part, and whether each is in an operator."""
    stack = [(formula, False)]
    while stack:
        node, nested = stack.pop()
        yield node, nested
        if isinstance(node, ast.Operator):
            parts = [part for part, _ in signs_of(node).values()]
            if isinstance(node, ast.Quantitative) and node.threshold is not None:
                parts.append(node.threshold.value)
            nested = True
        else:
            parts = [part for part in ast.children(node) if isinstance(part, ast.Formula)]
        stack.extend((part, nested) for part in reversed(parts))


def signs_of(operator: ast.Operator) -> Signs:
    """The operands of an operator, left to right, and in which direction its path depends on them."""
    signs: Signs = {}
    inner = operator.operator if isinstance(operator, ast.Quantile) else operator
    stack: list[tuple[ast.Node, int]] = []
    match inner:
        case ast.Multi(objectives=objectives):
            quantitative = [each for each in reversed(objectives) if isinstance(each, ast.Probability | ast.Reward)]
            stack = [(each.path, 0) for each in quantitative]
        case ast.Probability() | ast.Reward():
            stack = [(inner.path, 1)] if inner.condition is None else [(inner.condition, 0), (inner.path, 1)]
        case ast.Quantified():
            stack = [(inner.path, 1)]
        case ast.SteadyState():
            stack = [(inner.operand, 1)]
    while stack:
        node, sign = stack.pop()
        match node:
            case ast.PathNot(operand):
                stack.append((operand, -sign))
            case ast.PathBinary("=>", left, right):
                stack += [(right, sign), (left, -sign)]
            case ast.PathBinary("<=>", left, right):
                stack += [(right, 0), (left, 0)]
            case ast.PathBinary(_, left, right) | ast.Until(left, right) | ast.WeakUntil(left, right):
                stack += [(right, sign), (left, sign)]
            case ast.Release(left, right):
                stack += [(right, sign), (left, sign)]
            case ast.Next(operand) | ast.Eventually(operand) | ast.Globally(operand) | ast.ReachReward(operand):
                stack.append((operand, sign))
            case ast.PathReward(path):
                stack.append((path, sign))
            case ast.AutomatonPath(_, propositions):
                stack += [(proposition.formula, 0) for proposition in reversed(propositions)]
            case ast.CumulativeReward() | ast.InstantaneousReward() | ast.LongRunReward():
                continue
            case _:
                before = signs.get(id(node), (node, sign))[1]
                signs[id(node)] = node, sign if sign == before else 0
    return signs
