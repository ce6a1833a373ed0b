"""The runs behind a fit in a JSON document: distinct sequences of states, and which runs took them.

``sequences`` are the distinct sequences, as positions of states with blanks between them, and ``runs`` rows of
[sequence, outcome, task, group, how many]; a task of -1 is not known. Both ascend, so that the same runs in another
order are the same document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import numpy as np

from tracebridge.errors import Location, ModelError
from tracebridge.states.run_paths import RunPaths

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Larger corpora are not written, and not read.
MAX_STEPS, MAX_RUNS = 1_000_000, 1_000_000

_CODE = ">i4"
_SEQUENCE = re.compile(r"([0-9]{1,9}( [0-9]{1,9})*)?", re.ASCII)


class PathsDocument(msgspec.Struct, forbid_unknown_fields=True):
    """The types of `paths_to_dict`'s document."""

    tasks: list[str]
    groups: list[str]
    sequences: list[str]
    runs: list[tuple[int, int, int, int, int]]


def fits_a_document(paths: RunPaths) -> bool:
    """The runs are few enough to be written."""
    return paths.n_steps <= MAX_STEPS and paths.n_runs <= MAX_RUNS


def in_document_order(paths: RunPaths) -> RunPaths:
    """The same runs in the order in which they are read back: by sequence, outcome, task and group."""
    _, sequence = _distinct_sequences(paths)
    return paths.take(np.lexsort((paths.groups, paths.tasks, paths.outcomes, sequence)))


def paths_to_dict(paths: RunPaths) -> dict[str, Any]:
    """The runs as JSON values; the names of their states belong to the fit."""
    sequences, number = _distinct_sequences(paths)
    columns = (number, paths.outcomes, paths.tasks, paths.groups)
    taken = Counter(zip(*(column.tolist() for column in columns), strict=True))
    return {
        "tasks": list(paths.task_names),
        "groups": list(paths.group_names),
        "sequences": [" ".join(map(str, np.frombuffer(each, dtype=_CODE).tolist())) for each in sequences],
        "runs": [[*run, count] for run, count in sorted(taken.items())],
    }


def paths_from_document(document: PathsDocument, states: Sequence[str], path: str | None = None) -> RunPaths:
    """Read `paths_to_dict`'s values, in the order of `in_document_order`.

    Raises:
        ModelError: naming the field: numbers out of range, more than `MAX_STEPS` steps or `MAX_RUNS` runs, or what
            would not be written so.
    """

    def refuse(message: str, field: str) -> NoReturn:
        raise ModelError(message, location=Location(path=path, field=f"paths.{field}"))

    for field in ("tasks", "groups"):
        names = getattr(document, field)
        if names != sorted(set(names)):
            refuse("names must be unique and ascend", field)
    for text in document.sequences:
        if not _SEQUENCE.fullmatch(text):
            refuse(f"{text[:80]!r} is no sequence of numbers such as '0 2 1'", "sequences")
    parts = [np.array(text.split(), dtype=np.int32) for text in document.sequences]
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    if any(not (0 <= run[0] < len(parts) and 1 <= run[4] <= MAX_RUNS) for run in document.runs):
        refuse(
            f"a run takes a sequence that is not there, or is there fewer than once or more than {MAX_RUNS} times",
            "runs",
        )
    if sum(run[4] for run in document.runs) > MAX_RUNS:
        refuse(f"more than {MAX_RUNS} runs", "runs")
    if sum(int(lengths[run[0]]) * run[4] for run in document.runs) > MAX_STEPS:
        refuse(f"more than {MAX_STEPS} steps", "runs")
    if any(not -1 <= number < 2**31 for run in document.runs for number in run):
        refuse("a number is out of range", "runs")
    columns: NDArray[np.int64] = np.array(document.runs, dtype=np.int64).reshape(-1, 5)
    sequence, outcomes, tasks, groups = (np.repeat(column, columns[:, 4]) for column in columns[:, :4].T)
    n_sequences = len(parts)
    try:
        each = RunPaths(
            states=tuple(states),
            codes=np.concatenate([np.empty(0, dtype=np.int32), *parts]),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            outcomes=np.zeros(n_sequences, dtype=np.int8),
            tasks=np.full(n_sequences, -1, dtype=np.int64),
            groups=np.zeros(n_sequences, dtype=np.int64),
        )
        if len(outcomes) and outcomes.max() > 127:
            refuse(f"there is no outcome {outcomes.max()}", "runs")
        paths = replace(
            each.take(sequence),
            outcomes=outcomes.astype(np.int8),
            tasks=tasks,
            groups=groups,
            task_names=tuple(document.tasks),
            group_names=tuple(document.groups),
        )
    except ModelError as error:
        if any(problem.location.path or problem.location.field for problem in error.problems):
            raise
        refuse(str(error), "runs")
    if paths_to_dict(paths) != msgspec.to_builtins(document) | {"runs": [list(run) for run in document.runs]}:
        refuse("sequences and runs must be distinct and ascend, and every sequence must be taken", "runs")
    return paths


def _distinct_sequences(paths: RunPaths) -> tuple[list[bytes], NDArray[np.int64]]:
    """The distinct sequences of states, ascending, as bytes of `_CODE`; and which of them each run took."""
    codes = paths.codes.astype(_CODE)
    size = codes.itemsize
    text, offsets = codes.tobytes(), (paths.offsets * size).tolist()
    keys = [text[a:b] for a, b in pairwise(offsets)]
    ordered = sorted(set(keys))  # bytes of big-endian numbers ascend as the sequences of numbers do
    position = {key: i for i, key in enumerate(ordered)}
    return ordered, np.fromiter(map(position.__getitem__, keys), dtype=np.int64, count=len(keys))
