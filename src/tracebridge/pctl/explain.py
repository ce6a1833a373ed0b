"""A formula read aloud, in plain language."""

from __future__ import annotations

from tracebridge.pctl.ast import (
    Binary,
    Call,
    Conditional,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    InstantaneousReward,
    Label,
    Next,
    Number,
    Operator,
    PathFormula,
    Probability,
    Property,
    ReachReward,
    Release,
    Reward,
    RewardPath,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
)
from tracebridge.pctl.printer import format_formula, quote

_COMPARISONS = {"<": "less than", "<=": "at most", ">": "more than", ">=": "at least"}
_ARITHMETIC = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}
_RELATIONS = {
    "=": "equals",
    "!=": "differs from",
    "<": "is less than",
    "<=": "is at most",
    ">": "is more than",
    ">=": "is at least",
}
_START, _THERE = "from the start", "from there"


def explain(formula: Formula | Property) -> str:
    """Say in plain language what a formula asks for or demands.

    A threshold reads as a statement ("the probability, from the start, that ... is at least 0.72"), a query as the
    number that it asks for. Operators inside a formula are judged in the state that is reached ("from there").
    """
    return _say(formula.formula if isinstance(formula, Property) else formula, _START)


def _say(formula: Formula, start: str) -> str:
    """A truth value as a clause, or a number as a noun phrase."""
    match formula:
        case Truth():
            return "it is always so" if formula.value else "it is never so"
        case Label():
            return f"{quote(formula.name)} holds"
        case Unary(operator="!", operand=Label() as label):
            return f"{quote(label.name)} does not hold"
        case Unary(operator="!"):
            return f"it is not the case that {_say_part(formula.operand, start)}"
        case Binary():
            return _binary(formula, start)
        case Conditional():
            test, then = _say_part(formula.test, start), _say_part(formula.then, start)
            return f"if {test}, then {then}, otherwise {_say_part(formula.otherwise, start)}"
        case Call():
            return _call(formula, start)
        case Probability() | Reward() | SteadyState():
            return _operator(formula, start)
        case _:
            return format_formula(formula)


def _say_part(formula: Formula, start: str) -> str:
    """The same, in parentheses where it would run into its surroundings."""
    text = _say(formula, start)
    simple = isinstance(formula, Label | Truth | Number) or (
        isinstance(formula, Unary) and isinstance(formula.operand, Label | Number)
    )
    return text if simple or " " not in text else f"({text})"


def _binary(formula: Binary, start: str) -> str:
    left, right = _say_part(formula.left, start), _say_part(formula.right, start)
    match formula.operator:
        case "&" | "|":
            word = "and" if formula.operator == "&" else "or"
            if isinstance(formula.left, Binary) and formula.left.operator == formula.operator:
                left = _say(formula.left, start)
            return f"{left} {word} {right}"
        case "=>":
            return f"if {left}, then {right}"
        case "<=>":
            return f"{left} exactly when {right}"
        case "+" | "-" | "*" | "/":
            return f"{left} {_ARITHMETIC[formula.operator]} {right}"
        case _:
            return f"{left} {_RELATIONS[formula.operator]} {right}"


def _call(formula: Call, start: str) -> str:
    arguments = [_say_part(argument, start) for argument in formula.arguments]
    match formula.function:
        case "min" | "max":
            word = "smallest" if formula.function == "min" else "largest"
            return f"the {word} of {', '.join(arguments[:-1])} and {arguments[-1]}"
        case "floor" | "ceil" | "round":
            word = {"floor": "rounded down", "ceil": "rounded up", "round": "rounded"}[formula.function]
            return f"{arguments[0]} {word}"
        case "pow":
            return f"{arguments[0]} to the power {arguments[1]}"
        case "mod":
            return f"the remainder of {arguments[0]} divided by {arguments[1]}"
        case "log":
            return f"the logarithm of {arguments[0]} to the base {arguments[1]}"


def _operator(operator: Operator, start: str) -> str:
    which = {"min": "smallest ", "max": "largest ", None: ""}
    match operator:
        case Probability():
            noun = f"the {which[operator.optimum]}probability, {start}, that {_path(operator.path)}"
        case Reward():
            noun = _reward(operator.path, which[operator.optimum], operator.structure, start)
        case SteadyState():
            noun = f"the long-run fraction of steps, {start}, in which {_say(operator.operand, _THERE)}"
    return f"{noun}{_threshold(operator.threshold)}"


def _threshold(threshold: Threshold | None) -> str:
    if threshold is None:
        return ""
    return f" is {_COMPARISONS[threshold.comparison]} {format_formula(threshold.value)}"


def _path(path: PathFormula) -> str:
    match path:
        case Next():
            return f"after one step, {_say_part(path.operand, _THERE)}"
        case Eventually():
            if path.bound is not None and path.bound.exact:
                return f"{_when(path.bound)}, {_say_part(path.operand, _THERE)}"
            return f"{_reached(path.operand)}{_spaced(path.bound)}"
        case Globally():
            return f"{_always(path.bound)}, {_say_part(path.operand, _THERE)}"
        case Until():
            before = _say_part(path.left, _THERE)
            reached = f"{_reached(path.right)}{_spaced(path.bound)}"
            return reached if path.left == Truth(True) else f"{reached}, and at every step before that, {before}"
        case Release():
            left, right = _say_part(path.left, _THERE), _say_part(path.right, _THERE)
            scope = f", counting only steps {_range(path.bound)}" if path.bound else ""
            return f"at every step, {right}, up to and including the first step at which {left}, or forever{scope}"
        case _:
            left, right = _say_part(path.left, _THERE), _say_part(path.right, _THERE)
            scope = f", counting only steps {_range(path.bound)}" if path.bound else ""
            return f"at every step, {left}, until {right} or forever{scope}"


def _reached(formula: Formula) -> str:
    if isinstance(formula, Label):
        return f"{quote(formula.name)} is reached"
    return f"a state is reached in which {_say_part(formula, _THERE)}"


def _spaced(bound: StepBound | None) -> str:
    return f" {_when(bound)}" if bound else ""


def _when(bound: StepBound) -> str:
    if bound.exact and bound.upper is not None:
        return f"after exactly {_steps(bound.upper)}"
    if bound.lower is None and bound.upper is not None:
        return f"{'in fewer than' if bound.upper_strict else 'within'} {_steps(bound.upper)}"
    return f"at a step {_range(bound)}"


def _always(bound: StepBound | None) -> str:
    if bound is None:
        return "at every step"
    if bound.exact and bound.upper is not None:
        return f"after exactly {_steps(bound.upper)}"
    if bound.lower is None and bound.upper is not None:
        return f"at every step {'before' if bound.upper_strict else 'up to'} step {format_formula(bound.upper)}"
    return f"at every step {_range(bound)}"


def _range(bound: StepBound) -> str:
    lower = format_formula(bound.lower) if bound.lower is not None else "0"
    upper = format_formula(bound.upper) if bound.upper is not None else None
    if upper is None:
        return f"{'after' if bound.lower_strict else 'from'} step {lower}{' on' * (not bound.lower_strict)}"
    if bound.exact:
        return f"at step {upper}"
    if bound.lower is None:
        return f"{'before' if bound.upper_strict else 'up to'} step {upper}"
    return f"from step {lower} to step {upper}"


def _steps(formula: Formula) -> str:
    text = format_formula(formula)
    return f"{text} step" if text == "1" else f"{text} steps"


def _reward(path: RewardPath, which: str, structure: str | None, start: str) -> str:
    reward = f"reward {quote(structure)}" if structure is not None else "reward"
    match path:
        case ReachReward():
            return f"the {which}expected {reward}, {start}, collected until {_reached(path.operand)}"
        case CumulativeReward():
            if path.bound is None:
                return f"the {which}expected {reward}, {start}, collected in total"
            within = "in fewer than" if path.strict else "in the first"
            return f"the {which}expected {reward}, {start}, collected {within} {_steps(path.bound)}"
        case InstantaneousReward():
            return f"the {which}expected {reward}, {start}, of the state after exactly {_steps(path.time)}"
        case _:
            return f"the {which}long-run average {reward} of a step, {start}"
