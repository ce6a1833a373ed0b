"""From the grammar's reductions to the typed tree, one call per rule, bottom-up and without recursion.

Each method gets the children of its rule: tokens, and what earlier calls returned. What the grammar admits and the
language does not is refused here with a `Rejection`, which the parser turns into an error with the source line.
"""

from tracebridge.pctl.tree_builder.expressions import ExpressionRules
from tracebridge.pctl.tree_builder.files import FileRules, ParsedProperty
from tracebridge.pctl.tree_builder.operators import OperatorRules
from tracebridge.pctl.tree_builder.paths import PathRules
from tracebridge.pctl.tree_builder.rejection import Rejection
from tracebridge.pctl.tree_builder.rewards import RewardPathRules

__all__ = ["ParsedProperty", "Rejection", "TreeBuilder"]


class TreeBuilder(FileRules, PathRules, ExpressionRules, OperatorRules, RewardPathRules):
    """The callbacks of all rules of the grammar; without state, so that one instance serves every parse."""
