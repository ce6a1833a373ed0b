"""What evaluating an operator over a decision process takes, whichever it is: schedulers, budgets, and a second look.

Where an optimal scheduler remembers nothing, the chain that it makes of the process is evaluated as any chain: the two
values must be the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from tracebridge.closedform.budget import budgets_of
from tracebridge.closedform.decision.choice_rewards import choice_gains, process_reward
from tracebridge.closedform.decision.optimum import optimum_of
from tracebridge.closedform.enclosure import EnclosureVector
from tracebridge.closedform.modelcheck import evaluate_operator
from tracebridge.errors import EngineError
from tracebridge.pctl.ast import Label, Probability, Reward

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracebridge.closedform.budget import Budget
    from tracebridge.closedform.decision.equation import OptimalityEquation
    from tracebridge.closedform.decision.optimiser import Optimiser
    from tracebridge.closedform.decision.unfolding import UnfoldedProcess
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Formula, RewardBound, Span, StepBound

    Mask = NDArray[np.bool_]
    Indices = NDArray[np.int64]

Asked = TypeVar("Asked", Probability, Reward)


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


class Evaluation(ABC, Generic[Asked]):
    """One operator over one process."""

    def __init__(self, optimiser: Optimiser) -> None:
        self.optimiser = optimiser
        self.process = optimiser.process
        self.choices = optimiser.choices
        self.everywhere = np.ones(self.process.n_states, dtype=np.bool_)

    def optimum(self, operator: Asked, holds: Holds) -> OptimalValues:
        """The optimum that the operator asks for, confirmed by the chain under its scheduler where it has one.

        Raises:
            PropertyError, UnsupportedError: see `tracebridge.closedform.decision.operators.optimal_values`.
        """
        maximise = optimum_of(operator) == "max"
        found = self._evaluate(operator, holds, maximise=maximise)
        if found.scheduler is None:
            return found
        return _confirmed(self.optimiser, operator, holds, found, maximise=maximise)

    @abstractmethod
    def _evaluate(self, operator: Asked, holds: Holds, *, maximise: bool) -> OptimalValues:
        """The optimum, with the scheduler without memory where there is one."""

    def budgets(self, bound: StepBound | None, reward_bounds: Sequence[RewardBound], span: Span | None) -> list[Budget]:
        """The bounds of an operator, with what each choice spends."""

        def amounts(structure: str | None) -> list[Fraction]:
            return choice_gains(self.process, process_reward(self.process, structure, span))

        return budgets_of(self.process.n_choices, amounts, bound, reward_bounds)

    def in_unfolded(self, wide: UnfoldedProcess, operator: Asked) -> OptimalValues:
        """An operator of the unfolded process, in the states of this one; what is best there depends on the budget."""

        def holds(operand: Formula) -> Mask:
            assert isinstance(operand, Label)  # noqa: S101 - one of its own
            return wide.process.label(operand.name)

        found = type(self)(self.optimiser.over(wide.process)).optimum(operator, holds)
        return OptimalValues(values=found.values.take(wide.whole))

    def solved(self, equation: OptimalityEquation, settled: Indices) -> OptimalValues:
        """The solution, with the scheduler: that of the policy, elsewhere what is settled, or any choice."""
        values, policy = self.optimiser.solve(equation)
        decided = equation.decisions(policy)
        decided = np.where(decided >= 0, decided, settled)
        return OptimalValues(values=values, scheduler=np.where(decided >= 0, decided, self.process.choice_starts[:-1]))

    def first_of(self, chosen: Mask) -> Indices:
        """The first of these choices in each state, -1 where it has none; shape (n,)."""
        first = np.full(self.process.n_states, -1, dtype=np.int64)
        found = np.flatnonzero(chosen)[::-1]
        first[self.choices.owner[found]] = found
        return first


def _confirmed(
    optimiser: Optimiser, operator: Probability | Reward, holds: Holds, found: OptimalValues, *, maximise: bool
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
