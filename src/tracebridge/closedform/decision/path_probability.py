"""The least and greatest probability of a path over all schedulers of a decision process.

Baier and Katoen, Principles of Model Checking, section 10.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import step_window
from tracebridge.closedform.decision.equation import OptimalityEquation
from tracebridge.closedform.decision.evaluation import Evaluation, OptimalValues
from tracebridge.closedform.decision.unfolding import GOAL, OPEN, unfolded
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.until import BoundedPath, until_form
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import Label, Next, Probability, Until, is_pctl, state_operand

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.until import Holds, UntilForm

    Mask = NDArray[np.bool_]


class PathProbability(Evaluation[Probability]):
    """``P`` of a path operator over formulas."""

    def _evaluate(self, operator: Probability, holds: Holds, *, maximise: bool) -> OptimalValues:
        path = operator.path
        if not is_pctl(path):
            raise UnsupportedError("of a decision process only paths of PCTL are evaluated, not formulas of LTL")
        if isinstance(path, Next):
            start = self.optimiser.vector(holds(state_operand(path.operand)))
            return OptimalValues(values=self.optimiser.iterate(start, 1, self.everywhere, maximise=maximise))
        assert isinstance(path, BoundedPath)  # noqa: S101 - the other paths of PCTL
        form = until_form(path, holds, self.process.n_states)
        # Whoever makes the complement likely makes the path unlikely.
        maximise = maximise != form.complemented
        if path.reward_bounds:
            dimensions = self.budgets(path.bound, path.reward_bounds, path.span)
            found = self._until_within(form, dimensions, maximise=maximise)
        else:
            found = self._until(form, step_window(path.bound), maximise=maximise)
        if not form.complemented:
            return found
        return OptimalValues(values=self._complement(found.values), scheduler=found.scheduler)

    def _complement(self, values: EnclosureVector) -> EnclosureVector:
        rest = self.optimiser.vector(self.everywhere) - values
        if rest.exact:
            return rest
        return EnclosureVector.from_bounds(rest.value, np.maximum(rest.lower, 0.0), np.minimum(rest.upper, 1.0))

    def _until(self, form: UntilForm, window: StepWindow, *, maximise: bool) -> OptimalValues:
        """The optimal probability that ``right`` holds at a step of the window and ``left`` at all steps before."""
        left, right = form.left, form.right
        nothing = self.optimiser.vector(~self.everywhere)
        if window.empty:
            return OptimalValues(values=nothing)
        if window.length is None:
            found = self._unbounded_until(left & ~right, right, maximise=maximise)
        else:
            goal = self.optimiser.vector(right)
            found = OptimalValues(values=self.optimiser.iterate(goal, window.length, left & ~right, maximise=maximise))
        if window.first == 0:
            return found
        # A path that leaves ``left`` before the window opens is lost.
        one_earlier = self.optimiser.iterate(found.values, 1, self.everywhere, maximise=maximise)
        started = EnclosureVector.where(left, one_earlier, nothing)
        return OptimalValues(values=self.optimiser.iterate(started, window.first - 1, left, maximise=maximise))

    def _until_within(self, form: UntilForm, dimensions: list[Budget], *, maximise: bool) -> OptimalValues:
        """The optimal probability of ``left U right`` with all bounds satisfied where ``right`` holds."""
        if any(budget.empty for budget in dimensions):
            return OptimalValues(values=self.optimiser.vector(~self.everywhere))
        wide = unfolded(self.process, dimensions, left=form.left, right=form.right)
        return self.in_unfolded(
            wide, Probability(Until(Label(OPEN), Label(GOAL)), optimum="max" if maximise else "min")
        )

    def _unbounded_until(self, open_: Mask, goal: Mask, *, maximise: bool) -> OptimalValues:
        choices = self.choices
        if maximise:
            one, zero = choices.attainable(open_, goal), ~choices.possible(open_, goal)
            safe = choices.staying_in(one)
            settled = choices.towards(goal, safe, within=one & open_ & ~goal)
        else:
            one, zero = choices.certain(open_, goal), choices.avoidable(open_, goal)
            settled = self.first_of(choices.staying_in(zero) & zero[choices.owner])
        equation = OptimalityEquation.of(
            choices,
            unknown=~one & ~zero,
            known=one,
            maximise=maximise,
            # Who can stay for ever among unknown states does not gain by it; for a minimum nobody can.
            idle=np.ones(len(choices.owner), dtype=np.bool_) if maximise else None,
        )
        return self.solved(equation, settled)
