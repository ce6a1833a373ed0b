"""Walking through trees: what stands below a node, and which formulas a path is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tracebridge.pctl.ast.expressions import Binary, Call, Conditional, Unary
from tracebridge.pctl.ast.nodes import Formula, Node
from tracebridge.pctl.ast.operators import (
    Coalition,
    Filter,
    Multi,
    Probability,
    Quantified,
    Quantile,
    Reward,
    SteadyState,
)
from tracebridge.pctl.ast.paths import (
    AutomatonPath,
    Eventually,
    Globally,
    Next,
    PathBinary,
    PathFormula,
    PathNot,
    Release,
    Until,
    WeakUntil,
)
from tracebridge.pctl.ast.rewards import (
    CumulativeReward,
    InstantaneousReward,
    LongRunReward,
    PathReward,
    ReachReward,
    RewardPath,
)

if TYPE_CHECKING:
    from tracebridge.pctl.ast.bounds import RewardBound, StepBound


def children(node: Node) -> Iterator[Node]:
    """The direct subtrees of a node, left to right, thresholds and bounds included."""
    match node:
        case Eventually() | Globally():
            yield from _ends(node.bound, node.reward_bounds)
            yield node.operand
        case Unary() | Next() | ReachReward() | PathNot():
            yield node.operand
        case SteadyState():
            if node.threshold:
                yield node.threshold.value
            yield node.operand
        case Binary() | PathBinary():
            yield node.left
            yield node.right
        case Until() | WeakUntil() | Release():
            yield node.left
            yield from _ends(node.bound, node.reward_bounds)
            yield node.right
        case Conditional():
            yield from (node.test, node.then, node.otherwise)
        case Call():
            yield from node.arguments
        case Probability() | Reward():
            if isinstance(node, Reward) and isinstance(node.structure, Formula):
                yield node.structure
            if node.threshold:
                yield node.threshold.value
            yield node.path
            if node.condition is not None:
                yield node.condition
        case Quantified() | PathReward():
            yield node.path
        case Quantile() | Coalition():
            yield node.operator
        case Multi():
            yield from node.objectives
        case Filter():
            yield node.operand
            if node.states is not None:
                yield node.states
        case AutomatonPath():
            yield from (proposition.formula for proposition in node.propositions)
        case CumulativeReward():
            yield from (part for part in (node.bound, node.discount) if part is not None)
            yield from _ends(None, node.reward_bounds)
        case InstantaneousReward():
            yield node.time
        case _:
            return


def _ends(steps: StepBound | None, rewards: tuple[RewardBound, ...]) -> Iterator[Formula]:
    if steps is not None:
        yield from steps.ends()
    for reward in rewards:
        yield from reward.bound.ends()


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, parents first."""
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(list(children(current))))


def is_pctl(path: PathFormula) -> bool:
    """Whether a path formula is one temporal operator over formulas; else it is one of LTL, or an automaton."""
    match path:
        case Next() | Eventually() | Globally():
            return isinstance(path.operand, Formula)
        case Until() | WeakUntil() | Release():
            return isinstance(path.left, Formula) and isinstance(path.right, Formula)
        case _:
            return False


def state_formulas(path: PathFormula | RewardPath) -> Iterator[Formula]:
    """The formulas that a path is about, left to right: its operands, and those of the path formulas inside it.

    Step bounds and other constants are not among them.
    """
    stack: list[Node] = [path]
    while stack:
        node = stack.pop()
        match node:
            case Next() | Eventually() | Globally() | PathNot() | ReachReward():
                stack.append(node.operand)
            case Until() | WeakUntil() | Release() | PathBinary():
                stack += [node.right, node.left]
            case PathReward():
                stack.append(node.path)
            case AutomatonPath():
                stack += [proposition.formula for proposition in reversed(node.propositions)]
            case CumulativeReward() | InstantaneousReward() | LongRunReward():
                continue
            case _:
                yield node


def state_operand(operand: Formula | PathFormula) -> Formula:
    """The operand of a temporal operator of PCTL (`is_pctl`), which is a formula.

    Raises:
        TypeError: it is a path formula.
    """
    if not isinstance(operand, Formula):
        raise TypeError(f"{type(operand).__name__} is a path formula, not a formula")
    return operand
