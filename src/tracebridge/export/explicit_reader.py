"""Reading explicit files: ``model.tra`` and what stands beside it, in PRISM's dialect or in Storm's.

With the ``model.names.json`` of `tracebridge.export.explicit.write_explicit` the written chain comes back. Without it
the files of any tool are read for what they say, and what they lack is as the tools have it: states are called by their
variables (``s=4``; those of the ``.sta`` file if there is one), state 0 is the initial one where there is no ``.lab``
file, a reward structure without a name is ``rewards``, and rewards of transitions become those of leaving a state (see
`tracebridge.export.explicit_rewards`).
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.document import read_document
from tracebridge.chain.markov import MarkovChain
from tracebridge.errors import ModelError
from tracebridge.export.explicit import beside
from tracebridge.export.explicit_labels import read_labels, read_states
from tracebridge.export.explicit_rewards import read_rewards
from tracebridge.export.explicit_tables import first_data_line, is_tra, read_counts, read_table
from tracebridge.export.file_numbers import transition_matrix
from tracebridge.export.name_record import checked_record, file_states, one_start, restore_names
from tracebridge.export.names import identifier_of
from tracebridge.export.whole_file import LineFile, refuse_file

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.chain.rational import RationalMatrix
    from tracebridge.export.explicit import Dialect
    from tracebridge.export.name_record import NameRecord

__all__ = ["is_tra", "read_explicit"]

_MAX_RECORD_BYTES = 2**30

_COMMENT = re.compile(rb"#[^\n]*+")

_OTHER_TYPES = (b"mdp", b"ctmc", b"ma", b"pomdp", b"smg")


def read_explicit(path: str | Path, *, fix_deadlocks: bool = False) -> MarkovChain:
    """The chain in ``model.tra`` and the files beside it; the dialect is told by the content.

    Args:
        path: the ``.tra`` file. fix_deadlocks: give a loop to states without transitions, which are refused otherwise,
            and take states that a tool has given one, and the label ``deadlock``, as ordinary states.

    Raises:
        ModelError: a file cannot be read, is malformed, does not fit the others or breaks an invariant; with its path
            and, where there is one, the line.
    """
    tra = Path(path)
    stem = tra.with_suffix("") if tra.suffix == ".tra" else tra
    names = beside(stem, ".names.json")
    record = _record(names) if names.exists() else None
    exact = _has_fractions(tra) if record is None else record.exact
    matrix, dialect = _transitions(tra, exact=exact, fix_deadlocks=fix_deadlocks)
    n = matrix.shape[0]
    start, labels = _labels(beside(stem, ".lab"), n, dialect, fix_deadlocks=fix_deadlocks)
    states = beside(stem, ".sta")  # which says nothing that the names do not
    variables = read_states(states, n) if record is None and states.exists() else {}
    files = _reward_files(stem, None if record is None else len(record.rewards))
    rewards = read_rewards(files, matrix, dialect=dialect)
    if record is not None and dialect == "storm":  # its reward files give no names
        rewards = dict(zip((identifier_of(reward.name) for reward in record.rewards), rewards.values(), strict=True))
    try:
        found = MarkovChain(
            states=file_states(n, {name: values.tolist() for name, values in variables.items()}),
            transitions=matrix,
            initial=one_start(start, n, exact=exact),  # type: ignore[arg-type]  # takes a RationalVector too
            labels=labels,
            rewards=rewards,
            variables=variables,
        )
    except ModelError as error:
        placed = (replace(each, location=replace(each.location, path=str(tra))) for each in error.problems)
        raise ModelError(placed) from error
    return found if record is None else restore_names(found, record, path=str(names))


def _record(path: Path) -> NameRecord:
    if path.stat().st_size > _MAX_RECORD_BYTES:
        refuse_file(path, f"is larger than {_MAX_RECORD_BYTES} bytes")
    return checked_record(read_document(path), str(path))


def _has_fractions(path: Path) -> bool:
    with LineFile(path) as file:
        first_data_line(file)
        return any(b"/" in _COMMENT.sub(b"", block) for _, block in file.blocks())


def _transitions(path: Path, *, exact: bool, fix_deadlocks: bool) -> tuple[csr_array | RationalMatrix, Dialect]:
    with LineFile(path) as file:
        line, _ = first_data_line(file)
        if line.lower() in _OTHER_TYPES:
            file.refuse(f"this is a model of type {line.decode()}; explicit files are read of type dtmc")
        n = announced = None
        if line != b"dtmc":
            n, announced = read_counts(file, line, "states and of transitions (or 'dtmc', as Storm has it)")
        sources, targets, values = read_table(file, 2, exact=exact)
        if announced is not None and len(sources) != announced:
            file.refuse(f"the file has {len(sources)} transitions where it announces {announced}", line=None)
        if not len(sources):
            file.refuse("the file has no transitions", line=None)
        if n is None:
            n = int(max(sources.max(), targets.max())) + 1
        dialect: Dialect = "storm" if announced is None else "prism"
        return transition_matrix(n, sources, targets, values, fix_deadlocks=fix_deadlocks), dialect


def _labels(path: Path, n: int, dialect: Dialect, *, fix_deadlocks: bool) -> tuple[int, dict[str, NDArray[np.bool_]]]:
    """The initial state and the labels that a tool does not set itself."""
    if not path.exists():
        return 0, {}
    labels = read_labels(path, n, dialect=dialect)
    deadlock = np.flatnonzero(labels.pop("deadlock", np.zeros(0, dtype=np.bool_)))
    if len(deadlock) and not fix_deadlocks:
        message = f'the label "deadlock" holds in state {deadlock[0]}, but no state of a chain is one'
        refuse_file(path, message, "a tool gave the state a loop: take the label away, or have deadlocks fixed")
    start = np.flatnonzero(labels.pop("init", np.zeros(0, dtype=np.bool_)))
    if len(start) != 1:
        message = f'the label "init" holds in {len(start) or "no"} states, and the file does not say how likely each is'
        refuse_file(path, message, "give one initial state; one that leads to the others makes a spread start")
    return int(start[0]), labels


def _reward_files(stem: Path, known: int | None) -> list[tuple[Path, Path]]:
    """The pairs of reward files: ``known`` of them, else the one without a number, or those from 1 on."""
    single = _pair(stem, "")
    if known == 1 or (known is None and any(path.exists() for path in single)):
        return [single]
    if known is not None:
        return [_pair(stem, str(k)) for k in range(1, known + 1)]
    # `model1.srew` may also belong to a `model1.tra`.
    numbers = takewhile(lambda k: not beside(stem, f"{k}.tra").exists(), count(1))
    pairs = (_pair(stem, str(k)) for k in numbers)
    return list(takewhile(lambda pair: any(path.exists() for path in pair), pairs))


def _pair(stem: Path, number: str) -> tuple[Path, Path]:
    return beside(stem, f"{number}.srew"), beside(stem, f"{number}.trew")
