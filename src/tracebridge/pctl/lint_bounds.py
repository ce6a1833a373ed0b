"""What is doubtful in the numbers of a property file: thresholds, step and reward bounds, and quantiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from fractions import Fraction

from tracebridge.errors import PropertyError
from tracebridge.pctl.ast import (
    Coalition,
    CumulativeReward,
    Eventually,
    Filter,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    LabelDefinition,
    Multi,
    Probability,
    Property,
    PropertyFile,
    Quantified,
    Quantile,
    Quantitative,
    Release,
    Reward,
    RewardBound,
    SteadyState,
    Until,
    WeakUntil,
    walk,
)
from tracebridge.pctl.constants import constant_values, substitute
from tracebridge.pctl.evaluation import evaluate_constant, step_window
from tracebridge.pctl.finding import Finding, error_at, name_of, nodes
from tracebridge.pctl.printer import format_formula
from tracebridge.pctl.references import reward_bounds


def bound_findings(file: PropertyFile) -> Iterator[Finding]:
    """Thresholds, bounds and states of filters, as far as the constants of the file decide them."""
    try:
        values = constant_values(file, {})
    except PropertyError:
        return  # reported with the constants
    for entry, node in nodes(file):
        try:
            match node:
                case Probability() | Reward() | SteadyState():
                    yield from _threshold(entry, node, values)
                case Eventually() | Globally() | Until() | WeakUntil() | Release():
                    if node.bound is not None and _known(node.bound.lower, values) and _known(node.bound.upper, values):
                        step_window(substitute(node.bound, values))
                case CumulativeReward() | InstantaneousReward():
                    time = node.bound if isinstance(node, CumulativeReward) else node.time
                    if time is not None and _known(time, values) and evaluate_constant(time, values) < 0:
                        yield error_at(entry, "a step count cannot be negative", None, node)
                case Filter(states=states) if states is not None and _is_constant(states, values):
                    if not evaluate_constant(states, values):
                        yield error_at(entry, "the filter is over no states", None, node)
                case _:
                    pass
            for bound in reward_bounds(node):
                if _is_empty(bound, values):
                    yield error_at(entry, "no collected reward satisfies this bound", None, node)
        except PropertyError as error:
            yield error_at(entry, error.problems[0].message, None, node)


def _is_empty(bound: RewardBound, values: dict[str, Fraction | bool]) -> bool:
    """Whether no amount of reward, which is not negative, lies within the bound."""
    ends = bound.bound
    if not _known(ends.lower, values) or not _known(ends.upper, values) or ends.upper is None:
        return False
    upper = evaluate_constant(ends.upper, values)
    lower = Fraction(0) if ends.lower is None else evaluate_constant(ends.lower, values)
    strict = ends.upper_strict or ends.lower_strict
    return upper < max(lower, 0) or (strict and upper == max(lower, 0))


def _threshold(
    entry: Property | LabelDefinition, operator: Quantitative, values: dict[str, Fraction | bool]
) -> Iterator[Finding]:
    threshold = operator.threshold
    if threshold is None or not _known(threshold.value, values):
        return
    value = evaluate_constant(threshold.value, values)
    top = None if isinstance(operator, Reward) else 1
    outside = value < 0 or (top is not None and value > top)
    shown = f"{threshold.comparison}{format_formula(threshold.value)}"
    above = threshold.comparison in (">", ">=")
    if outside and top is not None:
        yield error_at(entry, f"a probability lies between 0 and 1, and the bound is {shown}", None, operator)
    elif (above and value == top and threshold.comparison == ">") or (
        not above and value == 0 and threshold.comparison == "<"
    ):
        yield error_at(entry, f"the bound {shown} can never hold", "use >= or <=", operator)
    elif not above and value < 0:
        yield error_at(entry, f"the bound {shown} can never hold: rewards are not negative", None, operator)
    elif (above and value <= 0 and threshold.comparison == ">=") or (
        not above and value == top and threshold.comparison == "<="
    ):
        message = f"the bound {shown} always holds"
        yield Finding(severity="warning", message=message, span=operator.span, property=name_of(entry))


def quantile_findings(file: PropertyFile, names: Collection[str]) -> Iterator[Finding]:
    """Quantiles without an answer, and variables that are used for nothing or called like something else.

    Args:
        file: a parsed file. names: the constants and variables of the model.
    """
    taken = {**dict.fromkeys(names, "name of the model")}
    taken |= {constant.name: "constant" for constant in file.constants}
    for entry, node in nodes(file):
        if not isinstance(node, Quantile):
            continue
        used = {part.name for part in walk(node.operator) if isinstance(part, Identifier)}
        seen: set[str] = set()
        for variable in node.variables:
            if variable.name in taken:
                message = f"the variable {variable.name} of the quantile is called like a {taken[variable.name]}"
                yield error_at(entry, message, "choose another name", node)
            elif variable.name in seen:
                yield error_at(entry, f"the quantile has two variables {variable.name}", None, node)
            elif variable.name not in used:
                message = f"the quantile looks for {variable.name}, which its operator does not use"
                hint = f"write it as a bound, as in F<={variable.name}"
                yield Finding(severity="warning", message=message, span=node.span, hint=hint, property=name_of(entry))
            seen.add(variable.name)
        if node.operator.threshold is None:
            yield error_at(entry, "a quantile needs an operator with a bound", "as in P>=0.9 [ ... ]", node)


def _known(formula: Formula | None, values: dict[str, Fraction | bool]) -> bool:
    return formula is None or all(node.name in values for node in walk(formula) if isinstance(node, Identifier))


def _is_constant(formula: Formula, values: dict[str, Fraction | bool]) -> bool:
    """Whether a formula has one value in all states, and it is known."""
    state_dependent = (Label, Probability, Reward, SteadyState, Filter, Quantified, Quantile, Multi, Coalition)
    return _known(formula, values) and not any(isinstance(node, state_dependent) for node in walk(formula))
