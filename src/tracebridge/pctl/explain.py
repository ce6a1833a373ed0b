"""A formula read aloud, in plain language."""

from __future__ import annotations

from typing import NamedTuple

from tracebridge.pctl.ast import (
    AutomatonPath,
    Binary,
    Call,
    Coalition,
    Conditional,
    CumulativeReward,
    Eventually,
    Filter,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LongRunReward,
    Multi,
    Next,
    Number,
    OnePerStep,
    Optimum,
    PathBinary,
    PathFormula,
    PathNot,
    PathReward,
    Probability,
    Property,
    Quantified,
    Quantile,
    ReachReward,
    Release,
    Reward,
    RewardBound,
    RewardPath,
    SteadyState,
    StepBound,
    Structure,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
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
_FILTERS = {
    "min": "the smallest value",
    "max": "the largest value",
    "sum": "the sum",
    "avg": "the average",
    "range": "the range",
    "print": "the values other than 0",
    "printall": "all values",
    "values": "all values",
}
_OPTIMA: dict[Optimum | None, str] = {"min": "smallest ", "max": "largest ", None: ""}
_START, _THERE = "from the start", "from there"


class _Clause(NamedTuple):
    """A part of the formula, still to be read, and where its runs begin."""

    node: Formula | PathFormula
    start: str


_Piece = str | _Clause


def explain(formula: Formula | Property) -> str:
    """Say in plain language what a formula asks for or demands.

    A threshold reads as a statement ("the probability, from the start, that ... is at least 0.72"), a query as the
    number that it asks for. Operators inside a formula are judged in the state that is reached ("from there").
    """
    words: list[str] = []
    waiting: list[_Piece] = [_Clause(formula.formula if isinstance(formula, Property) else formula, _START)]
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, str):
            words.append(piece)
        else:
            node, start = piece
            waiting.extend(reversed(_formula(node, start) if isinstance(node, Formula) else _path(node)))
    return "".join(words)


def _part(node: Formula | PathFormula, start: str) -> list[_Piece]:
    """A part in parentheses, unless it is so short that it cannot run into its surroundings."""
    inner = node.operand if isinstance(node, Unary) else node
    short = isinstance(inner, Label | Number | Identifier) or isinstance(node, Truth)
    return [_Clause(node, start)] if short else ["(", _Clause(node, start), ")"]


# ---------------------------------------------------------------- formulas


def _formula(formula: Formula, start: str) -> list[_Piece]:
    """A truth value as a clause, or a number as a noun phrase."""
    match formula:
        case Truth():
            return ["it is always so" if formula.value else "it is never so"]
        case Label():
            return [f"{quote(formula.name)} holds"]
        case Number() | Identifier():
            return [format_formula(formula)]
        case Unary(operator="!", operand=Label() as label):
            return [f"{quote(label.name)} does not hold"]
        case Unary(operator="!"):
            return ["it is not the case that ", *_part(formula.operand, start)]
        case Unary():
            return ["minus ", *_number(formula.operand, start)]
        case Binary():
            return _joined(formula, start)
        case Conditional():
            test, then = _part(formula.test, start), _part(formula.then, start)
            return ["if ", *test, ", then ", *then, ", otherwise ", *_part(formula.otherwise, start)]
        case Call():
            return _call(formula, start)
        case Filter():
            return _filter(formula)
        case Quantile():
            names = [f"{_OPTIMA[v.optimum] or 'best '}{v.name}" for v in formula.variables]
            return [f"the {' and '.join(names)} for which ", *_part(formula.operator, start)]
        case Multi():
            goals = _list([_part(objective, start) for objective in formula.objectives])
            ranked = ", the first before the second and so on" if formula.kind == "multilex" else ""
            return ["with the same choices: ", *goals, ranked]
        case Coalition():
            who = ", ".join(formula.players)
            return [f"with {'all but ' * formula.opponents}{who} choosing, ", *_part(formula.operator, start)]
        case Quantified():
            return [f"on {'every' if formula.quantifier == 'A' else 'some'} run, {start}, ", _Clause(formula.path, "")]
        case _:
            return _operator(formula, start)


def _number(formula: Formula | PathFormula, start: str) -> list[_Piece]:
    """A part that is a number; a label there is the name of a property."""
    return [f"the value of {quote(formula.name)}"] if isinstance(formula, Label) else _part(formula, start)


def _joined(formula: Binary | PathBinary, start: str) -> list[_Piece]:
    if formula.operator in _ARITHMETIC or formula.operator in _COMPARISONS:
        word = _ARITHMETIC.get(formula.operator) or _RELATIONS[formula.operator]
        return [*_number(formula.left, start), f" {word} ", *_number(formula.right, start)]
    left, right = _part(formula.left, start), _part(formula.right, start)
    match formula.operator:
        case "&" | "|":
            word = "and" if formula.operator == "&" else "or"
            if isinstance(formula.left, Binary | PathBinary) and formula.left.operator == formula.operator:
                left = [_Clause(formula.left, start)]
            return [*left, f" {word} ", *right]
        case "=>":
            return ["if ", *left, ", then ", *right]
        case "<=>":
            return [*left, " exactly when ", *right]
        case _:
            return [*left, f" {_RELATIONS[formula.operator]} ", *right]


def _call(formula: Call, start: str) -> list[_Piece]:
    arguments = [_number(argument, start) for argument in formula.arguments]
    match formula.function:
        case "min" | "max":
            return [f"the {_OPTIMA[formula.function]}of ", *_list(arguments)]
        case "floor" | "ceil" | "round":
            word = {"floor": "rounded down", "ceil": "rounded up", "round": "rounded"}[formula.function]
            return [*arguments[0], f" {word}"]
        case "pow":
            return [*arguments[0], " to the power ", *arguments[1]]
        case "mod":
            return ["the remainder of ", *arguments[0], " divided by ", *arguments[1]]
        case "log":
            return ["the logarithm of ", *arguments[0], " to the base ", *arguments[1]]


def _list(parts: list[list[_Piece]]) -> list[_Piece]:
    pieces: list[_Piece] = []
    for position, part in enumerate(parts):
        if position:
            pieces.append(" and " if position == len(parts) - 1 else ", ")
        pieces += part
    return pieces


def _filter(formula: Filter) -> list[_Piece]:
    operand = _part(formula.operand, _THERE)
    which: list[_Piece] = [] if formula.states is None else [" in which ", *_part(formula.states, _THERE)]
    states: list[_Piece] = ["all states"] if formula.states is None else ["the states", *which]
    match formula.kind:
        case "count":
            return ["the number of states, among ", *states, ", in which ", *operand]
        case "forall" | "exists":
            return [f"in {'every' if formula.kind == 'forall' else 'some'} state", *which, ", ", *operand]
        case "state" | "first":
            return [
                f"the value, in the {'only' if formula.kind == 'state' else 'first'} state",
                *which,
                ", of ",
                *operand,
            ]
        case "argmin" | "argmax":
            extreme = "smallest" if formula.kind == "argmin" else "largest"
            return ["the states, among ", *states, f", with the {extreme} value of ", *operand]
        case kind:
            return [f"{_FILTERS[kind]}, over ", *states, ", of ", *operand]


def _operator(operator: Probability | Reward | SteadyState, start: str) -> list[_Piece]:
    match operator:
        case Probability():
            noun: list[_Piece] = [
                f"the {_OPTIMA[operator.optimum]}probability, {start}, that ",
                _Clause(operator.path, ""),
            ]
        case Reward():
            noun = _reward(operator.path, _OPTIMA[operator.optimum], operator.structure, start)
        case SteadyState():
            fraction = f"the {_OPTIMA[operator.optimum]}long-run fraction of steps, {start}, in which "
            noun = [fraction, _Clause(operator.operand, _THERE)]
    if not isinstance(operator, SteadyState) and operator.condition is not None:
        noun += [", given that ", _Clause(operator.condition, "")]
    return [*noun, _threshold(operator.threshold)]


def _threshold(threshold: Threshold | None) -> str:
    if threshold is None:
        return ""
    return f" is {_COMPARISONS[threshold.comparison]} {format_formula(threshold.value)}"


# ---------------------------------------------------------------- paths


def _path(path: PathFormula) -> list[_Piece]:
    match path:
        case Next():
            return ["after one step, ", *_part(path.operand, _THERE)]
        case Eventually():
            if path.bound is not None and path.bound.exact:
                scope = f"{_when(path.bound)}{_collected(path.reward_bounds)}"
                return [f"{scope}, ", *_part(path.operand, _THERE)]
            return [*_reached(path.operand), _spaced(path.bound), _collected(path.reward_bounds)]
        case Globally():
            return [f"{_always(path.bound)}{_collected(path.reward_bounds)}, ", *_part(path.operand, _THERE)]
        case Until():
            reached = [*_reached(path.right), _spaced(path.bound), _collected(path.reward_bounds)]
            if path.left == Truth(True):
                return reached
            return [*reached, ", and at every step before that, ", *_part(path.left, _THERE)]
        case Release():
            left, right = _part(path.left, _THERE), _part(path.right, _THERE)
            until = [", up to and including the first step at which ", *left, ", or forever"]
            return ["at every step, ", *right, *until, _counting(path.bound, path.reward_bounds)]
        case WeakUntil():
            left, right = _part(path.left, _THERE), _part(path.right, _THERE)
            until = [", until ", *right, " or forever"]
            return ["at every step, ", *left, *until, _counting(path.bound, path.reward_bounds)]
        case PathNot():
            return ["it is not the case that ", *_part(path.operand, _THERE)]
        case PathBinary():
            return _joined(path, _THERE)
        case AutomatonPath():
            meanings: list[_Piece] = []
            for proposition in path.propositions:
                meanings += [f", where {quote(proposition.name)} means ", *_part(proposition.formula, _THERE)]
            return [f"the automaton in the file {quote(path.file)} accepts the run", *meanings]


def _reached(operand: Formula | PathFormula) -> list[_Piece]:
    if isinstance(operand, Label):
        return [f"{quote(operand.name)} is reached"]
    if isinstance(operand, Formula):
        return ["a state is reached in which ", *_part(operand, _THERE)]
    return ["a step is reached from which ", *_part(operand, _THERE)]


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


def _counting(bound: StepBound | None, rewards: tuple[RewardBound, ...]) -> str:
    if bound is None and not rewards:
        return ""
    steps = f" {_range(bound)}" if bound else ""
    return f", counting only steps{steps}{_collected(rewards)}"


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


def _collected(rewards: tuple[RewardBound, ...]) -> str:
    """The reward that may have been collected by then."""
    if not rewards:
        return ""
    amounts = [f"{_structure(reward.structure)} of {_amount(reward.bound)}" for reward in rewards]
    return f" with a collected {' and a collected '.join(amounts)}"


def _amount(bound: StepBound) -> str:
    lower = format_formula(bound.lower) if bound.lower is not None else None
    upper = format_formula(bound.upper) if bound.upper is not None else None
    if bound.exact:
        return f"exactly {upper}"
    ends = []
    if lower is not None:
        ends.append(f"{'more than' if bound.lower_strict else 'at least'} {lower}")
    if upper is not None:
        ends.append(f"{'less than' if bound.upper_strict else 'at most'} {upper}")
    return " and ".join(ends)


# ---------------------------------------------------------------- rewards


def _structure(structure: Structure) -> str:
    match structure:
        case None:
            return "reward"
        case str():
            return f"reward {quote(structure)}"
        case OnePerStep():
            return "number of steps"
        case number:
            return f"reward number {format_formula(number)}"


def _reward(path: RewardPath, which: str, structure: Structure, start: str) -> list[_Piece]:
    noun = f"the {which}expected {_structure(structure)}, {start},"
    collected = "until" if isinstance(structure, OnePerStep) else "collected until"
    match path:
        case ReachReward():
            return [f"{noun} {collected} ", *_reached(path.operand)]
        case PathReward():
            return [f"{noun} {collected} it is settled that ", *_part(path.path, _THERE)]
        case CumulativeReward():
            if path.bound is None:
                within = "in total"
            else:
                within = f"{'in fewer than' if path.strict else 'in the first'} {_steps(path.bound)}"
            text = f"{noun} collected {within}{_collected(path.reward_bounds)}"
            if path.discount is not None:
                text += f", each step counting {format_formula(path.discount)} times as much as the one before"
            return [text]
        case InstantaneousReward():
            return [f"{noun} of the state after exactly {_steps(path.time)}"]
        case LongRunReward():
            return [f"the {which}long-run average {_structure(structure)} of a step, {start}"]
