"""Decision processes: the least and greatest value of an operator over all schedulers, and who attains it.

`operators` has the meaning of each operator, by `path_probability`, `conditional` and `reward`, `optimum` which optimum
is meant, `choices` what the graph alone decides, `equation` the optimality equation with its end components contracted,
`policy_iteration` and `value_iteration` its solution, and `exact_optimiser` and `float_optimiser` the two arithmetics.
"""

from tracebridge.closedform.decision.conditional import optimum_under_condition
from tracebridge.closedform.decision.evaluation import OptimalValues
from tracebridge.closedform.decision.exact_optimiser import ExactOptimiser
from tracebridge.closedform.decision.float_optimiser import FloatOptimiser
from tracebridge.closedform.decision.operators import optimal_values
from tracebridge.closedform.decision.optimiser import Optimiser
from tracebridge.closedform.decision.optimum import optimum_of
from tracebridge.closedform.decision.quantile import optimal_quantile

__all__ = [
    "ExactOptimiser",
    "FloatOptimiser",
    "OptimalValues",
    "Optimiser",
    "optimal_quantile",
    "optimal_values",
    "optimum_of",
    "optimum_under_condition",
]
