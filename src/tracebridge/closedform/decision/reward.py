"""The least and greatest expected reward over all schedulers of a decision process.

Bertsekas and Tsitsiklis, An Analysis of Stochastic Shortest Path Problems, Mathematics of Operations Research 16, 1991.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import collected_steps, number_of_steps
from tracebridge.closedform.decision.choice_rewards import choice_gains, process_reward
from tracebridge.closedform.decision.equation import OptimalityEquation
from tracebridge.closedform.decision.evaluation import Evaluation, OptimalValues
from tracebridge.closedform.decision.unfolding import COLLECTED, unfolded
from tracebridge.closedform.expected_reward import infinite_where
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import CumulativeReward, InstantaneousReward, ReachReward, Reward, StepBound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.until import Holds

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


class ExpectedReward(Evaluation[Reward]):
    """``R`` of ``F``, ``C``, ``C<=k`` and ``I=k``."""

    def _evaluate(self, operator: Reward, holds: Holds, *, maximise: bool) -> OptimalValues:
        structure = process_reward(self.process, operator.structure, operator.span)
        path = operator.path
        match path:
            case ReachReward():
                return self._reward_until(choice_gains(self.process, structure), holds(path.operand), maximise=maximise)
            case CumulativeReward(discount=None, reward_bounds=()):
                gains, steps = choice_gains(self.process, structure), collected_steps(path)
                if steps is None:
                    return self._total_reward(gains, maximise=maximise)
                nothing = self.optimiser.vector(~self.everywhere)
                return OptimalValues(
                    values=self.optimiser.iterate(nothing, steps, self.everywhere, maximise=maximise, gains=gains)
                )
            case CumulativeReward(discount=None):
                steps_bound = None if path.bound is None else StepBound(upper=path.bound, upper_strict=path.strict)
                dimensions = self.budgets(steps_bound, path.reward_bounds, path.span)
                return self._collected_within(choice_gains(self.process, structure), dimensions, maximise=maximise)
            case InstantaneousReward():
                start = self.optimiser.vector(structure.fractions(action=False))
                steps = number_of_steps(path.time)
                return OptimalValues(values=self.optimiser.iterate(start, steps, self.everywhere, maximise=maximise))
        raise UnsupportedError("of a decision process R takes F of a state formula, C without a discount, and I=k")

    def _collected_within(self, gains: list[Fraction], dimensions: list[Budget], *, maximise: bool) -> OptimalValues:
        """The optimal reward of the steps that no budget is exceeded by."""
        if any(budget.empty for budget in dimensions):
            return OptimalValues(values=self.optimiser.vector(~self.everywhere))
        wide = unfolded(self.process, dimensions, left=self.everywhere, right=~self.everywhere, gains=gains)
        return self.in_unfolded(
            wide, Reward(CumulativeReward(None), structure=COLLECTED, optimum="max" if maximise else "min")
        )

    def _reward_until(self, gains: list[Fraction], target: Mask, *, maximise: bool) -> OptimalValues:
        """The optimal reward before the target; infinite where it is missed under some scheduler, or under all."""
        choices = self.choices
        if maximise:
            finite = choices.certain(self.everywhere, target)
            # Infinite is what goes where the target can be missed for ever, and stays there.
            missing = choices.avoidable(self.everywhere, target)
            stay = self.first_of(choices.staying_in(missing) & missing[choices.owner])
            anything = np.ones(len(choices.owner), dtype=np.bool_)
            way = choices.towards(missing, anything, within=~missing & ~target & ~finite)
            settled = np.where(missing, stay, way)
            allowed = idle = None
        else:
            finite = choices.attainable(self.everywhere, target)
            settled = np.full(self.process.n_states, -1, dtype=np.int64)
            allowed = choices.staying_in(finite)
            # To stay for ever where nothing is earned is not for free: the target is then missed.
            idle = allowed & np.array([not gain for gain in gains], dtype=np.bool_)
        return self._reward_equation(gains, finite, target, settled, allowed, idle, maximise=maximise)

    def _total_reward(self, gains: list[Fraction], *, maximise: bool) -> OptimalValues:
        """The optimal reward in total.

        The least is that until a set that can be stayed in for nothing. The greatest is infinite where an end component
        that earns anything can be reached; elsewhere all of them are for nothing, and left as soon as that can be.
        """
        choices = self.choices
        free = np.array([not gain for gain in gains], dtype=np.bool_)
        if not maximise:
            components, inside = choices.end_components(free)
            found = self._reward_until(gains, components >= 0, maximise=False)
            assert found.scheduler is not None  # noqa: S101 - of a reward until a goal there always is one
            stay = self.first_of(inside)
            return OptimalValues(values=found.values, scheduler=np.where(components >= 0, stay, found.scheduler))
        components, inside = choices.end_components(np.ones_like(free))
        earns = inside & ~free
        earner = choices.having(earns)
        rich = np.isin(components, components[earner])
        infinite = choices.possible(self.everywhere, rich)
        leaves = choices.having((components[choices.owner] >= 0) & ~choices.staying_among(components))
        ended = (components >= 0) & ~infinite & ~np.isin(components, components[leaves])
        around = choices.towards(earner, inside, within=rich & ~earner)
        way = choices.towards(rich, np.ones_like(free), within=infinite & ~rich)
        settled = np.select([earner, rich], [self.first_of(earns), around], way)
        return self._reward_equation(gains, ~infinite, ended, settled, None, inside & free, maximise=True)

    def _reward_equation(
        self,
        gains: list[Fraction],
        finite: Mask,
        target: Mask,
        settled: Indices,
        allowed: Mask | None,
        idle: Mask | None,
        *,
        maximise: bool,
    ) -> OptimalValues:
        equation = OptimalityEquation.of(
            self.choices,
            unknown=finite & ~target,
            known=~self.everywhere,
            maximise=maximise,
            gains=gains,
            allowed=allowed,
            idle=idle,
            every_choice_leaves=maximise,
        )
        found = self.solved(equation, settled)
        return OptimalValues(values=infinite_where(~finite, found.values), scheduler=found.scheduler)
