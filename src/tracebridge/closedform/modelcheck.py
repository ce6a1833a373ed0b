"""The operators P, R and S of a Markov chain, one value a state.

Probabilities are never computed as one minus another: ``G``, ``W`` and ``R`` have a non-negative recursion of their
own, so a small probability keeps its relative accuracy. What the graph alone decides (probability zero, probability
one, infinite reward) is decided there, first, and is exact in any arithmetic. Baier and Katoen, Principles of Model
Checking, chapter 10; for long-run values Kemeny and Snell, chapter 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching, recurrent_classes
from tracebridge.closedform.conditioning import AmplificationProbe
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.errors import Location, Problem, PropertyError
from tracebridge.pctl.ast import (
    CumulativeReward,
    Eventually,
    Globally,
    InstantaneousReward,
    LongRunReward,
    Next,
    Number,
    Probability,
    ReachReward,
    Release,
    Reward,
    SteadyState,
    Until,
    WeakUntil,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain, RewardStructure
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.pctl.ast import Formula, Operator, PathFormula, RewardPath, Span, StepBound

    Mask = NDArray[np.bool_]
    Holds = Callable[[Formula], Mask]


def evaluate_operator(arithmetic: Arithmetic, operator: Operator, holds: Holds) -> EnclosureVector:
    """The value of ``P``, ``R`` or ``S`` in every state, shape (n,); the operator's threshold is not looked at.

    Args:
        arithmetic: doubles or rationals, with the chain.
        operator: step bounds are already numbers.
        holds: the states where an operand is true, shape (n,).

    Raises:
        PropertyError: for a step bound that is no integer or is negative, and for an unknown or ambiguous reward
            structure.
        UnsupportedError: if exact arithmetic would be too much work.
    """
    match operator:
        case Probability():
            return _probability(arithmetic, operator.path, holds)
        case Reward():
            structure = reward_structure(arithmetic.chain, operator.structure, operator.span)
            return _reward(arithmetic, operator.path, structure, holds)
        case SteadyState():
            return _long_run_average(arithmetic, arithmetic.vector(holds(operator.operand)))


def rounding_amplification(chain: MarkovChain, operator: Operator, holds: Holds) -> float:
    """By how much one relative rounding of the transition matrix can move the value, relative to the largest value.

    In steps: the largest expected time in the states that a linear system is solved for (``1 / (1 - p)`` for one state
    with the self-loop p), the number of steps for a bounded operator, 0 where the graph alone decides. An engine in
    plain doubles is off by about this number times 2**-53 even with a perfect solver.
    """
    probe = AmplificationProbe(chain)
    evaluate_operator(probe, operator, holds)
    return probe.amplification


# ---------------------------------------------------------------- step bounds


@dataclass(frozen=True, slots=True)
class _Window:
    """The steps ``first, ..., last`` at which something may happen; ``last`` of None is no end."""

    first: int
    last: int | None

    @property
    def empty(self) -> bool:
        return self.last is not None and self.last < self.first

    @property
    def length(self) -> int | None:
        return None if self.last is None else self.last - self.first


def _window(bound: StepBound | None) -> _Window:
    if bound is None:
        return _Window(0, None)
    first = 0 if bound.lower is None else _steps(bound.lower) + bound.lower_strict
    last = None if bound.upper is None else _steps(bound.upper) - bound.upper_strict
    return _Window(first, last)


def _steps(bound: Formula) -> int:
    """A number of steps. Raises PropertyError for what is none."""
    if not isinstance(bound, Number):
        raise PropertyError(f"a step bound must be a number here, not {bound}")
    if not bound.integer or bound.value.denominator != 1 or bound.value < 0:
        written = f"{bound.value}" if bound.integer or bound.value.denominator != 1 else f"{bound.value}.0"
        raise PropertyError(
            _problem(f"{written} is not a number of steps", "step bounds are integers from 0 on", bound.span)
        )
    return int(bound.value)


# ---------------------------------------------------------------- P


def _probability(arithmetic: Arithmetic, path: PathFormula, holds: Holds) -> EnclosureVector:
    everywhere = np.ones(arithmetic.chain.n_states, dtype=np.bool_)
    match path:
        case Next():
            return arithmetic.iterate(arithmetic.vector(holds(path.operand)), 1, everywhere)
        case Eventually():
            return _until(arithmetic, everywhere, holds(path.operand), _window(path.bound))
        case Until():
            return _until(arithmetic, holds(path.left), holds(path.right), _window(path.bound))
        case Globally():
            return _not_until(arithmetic, everywhere, ~holds(path.operand), _window(path.bound))
        case WeakUntil():  # a W b is not ((a & !b) U (!a & !b))
            left, right = holds(path.left), holds(path.right)
            return _not_until(arithmetic, left & ~right, ~left & ~right, _window(path.bound))
        case Release():  # a R b is not (!a U !b)
            return _not_until(arithmetic, ~holds(path.left), ~holds(path.right), _window(path.bound))


def _until(arithmetic: Arithmetic, left: Mask, right: Mask, window: _Window) -> EnclosureVector:
    """The probability that ``right`` holds at a step of the window and ``left`` at all steps before."""
    if window.empty:
        return arithmetic.vector(np.zeros_like(right))
    if window.length is None:
        reached = _unbounded_until(arithmetic, left, right)
    else:
        reached = arithmetic.iterate(
            arithmetic.vector(right),
            window.length,
            left & ~right,
            limit=lambda: _unbounded_until(arithmetic, left, right),
        )
    return _before(arithmetic, reached, window.first, left, outside=False)


def _not_until(arithmetic: Arithmetic, left: Mask, right: Mask, window: _Window) -> EnclosureVector:
    """The probability that not (``left`` U ``right``) in the window, by sums of non-negative numbers."""
    if window.empty:
        return arithmetic.vector(np.ones_like(right))
    open_ = left & ~right
    if window.length is None:
        avoided = _unbounded_not_until(arithmetic, open_, right)
    else:
        avoided = arithmetic.iterate(
            arithmetic.vector(~right),
            window.length,
            open_,
            limit=lambda: _unbounded_not_until(arithmetic, open_, right),
        )
    return _before(arithmetic, avoided, window.first, left, outside=True)


def _before(
    arithmetic: Arithmetic, opened: EnclosureVector, first: int, left: Mask, *, outside: bool
) -> EnclosureVector:
    """``opened`` as seen ``first`` steps earlier; a path that leaves ``left`` until then is worth ``outside``."""
    if first == 0:
        return opened
    everywhere = np.ones_like(left)
    decided = arithmetic.vector(np.full(len(left), outside))
    one_earlier = EnclosureVector.where(left, arithmetic.iterate(opened, 1, everywhere), decided)
    return arithmetic.iterate(one_earlier, first - 1, left)


def _unbounded_until(arithmetic: Arithmetic, left: Mask, right: Mask) -> EnclosureVector:
    matrix = arithmetic.chain.transitions
    possible = reaching(matrix, right, through=left)
    certain = ~reaching(matrix, ~possible, through=left & ~right)
    return arithmetic.solve(possible & ~certain, arithmetic.vector(certain))


def _unbounded_not_until(arithmetic: Arithmetic, open_: Mask, right: Mask) -> EnclosureVector:
    """Leave ``open_`` to a state outside ``right``, or end in a recurrent class inside ``open_``."""
    safe = ~open_ & ~right
    for states in recurrent_classes(arithmetic.chain.transitions):
        if open_[states].all():
            safe[states] = True
    return _unbounded_until(arithmetic, open_, safe)


# ---------------------------------------------------------------- R


def reward_structure(chain: MarkovChain, name: str | None, span: Span | None = None) -> RewardStructure:
    """The named reward structure, or the only one.

    Raises:
        PropertyError: if the name is unknown, or is None and the chain has none or several.
    """
    known = list(chain.rewards)
    listed = ", ".join(f'"{structure}"' for structure in known)
    if name is None:
        if len(known) == 1:
            return chain.rewards[known[0]]
        if not known:
            raise PropertyError(_problem("the chain has no reward structure", None, span))
        message = f"R without a name is ambiguous: the chain has the reward structures {listed}"
        raise PropertyError(_problem(message, f'write R{{"{known[0]}"}}', span))
    if name in chain.rewards:
        return chain.rewards[name]
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        hint = "did you mean " + ", ".join(f'"{structure}"' for structure in near) + "?"
    else:
        hint = f"the chain has {listed}" if known else "the chain has none"
    raise PropertyError(_problem(f'unknown reward structure "{name}"', hint, span))


def _reward(arithmetic: Arithmetic, path: RewardPath, structure: RewardStructure, holds: Holds) -> EnclosureVector:
    per_step = arithmetic.vector(structure.fractions(action=True))
    everywhere = np.ones(arithmetic.chain.n_states, dtype=np.bool_)
    match path:
        case ReachReward():
            return _reward_until(arithmetic, per_step, holds(path.operand))
        case CumulativeReward():
            if path.bound is None:
                return _total_reward(arithmetic, per_step)
            steps = _steps(path.bound) - path.strict
            if steps < 0:
                raise PropertyError(
                    _problem("C<0 collects nothing", "the first bound that means something is C<=0", path.span)
                )
            zero = arithmetic.vector(np.zeros_like(everywhere))
            return arithmetic.iterate(
                zero, steps, everywhere, gain=per_step, limit=lambda: _total_reward(arithmetic, per_step)
            )
        case InstantaneousReward():
            return arithmetic.iterate(
                arithmetic.vector(structure.fractions(action=False)), _steps(path.time), everywhere
            )
        case LongRunReward():
            return _long_run_average(arithmetic, per_step)


def _reward_until(arithmetic: Arithmetic, per_step: EnclosureVector, target: Mask) -> EnclosureVector:
    """Expected reward before the target; infinite where it is not reached almost surely."""
    matrix = arithmetic.chain.transitions
    missing = reaching(matrix, ~reaching(matrix, target), through=~target)
    zero = arithmetic.vector(np.zeros_like(target))
    return _infinite_where(missing, arithmetic.solve(~missing & ~target, zero, per_step))


def _total_reward(arithmetic: Arithmetic, per_step: EnclosureVector) -> EnclosureVector:
    """Expected reward in total; infinite where a recurrent class that earns anything can be reached."""
    matrix = arithmetic.chain.transitions
    recurrent = np.zeros(len(per_step), dtype=np.bool_)
    earning = np.zeros_like(recurrent)
    for states in recurrent_classes(matrix):
        recurrent[states] = True
        earning[states] = bool((per_step.upper[states] > 0).any())
    endless = reaching(matrix, earning)
    zero = arithmetic.vector(np.zeros_like(recurrent))
    return _infinite_where(endless, arithmetic.solve(~endless & ~recurrent, zero, per_step))


def _infinite_where(mask: Mask, finite: EnclosureVector) -> EnclosureVector:
    if not mask.any():
        return finite
    return EnclosureVector.where(mask, EnclosureVector.constant(len(finite), math.inf, exact=finite.exact), finite)


# ---------------------------------------------------------------- long-run averages


def _long_run_average(arithmetic: Arithmetic, per_step: EnclosureVector) -> EnclosureVector:
    """The long-run average of ``per_step``: of each recurrent class, weighted by the probability of ending in it.

    In a class it is the expected reward of a cycle through a reference state over the expected length of that cycle
    (renewal reward theorem); neither aperiodicity nor a distribution over the class is needed. All classes are solved
    at once.
    """
    classes = recurrent_classes(arithmetic.chain.transitions)
    members = np.concatenate(classes)
    sizes = np.array([len(states) for states in classes])
    first = np.cumsum(sizes) - sizes
    recurrent = np.zeros(len(per_step), dtype=np.bool_)
    recurrent[members] = True
    references = np.zeros_like(recurrent)
    references[members[first]] = True
    zero, one = arithmetic.vector(np.zeros_like(recurrent)), arithmetic.vector(np.ones_like(recurrent))
    inner = recurrent & ~references
    reward, length = (
        arithmetic.iterate(arithmetic.solve(inner, zero, gain), 1, references, gain=gain).take(members[first])
        for gain in (per_step, one)
    )
    average = reward / length
    if not average.exact:  # an average lies between the extremes of what is averaged
        average = EnclosureVector.from_bounds(
            average.value,
            np.maximum(average.lower, np.minimum.reduceat(per_step.lower[members], first)),
            np.minimum(average.upper, np.maximum.reduceat(per_step.upper[members], first)),
        )
    class_of_state = np.zeros(len(per_step), dtype=np.int64)
    class_of_state[members] = np.repeat(np.arange(len(classes)), sizes)
    boundary = EnclosureVector.where(recurrent, average.take(class_of_state), zero)
    return arithmetic.solve(~recurrent, boundary)


def _problem(message: str, hint: str | None, span: Span | None) -> Problem:
    location = Location() if span is None else Location(line=span.line, column=span.column)
    return Problem(location=location, message=message, hint=hint)
