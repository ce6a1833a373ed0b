"""Reading back the PRISM files that tracebridge wrote: the same chain, number by number and name by name.

This is no reader of the PRISM language. It takes what `tracebridge.export.prism.format_prism` writes: the chain is
collected line by line (`tracebridge.export.prism_lines`), written again, and the two texts must be equal, so that an
edit which the comments do not reflect is found instead of being read half.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array

from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import ModelError, Problem
from tracebridge.export.prism import format_prism
from tracebridge.export.prism_lines import PrismLines, RewardItems
from tracebridge.export.prism_numbers import UNDO
from tracebridge.export.prism_text import MARKER, VARIABLES_VERSION
from tracebridge.export.prism_variable_lines import VariableLines
from tracebridge.export.prism_variables_reader import chain_with_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.export.prism_lines import Variable
    from tracebridge.export.prism_numbers import Distribution

_MAX_LABEL_ENTRIES = 10**9  # truth values of all labels; a short file could ask for far more
_MAX_MISSING = 5  # states without a command that are listed


def is_own_prism(text: str) -> bool:
    """Whether a model text says that tracebridge wrote it."""
    return text.startswith(MARKER + " ")


def read_own_prism(text: str, *, path: str | None = None) -> MarkovChain:
    """The chain that `format_prism` wrote as this text: equal in every name, number, order and variable.

    In a file of the one variable ``s`` the order of branches and the denominators in a row may have been changed by
    hand: they are read as what they are.

    Args:
        text: the text; its line ends may have become CRLF, and blank lines at its end do not matter.
        path: where it came from, for messages.

    Raises:
        ModelError: the text was not written by `format_prism`, was changed since into what that would not write, or its
            chain breaks an invariant; with the line of each problem.
    """
    found = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    has_variables = text.startswith(f"{MARKER} {VARIABLES_VERSION},")
    lines = VariableLines(path=path) if has_variables else PrismLines(path=path)
    spelled = []
    for line in found:
        spelled.append(lines.take(line))
        if lines.line == 1 and lines.problems:
            break  # none of ours: nothing else would make sense
    problems = lines.problems
    if not problems and not isinstance(lines, VariableLines):
        problems = list(_problems(lines))
    if problems:
        raise ModelError(problems)
    try:
        chain = chain_with_variables(lines) if isinstance(lines, VariableLines) else _chain(lines)
    except ModelError as error:
        located = (replace(problem, location=replace(problem.location, path=path)) for problem in error.problems)
        raise ModelError(located) from error
    expected = format_prism(chain, max_states=None).rstrip("\n").split("\n")
    for problem in _difference(spelled, expected, lines):
        raise ModelError(problem)
    return chain


# ---------------------------------------------------------------- what the lines say together


def _problems(lines: PrismLines) -> Iterator[Problem]:
    """What is wrong between lines that are right by themselves."""
    variable = lines.variable
    if variable is None:
        yield lines.problem("the file ends without a line 's : [0..k] init i;'")
        return
    if not lines.commands:
        yield lines.problem("the file ends without a command '[] s=0 -> ...', and so without a state")
        return
    n = _n_states(lines, variable)
    known = f"the states are s=0 to s={n - 1}"
    if lines.added is not None and variable.start != lines.added.state:
        message = (
            f"init {variable.start}, but s={lines.added.state} leads to the initial states (line {lines.added.line})"
        )
        yield lines.problem(message, line=variable.line)
    elif lines.added is None and variable.start >= n:
        yield lines.problem(f"init {variable.start}, but {known}", line=variable.line)
    for command in lines.commands.values():
        if command.state >= n:
            yield lines.problem(f"a command for s={command.state}, but {known}{_range(variable)}", line=command.line)
    yield from _missing(lines, variable, n)
    position, line = lines.farthest
    if position >= n:
        yield lines.problem(f"the line speaks of s={position}, but {known}{_range(variable)}", line=line)
    yield from _misplaced_state_labels(lines)
    if n * len(lines.labels) > _MAX_LABEL_ENTRIES:
        yield lines.problem(f"{len(lines.labels)} labels over {n} states are more than can be held", None)


def _n_states(lines: PrismLines, variable: Variable) -> int:
    """How many states there should be: up to the added first state, else up to the largest value of ``s``."""
    if lines.added is not None:
        return lines.added.state
    if variable.highest == 1 and max(lines.farthest[0], *lines.commands) == 0:
        return 1  # PRISM refuses a range of one value
    return variable.highest + 1


def _range(variable: Variable) -> str:
    return f" (line {variable.line} has s go up to {variable.highest})"


def _missing(lines: PrismLines, variable: Variable, n: int) -> Iterator[Problem]:
    """States without a command, each with the line where it should be; the first few."""
    after = min(command.line for command in lines.commands.values()) - 1
    previous = after
    for state in islice((i for i in range(n) if i not in lines.commands), _MAX_MISSING):
        if state - 1 in lines.commands:
            previous = lines.commands[state - 1].line
        name = f", {lines.state_names[state]!r}," if state in lines.state_names else ""
        message = f"state s={state}{name} has no command, which should be here{_range(variable)}"
        yield lines.problem(message, line=min(previous + 1, lines.line))


def _misplaced_state_labels(lines: PrismLines) -> Iterator[Problem]:
    for command in lines.commands.values():
        label = lines.labels.get(command.name or "")
        if label is not None and label.runs != [(command.state, command.state)]:
            yield lines.problem(
                f"the label {command.name!r} must hold in s={command.state} alone, the state of that name "
                f"(line {command.line})",
                line=label.line,
            )


def _chain(lines: PrismLines) -> MarkovChain:
    n = len(lines.commands)
    commands = [lines.commands[i] for i in range(n)]
    assert lines.variable is not None  # noqa: S101 - else `_problems` told
    mass = lines.variable.mass if lines.added is None else lines.added.distribution
    return MarkovChain(
        states=tuple(command.name or "" for command in commands),
        transitions=_transitions([command.distribution for command in commands]),
        initial=_vector(dict(zip(mass.targets, mass.values, strict=True)), mass.denominator, n),  # type: ignore[arg-type]
        labels={name: _mask(label.runs, n) for name, label in lines.labels.items()},
        rewards={name: _structure(items, n) for name, items in lines.rewards.items()},
    )


def _transitions(rows: list[Distribution]) -> csr_array | RationalMatrix:
    n = len(rows)
    indptr = np.cumsum([0, *(len(row.targets) for row in rows)], dtype=np.int64)
    indices = np.array([target for row in rows for target in row.targets], dtype=np.int64)
    values = [value for row in rows for value in row.values]
    denominators = [row.denominator for row in rows if row.denominator is not None]
    if not denominators:
        return csr_array((np.array(values, dtype=np.float64), indices, indptr), shape=(n, n))
    return RationalMatrix(indptr, indices, np.array(values, dtype=object), np.array(denominators, dtype=object), n)


def _structure(items: RewardItems, n: int) -> RewardStructure:
    state, exact_state = _rewards(items.state, items.state_denominator, n)
    action, exact_action = (None, None) if items.action is None else _rewards(items.action, items.action_denominator, n)
    return RewardStructure(state=state, action=action, exact_state=exact_state, exact_action=exact_action)


def _rewards(
    values: dict[int, int | float], denominator: int | None, n: int
) -> tuple[NDArray[np.float64], RationalVector | None]:
    vector = _vector(values, denominator, n)
    return (vector.to_float(), vector) if isinstance(vector, RationalVector) else (vector, None)


def _vector(values: dict[int, int | float], denominator: int | None, n: int) -> NDArray[np.float64] | RationalVector:
    """The values at their positions, shape (n,); doubles where there is no denominator."""
    vector = np.zeros(n, dtype=np.float64 if denominator is None else object)
    for i, value in values.items():
        vector[i] = value
    return vector if denominator is None else RationalVector(vector, denominator)


def _mask(runs: list[tuple[int, int]], n: int) -> NDArray[np.bool_]:
    mask = np.zeros(n, dtype=np.bool_)
    for first, last in runs:
        mask[first : last + 1] = True
    return mask


# ---------------------------------------------------------------- what would have been written


def _difference(found: list[str], expected: list[str], lines: PrismLines) -> Iterator[Problem]:
    """The first line that differs; a missing one is told at the last line that there is."""
    for number, (line, other) in enumerate(zip_longest(found, expected), start=1):
        if line == other:
            continue
        if line is None:
            message = f"the file ends after this line, where tracebridge would go on with {other[:80]!r}"
        elif other is None:
            message = f"the file says that tracebridge wrote it, but that would end before this line, {line[:80]!r}"
        else:
            message = (
                f"the file says that tracebridge wrote it, but this line is {line[:80]!r} where it would write "
                f"{other[:80]!r}"
            )
        yield lines.problem(message, UNDO, line=min(number, len(found)))
        return
