"""The numbers in a property: step bounds and reward bounds as windows, and errors that point at their place."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.pctl.ast import Number

if TYPE_CHECKING:
    from tracebridge.pctl.ast import CumulativeReward, Formula, Span, StepBound


@dataclass(frozen=True, slots=True)
class StepWindow:
    """The steps ``first, ..., last`` at which something may happen; ``last`` of None is no end."""

    first: int
    last: int | None

    @property
    def empty(self) -> bool:
        """Whether no step lies in it."""
        return self.last is not None and self.last < self.first

    @property
    def length(self) -> int | None:
        """Steps from the first to the last."""
        return None if self.last is None else self.last - self.first


def step_window(bound: StepBound | None) -> StepWindow:
    """The window of a step bound, whose ends are numbers; all steps without a bound.

    Raises:
        PropertyError: for an end that is no integer or is negative.
    """
    if bound is None:
        return StepWindow(0, None)
    first = 0 if bound.lower is None else number_of_steps(bound.lower) + bound.lower_strict
    last = None if bound.upper is None else number_of_steps(bound.upper) - bound.upper_strict
    return StepWindow(first, last)


def number_of_steps(bound: Formula) -> int:
    """A number of steps. Raises PropertyError for what is none."""
    if not isinstance(bound, Number):
        raise PropertyError(f"a step bound must be a number here, not {bound}")
    if not bound.integer or bound.value.denominator != 1 or bound.value < 0:
        written = f"{bound.value}" if bound.integer or bound.value.denominator != 1 else f"{bound.value}.0"
        raise PropertyError(
            problem_at(f"{written} is not a number of steps", "step bounds are integers from 0 on", bound.span)
        )
    return int(bound.value)


def collected_steps(path: CumulativeReward) -> int | None:
    """The number of steps in which ``C`` collects; None without a bound. Raises PropertyError for what is none."""
    if path.bound is None:
        return None
    steps = number_of_steps(path.bound) - path.strict
    if steps < 0:
        raise PropertyError(
            problem_at("C<0 collects nothing", "the first bound that means something is C<=0", path.span)
        )
    return steps


def discount_factor(factor: Formula) -> Fraction:
    """What the reward of each further step counts. Raises PropertyError unless ``0 < factor < 1``, as Storm demands."""
    if not isinstance(factor, Number) or not 0 < factor.value < 1:
        written = factor.value if isinstance(factor, Number) else factor
        raise PropertyError(
            problem_at(f"a discount factor lies strictly between 0 and 1, {written} does not", None, factor.span)
        )
    return factor.value


def amount_of_reward(bound: Formula) -> Fraction:
    """The end of a reward bound, any rational from 0 on. Raises PropertyError for what is none."""
    if not isinstance(bound, Number):
        raise PropertyError(f"a reward bound must be a number here, not {bound}")
    if bound.value < 0:
        raise PropertyError(
            problem_at(f"a reward never falls below zero, so {bound.value} bounds nothing", None, bound.span)
        )
    return bound.value


def problem_at(message: str, hint: str | None, span: Span | None) -> Problem:
    """What is wrong with a property, with its line and column where they are known."""
    location = Location() if span is None else Location(line=span.line, column=span.column)
    return Problem(location=location, message=message, hint=hint)
