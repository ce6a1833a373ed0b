"""How PRISM is asked about an operator: in PRISM's own syntax, with sets of states ``a0``, ``a1``, ... as operands.

PRISM has every path operator, each with every step bound, so that little is rewritten: the operands, which become
labels, a reward structure, which is the only one of the model that is sent, and `tracebridge.pctl.tool_syntax`. What
PRISM's language lacks is told by `tracebridge.pctl.portability`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tracebridge.checking.operands import signs_of
from tracebridge.closedform.bounds import number_of_steps, step_window
from tracebridge.errors import UnsupportedError
from tracebridge.pctl import ast
from tracebridge.pctl.portability import portability
from tracebridge.pctl.printer import format_formula
from tracebridge.pctl.rewrite import rebuild
from tracebridge.pctl.trampoline import Recursion, run

if TYPE_CHECKING:
    from tracebridge.pctl.ast import Optimum, StepBound

Kind = Literal["steps", "equations", "automaton", "long run", "graph"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrismQuery:
    """What PRISM is asked for an operator.

    Attributes:
        text: PRISM's formula; ``a0`` stands for the first operand, and so on. operands: the sets of states.
        kind: what the answer takes: so many steps (`steps`), equations, those of an automaton, a long-run average, or
            the graph alone, which tells truth values.
        steps: that are looked ahead; also before the equations of a lower bound.
        complemented: PRISM computes one minus it. path: the one path operator of PCTL that it is about, without
            negations; None otherwise.
        is_probability: the value lies in [0, 1].
        exact: PRISM's exact engine takes it (4.10: F, U, G, W and R without bounds, rewards until F, long runs).
    """

    text: str
    operands: tuple[ast.Formula, ...]
    kind: Kind
    steps: int = 0
    complemented: bool = False
    path: ast.PathFormula | None = None
    is_probability: bool = True
    exact: bool = False


def parts_of(operator: ast.Operator) -> tuple[ast.Probability, ast.Probability] | None:
    """The two probabilities whose quotient a conditional one is; None for any other operator."""
    if not isinstance(operator, ast.Probability) or operator.condition is None:
        return None
    both = ast.PathBinary("&", operator.path, operator.condition)
    return ast.Probability(both), ast.Probability(operator.condition)


def formulate(operator: ast.Operator, optimum: Optimum | None = None) -> PrismQuery:
    """The query for an operator that is no quotient of two (`parts_of`); its threshold is left out.

    Args:
        optimum: which one over the choices of a decision process is asked for; a chain leaves nothing to choose.

    Raises:
        PropertyError: a bound that is no number of steps. UnsupportedError: PRISM's language does not have it.
    """
    plain = _without_threshold(operator, optimum)
    operands = tuple([operand for operand, _ in signs_of(plain).values()])
    labels = {id(operand): ast.Label(f"a{i}") for i, operand in enumerate(operands)}
    asked: ast.Operator = run(_with_labels(plain, labels))
    if isinstance(asked, ast.Reward):  # it is the only structure of the model that PRISM is given
        asked = replace(asked, structure=None)
    _refuse_what_prism_lacks(asked)
    query = PrismQuery(text=format_formula(asked, target="prism"), operands=operands, kind="equations")
    match plain:
        case ast.SteadyState():
            return replace(query, kind="long run", exact=True)
        case ast.Quantified():
            return replace(query, kind="graph")
        case ast.Probability(path):
            return _about_path(query, path)
        case ast.Reward(path):
            return _about_reward(replace(query, is_probability=False), path)
    raise UnsupportedError(f"PRISM is not asked about {type(operator).__name__}")


def decided_zero() -> str:
    """Where the probability of ``a1 U a0`` is zero, which PRISM tells by the graph."""
    return format_formula(_never(_until("a1", "a0")), target="prism")


def decided_one() -> str:
    """Where it is one: no state from which a0 cannot be reached can be reached on the way (Baier, Katoen: 10.1.2)."""
    on_the_way = ast.Binary("&", ast.Label("a1"), ast.Unary("!", ast.Label("a0")))
    return format_formula(_never(ast.Until(on_the_way, _never(_until("a1", "a0")))), target="prism")


def _until(stay: str, goal: str) -> ast.Until:
    return ast.Until(ast.Label(stay), ast.Label(goal))


def _never(path: ast.PathFormula) -> ast.Formula:
    return ast.Unary("!", ast.Quantified("E", path))


def _without_threshold(operator: ast.Operator, optimum: Optimum | None) -> ast.Operator:
    match operator:
        case ast.Probability() | ast.Reward() | ast.SteadyState():
            return replace(operator, threshold=None, optimum=optimum)
        case ast.Quantified(path=path) if not ast.is_pctl(path):
            raise UnsupportedError("PRISM has A and E of one path operator only")
        case ast.Quantified(path=path) if getattr(path, "bound", None) is not None:
            raise UnsupportedError("PRISM takes no step bounds in A and E")
        case ast.Multi():
            raise UnsupportedError("several objectives are for models with choices; a chain has none")
        case ast.Coalition():
            raise UnsupportedError("coalitions of players are for games")
    return operator


def _with_labels(node: Any, labels: dict[int, ast.Label]) -> Recursion[Any]:
    """The operator with its operands replaced; what is inside them is not looked at."""
    if id(node) in labels:
        return labels[id(node)]
    return (yield from rebuild(node, lambda part: _with_labels(part, labels)))


def _refuse_what_prism_lacks(asked: ast.Operator) -> None:
    findings = portability(asked, "prism")
    if findings:
        raise UnsupportedError("; ".join(finding.message for finding in findings))


def _about_path(query: PrismQuery, path: ast.PathFormula) -> PrismQuery:
    complemented = False
    while isinstance(path, ast.PathNot):  # PRISM's PCTL takes negations of a path, and computes one minus it
        path, complemented = path.operand, not complemented
    if isinstance(path, ast.Formula) or not ast.is_pctl(path):
        return replace(query, kind="automaton")
    if isinstance(path, ast.Next):
        return replace(query, kind="steps", steps=1, complemented=complemented)
    if isinstance(path, ast.Globally | ast.WeakUntil | ast.Release):
        complemented = not complemented
    query = replace(query, complemented=complemented, path=path)
    bound: StepBound | None = getattr(path, "bound", None)
    window = step_window(bound)
    if window.empty:
        raise UnsupportedError("PRISM refuses an interval in which no step lies")
    if window.last is not None:
        return replace(query, kind="steps", steps=window.last)
    return replace(query, steps=window.first, exact=bound is None)


def _about_reward(query: PrismQuery, path: ast.RewardPath) -> PrismQuery:
    match path:
        case ast.ReachReward():
            return replace(query, exact=True)
        case ast.LongRunReward():
            return replace(query, kind="long run", exact=True)
        case ast.InstantaneousReward(time):
            return replace(query, kind="steps", steps=number_of_steps(time))
        case ast.CumulativeReward(bound, strict) if bound is not None:
            steps = number_of_steps(bound) - strict
            if steps < 0:
                raise UnsupportedError("PRISM refuses C<0, which collects nothing")
            return replace(query, kind="steps", steps=steps)
        case ast.PathReward():
            return replace(query, kind="automaton")
    return query
