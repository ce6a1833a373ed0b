"""Reward paths, each a random amount of reward, and the structures that say what is earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracebridge.pctl.ast.bounds import RewardBound
from tracebridge.pctl.ast.tree import Placed, Tree

if TYPE_CHECKING:
    from tracebridge.pctl.ast.nodes import Formula
    from tracebridge.pctl.ast.paths import PathFormula


@dataclass(frozen=True, slots=True, eq=False)
class OnePerStep(Tree):
    """The reward structure of Storm's ``T``, the expected time: one for every step."""


@dataclass(frozen=True, slots=True, eq=False)
class ReachReward(Placed):
    """``F a``: reward collected before a is reached; infinite where a is not reached almost surely."""

    operand: Formula


@dataclass(frozen=True, slots=True, eq=False)
class PathReward(Placed):
    """Reward collected until a path formula other than ``F a`` is satisfied; infinite where it is not, almost surely.

    PRISM takes ``a U b`` and every co-safe formula of LTL: one that a finite part of a run satisfies.
    """

    path: PathFormula


@dataclass(frozen=True, slots=True, eq=False)
class CumulativeReward(Placed):
    """``C<=k``: reward collected in the first k steps; ``C`` (no bound): in total.

    With Storm's ``discount=x`` the reward of step i counts x**i; with its ``C{"cost"}<=k`` collection ends when
    another reward is used up.
    """

    bound: Formula | None = None
    strict: bool = False
    discount: Formula | None = None
    reward_bounds: tuple[RewardBound, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class InstantaneousReward(Placed):
    """``I=k``: the state reward at step k."""

    time: Formula


@dataclass(frozen=True, slots=True, eq=False)
class LongRunReward(Placed):
    """``S``: the long-run average reward of a step."""


RewardPath = ReachReward | PathReward | CumulativeReward | InstantaneousReward | LongRunReward
