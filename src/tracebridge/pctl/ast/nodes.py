"""The kinds of nodes as union types: formulas, which have a value in every state, and everything below them."""

from __future__ import annotations

from tracebridge.pctl.ast.expressions import Binary, Call, Conditional, Identifier, Label, Number, Truth, Unary
from tracebridge.pctl.ast.operators import (
    Coalition,
    Filter,
    Multi,
    Probability,
    Quantified,
    Quantile,
    Reward,
    SteadyState,
)
from tracebridge.pctl.ast.paths import PathFormula
from tracebridge.pctl.ast.rewards import OnePerStep, RewardPath

Formula = (
    Truth
    | Number
    | Label
    | Identifier
    | Unary
    | Binary
    | Conditional
    | Call
    | Filter
    | Probability
    | Reward
    | SteadyState
    | Quantified
    | Quantile
    | Multi
    | Coalition
)
Node = Formula | PathFormula | RewardPath

Structure = str | Formula | OnePerStep | None
"""What names a reward structure: ``{"name"}``, a number counted from 1 (``{1}``), ``T``; None is the first one."""
