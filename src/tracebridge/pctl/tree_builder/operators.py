"""Rules of the operators P, R, S, A and E, of those that Storm adds, and of filters."""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

import difflib
from typing import NamedTuple, cast, get_args

from lark import Token

from tracebridge.pctl import ast
from tracebridge.pctl.tree_builder.operands import PATHS, state_formula
from tracebridge.pctl.tree_builder.rejection import Children, Rejection, rule_span, span_of

_OPERATORS = get_args(ast.Operator)
_QUANTITATIVE = get_args(ast.Quantitative)
_FILTER_KINDS: tuple[ast.FilterKind, ...] = get_args(ast.FilterKind)
_FILTER_SIGNS: dict[str, ast.FilterKind] = {"+": "sum", "&": "forall", "|": "exists"}


class _Requirement(NamedTuple):
    optimum: ast.Optimum | None
    threshold: ast.Threshold | None


class _Condition(NamedTuple):
    path: ast.PathFormula


class _OldFilter(NamedTuple):
    states: ast.Formula
    kind: ast.FilterKind
    optimum: Token | None


class _Players(NamedTuple):
    names: tuple[str, ...]


class OperatorRules:
    """What the rules of operators make of their children."""

    def probability(self, children: Children) -> ast.Formula:
        letter, requirement, _, path, *_ = children
        if not isinstance(path, PATHS):
            raise Rejection(
                span_of(path),
                "P needs a temporal operator between its brackets: F, G, X, U, W or R",
                'for "eventually" write F in front, for "at the first state" F<=0',
            )
        optimum, threshold = _requirement(letter, requirement)
        operator = ast.Probability(path, threshold, optimum, _condition(children), span=rule_span(children))
        return _filtered(operator, children)

    def reward(self, children: Children) -> ast.Formula:
        letter, *structures, requirement, _, path = children[: _first_bracket(children) + 2]
        structure: ast.Structure = structures[0] if structures else None
        if letter.type == "EXPECTED_TIME":
            structure = ast.OnePerStep()
            if not isinstance(path, ast.ReachReward | ast.PathReward):
                hint = 'as in T=? [ F "done" ]; a reward structure of 1 everywhere gives the other rewards'
                raise Rejection(span_of(path), "T, the expected time, needs F between its brackets", hint)
        optimum, threshold = _requirement(letter, requirement)
        operator = ast.Reward(path, structure, threshold, optimum, _condition(children), span=rule_span(children))
        return _filtered(operator, children)

    def steady_state(self, children: Children) -> ast.Formula:
        letter, requirement, _, operand, *_ = children
        optimum, threshold = _requirement(letter, requirement)
        if isinstance(operand, PATHS):
            what = f"the temporal operator {operand.letter}" if isinstance(operand, ast.Temporal) else "a path formula"
            raise Rejection(
                span_of(operand),
                f"{letter} needs a condition on states, not {what}",
                f"{letter} is the long-run fraction of time in states where the condition holds; for a path write P",
            )
        return _filtered(ast.SteadyState(operand, threshold, optimum, span=rule_span(children)), children)

    def quantified(self, children: Children) -> ast.Quantified:
        quantifier, _, path, _ = children
        if not isinstance(path, PATHS):
            hint = f'as in {quantifier} [ F "done" ]'
            raise Rejection(span_of(path), f"{quantifier} needs a temporal operator between its brackets", hint)
        return ast.Quantified("A" if quantifier == "A" else "E", path, span=rule_span(children))

    def requirement(self, children: Children) -> _Requirement:
        optimum: ast.Optimum | None = None
        if children[0].type in ("MIN", "MAX"):
            optimum, *children = children
            optimum = cast(ast.Optimum, str(optimum))
        if children[0] == "=":
            return _Requirement(optimum, None)
        return _Requirement(optimum, ast.Threshold(cast(ast.Comparison, str(children[0])), state_formula(children[1])))

    def condition(self, children: Children) -> _Condition:
        _, path = children
        if not isinstance(path, PATHS):
            raise Rejection(
                span_of(path),
                "the condition after || needs a temporal operator",
                'as in P=? [ F "a" || F "b" ]; the Boolean or is a single |',
            )
        return _Condition(path)

    def old_filter(self, children: Children) -> _OldFilter:
        optima = [child for child in children if isinstance(child, Token) and child.type in ("MIN", "MAX")]
        kind = "range" if len(set(optima)) == 2 else str(optima[0]) if optima else "state"
        return _OldFilter(state_formula(children[1]), cast(ast.FilterKind, kind), optima[0] if optima else None)

    def filter(self, children: Children) -> ast.Filter:
        kind, operand, *states = children[2:-1:2]
        return ast.Filter(
            kind, state_formula(operand), state_formula(states[0]) if states else None, span=rule_span(children)
        )

    def filter_kind(self, children: Children) -> ast.FilterKind:
        word = str(children[0])
        if word in _FILTER_SIGNS:
            return _FILTER_SIGNS[word]
        if word in _FILTER_KINDS:
            return word
        near = difflib.get_close_matches(word, _FILTER_KINDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(_FILTER_KINDS)}"
        raise Rejection(rule_span(children), f"unknown kind of filter: {word[:40]}", hint)

    def quantile(self, children: Children) -> ast.Quantile:
        operator = children[-2]
        if not isinstance(operator, ast.Probability | ast.Reward) or operator.threshold is None:
            raise Rejection(
                span_of(operator),
                "a quantile needs P or R with a bound",
                'as in quantile(min B, P>=0.9 [ F<=B "done" ]): the least B for which it holds',
            )
        variables = tuple(child for child in children if isinstance(child, ast.QuantileVariable))
        return ast.Quantile(variables, operator, span=rule_span(children))

    def quantile_variable(self, children: Children) -> ast.QuantileVariable:
        *optimum, name = children
        return ast.QuantileVariable(str(name), cast(ast.Optimum, str(optimum[0])) if optimum else None)

    def multi(self, children: Children) -> ast.Multi:
        objectives = children[2:-1:2]
        for objective in objectives:
            if not isinstance(objective, _QUANTITATIVE):
                raise Rejection(
                    span_of(objective),
                    f"the objectives of {children[0]} are the operators P, R and S",
                    f'as in {children[0]}(Pmax=? [ F "a" ], R{{"cost"}}<=3 [ C ])',
                )
        return ast.Multi("multi" if children[0] == "multi" else "multilex", tuple(objectives), span=rule_span(children))

    def coalition(self, children: Children) -> ast.Coalition:
        players = next(child for child in children if isinstance(child, _Players))
        operator = children[-1]
        if not isinstance(operator, _OPERATORS):
            raise Rejection(span_of(operator), "an operator such as P or R follows the players")
        return ast.Coalition(players.names, children[0] == "[", operator, span=rule_span(children))

    def players(self, children: Children) -> _Players:
        return _Players(tuple(child for child in children if child != ","))

    def player(self, children: Children) -> str:
        if children[0].type == "NUMBER" and not children[0].isdigit():
            raise Rejection(rule_span(children), "a player is a name or a whole number")
        return str(children[0])

    def reward_structure(self, children: Children) -> str | ast.Formula:
        inner = state_formula(children[1])
        return inner.name if isinstance(inner, ast.Label) else inner


def _first_bracket(children: Children) -> int:
    return next(index for index, child in enumerate(children) if isinstance(child, Token) and child.type == "LSQB")


def _condition(children: Children) -> ast.PathFormula | None:
    return next((child.path for child in children if isinstance(child, _Condition)), None)


def _filtered(operator: ast.Quantitative, children: Children) -> ast.Formula:
    """The operator in the filter that stands within its brackets, as PRISM reads it."""
    old = next((child for child in children if isinstance(child, _OldFilter)), None)
    if old is None:
        return operator
    if operator.threshold is None:
        return ast.Filter(old.kind, operator, old.states, span=operator.span)
    if old.optimum is not None:
        raise Rejection(
            span_of(old.optimum),
            f"{{{old.optimum}}} needs numbers, and an operator with a bound is true or false",
            "with a bound, {states} alone asks whether it holds in all of them",
        )
    return ast.Filter("forall", operator, old.states, span=operator.span)


def _requirement(letter: Token, requirement: _Requirement) -> _Requirement:
    """The bound of an operator, with the ``min`` or ``max`` that its letter may carry (``Pmax``)."""
    optima: tuple[ast.Optimum, ...] = ("min", "max")
    carried = next((word for word in optima if letter.endswith(word)), None)
    if carried and requirement.optimum:
        raise Rejection(span_of(letter), f"{letter} is followed by a second {requirement.optimum}", "write one of them")
    return requirement._replace(optimum=carried or requirement.optimum)
