"""Decision processes in the PRISM language: one module, one variable ``s``, one command a choice, and back.

The file ends with the process as a JSON document in comments (`tracebridge.export.embedded_decision`), so that it is
both a model for PRISM and Storm and a lossless copy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.decision_document import decision_from_dict, decision_to_dict
from tracebridge.errors import UsageError
from tracebridge.export.embedded_decision import embedded_lines, read_embedded
from tracebridge.export.names import identifier_of
from tracebridge.export.prism_text import added_state_note, entry_texts, label_lines, nonzero_texts, quoted
from tracebridge.export.single_start import added_state
from tracebridge.export.whole_file import write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracebridge.chain.decision import DecisionProcess
    from tracebridge.chain.reward_structure import RewardStructure

#: What the first line of a file of ours begins with.
MARKER = "//= tracebridge mdp"

#: Commands. Both tools look at every command in every state.
MAX_CHOICES = 10_000

_VARIABLE, _MODULE = "s", "process"


def is_own_decision(text: str) -> bool:
    """Whether a model text says that tracebridge wrote it as a decision process."""
    return text.startswith(MARKER)


def format_prism_decision(process: DecisionProcess, *, max_choices: int | None = MAX_CHOICES) -> str:
    """The process as the text of a PRISM model of type ``mdp``.

    State ``i`` is ``s=i``. A choice is called by the identifier of its action, or, where choices of a state share that,
    by one that says which it is; a choice without a name has none. Rationals are fractions over one denominator a row,
    doubles the shortest decimals that read back as the same double. A spread initial distribution becomes an added
    first state, as of a chain (`tracebridge.export.single_start`).

    Raises:
        UsageError: more choices than ``max_choices``, or an integer of more than about 4,000 digits.
    """
    if max_choices is not None and process.n_choices > max_choices:
        raise UsageError(
            f"{process.n_choices} choices are too many for the PRISM language (limit {max_choices}): the time that "
            "PRISM and Storm need grows with their square; write another format, such as .drn or .json"
        )
    restored = decision_from_dict(decision_to_dict(process))  # with the row denominators of one that was read
    return "\n".join(_lines(restored)) + "\n"


def write_prism_decision(process: DecisionProcess, path: Path) -> None:
    """Write `format_prism_decision` to a file, which appears whole or not at all.

    Raises:
        UsageError: as `format_prism_decision`. OSError: the file cannot be written.
    """
    write_lines(path, iter(format_prism_decision(process).splitlines()))


def read_own_decision(text: str, *, path: str | None = None) -> DecisionProcess:
    """The process that `format_prism_decision` wrote as this text.

    Args:
        text: line ends may have become CRLF, and blank lines at its end do not matter. path: for messages.

    Raises:
        ModelError: the text was not written by `format_prism_decision`, or was changed since.
    """
    return read_embedded(text, _lines, path=path)


# ---------------------------------------------------------------- parts


def model_lines(process: DecisionProcess) -> Iterator[str]:
    """The lines of the model alone, as tools read it: without the copy that `read_own_decision` restores it from."""
    added = added_state(process.frame)
    yield from ("mdp", "", *_module(process), "", *label_lines(process.frame, _VARIABLE, added))
    for name, structure in process.rewards.items():
        yield from ("", *_rewards(process, name, structure))


def _lines(process: DecisionProcess) -> Iterator[str]:
    yield from (*_head(process), *model_lines(process), "", *embedded_lines(process))


def _head(process: DecisionProcess) -> Iterator[str]:
    yield f"{MARKER} 1"
    yield f"// A decision process of {process.n_states} states and {process.n_choices} choices. The comment behind a"
    yield "// command names its state and its action, that behind a label or a reward structure gives the name that its"
    yield "// identifier stands for. tracebridge restores the process from the document at the end."
    yield from added_state_note(added_state(process.frame), f"{_VARIABLE}={process.n_states}")


def _module(process: DecisionProcess) -> Iterator[str]:
    n = process.n_states
    start = nonzero_texts(process.initial, process.initial_rationals)
    first = start[0][0] if len(start) == 1 else n
    yield f"module {_MODULE}"
    yield f"  {_VARIABLE} : [0..{max(first, n - 1, 1)}] init {first};"  # PRISM refuses a range of one value
    yield ""
    indptr, indices = process.transitions.indptr.tolist(), process.transitions.indices.tolist()
    values = entry_texts(process.transitions, process.rationals)
    row = 0
    for i, names in enumerate(process.actions):
        for name, identifier in zip(names, _identifiers(names), strict=True):
            entries = range(indptr[row], indptr[row + 1])
            branches = _branches([(indices[k], values[k]) for k in entries])
            yield f"  [{identifier}] {_VARIABLE}={i} -> {branches};  // {quoted(process.states[i])}, {quoted(name)}"
            row += 1
    if len(start) > 1:
        yield f"  [] {_VARIABLE}={n} -> {_branches(start)};  // the initial distribution"
    yield "endmodule"


def _branches(entries: list[tuple[int, str]]) -> str:
    return " + ".join(f"{value}:({_VARIABLE}'={target})" for target, value in entries)


def _identifiers(names: tuple[str, ...]) -> list[str]:
    """What the choices of a state are called in the file; no two alike, so that rewards can tell them apart."""
    found = []
    for position, name in enumerate(names):
        identifier = identifier_of(name) if name else ""
        if names.count(name) > 1 or identifier in {_VARIABLE, _MODULE}:
            identifier = f"_x_c{position}_{identifier}"  # as which no name is ever written
        found.append(identifier)
    return found


def _rewards(process: DecisionProcess, name: str, structure: RewardStructure) -> Iterator[str]:
    yield f'rewards "{identifier_of(name)}"  // {quoted(name)}'
    items = [f"  {_VARIABLE}={i} : {value};" for i, value in nonzero_texts(structure.state, structure.exact_state)]
    if structure.action is not None:
        owner = process.state_of_choice
        called = np.array([identifier for names in process.actions for identifier in _identifiers(names)], dtype=object)
        items += [
            f"  [{called[row]}] {_VARIABLE}={owner[row]} : {value};"
            for row, value in nonzero_texts(structure.action, structure.exact_action)
        ]
    yield from items or ["  true : 0;"]  # Storm refuses a structure without items
    yield "endrewards"
