"""The operators of the property language on a Markov chain, one value a state: which method answers which operator.

What the graph alone decides (probability zero, probability one, infinite reward) is decided there, first, and is exact
in any arithmetic; no probability is computed as one minus another. The methods are in modules of their own: `until`,
`ltl`, `reward_bounded`, `expected_reward`, `long_run`, `branching` and `quantile`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import collected_steps, number_of_steps, problem_at, step_window
from tracebridge.closedform.branching import satisfied_by_runs
from tracebridge.closedform.budget import budgets, step_budget
from tracebridge.closedform.conditioning import AmplificationProbe
from tracebridge.closedform.expected_reward import discounted_reward, reward_structure, reward_until, total_reward
from tracebridge.closedform.long_run import long_run_average
from tracebridge.closedform.quantile import bounded_by, quantile
from tracebridge.closedform.reward_bounded import collected_within, until_within
from tracebridge.closedform.until import BoundedPath, until_form, until_probability
from tracebridge.errors import PropertyError, UnsupportedError
from tracebridge.pctl.ast import (
    AutomatonPath,
    Coalition,
    CumulativeReward,
    InstantaneousReward,
    LongRunReward,
    Multi,
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
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.enclosure import Enclosure, EnclosureVector
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Operator, PathFormula


def evaluate_operator(arithmetic: Arithmetic, operator: Operator, holds: Holds) -> EnclosureVector:
    """The value of an operator in every state, shape (n,); the threshold of ``P``, ``R`` or ``S`` is not looked at.

    ``A`` and ``E`` have the value 1 where they hold and 0 elsewhere. For a quantile see `evaluate_quantile`.

    Args:
        arithmetic: doubles or rationals, with the chain.
        operator: step bounds and other constants are already numbers.
        holds: the states where an operand is true, shape (n,).

    Raises:
        PropertyError: for a bound that is no number of its kind, and for an unknown reward structure.
        UnsupportedError: for operators of decision processes and games, and if it would be too much work.
    """
    match operator:
        case Probability():
            if operator.condition is not None:
                from tracebridge.closedform.ltl import conditional_probability

                return conditional_probability(arithmetic, operator.path, operator.condition, holds)
            return _probability(arithmetic, operator.path, holds)
        case Reward():
            return _reward(arithmetic, operator, holds)
        case SteadyState():
            return long_run_average(arithmetic, arithmetic.vector(holds(operator.operand)))
        case Quantified():
            return arithmetic.vector(satisfied_by_runs(arithmetic.chain.transitions, operator, holds))
        case Quantile():
            return evaluate_quantile(arithmetic, operator, holds, arithmetic.chain.exact_initial())[0]
        case Multi():
            raise UnsupportedError(
                f"{operator.kind} is about the choices of a decision process (MDP); a chain has none"
            )
        case Coalition():
            raise UnsupportedError("coalitions of players are for games; a chain has no players")


def evaluate_quantile(
    arithmetic: Arithmetic, quantile_: Quantile, holds: Holds, weights: Sequence[Fraction | float]
) -> tuple[EnclosureVector, Enclosure]:
    """The quantile in every state, shape (n,), and at the start, where it is that of the mean value of its operator.

    See `tracebridge.closedform.quantile` for what the quantile is where several bounds, or none, satisfy the operator.

    Args:
        arithmetic, holds: as for `evaluate_operator`.
        quantile_: all constants but its variable are already numbers.
        weights: the initial distribution, shape (n,).

    Raises:
        PropertyError: as `evaluate_operator`.
        UnsupportedError: for several variables or bounds, an operator without a threshold or of another kind than
            ``P`` of a PCTL path and ``R`` of ``C``, and if it would be too much work.
    """
    return quantile(arithmetic, quantile_, holds, weights, evaluate_operator)


def rounding_amplification(chain: MarkovChain, operator: Operator, holds: Holds) -> float:
    """By how much one relative rounding of the transition matrix can move the value, relative to the largest value.

    In steps: the largest expected time in the states that a linear system is solved for (``1 / (1 - p)`` for one state
    with the self-loop p), the number of steps for a bounded operator, 0 where the graph alone decides. An engine in
    plain doubles is off by about this number times 2**-53 even with a perfect solver. For a quantile it is that of its
    operator, bounded by the quantile of the initial distribution.
    """
    if isinstance(operator, Quantile):
        operator = bounded_by(chain, operator, holds, evaluate_operator)
    probe = AmplificationProbe(chain)
    evaluate_operator(probe, operator, holds)
    return probe.amplification


# ---------------------------------------------------------------- P


def _probability(arithmetic: Arithmetic, path: PathFormula, holds: Holds) -> EnclosureVector:
    n = arithmetic.chain.n_states
    if any(isinstance(node, AutomatonPath) for node in walk(path)):
        raise UnsupportedError("automata in files are not read; write the path as a formula")
    if is_pctl(path):
        if isinstance(path, Next):
            everywhere = np.ones(n, dtype=np.bool_)
            return arithmetic.iterate(arithmetic.vector(holds(state_operand(path.operand))), 1, everywhere)
        if isinstance(path, BoundedPath):
            form = until_form(path, holds, n)
            if path.reward_bounds:
                dimensions = budgets(arithmetic.chain, path.bound, path.reward_bounds, path.span)
                return until_within(arithmetic, form, dimensions)
            return until_probability(arithmetic, form, step_window(path.bound))
    from tracebridge.closedform.ltl import ltl_probability

    return ltl_probability(arithmetic, path, holds)


# ---------------------------------------------------------------- R


def _reward(arithmetic: Arithmetic, operator: Reward, holds: Holds) -> EnclosureVector:
    structure = reward_structure(arithmetic.chain, operator.structure, operator.span)
    per_step = arithmetic.vector(structure.fractions(action=True))
    path = operator.path
    if operator.condition is not None:
        if not isinstance(path, ReachReward):
            raise UnsupportedError("R under a condition is evaluated for F of a formula only")
        from tracebridge.closedform.ltl import conditional_reward

        return conditional_reward(arithmetic, path.operand, operator.condition, per_step, holds)
    match path:
        case ReachReward():
            return reward_until(arithmetic, per_step, holds(path.operand))
        case PathReward():
            from tracebridge.closedform.ltl import satisfied_prefix_reward

            return satisfied_prefix_reward(arithmetic, path.path, per_step, holds)
        case CumulativeReward():
            return _cumulative_reward(arithmetic, path, per_step)
        case InstantaneousReward():
            return _instantaneous_reward(arithmetic, path, structure)
        case LongRunReward():
            return long_run_average(arithmetic, per_step)


def _cumulative_reward(arithmetic: Arithmetic, path: CumulativeReward, per_step: EnclosureVector) -> EnclosureVector:
    steps = collected_steps(path)
    if path.reward_bounds:
        if path.discount is not None:
            raise UnsupportedError("a discount together with a reward bound is not evaluated")
        if any(bound.bound.lower is not None for bound in path.reward_bounds):
            raise PropertyError(problem_at("C takes upper bounds only", 'such as C{"cost"}<=5', path.span))
        dimensions = budgets(arithmetic.chain, None, path.reward_bounds, path.span)
        if steps is not None:
            dimensions.append(step_budget(arithmetic.chain, 0, steps))
        return collected_within(arithmetic, per_step, dimensions)
    if path.discount is not None:
        return discounted_reward(arithmetic, per_step, path.discount, steps)
    if steps is None:
        return total_reward(arithmetic, per_step)
    everywhere = np.ones(len(per_step), dtype=np.bool_)
    return arithmetic.iterate(
        arithmetic.vector(~everywhere),
        steps,
        everywhere,
        gain=per_step,
        limit=lambda: total_reward(arithmetic, per_step),
    )


def _instantaneous_reward(
    arithmetic: Arithmetic, path: InstantaneousReward, structure: RewardStructure
) -> EnclosureVector:
    everywhere = np.ones(arithmetic.chain.n_states, dtype=np.bool_)
    state_rewards = arithmetic.vector(structure.fractions(action=False))
    return arithmetic.iterate(state_rewards, number_of_steps(path.time), everywhere)
