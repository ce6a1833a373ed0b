"""Writing an expanded chain in the PRISM language with a variable for each thing that its states remember.

One command covers all states with the same row: those of one bin of a clock differ in ``step`` alone. Lines of the
header give the names behind the numbers of categories and groups, from which the names of states follow (see
`tracebridge.chain.expanded.naming`), so that `tracebridge.export.prism_variables_reader` restores the chain.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.expanded.naming import GROUP, PHASE, PREVIOUS, STAY, STEP, TASK_CLASS
from tracebridge.chain.rational import RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.export.prism_text import (
    MARKER,
    VARIABLES_VERSION,
    added_state_labels,
    added_state_note,
    disjunction,
    entry_texts,
    label_line,
    nonzero_texts,
    quoted,
    reward_structure_lines,
)
from tracebridge.export.single_start import added_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain
    from tracebridge.export.single_start import AddedState
    from tracebridge.export.variable_layout import VariableLayout

_KEPT, _ONE_MORE = -3, -2  # what becomes of a variable, beside a value

_MEANINGS = {
    TASK_CLASS: "hidden class of the task, fixed for a run",
    GROUP: "group of the run, fixed for a run",
    PREVIOUS: "category of the step before; {m} at the first step",
    STAY: "earlier steps of the same stay in the category; {last} stands for more as well",
    STEP: "earlier steps of the run; {last} stands for more as well",
    PHASE: "hidden phase",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Command:
    """States with the same row: their values, which differ in ``step`` alone, from the first to the last."""

    values: tuple[int, ...]
    last_step: int
    branches: tuple[str, ...]


def format_with_variables(chain: MarkovChain, layout: VariableLayout) -> tuple[list[str], int]:
    """The lines of the model, and how many commands it has.

    Raises:
        UsageError: an integer of more than about 4,000 digits.
    """
    added = added_state(chain)
    commands = list(_commands(chain, layout))
    over_categories = {name: mask[layout.first_copy] for name, mask in chain.labels.items()}
    lines = [*_header(chain, layout, added, len(commands)), "dtmc", "", *_module(chain, layout, added, commands), ""]
    lines += [label_line(name, mask, layout.variables[0]) for name, mask in over_categories.items()]
    if added is not None:
        start = _guard(layout.variables[:1], layout.added_values[:1])
        lines += added_state_labels(added, start, _initial_condition(chain, layout))
    for name, structure in chain.rewards.items():
        lines += ["", *reward_structure_lines(name, _of_first_copies(structure, layout), layout.variables[0])]
    return lines, len(commands)


def _header(chain: MarkovChain, layout: VariableLayout, added: AddedState | None, n_commands: int) -> Iterator[str]:
    transitions = "float" if chain.rationals is None else "exact"
    initial = "float" if chain.initial_rationals is None else "exact"
    m = len(layout.categories)
    yield f"{MARKER} {VARIABLES_VERSION}, transitions {transitions}, initial {initial}"
    yield f"// A Markov chain of {chain.n_states} states in {n_commands} commands, with these variables:"
    yield "//   category: what the present step is"
    for name, values in zip(layout.variables[1:], layout.columns.T[1:], strict=True):
        yield f"//   {name}: {_MEANINGS[name].format(m=m, last=values.max())}"
    for i, category in enumerate(layout.categories):
        yield category_line(i, category)
    yield f"// category {m} is success and {m + 1} is failure; the other variables are -1 there."
    for i, group in enumerate(layout.groups):
        yield group_line(i, group)
    yield "// In a name, \\u{hex} is the character of that code point. tracebridge restores the chain from this file"
    yield "// exactly; states are in ascending order of their variables, and named by them."
    if transitions == "float":
        yield "// Probabilities are doubles, digit by digit: a row sums to one up to their rounding only."
    yield from added_state_note(added, f"category={m + 2}")


def category_line(number: int, name: str) -> str:
    """What the header says of a category."""
    return f"// category {number}: {quoted(name)}"


def group_line(number: int, name: str) -> str:
    """What the header says of a group."""
    return f"// group {number}: {quoted(name)}"


def _module(
    chain: MarkovChain, layout: VariableLayout, added: AddedState | None, commands: Sequence[_Command]
) -> Iterator[str]:
    entries = nonzero_texts(chain.initial, chain.initial_rationals)
    start, mass = (layout.added_values, "1") if added is not None else (layout.columns[entries[0][0]], entries[0][1])
    comment = "" if mass in {"1", "1.0"} else f"  // mass {mass}"  # such as 7/7, which restores the count
    low, high = layout.columns.min(axis=0), layout.columns.max(axis=0)
    high[0] += added is not None
    yield "module chain"
    for i, name in enumerate(layout.variables):
        yield f"  {name} : [{low[i]}..{high[i]}] init {start[i]};{'' if i else comment}"
    m = len(layout.categories)
    for category, own in groupby(commands, key=lambda command: command.values[0]):
        name = layout.categories[category] if category < m else ("success", "failure")[category - m]
        yield ""
        yield f"  // {quoted(name)}"
        for command in own:
            shown = 1 if category >= m else len(layout.variables)
            guard = _guard(layout.variables[:shown], command.values[:shown], command.last_step)
            yield f"  [] {guard} -> {' + '.join(command.branches)};"
    if added is not None:
        yield ""
        yield "  // the initial distribution"
        branches = [f"{text}:{_update(layout.variables, layout.columns[i].tolist())}" for i, text in entries]
        yield f"  [] {_guard(layout.variables[:1], layout.added_values[:1])} -> {' + '.join(branches)};"
    yield "endmodule"


def _commands(chain: MarkovChain, layout: VariableLayout) -> Iterator[_Command]:
    """States with the same row together, in the order of their variables, the step last."""
    P, columns = chain.transitions, layout.columns
    texts = entry_texts(P, chain.rationals)
    step = layout.variables.index(STEP) if STEP in layout.variables else None
    updates = _updates(chain, columns, step).tolist()
    indptr = P.indptr.tolist()
    rows = columns.tolist()
    spans = [slice(indptr[i], indptr[i + 1]) for i in range(chain.n_states)]
    others = [column for i, column in enumerate(columns.T) if i != step]
    order = np.lexsort([*([] if step is None else [columns[:, step]]), *reversed(others)]).tolist()
    held: list[int] = []
    for i in order:
        if held and step is not None and _continues(rows[held[-1]], rows[i], step):
            before, now = spans[held[-1]], spans[i]
            if texts[before] == texts[now] and updates[before] == updates[now]:
                held.append(i)
                continue
        if held:
            yield _command(held, rows, spans[held[0]], texts, updates, layout, step)
        held = [i]
    yield _command(held, rows, spans[held[0]], texts, updates, layout, step)


def _continues(before: list[int], now: list[int], step: int) -> bool:
    """Whether two states differ in the step alone, by one."""
    return now[step] == before[step] + 1 and now[:step] + now[step + 1 :] == before[:step] + before[step + 1 :]


def _command(
    held: list[int],
    rows: list[list[int]],
    span: slice,
    texts: list[str],
    updates: list[list[int]],
    layout: VariableLayout,
    step: int | None,
) -> _Command:
    values = tuple(rows[held[0]])
    branches = [
        f"{text}:{_update(layout.variables, update)}" for text, update in zip(texts[span], updates[span], strict=True)
    ]
    last = values[0] if step is None else rows[held[-1]][step]
    return _Command(values=values, last_step=last, branches=tuple(branches))


def _updates(chain: MarkovChain, columns: NDArray[np.int64], step: int | None) -> NDArray[np.int64]:
    """What becomes of each variable in each transition; the category is always said."""
    P = chain.transitions
    own, target = columns[np.repeat(np.arange(chain.n_states), np.diff(P.indptr))], columns[P.indices]
    updates = np.where(own == target, _KEPT, target)
    updates[:, 0] = target[:, 0]
    if step is not None:
        one_more = target[:, step] == own[:, step] + 1
        updates[one_more, step] = _ONE_MORE
    return updates


def _update(variables: Sequence[str], update: Sequence[int]) -> str:
    parts = [
        f"({name}'={f'{name}+1' if value == _ONE_MORE else value})"
        for name, value in zip(variables, update, strict=True)
        if value != _KEPT
    ]
    return " & ".join(parts)


def _guard(variables: Sequence[str], values: Sequence[int], last_step: int | None = None) -> str:
    parts = []
    for name, value in zip(variables, values, strict=True):
        if name == STEP and last_step is not None and last_step > value:
            parts.append(f"{name}>={value} & {name}<={last_step}")
        else:
            parts.append(f"{name}={value}")
    return " & ".join(parts)


def _initial_condition(chain: MarkovChain, layout: VariableLayout) -> str:
    """Where the added state leads to, as few terms as the states need: each is told apart by all its variables."""
    states = np.flatnonzero(chain.initial > 0)
    terms = [f"({_guard(layout.variables, layout.columns[i].tolist())})" for i in states.tolist()]
    return disjunction(terms)


def _of_first_copies(structure: RewardStructure, layout: VariableLayout) -> RewardStructure:
    """The rewards of the categories, of success and of failure."""
    first = layout.first_copy

    def exact(vector: RationalVector | None) -> RationalVector | None:
        return None if vector is None else RationalVector(vector.numerators[first], vector.denominator)

    return replace(
        structure,
        state=structure.state[first],
        action=None if structure.action is None else structure.action[first],
        exact_state=exact(structure.exact_state),
        exact_action=exact(structure.exact_action),
    )
