"""The least and greatest value of each operator over all schedulers of a decision process, one value a state.

What the graph alone decides (probability zero, probability one, infinite reward) is decided there, first, and is exact
in any arithmetic. Operators without a step bound have an optimal scheduler that remembers nothing; it is given with the
value (`evaluation`). For step bounds the best choice depends on how many steps are left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracebridge.closedform.branching import satisfied_by_runs
from tracebridge.closedform.decision.conditional import optimum_under_condition
from tracebridge.closedform.decision.evaluation import OptimalValues
from tracebridge.closedform.decision.path_probability import PathProbability
from tracebridge.closedform.decision.reward import ExpectedReward
from tracebridge.errors import UnsupportedError
from tracebridge.pctl.ast import Probability, Quantified, Reward
from tracebridge.pctl.printer import format_formula

if TYPE_CHECKING:
    from tracebridge.closedform.decision.optimiser import Optimiser
    from tracebridge.closedform.until import Holds
    from tracebridge.pctl.ast import Operator


def optimal_values(optimiser: Optimiser, operator: Operator, holds: Holds) -> OptimalValues:
    """The optimum of an operator in every state; its threshold is looked at for the direction alone.

    ``A`` and ``E`` are about all runs under all schedulers; their value is 1 where they hold and 0 elsewhere.

    Args:
        optimiser: doubles or rationals, with the process. operator: step bounds are already numbers.
        holds: the states where an operand is true, shape (n,).

    Raises:
        PropertyError: for an operator that does not say which optimum is meant (see `optimum_of`), a bound that is no
            number of its kind, and an unknown reward structure.
        UnsupportedError: for other operators than ``P`` of a PCTL path, without bounds also under a condition, and
            ``R`` of ``F``, ``C`` and ``I=k``, and if it would be too much work.
        EngineError: the chain under the optimal scheduler has another value.
    """
    match operator:
        case Quantified():
            runs = satisfied_by_runs(optimiser.process.edges, operator, holds)
            return OptimalValues(values=optimiser.vector(runs))
        case Probability(condition=None):
            return PathProbability(optimiser).optimum(operator, holds)
        case Probability():
            return OptimalValues(values=optimum_under_condition(optimiser, operator, holds))
        case Reward(condition=None):
            return ExpectedReward(optimiser).optimum(operator, holds)
        case Reward():
            raise UnsupportedError("of a decision process R is not evaluated under a condition")
    raise UnsupportedError(f"of a decision process only P, R, A and E are evaluated, not {format_formula(operator)}")
