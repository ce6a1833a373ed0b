"""Formulas about what may come: the operators over paths and rewards, and filters over the values in several states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tracebridge.pctl.ast.bounds import Threshold
from tracebridge.pctl.ast.paths import PathFormula
from tracebridge.pctl.ast.rewards import RewardPath
from tracebridge.pctl.ast.tree import Placed, Tree

if TYPE_CHECKING:
    from tracebridge.pctl.ast.nodes import Formula, Structure

Optimum = Literal["min", "max"]
FilterKind = Literal[
    "min", "max", "sum", "avg", "count", "forall", "exists", "state", "first", "range", "print", "printall",
    "argmin", "argmax", "values",
]  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Probability(Placed):
    """``P bound [ path ]``; without a threshold it is the query ``P=? [ path ]``.

    With a condition it is Storm's ``P bound [ path || condition ]``: the probability among the runs that satisfy the
    condition.
    """

    path: PathFormula
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    condition: PathFormula | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Reward(Placed):
    """``R{structure} bound [ path ]``, and Storm's ``R{structure} bound [ path || condition ]``."""

    path: RewardPath
    structure: Structure = None
    threshold: Threshold | None = None
    optimum: Optimum | None = None
    condition: PathFormula | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SteadyState(Placed):
    """``S bound [ operand ]``: the long-run fraction of time in which the operand holds; ``LRAmin`` is ``Smin``."""

    operand: Formula
    threshold: Threshold | None = None
    optimum: Optimum | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantified(Placed):
    """CTL's ``A [ path ]`` (all runs) and ``E [ path ]`` (some run); about the graph, not about probabilities."""

    quantifier: Literal["A", "E"]
    path: PathFormula


@dataclass(frozen=True, slots=True, eq=False)
class QuantileVariable(Tree):
    """A bound that a quantile looks for: ``max B``."""

    name: str
    optimum: Optimum | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Quantile(Placed):
    """Storm's ``quantile(max B, P>0.3 [ F{"steps"}<=B a ])``: the best values of the variables for which it holds.

    The variables are `Identifier` nodes within the operator.
    """

    variables: tuple[QuantileVariable, ...]
    operator: Probability | Reward


@dataclass(frozen=True, slots=True, eq=False)
class Multi(Placed):
    """``multi(...)`` and Storm's ``multilex(...)``: several objectives of one scheduler of an MDP."""

    kind: Literal["multi", "multilex"]
    objectives: tuple[Formula, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Coalition(Placed):
    """``<<players>> operator``, or ``[[players]] operator`` for their opponents: a game."""

    players: tuple[str, ...]
    opponents: bool
    operator: Formula


@dataclass(frozen=True, slots=True, eq=False)
class Filter(Placed):
    """``filter(kind, operand, states)``: one value made of the values in several states, all states if None.

    PRISM's other spellings mean the same: ``+`` is sum, ``&`` forall, ``|`` exists, and ``P=? [ path {states}{min} ]``
    is ``filter(min, P=? [ path ], states)``, without a kind ``filter(state, ...)``.
    """

    kind: FilterKind
    operand: Formula
    states: Formula | None = None


Quantitative = Probability | Reward | SteadyState
Operator = Quantitative | Quantified | Quantile | Multi | Coalition
