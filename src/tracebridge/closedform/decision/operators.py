"""The least and greatest value of each operator over all schedulers of a decision process, one value a state.

What the graph alone decides (probability zero, probability one, infinite reward) is decided there, first, and is exact
in any arithmetic. Operators without a step bound have an optimal scheduler that remembers nothing; it is given with the
value, and the chain that it makes of the process is evaluated as any chain: the two values must be the same. For step
bounds the best choice depends on how many steps are left.

Baier and Katoen, Principles of Model Checking, section 10.6; for expected rewards also Bertsekas and Tsitsiklis, An
Analysis of Stochastic Shortest Path Problems, Mathematics of Operations Research 16, 1991.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.closedform.bounds import number_of_steps, problem_at, step_window
from tracebridge.closedform.branching import satisfied_by_runs
from tracebridge.closedform.budget import budgets_of
from tracebridge.closedform.decision.choice_rewards import choice_gains, process_reward
from tracebridge.closedform.decision.equation import OptimalityEquation
from tracebridge.closedform.decision.optimum import optimum_of
from tracebridge.closedform.decision.unfolding import COLLECTED, GOAL, OPEN, unfolded
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.expected_reward import infinite_where
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.closedform.until import BoundedPath, until_form
from tracebridge.errors import EngineError, PropertyError, UnsupportedError
from tracebridge.pctl.ast import (
    CumulativeReward,
    InstantaneousReward,
    Label,
    Next,
    Probability,
    Quantified,
    ReachReward,
    Reward,
    StepBound,
    Until,
    is_pctl,
    state_operand,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.bounds import StepWindow
    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.decision.optimiser import Optimiser
    from tracebridge.closedform.decision.unfolding import UnfoldedProcess
    from tracebridge.closedform.until import Holds, UntilForm
    from tracebridge.pctl.ast import Formula, Operator, Optimum, PathFormula, RewardBound, Span

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptimalValues:
    """The optimum of an operator.

    Attributes:
        values: in every state, shape (n,).
        scheduler: the choice in each state under which it is attained (in doubles: up to rounding), as rows of the
            transition matrix, shape (n,); None where no scheduler without memory need attain it.
    """

    values: EnclosureVector
    scheduler: Indices | None = None


def optimal_values(optimiser: Optimiser, operator: Operator, holds: Holds) -> OptimalValues:
    """The optimum of an operator in every state; its threshold is looked at for the direction alone.

    ``A`` and ``E`` are about all runs under all schedulers; their value is 1 where they hold and 0 elsewhere.

    Args:
        optimiser: doubles or rationals, with the process. operator: step bounds are already numbers.
        holds: the states where an operand is true, shape (n,).

    Raises:
        PropertyError: for an operator that does not say which optimum is meant (see `optimum_of`), a bound that is no
            number of its kind, and an unknown reward structure.
        UnsupportedError: for other operators than ``P`` of a PCTL path and ``R`` of ``F``, ``C`` and ``I=k``, and if
            it would be too much work.
        EngineError: the chain under the optimal scheduler has another value.
    """
    process = optimiser.process
    if isinstance(operator, Quantified):
        return OptimalValues(values=optimiser.vector(satisfied_by_runs(process.edges, operator, holds)))
    if not isinstance(operator, Probability | Reward) or operator.condition is not None:
        raise UnsupportedError(
            f"of a decision process {type(operator).__name__} is not evaluated, only P and R without a condition"
        )
    maximise = optimum_of(operator) == "max"
    evaluation = _Evaluation(optimiser)
    if isinstance(operator, Probability):
        found = evaluation.probability(operator.path, holds, maximise=maximise)
    else:
        found = evaluation.reward(operator, holds, maximise=maximise)
    return found if found.scheduler is None else _confirmed(optimiser, operator, holds, found, maximise=maximise)


def _confirmed(
    optimiser: Optimiser, operator: Operator, holds: Holds, found: OptimalValues, *, maximise: bool
) -> OptimalValues:
    """The optimum with the value of the induced chain, which is a bound on it, as one of its bounds."""
    assert found.scheduler is not None  # noqa: S101 - the caller looked
    chain = optimiser.process.induced(found.scheduler)
    attained = evaluate_operator(optimiser.arithmetic(chain), operator, holds)
    values = found.values
    if optimiser.exact:
        if not bool(np.all(values.value == attained.value)):
            raise EngineError("the chain under the optimal scheduler has another value than the optimum")
        return found
    # No scheduler is better than the optimum; in doubles this one may be worse by a little.
    possible = attained.lower <= values.upper if maximise else attained.upper >= values.lower
    if not bool(np.all(possible)):
        raise EngineError("the chain under the optimal scheduler has a better value than the optimum")
    lower, upper = values.lower, values.upper
    if maximise:
        lower = np.maximum(lower, attained.lower)
    else:
        upper = np.minimum(upper, attained.upper)
    lower, upper = lower + 0.0, upper + 0.0  # no -0
    return OptimalValues(values=EnclosureVector.from_bounds(values.value, lower, upper), scheduler=found.scheduler)


class _Evaluation:
    """One operator; what it finds has the scheduler without memory where there is one."""

    def __init__(self, optimiser: Optimiser) -> None:
        self.optimiser = optimiser
        self.process = optimiser.process
        self.choices = optimiser.choices
        self.everywhere = np.ones(self.process.n_states, dtype=np.bool_)

    # ------------------------------------------------------------ P

    def probability(self, path: PathFormula, holds: Holds, *, maximise: bool) -> OptimalValues:
        """``P`` of a path operator over formulas."""
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
            dimensions = self._budgets(path.bound, path.reward_bounds, path.span)
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

    def _budgets(
        self, bound: StepBound | None, reward_bounds: Sequence[RewardBound], span: Span | None
    ) -> list[Budget]:
        """The bounds of an operator, with what each choice spends."""

        def amounts(structure: str | None) -> list[Fraction]:
            return choice_gains(self.process, process_reward(self.process, structure, span))

        return budgets_of(self.process.n_choices, amounts, bound, reward_bounds)

    def _until_within(self, form: UntilForm, dimensions: list[Budget], *, maximise: bool) -> OptimalValues:
        """The optimal probability of ``left U right`` with all bounds satisfied where ``right`` holds."""
        if any(budget.empty for budget in dimensions):
            return OptimalValues(values=self.optimiser.vector(~self.everywhere))
        wide = unfolded(self.process, dimensions, left=form.left, right=form.right)
        return self._unfolded(wide, Probability(Until(Label(OPEN), Label(GOAL)), optimum=_optimum(maximise)))

    def _collected_within(self, gains: list[Fraction], dimensions: list[Budget], *, maximise: bool) -> OptimalValues:
        """The optimal reward of the steps that no budget is exceeded by."""
        if any(budget.empty for budget in dimensions):
            return OptimalValues(values=self.optimiser.vector(~self.everywhere))
        wide = unfolded(self.process, dimensions, left=self.everywhere, right=~self.everywhere, gains=gains)
        return self._unfolded(wide, Reward(CumulativeReward(None), structure=COLLECTED, optimum=_optimum(maximise)))

    def _unfolded(self, wide: UnfoldedProcess, operator: Operator) -> OptimalValues:
        """An operator of the unfolded process, in the states of this one; what is best there depends on the budget."""

        def holds(operand: Formula) -> Mask:
            assert isinstance(operand, Label)  # noqa: S101 - one of its own
            return wide.process.label(operand.name)

        found = optimal_values(self.optimiser.over(wide.process), operator, holds)
        return OptimalValues(values=found.values.take(wide.whole))

    def _unbounded_until(self, open_: Mask, goal: Mask, *, maximise: bool) -> OptimalValues:
        choices = self.choices
        if maximise:
            one, zero = choices.attainable(open_, goal), ~choices.possible(open_, goal)
            safe = choices.staying_in(one)
            settled = choices.towards(goal, safe, within=one & open_ & ~goal)
        else:
            one, zero = choices.certain(open_, goal), choices.avoidable(open_, goal)
            settled = self._first_of(choices.staying_in(zero) & zero[choices.owner])
        equation = OptimalityEquation.of(
            choices,
            unknown=~one & ~zero,
            known=one,
            maximise=maximise,
            # Who can stay for ever among unknown states does not gain by it; for a minimum nobody can.
            idle=np.ones(len(choices.owner), dtype=np.bool_) if maximise else None,
        )
        return self._solved(equation, settled)

    # ------------------------------------------------------------ R

    def reward(self, operator: Reward, holds: Holds, *, maximise: bool) -> OptimalValues:
        """``R`` of ``F``, ``C``, ``C<=k`` and ``I=k``."""
        structure = process_reward(self.process, operator.structure, operator.span)
        path = operator.path
        match path:
            case ReachReward():
                return self._reward_until(choice_gains(self.process, structure), holds(path.operand), maximise=maximise)
            case CumulativeReward(discount=None, reward_bounds=()):
                if path.bound is None:
                    return self._total_reward(choice_gains(self.process, structure), maximise=maximise)
                steps = number_of_steps(path.bound) - path.strict
                if steps < 0:
                    raise PropertyError(problem_at("C<0 collects nothing", "the first bound is C<=0", path.span))
                nothing = self.optimiser.vector(~self.everywhere)
                gains = choice_gains(self.process, structure)
                return OptimalValues(
                    values=self.optimiser.iterate(nothing, steps, self.everywhere, maximise=maximise, gains=gains)
                )
            case CumulativeReward(discount=None):
                steps_bound = None if path.bound is None else StepBound(upper=path.bound, upper_strict=path.strict)
                dimensions = self._budgets(steps_bound, path.reward_bounds, path.span)
                return self._collected_within(choice_gains(self.process, structure), dimensions, maximise=maximise)
            case InstantaneousReward():
                start = self.optimiser.vector(structure.fractions(action=False))
                steps = number_of_steps(path.time)
                return OptimalValues(values=self.optimiser.iterate(start, steps, self.everywhere, maximise=maximise))
        raise UnsupportedError("of a decision process R takes F of a state formula, C without a discount, and I=k")

    def _reward_until(self, gains: list[Fraction], target: Mask, *, maximise: bool) -> OptimalValues:
        """The optimal reward before the target; infinite where it is missed under some scheduler, or under all."""
        choices = self.choices
        if maximise:
            finite = choices.certain(self.everywhere, target)
            # Infinite is what goes where the target can be missed for ever, and stays there.
            missing = choices.avoidable(self.everywhere, target)
            stay = self._first_of(choices.staying_in(missing) & missing[choices.owner])
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
            stay = self._first_of(inside)
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
        settled = np.select([earner, rich], [self._first_of(earns), around], way)
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
        found = self._solved(equation, settled)
        return OptimalValues(values=infinite_where(~finite, found.values), scheduler=found.scheduler)

    # ------------------------------------------------------------ schedulers

    def _solved(self, equation: OptimalityEquation, settled: Indices) -> OptimalValues:
        """The solution, with the scheduler: that of the policy, elsewhere what is settled, or any choice."""
        values, policy = self.optimiser.solve(equation)
        decided = equation.decisions(policy)
        decided = np.where(decided >= 0, decided, settled)
        return OptimalValues(values=values, scheduler=np.where(decided >= 0, decided, self.process.choice_starts[:-1]))

    def _first_of(self, chosen: Mask) -> Indices:
        """The first of these choices in each state, -1 where it has none; shape (n,)."""
        first = np.full(self.process.n_states, -1, dtype=np.int64)
        found = np.flatnonzero(chosen)[::-1]
        first[self.choices.owner[found]] = found
        return first


def _optimum(maximise: bool) -> Optimum:
    return "max" if maximise else "min"
