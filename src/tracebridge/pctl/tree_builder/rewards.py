"""Rules of what stands between the brackets of R."""

# ruff: noqa: D102 - the methods are the rules of the grammar

from __future__ import annotations

from typing import NamedTuple, cast

from lark import Token

from tracebridge.pctl import ast
from tracebridge.pctl.tree_builder.operands import PATHS, state_formula
from tracebridge.pctl.tree_builder.paths import Bounds, steps_and_rewards
from tracebridge.pctl.tree_builder.rejection import Children, Rejection, rule_span, span_of

_LONG_RUN_WORDS = ("LRA", "MP")


class _Discount(NamedTuple):
    value: ast.Formula
    span: ast.Span


class RewardPathRules:
    """What the rules of rewards make of their children."""

    def reward_path(self, children: Children) -> ast.RewardPath:
        first = children[0]
        if isinstance(first, Token):
            match first.type:
                case "CUMULATIVE":
                    return self._cumulative(children)
                case "INSTANTANEOUS":
                    return ast.InstantaneousReward(state_formula(children[2]), span=rule_span(children))
                case _:
                    return ast.LongRunReward(span=rule_span(children))
        if isinstance(first, PATHS):
            if (
                isinstance(first, ast.Eventually)
                and first.bound is None
                and not first.reward_bounds
                and ast.is_pctl(first)
            ):
                return ast.ReachReward(cast(ast.Formula, first.operand), span=first.span)
            return ast.PathReward(first, span=first.span)
        match first:
            case ast.Identifier(name) if name in _LONG_RUN_WORDS:
                return ast.LongRunReward(span=first.span)
            case ast.Binary("=", ast.Identifier("Cdiscount"), value):  # Storm needs it written as one word
                return ast.CumulativeReward(discount=value, span=first.span)
            case _:
                hint = 'as in R{"steps"}=? [ F "absorbed" ]'
                raise Rejection(span_of(first), "a reward needs F, C, I or S between its brackets", hint)

    def discount(self, children: Children) -> _Discount:
        return _Discount(state_formula(children[2]), rule_span(children))

    @staticmethod
    def _cumulative(children: Children) -> ast.CumulativeReward:
        bounds = [child for child in children if isinstance(child, Bounds)]
        steps, rewards = steps_and_rewards(bounds)
        for bound in (steps, *(entry.bound for entry in rewards)):
            if bound is not None and (bound.upper is None or bound.lower is not None):
                raise Rejection(bounds[0].span, "C takes upper bounds only", "write C<=k, C<k, or C for the total")
        discount = next((child.value for child in children if isinstance(child, _Discount)), None)
        end = steps or ast.StepBound()
        return ast.CumulativeReward(end.upper, end.upper_strict, discount, rewards, span=rule_span(children))
