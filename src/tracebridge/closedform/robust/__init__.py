"""Robust values: the least and greatest value of a property over all chains between the bounds of an interval chain.

`operators` has the meaning of each operator, `result` the verdict on a property, `fixed_point` proves the bounds of
unbounded operators, `possibilities` decides what the edges alone decide, and `rows` optimises over one row.
"""

from tracebridge.closedform.robust.operators import Direction, robust_values
from tracebridge.closedform.robust.result import RobustResult, RobustVerdict, robust

__all__ = ["Direction", "RobustResult", "RobustVerdict", "robust", "robust_values"]
