"""Decision processes as DRN files, Storm's explicit format, and back.

States are called by their positions, labels, actions and reward structures by identifiers. The comments at the head
hold the process as a JSON document (`tracebridge.export.embedded_decision`); files of other tools are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.decision_document import decision_from_dict, decision_to_dict
from tracebridge.errors import UsageError
from tracebridge.export.embedded_decision import embedded_lines, read_embedded
from tracebridge.export.file_numbers import matrix_texts, vector_texts
from tracebridge.export.names import identifier_of
from tracebridge.export.whole_file import write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.chain.decision import DecisionProcess


#: The first line of a file of ours.
MARKER = "//= tracebridge drn mdp"


def write_drn_decision(process: DecisionProcess, path: str | Path) -> None:
    """Write a process; the file appears whole or not at all.

    Numbers are fractions where the transitions are rationals, else the shortest decimals that read back as the same
    doubles.

    Raises:
        UsageError: runs start in several states, or an integer too long to be read back.
        OSError: the file cannot be written.
    """
    if np.count_nonzero(process.initial) != 1:
        raise UsageError("a DRN file starts in one state; write a process with several start states as .json or .prism")
    restored = decision_from_dict(decision_to_dict(process))  # with the row denominators of one that was read
    write_lines(Path(path), _lines(restored))


def is_own_drn_decision(text: str) -> bool:
    """Whether a text says that tracebridge wrote it as a decision process."""
    return text.startswith(MARKER)


def read_drn_decision(path: str | Path) -> DecisionProcess:
    """The process that `write_drn_decision` wrote.

    Raises:
        ModelError: the file was changed since.
    """
    text = Path(path).read_bytes().decode("utf-8", "replace")  # what is replaced differs from what would be written
    return read_embedded(text, _lines, path=str(path))


def _lines(process: DecisionProcess) -> Iterator[str]:
    yield MARKER
    yield from embedded_lines(process)
    n, exact = process.n_states, process.rationals is not None
    yield from ("@type: MDP", f"@value_type: {'rational' if exact else 'double'}", "@parameters", "", "@reward_models")
    yield " ".join(identifier_of(name) for name in process.rewards)
    yield from ("@nr_states", str(n), "@nr_choices", str(process.n_choices), "@model")
    state_rewards = [vector_texts(held.state, held.exact_state if exact else None) for held in process.rewards.values()]
    nothing = np.zeros(process.n_choices)
    action_rewards = [
        vector_texts(nothing if held.action is None else held.action, held.exact_action if exact else None)
        for held in process.rewards.values()
    ]
    labels: dict[str, NDArray[np.bool_]] = {"init": process.initial > 0}
    labels |= {identifier_of(name): mask for name, mask in process.labels.items()}
    indptr, targets = process.transitions.indptr.tolist(), process.transitions.indices.tolist()
    values = matrix_texts(process.transitions, process.rationals)
    starts = process.choice_starts.tolist()
    for i in range(n):
        held = "".join(f" {name}" for name, mask in labels.items() if mask[i])
        yield f"state {i}{_bracketed(state_rewards, i)}{held}"
        for row in range(starts[i], starts[i + 1]):
            name = process.actions[i][row - starts[i]]
            yield f"\taction {identifier_of(name) if name else '__NOLABEL__'}{_bracketed(action_rewards, row)}"
            for k in range(indptr[row], indptr[row + 1]):
                yield f"\t\t{targets[k]} : {values[k]}"


def _bracketed(columns: list[list[str]], position: int) -> str:
    """The rewards there, `` [1,0.5]``; nothing without a structure. No space behind the comma (see `drn`)."""
    return f" [{','.join(column[position] for column in columns)}]" if columns else ""
