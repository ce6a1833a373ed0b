"""Which tool's own syntax can say a property, and how.

PRISM and Storm are asked in their own syntax when a property file goes to a user of theirs. (Tracebridge's engines ask
operator by operator, and need none of this.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from tracebridge.pctl.ast import (
    Binary,
    Call,
    Conditional,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    Node,
    Number,
    Probability,
    Property,
    Release,
    Reward,
    Span,
    SteadyState,
    Truth,
    Unary,
    Until,
    WeakUntil,
    children,
    walk,
)
from tracebridge.pctl.finding import Finding
from tracebridge.pctl.printer import Names, Target, negation
from tracebridge.pctl.rewrite import rewrite
from tracebridge.pctl.words import PRISM_WORDS, STORM_WORDS, is_identifier

TOOLS = {"prism": "PRISM", "storm": "Storm"}

_LARGEST_INTEGER = {"prism": 2**31 - 1, "storm": 2**63 - 1}
_LARGEST_FORMULA = 10_000
_WORDS = {"prism": PRISM_WORDS - {"init"}, "storm": STORM_WORDS - {"init"}}


def portability(property: Property | Formula, target: Target, names: Names | None = None) -> list[Finding]:  # noqa: A002
    """What keeps a tool from taking a property in its own syntax; nothing when it takes it.

    Args:
        property: a property, or a formula, with label definitions expanded.
        target: ``"prism"`` (4.10) or ``"storm"`` (stormpy 2).
        names: from a label, reward structure or property name to its name in the tool; None leaves them as they are.
    """
    formula = property.formula if isinstance(property, Property) else property
    name = property.name if isinstance(property, Property) else None
    first: dict[str, Span | None] = {}  # each obstacle once, at its first place
    for message, span in chain(
        _name_obstacles(property, target, names or (lambda label: label)),
        _number_obstacles(formula, target),
        _storm_obstacles(formula) if target == "storm" else _prism_obstacles(formula),
    ):
        first.setdefault(message, span)
    return [
        Finding(severity="note", message=f"{TOOLS[target]} {message}", span=span, property=name)
        for message, span in first.items()
    ]


def reserves(target: Target, name: str) -> bool:
    """Whether a tool keeps a word for itself, so that no constant can have this name."""
    return name in _WORDS[target]


def storm_form(formula: Formula) -> Formula:
    """The formula without what Storm's state formulas lack: ``=>``, ``<=>``, ``? :`` and ``=`` between truth values."""

    def change(node: Formula) -> Formula:
        match node:
            case Binary(operator="=>"):
                return Binary("|", negation(node.left), node.right, span=node.span)
            case Binary(operator="<=>"):
                return _equivalence(node.left, node.right, node.span)
            case Binary(operator="=") if _is_condition(node.left) or _is_condition(node.right):
                return _equivalence(node.left, node.right, node.span)
            case Binary(operator="!=") if _is_condition(node.left) or _is_condition(node.right):
                return _equivalence(node.left, negation(node.right), node.span)
            case Conditional() if _is_condition(node.then) or _is_condition(node.otherwise):
                yes, no = Binary("&", node.test, node.then), Binary("&", negation(node.test), node.otherwise)
                return Binary("|", yes, no, span=node.span)
            case _:
                return node

    return rewrite(formula, change)


def _equivalence(left: Formula, right: Formula, span: Span | None) -> Formula:
    both, neither = Binary("&", left, right), Binary("&", negation(left), negation(right))
    return Binary("|", both, neither, span=span)


def _is_condition(formula: Formula) -> bool:
    """Whether a formula is a truth value made of labels and operators, which Storm does not take inside expressions."""
    match formula:
        case Label():
            return True
        case Probability() | Reward() | SteadyState():
            return formula.threshold is not None
        case Unary():
            return _is_condition(formula.operand)
        case Binary(operator="&" | "|" | "=>" | "<=>"):
            return _is_condition(formula.left) or _is_condition(formula.right)
        case Conditional():
            return _is_condition(formula.then) or _is_condition(formula.otherwise)
        case _:
            return False


_Obstacle = tuple[str, Span | None]


def _name_obstacles(property: Property | Formula, target: Target, names: Names) -> Iterator[_Obstacle]:  # noqa: A002
    formula = property.formula if isinstance(property, Property) else property
    name = property.name if isinstance(property, Property) else None
    if name is not None and (problem := _name_problem(names(name), target)):
        yield f"cannot read the property name {problem}", property.span
    for node in walk(formula):
        if isinstance(node, Label) and (problem := _name_problem(names(node.name), target)):
            yield f"cannot read the label {problem}", node.span
        if isinstance(node, Identifier) and node.name in _WORDS[target]:
            yield f"keeps the word {node.name} for itself", node.span
        if isinstance(node, Reward) and node.structure and (problem := _name_problem(names(node.structure), target)):
            yield f"cannot read the reward structure {problem}", node.span


def _name_problem(name: str, target: Target) -> str | None:
    if not is_identifier(name):
        return f"{name!r}: a name consists of letters, digits and underscores there"
    return f"{name!r}: a reserved word there" if name in _WORDS[target] else None


def _number_obstacles(formula: Formula, target: Target) -> Iterator[_Obstacle]:
    for node in walk(formula):
        if isinstance(node, Number) and node.integer and abs(node.value) > _LARGEST_INTEGER[target]:
            yield f"has no whole number above {_LARGEST_INTEGER[target]:,}", node.span


def _prism_obstacles(formula: Formula) -> Iterator[_Obstacle]:
    for node in walk(formula):
        if isinstance(node, Probability | Reward) and node.optimum is not None and node.threshold is not None:
            yield "takes min and max only with =?", node.span


def _storm_obstacles(formula: Formula) -> Iterator[_Obstacle]:
    translated = storm_form(formula)
    if next(islice(walk(translated), _LARGEST_FORMULA, None), None) is not None:
        yield "has no <=>, and without it the formula is too large", formula.span
        return
    stack: list[tuple[Node, bool]] = [(translated, True)]  # a formula, and whether a query may stand here
    while stack:
        node, query_allowed = stack.pop()
        yield from _storm_obstacle(node, query_allowed=query_allowed)
        stack.extend((child, False) for child in reversed(list(children(node))))


def _storm_obstacle(node: Node, *, query_allowed: bool) -> Iterator[_Obstacle]:
    match node:
        case Probability() | Reward() | SteadyState():
            if node.threshold is None and not query_allowed:
                yield "does not calculate with operators", node.span
        case (
            Binary(operator="=" | "!=" | "<" | "<=" | ">" | ">=" | "+" | "-" | "*" | "/") | Call() | Unary(operator="-")
        ):
            if any(_is_condition(part) for part in children(node) if isinstance(part, Formula)):
                yield "takes no label and no operator inside an expression", node.span
        case Conditional():
            if _is_condition(node.test):
                yield "takes no label and no operator inside an expression", node.span
        case Eventually() | Globally() | Until() | WeakUntil() | Release():
            if node.bound is not None and node.bound.upper is None:
                yield "does not check a step bound without an upper end", node.span
        case CumulativeReward() | InstantaneousReward() | Truth():
            pass
