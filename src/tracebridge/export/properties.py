"""The property file beside an exported model: the same questions, asked in the file's names and from its first state.

Labels, reward structures and properties get the identifiers of the model file. Where that has an added first state (see
`tracebridge.export.single_start`), every top-level operator is rewritten so that its value there is the mean of the
original's values under the initial distribution (see `tracebridge.export.first_state`). What cannot be rewritten so
becomes a comment that says why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tracebridge.errors import Location, ModelError, Problem, PropertyError, UnsupportedError
from tracebridge.export.first_state import from_first_state
from tracebridge.export.names import identifier_of
from tracebridge.export.property_mark import mark, refuse_rewritten
from tracebridge.export.single_start import added_state
from tracebridge.export.variable_layout import variable_layout
from tracebridge.pctl.ast import (
    Constant,
    CumulativeReward,
    Eventually,
    Formula,
    Globally,
    Identifier,
    Label,
    Number,
    OnePerStep,
    PathFormula,
    Property,
    PropertyFile,
    Quantile,
    Release,
    Reward,
    RewardBound,
    Span,
    Structure,
    Until,
    WeakUntil,
    walk,
)
from tracebridge.pctl.constants import literal
from tracebridge.pctl.printer import format_formula
from tracebridge.pctl.references import expand_labels, free_identifiers, structure_names
from tracebridge.pctl.rewrite import rewrite

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.export.single_start import AddedState
    from tracebridge.export.variable_layout import VariableLayout

_Item = TypeVar("_Item", Constant, Property)


def rewrite_for_export(file: PropertyFile, chain: MarkovChain) -> PropertyFile:
    """The properties of ``file`` for the model that `format_prism` writes of ``chain``.

    The value of every top-level operator in the initial state of that model is the mean of its values under the initial
    distribution of ``chain``. Label definitions and references to properties are expanded; constants stay, those of the
    model become numbers, and the variables of an expanded chain are those of the file. The first line marks the file
    (`is_rewritten`), a comment below it says what was done, and one before each property that changed shows it as it
    was. A property that the added state makes unaskable becomes a comment.

    Raises:
        PropertyError: the file is a rewritten one itself; or properties name labels, reward structures or variables
            that the model file does not have; all are listed.
    """
    refuse_rewritten(file)
    expanded = expand_labels(file, model_labels=chain.label_names())
    declared = {constant.name for constant in file.constants}
    layout = variable_layout(chain)
    problems = [
        problem for entry in expanded.properties for problem in _unknown_names(entry, chain, declared, file, layout)
    ]
    if problems:
        raise PropertyError(problems)
    added = added_state(chain)
    variables = ("s",) if layout is None else layout.variables
    spelling = _Spelling(file, chain, added, variables)
    properties: list[Property] = []
    remarks: tuple[str, ...] = ()  # of properties left out, for the next one
    for original, entry in zip(file.properties, expanded.properties, strict=True):
        formula = rewrite(entry.formula, spelling.formula, change_path=spelling.path)
        comments = (*remarks, *entry.comments)
        if added is not None:
            try:
                formula = from_first_state(formula, Label(added.label), variables)
            except UnsupportedError as reason:
                remarks = (*comments, f"cannot be asked in this model: {reason}", *_as_comment(original))
                continue
        changed = format_formula(formula) != format_formula(original.formula)
        note = (f"original: {_text(original)}",) if changed else ()
        name = spelling.name(entry.name)
        properties.append(replace(entry, formula=formula, name=name, comments=(*comments, *note)))
        remarks = ()
    constants = [
        replace(
            constant,
            name=spelling.constant(constant.name),
            value=constant.value and rewrite(constant.value, spelling.formula),
        )
        for constant in expanded.constants
    ]
    trailing = (*remarks, *expanded.trailing_comments)
    rewritten = replace(expanded, properties=tuple(properties), constants=tuple(constants), trailing_comments=trailing)
    return _with_header(rewritten, list(_explanation(added)))


def _unknown_names(
    entry: Property, chain: MarkovChain, declared: set[str], file: PropertyFile, layout: VariableLayout | None
) -> Iterator[Problem]:
    for node in walk(entry.formula):
        if (
            isinstance(node, Label)
            and layout is not None
            and node.name in chain.states
            and node.name not in chain.labels
        ):
            yield Problem(
                location=_place(node.span, file.path),
                message=f'the model file has no label for the single state "{node.name}"',
                hint=f"write the label of its category, or a condition on {', '.join(layout.variables)}",
            )
        if isinstance(node, Label) and not chain.has_label(node.name):
            try:
                chain.label(node.name)
            except ModelError as error:
                yield from (replace(problem, location=_place(node.span, file.path)) for problem in error.problems)
        for structure in structure_names(node):
            if message := _reward_obstacle(structure, chain):
                known = ", ".join(f'"{name}"' for name in chain.rewards) or "none"
                hint = f"known reward structures: {known}"
                yield Problem(location=_place(node.span, file.path), message=message, hint=hint)
    for name in free_identifiers(entry.formula):
        is_variable = layout is not None and name.name in layout.variables
        if name.name not in declared and name.name not in chain.constants and not is_variable:
            known = "the model file has no variable" if name.name in chain.variables else "unknown name"
            hint = "write a label that holds in the states that are meant"
            yield Problem(location=_place(name.span, file.path), message=f"{known} {name.name}", hint=hint)


def _reward_obstacle(structure: Structure, chain: MarkovChain) -> str | None:
    match structure:
        case OnePerStep():
            return None
        case None:
            return None if chain.rewards else "the model has no reward structure"
        case str():
            return None if structure in chain.rewards else f'unknown reward structure "{structure}"'
        case Number(value) if value.denominator == 1 and 1 <= value <= len(chain.rewards):
            return None
        case _:
            return f"there is no reward structure {format_formula(structure)}"


def _place(span: Span | None, path: str | None) -> Location:
    return Location(path=path) if span is None else Location(path=path, line=span.line, column=span.column)


# ---------------------------------------------------------------- names


class _Spelling:
    """From the user's names to the identifiers of the model file."""

    def __init__(
        self, file: PropertyFile, chain: MarkovChain, added: AddedState | None, variables: Collection[str]
    ) -> None:
        self._labels = {name: identifier_of(name) for name in [*chain.labels, *chain.states]}
        if added is not None:
            self._labels.setdefault("init", added.initial_label)
        self._taken = {*self._labels.values(), *([added.label, added.initial_label] if added else [])}
        self._rewards = tuple(chain.rewards)
        constants = {constant.name for constant in file.constants}
        self._values = {name: value for name, value in chain.constants.items() if name not in constants}
        self._renamed = {}
        words = constants | {
            variable.name
            for entry in file.properties
            for node in walk(entry.formula)
            if isinstance(node, Quantile)
            for variable in node.variables
        }
        for variable in variables:  # of the model file, which a constant may not be called
            if variable in words:
                new = f"{variable}_"
                while new in words or new in variables:
                    new += "_"
                self._renamed[variable] = new
                words.add(new)

    def formula(self, node: Formula) -> Formula:
        """One node in the spelling of the file; an unnamed reward structure gets its name, which Storm insists on."""
        match node:
            case Label():
                return replace(node, name=self._labels.get(node.name, node.name))
            case Identifier(name) if name in self._values:
                return literal(self._values[name], node.span)
            case Identifier(name) if name in self._renamed:
                return replace(node, name=self.constant(name))
            case Quantile():
                variables = [replace(variable, name=self.constant(variable.name)) for variable in node.variables]
                return replace(node, variables=tuple(variables))
            case Reward():
                path = node.path
                if isinstance(path, CumulativeReward):
                    path = replace(path, reward_bounds=self._bounds(path.reward_bounds))
                return replace(node, structure=self._structure(node.structure), path=path)
            case _:
                return node

    def path(self, path: PathFormula) -> PathFormula:
        """A path formula, whose reward bounds name structures as well."""
        if isinstance(path, Eventually | Globally | Until | WeakUntil | Release) and path.reward_bounds:
            return replace(path, reward_bounds=self._bounds(path.reward_bounds))
        return path

    def name(self, name: str | None) -> str | None:
        """The name of a property, which shares a space of names with labels."""
        if name is None:
            return None
        identifier = identifier_of(name)
        return f"{identifier}_x_" if identifier in self._taken else identifier

    def constant(self, name: str) -> str:
        """The name of a constant, or of a variable of a quantile."""
        return self._renamed.get(name, name)

    def _bounds(self, bounds: tuple[RewardBound, ...]) -> tuple[RewardBound, ...]:
        return tuple(replace(bound, structure=identifier_of(self._named(bound.structure))) for bound in bounds)

    def _structure(self, structure: Structure) -> Structure:
        if structure is None or isinstance(structure, str | Number):
            return identifier_of(self._named(structure))
        return structure

    def _named(self, structure: str | Number | None) -> str:
        if isinstance(structure, str):
            return structure
        return self._rewards[int(structure.value) - 1 if structure is not None else 0]


# ---------------------------------------------------------------- comments


def _explanation(added: AddedState | None) -> Iterator[str]:
    yield mark(added)
    yield "Properties for the model file that tracebridge wrote of the same chain, in the names of that file."
    if added is not None:
        yield f'Its first state "{added.label}" leads to the states that runs start in. So that there operators have'
        yield "the mean of their values over those states, step bounds are one higher than in the original, X is F=2,"
        yield f'and what "{added.label}" itself could decide is guarded. Operators inside others are as they were.'
    yield ""


def _text(original: Property) -> str:
    return " ".join((original.text or format_formula(original.formula)).split())


def _as_comment(original: Property) -> Iterator[str]:
    yield from (f"//@ {note.key} {note.value}" for note in original.annotations)
    yield f"{original.name}: {_text(original)}" if original.name else _text(original)


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
