"""A formula read aloud, in plain language."""

from __future__ import annotations

from typing import NamedTuple

from tracebridge.pctl import ast
from tracebridge.pctl.printer import format_formula, quote
from tracebridge.pctl.spoken_bounds import always, collected, counting, spaced, steps, structure_name, when

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
_OPTIMA: dict[ast.Optimum | None, str] = {"min": "smallest ", "max": "largest ", None: ""}
_START, _THERE = "from the start", "from there"


class _Clause(NamedTuple):
    """A part of the formula, still to be read, and where its runs begin."""

    node: ast.Formula | ast.PathFormula
    start: str


_Piece = str | _Clause


def explain(formula: ast.Formula | ast.Property) -> str:
    """Say in plain language what a formula asks for or demands.

    A threshold reads as a statement ("the probability, from the start, that ... is at least 0.72"), a query as the
    number that it asks for. Operators inside a formula are judged in the state that is reached ("from there").
    """
    words: list[str] = []
    waiting: list[_Piece] = [_Clause(formula.formula if isinstance(formula, ast.Property) else formula, _START)]
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, str):
            words.append(piece)
        else:
            node, start = piece
            waiting.extend(reversed(_formula(node, start) if isinstance(node, ast.Formula) else _path(node)))
    return "".join(words)


def _part(node: ast.Formula | ast.PathFormula, start: str) -> list[_Piece]:
    """A part in parentheses, unless it is so short that it cannot run into its surroundings."""
    inner = node.operand if isinstance(node, ast.Unary) else node
    short = isinstance(inner, ast.Label | ast.Number | ast.Identifier) or isinstance(node, ast.Truth)
    return [_Clause(node, start)] if short else ["(", _Clause(node, start), ")"]


# ---------------------------------------------------------------- formulas


def _formula(formula: ast.Formula, start: str) -> list[_Piece]:
    """A truth value as a clause, or a number as a noun phrase."""
    match formula:
        case ast.Truth():
            return ["it is always so" if formula.value else "it is never so"]
        case ast.Label():
            return [f"{quote(formula.name)} holds"]
        case ast.Number() | ast.Identifier():
            return [format_formula(formula)]
        case ast.Unary(operator="!", operand=ast.Label() as label):
            return [f"{quote(label.name)} does not hold"]
        case ast.Unary(operator="!"):
            return ["it is not the case that ", *_part(formula.operand, start)]
        case ast.Unary():
            return ["minus ", *_number(formula.operand, start)]
        case ast.Binary():
            return _joined(formula, start)
        case ast.Conditional():
            test, then = _part(formula.test, start), _part(formula.then, start)
            return ["if ", *test, ", then ", *then, ", otherwise ", *_part(formula.otherwise, start)]
        case ast.Call():
            return _call(formula, start)
        case ast.Filter():
            return _filter(formula)
        case ast.Quantile():
            names = [f"{_OPTIMA[v.optimum] or 'best '}{v.name}" for v in formula.variables]
            return [f"the {' and '.join(names)} for which ", *_part(formula.operator, start)]
        case ast.Multi():
            goals = _list([_part(objective, start) for objective in formula.objectives])
            ranked = ", the first before the second and so on" if formula.kind == "multilex" else ""
            return ["with the same choices: ", *goals, ranked]
        case ast.Coalition():
            who = ", ".join(formula.players)
            return [f"with {'all but ' * formula.opponents}{who} choosing, ", *_part(formula.operator, start)]
        case ast.Quantified():
            return [f"on {'every' if formula.quantifier == 'A' else 'some'} run, {start}, ", _Clause(formula.path, "")]
        case _:
            return _operator(formula, start)


def _number(formula: ast.Formula | ast.PathFormula, start: str) -> list[_Piece]:
    """A part that is a number; a label there is the name of a property."""
    return [f"the value of {quote(formula.name)}"] if isinstance(formula, ast.Label) else _part(formula, start)


def _joined(formula: ast.Binary | ast.PathBinary, start: str) -> list[_Piece]:
    if formula.operator in _ARITHMETIC or formula.operator in _COMPARISONS:
        word = _ARITHMETIC.get(formula.operator) or _RELATIONS[formula.operator]
        return [*_number(formula.left, start), f" {word} ", *_number(formula.right, start)]
    left, right = _part(formula.left, start), _part(formula.right, start)
    match formula.operator:
        case "&" | "|":
            word = "and" if formula.operator == "&" else "or"
            if isinstance(formula.left, ast.Binary | ast.PathBinary) and formula.left.operator == formula.operator:
                left = [_Clause(formula.left, start)]
            return [*left, f" {word} ", *right]
        case "=>":
            return ["if ", *left, ", then ", *right]
        case "<=>":
            return [*left, " exactly when ", *right]
        case _:
            return [*left, f" {_RELATIONS[formula.operator]} ", *right]


def _call(formula: ast.Call, start: str) -> list[_Piece]:
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


def _filter(formula: ast.Filter) -> list[_Piece]:
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


def _operator(operator: ast.Probability | ast.Reward | ast.SteadyState, start: str) -> list[_Piece]:
    match operator:
        case ast.Probability():
            noun: list[_Piece] = [
                f"the {_OPTIMA[operator.optimum]}probability, {start}, that ",
                _Clause(operator.path, ""),
            ]
        case ast.Reward():
            noun = _reward(operator.path, _OPTIMA[operator.optimum], operator.structure, start)
        case ast.SteadyState():
            fraction = f"the {_OPTIMA[operator.optimum]}long-run fraction of steps, {start}, in which "
            noun = [fraction, _Clause(operator.operand, _THERE)]
    if not isinstance(operator, ast.SteadyState) and operator.condition is not None:
        noun += [", given that ", _Clause(operator.condition, "")]
    return [*noun, _threshold(operator.threshold)]


def _threshold(threshold: ast.Threshold | None) -> str:
    if threshold is None:
        return ""
    return f" is {_COMPARISONS[threshold.comparison]} {format_formula(threshold.value)}"


# ---------------------------------------------------------------- paths


def _path(path: ast.PathFormula) -> list[_Piece]:
    match path:
        case ast.Next():
            return ["after one step, ", *_part(path.operand, _THERE)]
        case ast.Eventually():
            if path.bound is not None and path.bound.exact:
                scope = f"{when(path.bound)}{collected(path.reward_bounds)}"
                return [f"{scope}, ", *_part(path.operand, _THERE)]
            return [*_reached(path.operand), spaced(path.bound), collected(path.reward_bounds)]
        case ast.Globally():
            return [f"{always(path.bound)}{collected(path.reward_bounds)}, ", *_part(path.operand, _THERE)]
        case ast.Until():
            reached = [*_reached(path.right), spaced(path.bound), collected(path.reward_bounds)]
            if path.left == ast.Truth(True):
                return reached
            return [*reached, ", and at every step before that, ", *_part(path.left, _THERE)]
        case ast.Release():
            left, right = _part(path.left, _THERE), _part(path.right, _THERE)
            until = [", up to and including the first step at which ", *left, ", or forever"]
            return ["at every step, ", *right, *until, counting(path.bound, path.reward_bounds)]
        case ast.WeakUntil():
            left, right = _part(path.left, _THERE), _part(path.right, _THERE)
            until = [", until ", *right, " or forever"]
            return ["at every step, ", *left, *until, counting(path.bound, path.reward_bounds)]
        case ast.PathNot():
            return ["it is not the case that ", *_part(path.operand, _THERE)]
        case ast.PathBinary():
            return _joined(path, _THERE)
        case ast.AutomatonPath():
            meanings: list[_Piece] = []
            for proposition in path.propositions:
                meanings += [f", where {quote(proposition.name)} means ", *_part(proposition.formula, _THERE)]
            return [f"the automaton in the file {quote(path.file)} accepts the run", *meanings]


def _reached(operand: ast.Formula | ast.PathFormula) -> list[_Piece]:
    if isinstance(operand, ast.Label):
        return [f"{quote(operand.name)} is reached"]
    if isinstance(operand, ast.Formula):
        return ["a state is reached in which ", *_part(operand, _THERE)]
    return ["a step is reached from which ", *_part(operand, _THERE)]


# ---------------------------------------------------------------- rewards


def _reward(path: ast.RewardPath, which: str, structure: ast.Structure, start: str) -> list[_Piece]:
    noun = f"the {which}expected {structure_name(structure)}, {start},"
    ends = "until" if isinstance(structure, ast.OnePerStep) else "collected until"
    match path:
        case ast.ReachReward():
            return [f"{noun} {ends} ", *_reached(path.operand)]
        case ast.PathReward():
            return [f"{noun} {ends} it is settled that ", *_part(path.path, _THERE)]
        case ast.CumulativeReward():
            if path.bound is None:
                within = "in total"
            else:
                within = f"{'in fewer than' if path.strict else 'in the first'} {steps(path.bound)}"
            text = f"{noun} collected {within}{collected(path.reward_bounds)}"
            if path.discount is not None:
                text += f", each step counting {format_formula(path.discount)} times as much as the one before"
            return [text]
        case ast.InstantaneousReward():
            return [f"{noun} of the state after exactly {steps(path.time)}"]
        case ast.LongRunReward():
            return [f"the {which}long-run average {structure_name(structure)} of a step, {start}"]
