"""Rules of path formulas: temporal operators, their bounds, and automata."""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

from typing import NamedTuple

from lark import Token

from tracebridge.pctl import ast
from tracebridge.pctl.tree_builder.operands import state_formula, unquote
from tracebridge.pctl.tree_builder.rejection import Children, Rejection, rule_span

_BINARY_PATHS = {kind.letter: kind for kind in (ast.Until, ast.WeakUntil, ast.Release)}


class Bounds(NamedTuple):
    """The bounds of one operator: at most one over steps, and any number over rewards."""

    steps: ast.StepBound | None
    rewards: tuple[ast.RewardBound, ...]
    span: ast.Span


class _Bound(NamedTuple):
    measure: _Measure
    bound: ast.StepBound
    span: ast.Span


class _Measure(NamedTuple):
    """What a bound counts: steps, or the reward of a structure (None is the first one)."""

    steps: bool
    structure: str | None
    span: ast.Span | None = None


_STEPS = _Measure(steps=True, structure=None)


class PathRules:
    """What the rules of path formulas make of their children."""

    def temporal_unary(self, children: Children) -> ast.PathFormula:
        letter, *bounds, operand = children
        span = rule_span(children)
        if letter == "X":
            if bounds:
                raise Rejection(span, "X takes no step bound", "X is exactly one step; for k steps write F=k")
            return ast.Next(operand, span=span)
        operator = ast.Eventually if letter == "F" else ast.Globally
        return operator(operand, *steps_and_rewards(bounds), span=span)

    def temporal_binary(self, children: Children) -> ast.PathFormula:
        left, letter, *bounds, right = children
        return _BINARY_PATHS[letter](left, right, *steps_and_rewards(bounds), span=rule_span(children))

    def bounds(self, children: Children) -> Bounds:
        steps: ast.StepBound | None = None
        rewards: list[ast.RewardBound] = []
        for part in children:
            if not isinstance(part, _Bound):
                continue
            if not part.measure.steps:
                rewards.append(ast.RewardBound(part.measure.structure, part.bound))
            elif steps is None:
                steps = part.bound
            else:
                steps = _both_ends(steps, part)
        return Bounds(steps, tuple(rewards), rule_span(children))

    def bound(self, children: Children) -> _Bound:
        measure, rest = (children[0], children[1:]) if isinstance(children[0], _Measure) else (_STEPS, children)
        return _Bound(measure, self._ends(rest), rule_span(children))

    @staticmethod
    def _ends(children: Children) -> ast.StepBound:
        if children[0] == "[":
            return ast.StepBound(lower=state_formula(children[1]), upper=state_formula(children[3]))
        value = state_formula(children[1])
        match str(children[0]):
            case "<=":
                return ast.StepBound(upper=value)
            case "<":
                return ast.StepBound(upper=value, upper_strict=True)
            case ">=":
                return ast.StepBound(lower=value)
            case ">":
                return ast.StepBound(lower=value, lower_strict=True)
            case _:
                return ast.StepBound(lower=value, upper=value, exact=True)

    def measure(self, children: Children) -> _Measure:
        over_steps = isinstance(children[0], Token) and children[0].type == "STEPS"
        structure = next((child.structure for child in children if isinstance(child, _Measure)), None)
        return _Measure(over_steps, structure, rule_span(children))

    def structure(self, children: Children) -> _Measure:
        return _Measure(steps=False, structure=unquote(children[1]), span=rule_span(children))

    def automaton(self, children: Children) -> ast.AutomatonPath:
        propositions = tuple(child for child in children if isinstance(child, ast.AutomatonProposition))
        return ast.AutomatonPath(unquote(children[3]), propositions, span=rule_span(children))

    def automaton_proposition(self, children: Children) -> ast.AutomatonProposition:
        name, _, formula = children
        return ast.AutomatonProposition(unquote(name), state_formula(formula))


def _both_ends(first: ast.StepBound, second: _Bound) -> ast.StepBound:
    """A lower and an upper bound on the steps, written apart as Storm allows, as one."""
    for low, high in ((first, second.bound), (second.bound, first)):
        if low.upper is None and high.lower is None:
            return ast.StepBound(low.lower, high.upper, low.lower_strict, high.upper_strict)
    raise Rejection(second.span, "a second bound on the steps", "write both ends as one: F[2,8]")


def steps_and_rewards(bounds: list[Bounds]) -> tuple[ast.StepBound | None, tuple[ast.RewardBound, ...]]:
    """The bounds of an operator, which may have none."""
    return (bounds[0].steps, bounds[0].rewards) if bounds else (None, ())
