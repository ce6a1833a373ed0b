"""The property file beside an exported model: the same questions, asked in the file's names and from its first state.

Labels, reward structures and properties get the identifiers of the model file. Where that has an added first state (see
`tracebridge.export.single_start`), every top-level operator is rewritten so that its value there is the mean of the
original's values under the initial distribution. A path w of the chain is the path w' = start w of the file, so step
bounds grow by one, and an operand that could already decide at time 0, where only ``start`` holds, is guarded:

    X a         F=2 a
    F<=k a      F<=k+1 (!"start" & a)                               (with a lower bound time 0 does not count: no guard)
    G<=k a      G<=k+1 ("start" | a)
    a U<=k b    ("start" | a) U<=k+1 (!"start" & b)                 W alike; R, its dual, with the guards exchanged
    R [F a]     R [F (!"start" & a)]
    C<=k, I=k   C<=k+1, I=k+1
    C, S        unchanged: the added state earns nothing and is left at once

Operators inside other operators are evaluated in each state, where nothing has changed. A label outside all operators
asks about the states that runs start in: there ``a`` becomes ``P>=1 [ X a ]``, it holds in all of them.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from tracebridge.errors import Location, ModelError, Problem, PropertyError
from tracebridge.export.names import identifier_of
from tracebridge.export.property_mark import mark, refuse_rewritten
from tracebridge.export.single_start import added_state
from tracebridge.pctl.ast import (
    Binary,
    Call,
    Conditional,
    Constant,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    InstantaneousReward,
    Label,
    Next,
    Number,
    Operator,
    PathFormula,
    Probability,
    Property,
    PropertyFile,
    ReachReward,
    Release,
    Reward,
    RewardPath,
    Span,
    SteadyState,
    StepBound,
    Threshold,
    Truth,
    Unary,
    Until,
    WeakUntil,
    walk,
)
from tracebridge.pctl.constants import expand_labels
from tracebridge.pctl.printer import format_formula
from tracebridge.pctl.rewrite import rewrite

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.export.single_start import AddedState

_Item = TypeVar("_Item", Constant, Property)
_ONE = Number(Fraction(1), integer=True)
_VARIABLE = "s"  # of the model file, which a constant may not be called


def rewrite_for_export(file: PropertyFile, chain: MarkovChain) -> PropertyFile:
    """The properties of ``file`` for the model that `format_prism` writes of ``chain``.

    The value of every top-level operator in the initial state of that model is the mean of its values under the initial
    distribution of ``chain``. Label definitions are expanded, constants stay. The first line marks the file
    (`is_rewritten`), a comment below it says what was done, and one before each property that changed shows it as it
    was.

    Raises:
        PropertyError: the file is a rewritten one itself; or properties name labels or reward structures that the chain
            does not have, or name none where it has several; all are listed.
    """
    refuse_rewritten(file)
    expanded = expand_labels(file)
    problems = [problem for entry in expanded.properties for problem in _unknown_names(entry, chain, file.path)]
    if problems:
        raise PropertyError(problems)
    added = added_state(chain)
    spelling = _Spelling(file, chain, added)
    properties = []
    for original, entry in zip(file.properties, expanded.properties, strict=True):
        formula = rewrite(entry.formula, spelling.formula)
        if added is not None:
            formula = _from_first_state(formula, Label(added.label))
        properties.append(_with_original(replace(entry, formula=formula, name=spelling.name(entry.name)), original))
    constants = [
        replace(
            constant,
            name=spelling.constant(constant.name),
            value=constant.value and rewrite(constant.value, spelling.formula),
        )
        for constant in expanded.constants
    ]
    rewritten = replace(expanded, properties=tuple(properties), constants=tuple(constants))
    return _with_header(rewritten, list(_explanation(added)))


def _unknown_names(entry: Property, chain: MarkovChain, path: str | None) -> Iterator[Problem]:
    for node in walk(entry.formula):
        if isinstance(node, Label) and not chain.has_label(node.name):
            try:
                chain.label(node.name)
            except ModelError as error:
                yield from (replace(problem, location=_place(node.span, path)) for problem in error.problems)
        if isinstance(node, Reward) and (message := _reward_obstacle(node.structure, chain)):
            known = ", ".join(f'"{name}"' for name in chain.rewards) or "none"
            hint = f"known reward structures: {known}"
            yield Problem(location=_place(node.span, path), message=message, hint=hint)


def _reward_obstacle(structure: str | None, chain: MarkovChain) -> str | None:
    if structure is None:
        return None if len(chain.rewards) == 1 else "R without a name needs a chain with one reward structure"
    return None if structure in chain.rewards else f'unknown reward structure "{structure}"'


def _place(span: Span | None, path: str | None) -> Location:
    return Location(path=path) if span is None else Location(path=path, line=span.line, column=span.column)


# ---------------------------------------------------------------- names


class _Spelling:
    """From the user's names to the identifiers of the model file."""

    def __init__(self, file: PropertyFile, chain: MarkovChain, added: AddedState | None) -> None:
        self._labels = {name: identifier_of(name) for name in [*chain.labels, *chain.states]}
        if added is not None:
            self._labels.setdefault("init", added.initial_label)
        self._taken = {*self._labels.values(), *([added.label, added.initial_label] if added else [])}
        self._only_reward = next(iter(chain.rewards), None)
        constants = {constant.name for constant in file.constants}
        self._constants = {}
        if _VARIABLE in constants:
            new = f"{_VARIABLE}_"
            while new in constants:
                new += "_"
            self._constants = {_VARIABLE: new}

    def formula(self, node: Formula) -> Formula:
        """One node in the spelling of the file; an unnamed reward structure gets its name, which Storm insists on."""
        match node:
            case Label():
                return replace(node, name=self._labels.get(node.name, node.name))
            case Identifier():
                return replace(node, name=self.constant(node.name))
            case Reward():
                structure = node.structure if node.structure is not None else self._only_reward
                return replace(node, structure=structure and identifier_of(structure))
            case _:
                return node

    def name(self, name: str | None) -> str | None:
        """The name of a property, which shares a space of names with labels."""
        if name is None:
            return None
        identifier = identifier_of(name)
        return f"{identifier}_x_" if identifier in self._taken else identifier

    def constant(self, name: str) -> str:
        """The name of a constant."""
        return self._constants.get(name, name)


# ---------------------------------------------------------------- comments


def _explanation(added: AddedState | None) -> Iterator[str]:
    yield mark(added)
    yield "Properties for the model file that tracebridge wrote of the same chain, in the names of that file."
    if added is not None:
        yield f'Its first state "{added.label}" leads to the states that runs start in. So that there operators have'
        yield "the mean of their values over those states, step bounds are one higher than in the original, X is F=2,"
        yield f'and what "{added.label}" itself could decide is guarded. Operators inside others are as they were.'
    yield ""


def _with_original(entry: Property, original: Property) -> Property:
    if entry.formula == original.formula:
        return entry
    text = original.text or format_formula(original.formula)
    return replace(entry, comments=(*entry.comments, f"original: {' '.join(text.split())}"))


def _with_header(file: PropertyFile, header: list[str]) -> PropertyFile:
    """The header before whatever stands first in the file."""
    items: list[Constant | Property] = [*file.constants, *file.properties]
    if not items:
        return replace(file, trailing_comments=(*header, *file.trailing_comments))
    spans = [item.span for item in items]
    places = [(span.line, span.column) for span in spans if span is not None]  # where all have one, it orders the text
    first = items[places.index(min(places))] if len(places) == len(items) else items[0]

    return replace(
        file,
        constants=tuple(_headed(item, header) if item is first else item for item in file.constants),
        properties=tuple(_headed(item, header) if item is first else item for item in file.properties),
    )


def _headed(item: _Item, header: list[str]) -> _Item:
    return replace(item, comments=(*header, *item.comments))


# ---------------------------------------------------------------- one step later


def _from_first_state(formula: Formula, start: Label) -> Formula:
    """The top-level formula, asked in the added first state."""
    if isinstance(formula, Operator):
        return _operator(formula, start)
    nodes = list(walk(formula))
    if not any(isinstance(node, Operator) for node in nodes) and _is_condition(formula):
        if not any(isinstance(node, Label) for node in nodes):
            return formula
        return Probability(Next(formula), threshold=Threshold(">=", _ONE), span=formula.span)
    match formula:
        case Unary():
            return replace(formula, operand=_from_first_state(formula.operand, start))
        case Binary():
            left, right = _from_first_state(formula.left, start), _from_first_state(formula.right, start)
            return replace(formula, left=left, right=right)
        case Conditional():
            test = _from_first_state(formula.test, start)
            then, otherwise = _from_first_state(formula.then, start), _from_first_state(formula.otherwise, start)
            return replace(formula, test=test, then=then, otherwise=otherwise)
        case Call():
            return replace(formula, arguments=tuple([_from_first_state(part, start) for part in formula.arguments]))
        case _:
            return formula


def _is_condition(formula: Formula) -> bool:
    match formula:
        case Truth() | Label() | Unary(operator="!"):
            return True
        case Binary():
            return formula.operator not in {"+", "-", "*", "/"}
        case Conditional():
            return _is_condition(formula.then)
        case _:
            return False


def _operator(operator: Operator, start: Label) -> Operator:
    match operator:
        case Probability():
            return replace(operator, path=_path(operator.path, start))
        case Reward():
            return replace(operator, path=_reward_path(operator.path, start))
        case SteadyState():
            return operator


def _path(path: PathFormula, start: Label) -> PathFormula:
    bound = path.bound if not isinstance(path, Next) else None
    later = _later(bound)
    counts = not _skips_time_zero(bound)
    match path:
        case Next():
            two = Number(Fraction(2), integer=True)
            return Eventually(path.operand, StepBound(lower=two, upper=two, exact=True), span=path.span)
        case Eventually():
            return replace(path, operand=_false_at(start, path.operand) if counts else path.operand, bound=later)
        case Globally():
            return replace(path, operand=_true_at(start, path.operand) if counts else path.operand, bound=later)
        case Until():
            right = _false_at(start, path.right) if counts else path.right
            return replace(path, left=_true_at(start, path.left), right=right, bound=later)
        case WeakUntil():
            return replace(path, left=_true_at(start, path.left), right=_false_at(start, path.right), bound=later)
        case Release():
            return replace(path, left=_false_at(start, path.left), right=_true_at(start, path.right), bound=later)


def _reward_path(path: RewardPath, start: Label) -> RewardPath:
    match path:
        case ReachReward():
            return replace(path, operand=_false_at(start, path.operand))
        case CumulativeReward(bound=bound) if bound is not None:
            return replace(path, bound=_plus_one(bound))
        case InstantaneousReward():
            return replace(path, time=_plus_one(path.time))
        case _:
            return path


def _later(bound: StepBound | None) -> StepBound | None:
    """The bound one step later."""
    if bound is None:
        return None
    return replace(bound, lower=bound.lower and _plus_one(bound.lower), upper=bound.upper and _plus_one(bound.upper))


def _skips_time_zero(bound: StepBound | None) -> bool:
    """Whether the bound, one step later, leaves time 0 out."""
    return bound is not None and bound.lower is not None


def _plus_one(step: Formula) -> Formula:
    if isinstance(step, Number):
        return replace(step, value=step.value + 1)
    return Binary("+", step, _ONE)


def _false_at(start: Label, operand: Formula) -> Formula:
    return operand if _at_added_state(operand) is False else Binary("&", Unary("!", start), operand)


def _true_at(start: Label, operand: Formula) -> Formula:
    return operand if _at_added_state(operand) is True else Binary("|", start, operand)


def _at_added_state(formula: Formula) -> bool | None:
    """The truth of a formula in the added state, where all labels of the chain are false; None if it is not plain."""
    match formula:
        case Truth():
            return formula.value
        case Label():
            return False
        case Unary(operator="!"):
            inner = _at_added_state(formula.operand)
            return None if inner is None else not inner
        case Binary(operator="&" | "|" | "=>"):
            left, right = _at_added_state(formula.left), _at_added_state(formula.right)
            if formula.operator == "=>":
                left = None if left is None else not left
            decides = formula.operator != "&"
            if decides in (left, right):
                return decides
            return None if left is None or right is None else not decides
        case _:
            return None
