"""Where the variable of a quantile stands in its operator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracebridge.closedform.until import BoundedPath
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Identifier,
    Number,
    Operator,
    Probability,
    Quantitative,
    RewardBound,
    StepBound,
    is_pctl,
    walk,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from tracebridge.pctl.ast import Quantile

Rebuild = Callable[[StepBound | None, tuple[RewardBound, ...]], Operator]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileBound:
    """The one bound of the operator of a quantile, an end of which is the variable.

    Attributes:
        operator: as it was given. path: what it is about.
        structure: of a reward bound. on_steps: whether it is one on steps. lower, strict: the end of the bound.
        rebuild: makes the operator with other bounds.
    """

    operator: Quantitative
    path: BoundedPath | CumulativeReward
    structure: str | None
    on_steps: bool
    lower: bool
    strict: bool
    rebuild: Rebuild

    @classmethod
    def of(cls, quantile: Quantile) -> QuantileBound:
        """Raises UnsupportedError for anything else than one variable that is one end of the only bound."""
        if len(quantile.variables) != 1:
            names = ", ".join(variable.name for variable in quantile.variables)
            raise UnsupportedError(
                f"a quantile over {names} has no single value but a front of pairs; fix all variables but one"
            )
        path, steps, rebuild = _bounded(quantile)
        name = quantile.variables[0].name
        bounds = [*([] if steps is None else [RewardBound(None, steps)]), *path.reward_bounds]
        ends = [end for bound in bounds for end in (bound.bound.lower, bound.bound.upper) if end is not None]
        variable = Identifier(name)
        if len(ends) != 1 or ends[0] != variable:
            occurs = any(node == variable for end in ends for node in walk(end))
            why = "must be the only bound of the operator, by itself" if occurs else "does not occur in its operator"
            raise UnsupportedError(f"the variable {name} of a quantile {why}")
        bound = bounds[0].bound
        found = cls(
            operator=quantile.operator,
            path=path,
            structure=bounds[0].structure,
            on_steps=steps is not None,
            lower=bound.lower is not None,
            strict=bound.lower_strict or bound.upper_strict,
            rebuild=rebuild,
        )
        if found.strict and not found.on_steps:
            raise UnsupportedError(f"write <={name} or >={name}: below a strict bound there is no largest reward")
        return found

    def substituted(self, number: Fraction) -> Operator:
        """The operator with a number in the place of the variable."""
        literal = Number(number, number.denominator == 1)
        if self.lower:
            bound = StepBound(lower=literal, lower_strict=self.strict)
        else:
            bound = StepBound(upper=literal, upper_strict=self.strict)
        return self.rebuild(bound, ()) if self.on_steps else self.rebuild(None, (RewardBound(self.structure, bound),))


def _bounded(quantile: Quantile) -> tuple[BoundedPath | CumulativeReward, StepBound | None, Rebuild]:
    """What the operator is about, its step bound, and how to make the operator with other bounds."""
    operator = quantile.operator
    if operator.condition is not None:
        raise UnsupportedError("quantiles of conditional values are not evaluated")
    if isinstance(operator, Probability):
        path = operator.path
        if not isinstance(path, BoundedPath) or not is_pctl(path):
            raise UnsupportedError("quantiles of P are evaluated for one path operator with a bound")
        return (
            path,
            path.bound,
            lambda steps, rewards: replace(operator, path=replace(path, bound=steps, reward_bounds=rewards)),
        )
    collected = operator.path
    if not isinstance(collected, CumulativeReward) or collected.discount is not None:
        raise UnsupportedError("quantiles of R are evaluated for C with a bound and without a discount")
    return (
        collected,
        None if collected.bound is None else StepBound(upper=collected.bound, upper_strict=collected.strict),
        lambda steps, rewards: replace(
            operator,
            path=replace(collected, bound=None if steps is None else steps.upper, reward_bounds=rewards),
        ),
    )
