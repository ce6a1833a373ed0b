"""Types within path formulas and reward paths: operands are truth values, and bounds are constant numbers."""

from __future__ import annotations

from tracebridge.pctl import ast
from tracebridge.pctl.operand_types import OperandTypes


def check_path(path: ast.PathFormula | ast.RewardPath, types: OperandTypes) -> None:
    """Refuse the operands and bounds that have the wrong type; what stands below the path has its types."""
    match path:
        case ast.Next():
            _operand(path.operand, path.letter, types)
        case ast.Eventually() | ast.Globally():
            _operand(path.operand, path.letter, types)
            _bounds(path.bound, path.reward_bounds, types)
        case ast.Until() | ast.WeakUntil() | ast.Release():
            _operand(path.left, path.letter, types)
            _operand(path.right, path.letter, types)
            _bounds(path.bound, path.reward_bounds, types)
        case ast.PathNot():
            _operand(path.operand, "!", types)
        case ast.PathBinary():
            _operand(path.left, path.operator, types)
            _operand(path.right, path.operator, types)
        case ast.AutomatonPath():
            for proposition in path.propositions:
                types.truth(proposition.formula, f'the proposition "{proposition.name}"')
        case ast.ReachReward():
            types.truth(path.operand, "F")
        case ast.CumulativeReward():
            if path.bound is not None:
                types.steps(path.bound, "the bound of C")
            if path.discount is not None:
                types.constant_number(path.discount, "a discount")
            _bounds(None, path.reward_bounds, types)
        case ast.InstantaneousReward():
            types.steps(path.time, "the time of I")
        case ast.PathReward() | ast.LongRunReward():
            return


def _operand(operand: ast.Formula | ast.PathFormula, consumer: str, types: OperandTypes) -> None:
    """An operand that may be a path formula."""
    if isinstance(operand, ast.Formula):
        types.truth(operand, consumer)


def _bounds(steps: ast.StepBound | None, rewards: tuple[ast.RewardBound, ...], types: OperandTypes) -> None:
    if steps is not None:
        for end in steps.ends():
            types.steps(end, "a step bound")
    for reward in rewards:
        for end in reward.bound.ends():
            types.constant_number(end, "a reward bound")
