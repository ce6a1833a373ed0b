"""Writing a chain as a DRN file, Storm's explicit format for models of doubles and of rationals.

States, labels and reward structures are called by position and identifier, as the format wants it. What it cannot say
stands in comments at the head (see `tracebridge.export.name_record`), so that `tracebridge.export.drn_reader` gives the
very chain back. Format: Storm, "The DRN format".
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.document import document_text
from tracebridge.export.file_numbers import matrix_texts, vector_texts
from tracebridge.export.name_record import labels_to_write, record_of
from tracebridge.export.single_start import single_start
from tracebridge.export.whole_file import write_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from tracebridge.chain.markov import MarkovChain

#: What a line of the record begins with, and the first line of a file of ours.
RECORD, MARKER = "//= ", "//= tracebridge drn"


def write_drn(chain: MarkovChain, path: str | Path) -> None:
    """Write a chain; the file appears whole or not at all.

    Numbers are fractions over the denominator of their row where the transitions are rationals, else the shortest
    decimals that read back as the same doubles. A spread initial distribution becomes an added first state (see
    `tracebridge.export.single_start`). A label stands for each state under its own name where there are at most
    `MAX_STATE_LABELS`.

    Raises:
        UsageError: an integer too long to be read back. OSError: the file cannot be written.
    """
    write_lines(Path(path), _lines(chain))


def _lines(chain: MarkovChain) -> Iterator[str]:
    written = single_start(chain)
    n = written.n_states
    exact = written.rationals is not None
    yield MARKER
    yield from (RECORD + line for line in document_text(record_of(chain)).splitlines())
    yield from ("@type: DTMC", f"@value_type: {'rational' if exact else 'double'}", "@parameters", "", "@reward_models")
    yield " ".join(written.rewards)
    yield from ("@nr_states", str(n), "@nr_choices", str(n), "@model")
    state_rewards, action_rewards = _bracketed_rewards(written, exact=exact)
    labels = _label_texts(written)
    indptr, targets = written.transitions.indptr.tolist(), written.transitions.indices.tolist()
    values = matrix_texts(written.transitions, written.rationals)
    for i in range(n):
        yield f"state {i}{state_rewards[i]}{labels[i]}"
        yield f"\taction 0{action_rewards[i]}"
        for k in range(indptr[i], indptr[i + 1]):
            yield f"\t\t{targets[k]} : {values[k]}"


def _bracketed_rewards(written: MarkovChain, *, exact: bool) -> tuple[list[str], list[str]]:
    """The rewards of each state and of its action, such as `` [1,0.5]``; nothing where there are no structures.

    There is no space behind the comma: Storm 2.0 reads some doubles one unit in the last place off behind one.
    """
    n = written.n_states
    if not written.rewards:
        return [""] * n, [""] * n
    states, actions = [], []
    for held in written.rewards.values():
        states.append(vector_texts(held.state, held.exact_state if exact else None))
        action = np.zeros(n) if held.action is None else held.action
        actions.append(vector_texts(action, held.exact_action if exact else None))
    return [f" [{','.join(row)}]" for row in zip(*states, strict=True)], [
        f" [{','.join(row)}]" for row in zip(*actions, strict=True)
    ]


def _label_texts(written: MarkovChain) -> list[str]:
    """The labels of each state, each behind a space."""
    texts = [""] * written.n_states
    held: dict[str, NDArray[np.int64]] = {"init": np.flatnonzero(written.initial), **labels_to_write(written)}
    for name, positions in held.items():
        for i in positions.tolist():
            texts[i] += f" {name}"
    return texts
