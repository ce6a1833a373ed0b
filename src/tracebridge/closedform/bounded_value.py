"""A value as a function of the one bound of its operator: how it is unfolded, and what it tends to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.graph import reaching, recurrent_classes
from tracebridge.closedform.bounds import StepWindow
from tracebridge.closedform.cycles import on_cycle
from tracebridge.closedform.expected_reward import total_reward
from tracebridge.closedform.reward_bounded import collecting_recursion, until_recursion
from tracebridge.closedform.step_doubling import StepRecursion
from tracebridge.closedform.until import UntilForm, unbounded_until, until_probability

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from tracebridge.closedform.arithmetic import Arithmetic
    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.enclosure import EnclosureVector
    from tracebridge.closedform.reward_bounded import Recursion

    Mask = NDArray[np.bool_]


class BoundedProbability:
    """``P`` of a path operator with one bound on one side."""

    def __init__(self, form: UntilForm, *, lower: bool) -> None:
        self._form = form
        self._lower = lower
        self.rising = lower == form.complemented

    def recursion(self, arithmetic: Arithmetic, budget: Budget) -> Recursion:  # noqa: ARG002
        """What is unfolded over the budget."""
        return until_recursion(arithmetic, self._form)

    def step_recursion(self, arithmetic: Arithmetic) -> StepRecursion:
        """The same in steps: from one bound to the next."""
        form = self._form
        if self._lower:  # up to the bound, which is one step at least, a run only has to stay in ``left``
            start = until_probability(arithmetic, form, StepWindow(1, None))
            return StepRecursion(count=1, start=start, active=form.left)
        start = arithmetic.vector(~form.right if form.complemented else form.right)
        return StepRecursion(count=0, start=start, active=form.left & ~form.right)

    def without_budget(self, arithmetic: Arithmetic) -> EnclosureVector:
        """The value when not even what costs nothing is within the bound."""
        return arithmetic.vector(np.full(len(self._form.left), self._form.complemented))

    def limit(self, arithmetic: Arithmetic, budget: Budget) -> EnclosureVector:
        """What the values tend to as the bound grows."""
        if not self._lower:
            return unbounded_until(arithmetic, self._form)
        # Beyond every lower bound ``right`` is seen if it is so again and again, at ever greater cost.
        for_ever = self._recurring(arithmetic, budget)
        left = self._form.left
        return unbounded_until(arithmetic, UntilForm(left=left, right=for_ever, complemented=self._form.complemented))

    def never_attained(self, arithmetic: Arithmetic, budget: Budget) -> Mask:
        """Where the values differ from their limit at every bound: runs of any cost still make a difference.

        Such runs pass a cycle that costs something and may then see ``right``, though they need not see it for ever.
        """
        matrix, left, right = arithmetic.chain.transitions, self._form.left, self._form.right
        going_on, goal = left & ~right, right
        if self._lower:
            for_ever = self._recurring(arithmetic, budget)
            stay = UntilForm(left=left, right=for_ever, complemented=False)
            going_on, goal = left, right & ~_certain(arithmetic, stay)
        useful = going_on & reaching(matrix, goal, through=going_on)
        return reaching(matrix, on_cycle(matrix, useful, touching=budget.cost > 0), through=going_on)

    def _recurring(self, arithmetic: Arithmetic, budget: Budget) -> Mask:
        """The recurrent classes inside ``left`` that see ``right`` and cost something."""
        found = np.zeros_like(self._form.left)
        for states in recurrent_classes(arithmetic.chain.transitions):
            costs = (budget.cost[states] > 0).any()
            found[states] = self._form.left[states].all() and self._form.right[states].any() and costs
        return found


class BoundedCollection:
    """``R`` of ``C`` with an upper bound on steps or on a reward."""

    rising = True

    def __init__(self, per_step: list[Fraction]) -> None:
        self._per_step = per_step

    def recursion(self, arithmetic: Arithmetic, budget: Budget) -> Recursion:
        """What is unfolded over the budget."""
        return collecting_recursion(arithmetic, arithmetic.vector(self._per_step), [budget])

    def step_recursion(self, arithmetic: Arithmetic) -> StepRecursion:
        """The same in steps: from one bound to the next."""
        everywhere = np.ones(len(self._per_step), dtype=np.bool_)
        gain = arithmetic.vector(self._per_step)
        return StepRecursion(count=0, start=arithmetic.vector(~everywhere), active=everywhere, gain=gain)

    def without_budget(self, arithmetic: Arithmetic) -> EnclosureVector:
        """Nothing is collected."""
        return arithmetic.vector(np.zeros(len(self._per_step), dtype=np.bool_))

    def limit(self, arithmetic: Arithmetic, budget: Budget) -> EnclosureVector:  # noqa: ARG002
        """All that is ever collected."""
        return total_reward(arithmetic, arithmetic.vector(self._per_step))

    def never_attained(self, arithmetic: Arithmetic, budget: Budget) -> Mask:
        """Where something is collected after any cost."""
        matrix = arithmetic.chain.transitions
        earning = np.array([x > 0 for x in self._per_step])
        return reaching(matrix, on_cycle(matrix, reaching(matrix, earning), touching=budget.cost > 0))


BoundedValue = BoundedProbability | BoundedCollection


def _certain(arithmetic: Arithmetic, form: UntilForm) -> Mask:
    """Where ``left U right`` has the probability one."""
    matrix = arithmetic.chain.transitions
    possible = reaching(matrix, form.right, through=form.left)
    return ~reaching(matrix, ~possible, through=form.left & ~form.right)
