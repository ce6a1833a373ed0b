"""Operators on a stack of chains: the same methods as `tracebridge.closedform.modelcheck`, in plain doubles.

The edges of all draws are the same, so what the graph decides is decided once. No value carries bounds on its rounding:
they are far below what draws of a posterior differ by. Nothing is subtracted, so rounding stays relative to the value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.batched.chain_stack import LARGEST, SMALLEST
from tracebridge.closedform.bounds import collected_steps, discount_factor, number_of_steps, step_window
from tracebridge.closedform.branching import satisfied_by_runs
from tracebridge.closedform.expected_reward import reward_structure
from tracebridge.closedform.reward_graph import not_surely_reached, reference_states, total_reward_regions
from tracebridge.closedform.until import BoundedPath, decided_by_graph, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import (
    CumulativeReward,
    InstantaneousReward,
    LongRunReward,
    Next,
    PathReward,
    Probability,
    Quantified,
    Quantile,
    ReachReward,
    Reward,
    SteadyState,
    is_pctl,
    state_operand,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.batched.chain_stack import ChainStack
    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import Operator

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]


def is_batched(operator: Operator) -> bool:
    """Whether `evaluate_stacked`, or `step_quantile`, knows the operator: the rest takes one chain at a time."""
    match operator:
        case Quantile():
            return is_batched(operator.operator)
        case Probability() | Reward():
            return not (isinstance(operator.path, BoundedPath | CumulativeReward) and operator.path.reward_bounds)
        case SteadyState() | Quantified():
            return True
    return False


def evaluate_stacked(stack: ChainStack, operator: Operator, holds: Holds) -> Floats:
    """The value of an operator in every state and draw, shape (n, draws), or (n, 1) where the graph alone decides.

    Args:
        stack: the chains. operator: one that `is_batched`, no quantile; step bounds are already numbers. Its threshold
            is not looked at. holds: the states where an operand is true, shape (n,), in all draws.

    Raises:
        PropertyError: for a bound that is no number of its kind, and for an unknown reward structure.
        UnsupportedError: for an operator that is not batched, and if it would be too much work.
    """
    match operator:
        case Probability() if is_batched(operator):
            return _probability(stack, operator, holds)
        case Reward() if is_batched(operator):
            return _reward(stack, operator, holds)
        case SteadyState():
            return _long_run_average(stack, holds(operator.operand).astype(np.float64))
        case Quantified():
            return _column(satisfied_by_runs(stack.chain.transitions, operator, holds))
    raise UnsupportedError(f"this operator is not evaluated for many chains at a time: {type(operator).__name__}")


def _column(mask: Mask) -> Floats:
    return mask.astype(np.float64)[:, None]


def _everywhere(stack: ChainStack) -> Mask:
    return np.ones(stack.chain.n_states, dtype=np.bool_)


# ---------------------------------------------------------------- P


def _probability(stack: ChainStack, operator: Probability, holds: Holds) -> Floats:
    path = operator.path
    if operator.condition is not None:
        from tracebridge.closedform.batched.path_formulas import conditional_path_probability

        return conditional_path_probability(stack, path, operator.condition, holds)
    if is_pctl(path):
        if isinstance(path, Next):
            return stack.iterate(_column(holds(state_operand(path.operand))), 1, _everywhere(stack))
        if isinstance(path, BoundedPath):
            return until_probability(stack, until_form(path, holds, stack.chain.n_states), step_window(path.bound))
    from tracebridge.closedform.batched.path_formulas import path_probability

    return path_probability(stack, path, holds)


def until_probability(stack: ChainStack, form: UntilForm, window: StepWindow) -> Floats:
    """The probability of ``left U right``, or of its complement, in a window of steps."""
    left, right = form.left, form.right
    decided = _column(np.full(len(left), form.complemented))
    if window.empty:
        return decided
    if window.length is None:
        opened = unbounded_until(stack, form)
    else:
        opened = stack.iterate(_column(~right if form.complemented else right), window.length, left & ~right)
    if window.first == 0:
        return opened
    # A path that leaves ``left`` before the window opens is decided.
    one_earlier = np.where(left[:, None], stack.iterate(opened, 1, np.ones_like(left)), decided)
    return stack.iterate(one_earlier, window.first - 1, left)


def unbounded_until(stack: ChainStack, form: UntilForm) -> Floats:
    """The same without a bound."""
    possible, certain = decided_by_graph(stack.chain.transitions, form)
    between = possible & ~certain
    values = stack.solve(between, _column(certain))
    if stack.has_all_edges and between.any():
        values[between] = np.clip(values[between], SMALLEST, LARGEST)
    return values


# ---------------------------------------------------------------- R and S


def _reward(stack: ChainStack, operator: Reward, holds: Holds) -> Floats:
    structure = reward_structure(stack.chain, operator.structure, operator.span)
    if operator.condition is not None:
        if not isinstance(operator.path, ReachReward):
            raise UnsupportedError("R under a condition is evaluated for F of a formula only")
        from tracebridge.closedform.batched.path_formulas import conditional_reward

        target = holds(operator.path.operand)
        return conditional_reward(stack, target, operator.condition, structure.per_step, holds)
    match operator.path:
        case PathReward(path):
            from tracebridge.closedform.batched.path_formulas import satisfied_prefix_reward

            return satisfied_prefix_reward(stack, path, structure.per_step, holds)
        case ReachReward(operand):
            return _reward_until(stack, structure.per_step, holds(operand))
        case CumulativeReward():
            return _cumulative(stack, operator.path, structure.per_step)
        case InstantaneousReward(time):
            return stack.iterate(structure.state[:, None], number_of_steps(time), _everywhere(stack))
        case LongRunReward():
            return _long_run_average(stack, structure.per_step)


def _reward_until(stack: ChainStack, per_step: Floats, target: Mask) -> Floats:
    missing = not_surely_reached(stack.chain.transitions, target)
    zero = np.zeros((len(per_step), 1))
    return _infinite_where(missing, stack.solve(~missing & ~target, zero, per_step))


def _cumulative(stack: ChainStack, path: CumulativeReward, per_step: Floats) -> Floats:
    steps = collected_steps(path)
    zero, everywhere = np.zeros((len(per_step), 1)), _everywhere(stack)
    if path.discount is not None:
        factor = float(discount_factor(path.discount))
        if steps is None:
            return stack.solve(everywhere, zero, per_step, factor)
        return stack.iterate(zero, steps, everywhere, per_step, factor)
    if steps is not None:
        return stack.iterate(zero, steps, everywhere, per_step)
    return total_reward(stack, per_step)


def total_reward(stack: ChainStack, per_step: Floats) -> Floats:
    """All that is ever collected, ``per_step`` in each state, shape (n,)."""
    endless, collecting = total_reward_regions(stack.chain.transitions, per_step > 0)
    zero = np.zeros((len(per_step), 1))
    return _infinite_where(endless, stack.solve(collecting, zero, per_step))


def _long_run_average(stack: ChainStack, per_step: Floats) -> Floats:
    """See `tracebridge.closedform.long_run`: cycles through one state of each recurrent class."""
    of_class, class_of, recurrent, references = reference_states(stack.chain.transitions)
    n = len(per_step)
    inner = recurrent & ~references
    reward, length = (
        stack.iterate(stack.solve(inner, np.zeros((n, 1)), gain), 1, references, gain)[of_class]
        for gain in (per_step, np.ones(n))
    )
    average = (reward / length)[class_of]
    return stack.solve(~recurrent, np.where(recurrent[:, None], average, 0.0))


def _infinite_where(mask: Mask, finite: Floats) -> Floats:
    return np.where(mask[:, None], np.inf, finite) if mask.any() else finite
