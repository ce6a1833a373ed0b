"""What bounds an operator: a threshold on its value, and bounds on steps and on rewards along a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tracebridge.pctl.ast.tree import Tree

if TYPE_CHECKING:
    from tracebridge.pctl.ast.nodes import Formula

Comparison = Literal["<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True, eq=False)
class Threshold(Tree):
    """The bound of an operator: ``>= 0.72``; the value is a constant formula."""

    comparison: Comparison
    value: Formula


@dataclass(frozen=True, slots=True, eq=False)
class StepBound(Tree):
    """Which steps count: ``<=k``, ``<k``, ``>=k``, ``>k``, ``=k`` (both ends k) or ``[a,b]``; ends are constants.

    ``exact`` marks a bound written ``=k``; then lower and upper are the same formula.
    """

    lower: Formula | None = None
    upper: Formula | None = None
    lower_strict: bool = False
    upper_strict: bool = False
    exact: bool = False

    def ends(self) -> Iterator[Formula]:
        """The formulas of the bound, each once: the lower end, then the upper."""
        if self.lower is not None:
            yield self.lower
        if self.upper is not None and not self.exact:
            yield self.upper


@dataclass(frozen=True, slots=True, eq=False)
class RewardBound(Tree):
    """How much reward may be collected on the way: Storm's ``F{"cost"}<=5`` and ``F^{rew{"cost"}<=5, ...}``.

    The reward of a step counts when the state is left, so that the state where the goal holds adds none. A structure
    of None is the only or first one.
    """

    structure: str | None
    bound: StepBound
