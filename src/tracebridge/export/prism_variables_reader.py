"""Reading back the PRISM files with variables that tracebridge wrote: the same chain, by its variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.expanded.naming import (
    CATEGORY,
    GROUP,
    OUTCOME_STATES,
    PREVIOUS,
    STEP,
    VARIABLES,
    expanded_names,
)
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.chain.state_annotations import IMPLICIT_LABELS
from tracebridge.errors import ModelError
from tracebridge.export.prism_numbers import RejectedLineError, read_distribution

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from tracebridge.export.prism_lines import RewardItems
    from tracebridge.export.prism_variable_lines import RangeCommand, VariableLines

    Integers = NDArray[np.int64]

#: A short file could ask for far more.
MAX_STATES, MAX_TRANSITIONS = 200_000, 20_000_000


def chain_with_variables(lines: VariableLines) -> MarkovChain:
    """The chain that the lines say.

    Raises:
        ModelError: what they say together is no chain, with the line of the problem where there is one.
    """
    _require_complete(lines)
    n_steps = np.array([1 + command.last_step - _first_step(lines, command) for command in lines.ranges])
    n_branches = np.array([len(command.updates) for command in lines.ranges])
    if n_steps.sum() > MAX_STATES or n_steps @ n_branches > MAX_TRANSITIONS:
        raise _problem(lines, f"the commands are about {n_steps.sum()} states, more than can be held")
    command_of = np.repeat(np.arange(len(lines.ranges)), n_steps)
    states = np.array([command.values for command in lines.ranges], dtype=np.int64)[command_of]
    if STEP in lines.start:
        first = np.repeat(np.cumsum(n_steps) - n_steps, n_steps)
        states[:, lines.variables.index(STEP)] += np.arange(len(states)) - first
    _require_values(lines, states, command_of)
    targets, source, branch_of = _targets(lines, states, command_of, n_branches)
    firsts = _first_targets(lines)
    ranks = _ranks(np.concatenate([states, targets, firsts]))
    own, rest = ranks[: len(states)], ranks[len(states) :]
    order = np.argsort(own, kind="stable")
    known = own[order]
    if (twice := np.flatnonzero(np.diff(known) == 0)).size:
        line = lines.ranges[command_of[order[twice[0] + 1]]].line
        raise _problem(lines, "another command is about the same state", line)
    places = np.minimum(np.searchsorted(known, rest), len(known) - 1)
    lost = known[places] != rest
    if lost[: len(targets)].any():
        line = lines.ranges[command_of[source[np.argmax(lost)]]].line
        raise _problem(lines, "a branch leads to a state that no command is about", line)
    if lost.any():
        raise _problem(lines, "runs start in a state that no command is about", _first_line(lines))
    position = np.empty(len(states), dtype=np.int64)
    position[order] = np.arange(len(states))
    columns = states[order]
    matrix = _matrix(lines, position[source], places[: len(targets)], branch_of, command_of[order], n_branches)
    return _named_chain(lines, columns, matrix, _initial(lines, places[len(targets) :], len(states)))


def _require_complete(lines: VariableLines) -> None:
    m = len(lines.names[CATEGORY])
    declared = lines.variables
    if len(declared) < 2 or declared != [name for name in VARIABLES if name in declared] or declared[0] != CATEGORY:
        raise _problem(lines, f"the file does not declare variables of the order {', '.join(VARIABLES)}")
    if not m or not lines.ranges:
        raise _problem(lines, "the file ends without a category or without a command")
    for command in lines.ranges:
        if (command.values[0] < m) != all(value >= 0 for value in command.values):
            raise _problem(lines, "the guard does not give the values that a state of this category has", command.line)


def _first_step(lines: VariableLines, command: RangeCommand) -> int:
    return command.values[lines.variables.index(STEP)] if STEP in lines.start else command.last_step


def _require_values(lines: VariableLines, states: Integers, command_of: Integers) -> None:
    """Values that have a name or a meaning."""
    m = len(lines.names[CATEGORY])
    most = {CATEGORY: m + 1, PREVIOUS: m, GROUP: len(lines.names[GROUP]) - 1}
    for name, column in zip(lines.variables, states.T, strict=True):
        if name in most and (beyond := np.flatnonzero(column > most[name])).size:
            line = lines.ranges[command_of[beyond[0]]].line
            raise _problem(lines, f"{name}={column[beyond[0]]}, but the header names {most[name] + 1} of them", line)


def _targets(
    lines: VariableLines, states: Integers, command_of: Integers, n_branches: Integers
) -> tuple[Integers, Integers, Integers]:
    """Where every branch of every state leads, shape (branches, variables), from which state, and which it is."""
    width = len(lines.variables)
    values = np.zeros((int(n_branches.sum()), width), dtype=np.int64)
    is_set = np.zeros(values.shape, dtype=np.bool_)
    growing = np.zeros(len(values), dtype=np.bool_)
    for k, update in enumerate(update for command in lines.ranges for update in command.updates):
        growing[k] = update.one_more
        for i, value in update.values.items():
            values[k, i], is_set[k, i] = value, True
    of_state = n_branches[command_of]
    source = np.repeat(np.arange(len(states)), of_state)
    begin = np.cumsum(n_branches) - n_branches
    within = np.arange(len(source)) - np.repeat(np.cumsum(of_state) - of_state, of_state)
    branch_of = begin[command_of[source]] + within
    targets = np.where(is_set[branch_of], values[branch_of], states[source])
    if STEP in lines.start:
        targets[:, lines.variables.index(STEP)] += growing[branch_of]
    return targets, source, branch_of


def _first_targets(lines: VariableLines) -> Integers:
    """Where runs start, shape (starts, variables)."""
    if lines.first is None:
        return np.array([list(lines.start.values())], dtype=np.int64)
    n = len(lines.variables)
    if any(update.one_more or update.values.keys() != set(range(n)) for update in lines.first.updates):
        raise _problem(lines, "a branch of the initial distribution gives every variable a value", lines.first.line)
    rows = [[update.values[i] for i in range(n)] for update in lines.first.updates]
    return np.array(rows, dtype=np.int64)


def _ranks(rows: Integers) -> Integers:
    """A number for each different row, in the order of their values."""
    found = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        different, place = np.unique(column, return_inverse=True)
        _, found = np.unique(found * len(different) + place, return_inverse=True)
    return found


def _matrix(
    lines: VariableLines,
    source: Integers,
    target: Integers,
    branch_of: Integers,
    command_of: Integers,
    n_branches: Integers,
) -> csr_array | RationalMatrix:
    n = len(command_of)
    order = np.lexsort((target, source))
    source, target, branch_of = source[order], target[order], branch_of[order]
    same = (np.diff(source) == 0) & (np.diff(target) == 0)
    if same.any():
        line = lines.ranges[command_of[source[np.argmax(same)]]].line
        raise _problem(lines, "two branches lead to the same state; write one with their sum", line)
    indptr = np.concatenate([[0], np.cumsum(n_branches[command_of])]).astype(np.int64)
    values = [value for command in lines.ranges for value in command.distribution.values]
    if not lines.exact_transitions:
        return csr_array((np.array(values, dtype=np.float64)[branch_of], target, indptr), shape=(n, n))
    bottoms = np.array([command.distribution.denominator for command in lines.ranges], dtype=object)
    return RationalMatrix(indptr, target, np.array(values, dtype=object)[branch_of], bottoms[command_of], n)


def _initial(lines: VariableLines, places: Integers, n: int) -> NDArray[np.float64] | RationalVector:
    if lines.first is not None:
        weights = lines.first.distribution
    else:
        try:
            weights = read_distribution([(0, lines.mass or "1")], "the initial mass", exact=lines.exact_initial)
        except RejectedLineError as rejected:
            raise _problem(lines, str(rejected.args[0])) from None
    vector: NDArray[Any] = np.zeros(n, dtype=np.float64 if weights.denominator is None else object)
    if len(np.unique(places)) < len(places):
        raise _problem(lines, "two branches lead to the same state", _first_line(lines))
    for place, value in zip(places.tolist(), weights.values, strict=True):
        vector[place] = value
    return vector if weights.denominator is None else RationalVector(vector, weights.denominator)


def _named_chain(
    lines: VariableLines,
    columns: Integers,
    matrix: csr_array | RationalMatrix,
    initial: NDArray[np.float64] | RationalVector,
) -> MarkovChain:
    """The chain with the names that follow from its variables, which are in order."""
    m = len(lines.names[CATEGORY])
    category = columns[:, 0]
    if not np.array_equal(np.unique(category[-2:]), [m, m + 1]) or np.count_nonzero(category >= m) != 2:
        raise _problem(lines, f"category={m} and category={m + 1} need one command each")
    if lines.farthest[0] > m + 1:
        raise _problem(lines, f"category={lines.farthest[0]}, but there are {m + 2} of them", lines.farthest[1])
    variables = dict(zip(lines.variables, columns.T, strict=True))
    labels = {}
    for name, label in lines.labels.items():
        mask = np.zeros(m + 2, dtype=np.bool_)
        for first, last in label.runs:
            mask[first : last + 1] = True
        labels[name] = mask[category]
    own = {name: values[:-2] for name, values in variables.items()}
    names = expanded_names(lines.names[CATEGORY], lines.names[GROUP], own, {*labels, *IMPLICIT_LABELS})
    return MarkovChain(
        states=(*names, *OUTCOME_STATES),
        transitions=matrix,
        initial=initial,  # type: ignore[arg-type]
        labels=labels,
        rewards={name: _structure(items, category, m + 2) for name, items in lines.rewards.items()},
        variables=variables,
    )


def _structure(items: RewardItems, category: Integers, n_categories: int) -> RewardStructure:
    state, exact_state = _earned(items.state, items.state_denominator, category, n_categories)
    action, exact_action = None, None
    if items.action is not None:
        action, exact_action = _earned(items.action, items.action_denominator, category, n_categories)
    return RewardStructure(state=state, action=action, exact_state=exact_state, exact_action=exact_action)


def _earned(
    values: dict[int, int | float], denominator: int | None, category: Integers, n_categories: int
) -> tuple[NDArray[np.float64], RationalVector | None]:
    found: NDArray[Any] = np.zeros(n_categories, dtype=np.float64 if denominator is None else object)
    for i, value in values.items():
        found[i] = value
    if denominator is None:
        return found[category], None
    exact = RationalVector(found[category], denominator)
    return exact.to_float(), exact


def _first_line(lines: VariableLines) -> int | None:
    return None if lines.first is None else lines.first.line


def _problem(lines: VariableLines, message: str, line: int | None = None) -> ModelError:
    return ModelError(lines.problem(message, line=line))
