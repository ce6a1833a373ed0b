"""Which tool's own syntax can say a property, and how.

PRISM and Storm are asked in their own syntax when a property file goes to a user of theirs. (Tracebridge's engines ask
operator by operator, and need none of this.) What a tool lacks is rewritten where an equivalent exists
(`tracebridge.pctl.tool_syntax`); the rest is an obstacle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from tracebridge.errors import PropertyError
from tracebridge.pctl import ast
from tracebridge.pctl.finding import Finding
from tracebridge.pctl.printer import Names, Target, format_formula
from tracebridge.pctl.references import reward_bounds, structure_names
from tracebridge.pctl.tool_syntax import Conditions, path_nodes, storm_form, tool_form
from tracebridge.pctl.words import PRISM_WORDS, STORM_WORDS, is_identifier

__all__ = ["TOOLS", "ToolSupport", "portability", "reserves", "storm_form", "tool_support"]

TOOLS = {"prism": "PRISM", "storm": "Storm"}

_LARGEST_INTEGER = {"prism": 2**31 - 1, "storm": 2**63 - 1}
_WORDS = {"prism": PRISM_WORDS - {"init"}, "storm": STORM_WORDS - {"init"}}
_OPERATORS = (
    ast.Probability,
    ast.Reward,
    ast.SteadyState,
    ast.Quantified,
    ast.Quantile,
    ast.Multi,
    ast.Coalition,
    ast.Filter,
)
_STORM_FILTERS = frozenset({"min", "max", "sum", "avg", "count", "argmin", "argmax", "forall", "exists", "values"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSupport:
    """How a tool's own syntax says a formula.

    Attributes:
        syntax: as it stands, after a rewriting, or not at all. text: what the tool reads; None if nothing.
        obstacles: why not, without the tool's name.
    """

    syntax: Literal["yes", "rewritten", "no"]
    text: str | None
    obstacles: tuple[str, ...] = ()


def tool_support(formula: ast.Formula, target: Target) -> ToolSupport:
    """How PRISM's or Storm's own syntax says a formula, its names taken as they are."""
    obstacles = tuple(finding.message.partition(" ")[2] for finding in portability(formula, target))
    if obstacles:
        return ToolSupport(syntax="no", text=None, obstacles=obstacles)
    text = format_formula(formula, target=target)
    return ToolSupport(syntax="yes" if text == format_formula(formula) else "rewritten", text=text)


def portability(property: ast.Property | ast.Formula, target: Target, names: Names | None = None) -> list[Finding]:  # noqa: A002
    """What keeps a tool from taking a property in its own syntax; nothing when it takes it.

    Args:
        property: a property, or a formula, with label definitions and references to properties expanded.
        target: ``"prism"`` (4.10) or ``"storm"`` (stormpy 2).
        names: from a label, reward structure or property name to its name in the tool; None leaves them as they are.
    """
    formula = property.formula if isinstance(property, ast.Property) else property
    name = property.name if isinstance(property, ast.Property) else None
    first: dict[str, ast.Span | None] = {}  # each obstacle once, at its first place
    for message, span in chain(
        _name_obstacles(property, target, names or (lambda label: label)),
        _number_obstacles(formula, target),
        _syntax_obstacles(formula, target),
    ):
        first.setdefault(message, span)
    return [
        Finding(severity="note", message=f"{TOOLS[target]} {message}", span=span, property=name)
        for message, span in first.items()
    ]


def reserves(target: Target, name: str) -> bool:
    """Whether a tool keeps a word for itself, so that no constant can have this name."""
    return name in _WORDS[target]


_Obstacle = tuple[str, ast.Span | None]


def _name_obstacles(property: ast.Property | ast.Formula, target: Target, names: Names) -> Iterator[_Obstacle]:  # noqa: A002
    formula = property.formula if isinstance(property, ast.Property) else property
    name = property.name if isinstance(property, ast.Property) else None
    if name is not None and (problem := _name_problem(names(name), target)):
        yield f"cannot read the property name {problem}", property.span
    for node in ast.walk(formula):
        if isinstance(node, ast.Label) and (problem := _name_problem(names(node.name), target)):
            yield f"cannot read the label {problem}", node.span
        if isinstance(node, ast.Identifier) and node.name in _WORDS[target]:
            yield f"keeps the word {node.name} for itself", node.span
        for structure in structure_names(node):
            if isinstance(structure, str) and (problem := _name_problem(names(structure), target)):
                yield f"cannot read the reward structure {problem}", node.span


def _name_problem(name: str, target: Target) -> str | None:
    if not is_identifier(name):
        return f"{name!r}: a name consists of letters, digits and underscores there"
    return f"{name!r}: a reserved word there" if name in _WORDS[target] else None


def _number_obstacles(formula: ast.Formula, target: Target) -> Iterator[_Obstacle]:
    for node in ast.walk(formula):
        if isinstance(node, ast.Number) and node.integer and abs(node.value) > _LARGEST_INTEGER[target]:
            yield f"has no whole number above {_LARGEST_INTEGER[target]:,}", node.span


def _syntax_obstacles(formula: ast.Formula, target: Target) -> Iterable[_Obstacle]:
    try:
        form = tool_form(formula, target)
    except PropertyError as error:
        return [(error.problems[0].message, formula.span)]
    return _prism_obstacles(form) if target == "prism" else _storm_obstacles(form)


# ---------------------------------------------------------------- PRISM


def _prism_obstacles(formula: ast.Formula) -> Iterator[_Obstacle]:
    for node in ast.walk(formula):
        if reward_bounds(node):
            yield "has no reward bounds", node.span
        match node:
            case ast.Probability() | ast.Reward():
                yield from _prism_operator(node)
            case ast.SteadyState() if node.optimum is not None:
                yield "takes neither min nor max in S", node.span
            case ast.Quantified() if _has_step_bounds(node.path):
                yield "takes no step bounds in A and E, and a finite part of a run does not show this one", node.span
            case ast.Quantile():
                yield "has no quantile", node.span
            case ast.Multi(kind="multilex"):
                yield "has no multilex", node.span
            case ast.AutomatonPath():
                yield "has no HOA", node.span
            case ast.CumulativeReward() if node.discount is not None:
                yield "has no discount", node.span
            case _:
                pass


def _prism_operator(operator: ast.Probability | ast.Reward) -> Iterator[_Obstacle]:
    if operator.optimum is not None and operator.threshold is not None:
        yield "takes min and max only with =?", operator.span
    if operator.condition is not None:
        yield "has no conditional ||, and only unbounded conditions of P can be written as a quotient", operator.span
    if isinstance(operator, ast.Reward) and isinstance(operator.structure, ast.OnePerStep):
        yield 'has no T; define a reward of 1 a step, as in R{"steps"}', operator.span
    match operator.path:
        case ast.PathReward(path) if not _is_co_safe(path):
            yield "takes in R only X, F and U without bounds, joined by & and |, or written without negation", path.span
        case path if isinstance(operator, ast.Probability):
            if not _is_simple(operator.path) and _has_step_bounds(operator.path):
                yield "does not check step bounds inside LTL", operator.span
        case _:
            pass


def _has_step_bounds(path: ast.PathFormula) -> bool:
    return any(getattr(node, "bound", None) is not None for node in path_nodes(path))


def _is_simple(path: ast.PathFormula) -> bool:
    """Whether it is one temporal operator over formulas, possibly negated: PRISM's PCTL."""
    while isinstance(path, ast.PathNot):
        path = path.operand
    return ast.is_pctl(path)


def _is_co_safe(path: ast.PathFormula) -> bool:
    """What PRISM recognises as satisfied by a finite part of a run."""
    return all(
        isinstance(node, ast.Next | ast.Eventually | ast.Until)
        or (isinstance(node, ast.PathBinary) and node.operator in {"&", "|"})
        for node in path_nodes(path)
    ) and not _has_step_bounds(path)


# ---------------------------------------------------------------- Storm


def _storm_obstacles(formula: ast.Formula) -> Iterator[_Obstacle]:
    conditions = Conditions()
    stack: list[tuple[ast.Node, bool]] = [(formula, True)]  # a node, and whether it is asked about at the top
    while stack:
        node, on_top = stack.pop()
        yield from _storm_obstacle(node, conditions, on_top=on_top)
        below = on_top and isinstance(node, ast.Filter | ast.Multi | ast.Quantile | ast.Coalition)
        stack.extend((child, below) for child in reversed(list(ast.children(node))))


def _storm_obstacle(node: ast.Node, conditions: Conditions, *, on_top: bool) -> Iterator[_Obstacle]:
    match node:
        case ast.Probability() | ast.Reward() | ast.SteadyState():
            if node.threshold is None and not on_top:
                yield "does not calculate with operators", node.span
            if not isinstance(node, ast.SteadyState):
                yield from _storm_operator(node, on_top=on_top)
        case (
            ast.Binary(operator="=" | "!=" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "/")
            | ast.Call()
            | ast.Unary(operator="-")
        ):
            if any(part in conditions for part in ast.children(node) if isinstance(part, ast.Formula)):
                yield "takes no label and no operator inside an expression", node.span
        case ast.Conditional() if node.test in conditions:
            yield "takes no label and no operator inside an expression", node.span
        case ast.Quantified():
            yield "has no A and E, and a finite part of a run does not show this one", node.span
        case ast.Filter() | ast.Quantile() | ast.Multi() | ast.Coalition():
            yield from _storm_top_level(node, on_top=on_top)
        case _:
            pass


def _storm_top_level(
    node: ast.Filter | ast.Quantile | ast.Multi | ast.Coalition, *, on_top: bool
) -> Iterator[_Obstacle]:
    if not on_top:
        yield "takes filter, quantile, multi and << >> only at the top of a property", node.span
    match node:
        case ast.Filter():
            if node.kind not in _STORM_FILTERS:
                yield f"has no filter {node.kind}", node.span
            if node.states is not None and any(isinstance(part, _OPERATORS) for part in ast.walk(node.states)):
                yield "takes no operator in the states of a filter", node.states.span
        case ast.Quantile(operator=ast.Reward()):
            yield "has quantiles of P only", node.span
        case ast.Quantile():
            yield from _storm_quantile(node)
        case ast.Coalition(opponents=True):
            yield "has no [[ ]]", node.span
        case _:
            pass


def _storm_quantile(node: ast.Quantile) -> Iterator[_Obstacle]:
    names = {variable.name for variable in node.variables}
    for name in names & _WORDS["storm"]:
        yield f"keeps the word {name} for itself", node.span
    for part in ast.walk(node.operator):
        if isinstance(part, ast.Binary | ast.Unary | ast.Call | ast.Conditional) and any(
            isinstance(inner, ast.Identifier) and inner.name in names for inner in ast.walk(part)
        ):
            yield "takes the variable of a quantile only alone, as the bound", part.span
            return


def _storm_operator(operator: ast.Probability | ast.Reward, *, on_top: bool) -> Iterator[_Obstacle]:
    path, condition = operator.path, operator.condition
    if isinstance(operator, ast.Reward):
        if isinstance(operator.structure, ast.Formula):
            yield "does not count reward structures", operator.span
        if isinstance(operator.structure, ast.OnePerStep) and (
            condition is not None or not isinstance(path, ast.ReachReward)
        ):
            yield "takes in T only F", operator.span
        if isinstance(path, ast.PathReward):
            yield "takes in R only F without bounds, of a condition on states", path.span
        if isinstance(path, ast.CumulativeReward) and path.reward_bounds:
            yield from _storm_reward_bounds(path, on_top=on_top, span=operator.span)
            if path.discount is not None:
                yield "takes no discount together with a reward bound", operator.span
    if condition is not None and not all(_is_reachability(side) for side in (path, condition)):
        yield "takes a condition only as F a || F b, both without bounds", operator.span
    for node in path_nodes(path) if isinstance(path, ast.PathFormula) else ():
        if reward_bounds(node):
            if node is not path or not ast.is_pctl(path):
                yield "takes reward bounds in one F or U over conditions on states", operator.span
            else:
                yield from _storm_reward_bounds(node, on_top=on_top, span=operator.span)
        elif isinstance(node, ast.Eventually | ast.Until) and node.bound is not None and node.bound.upper is None:
            yield "does not check a step bound without an upper end", node.span or operator.span
        elif (
            isinstance(node, ast.Until) and node.left != ast.Truth(True) and node.bound is not None and node.bound.lower
        ):
            yield "misreads U within an interval of steps", node.span or operator.span


def _storm_reward_bounds(node: ast.Node, *, on_top: bool, span: ast.Span | None) -> Iterator[_Obstacle]:
    if not on_top:
        yield "checks reward bounds only for the initial state, not inside another operator", span
    steps = getattr(node, "bound", None)
    ends = [bound.bound for bound in reward_bounds(node)]
    if isinstance(node, ast.Eventually | ast.Until) and steps is not None:
        ends.append(steps)
    if any(end.lower is not None and end.upper is not None for end in ends):
        yield "takes beside reward bounds, and in them, only bounds with one end", span


def _is_reachability(path: ast.Node) -> bool:
    match path:
        case ast.Eventually():
            return ast.is_pctl(path) and path.bound is None and not path.reward_bounds
        case _:
            return isinstance(path, ast.ReachReward)
