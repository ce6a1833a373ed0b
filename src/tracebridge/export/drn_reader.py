"""Reading DRN files, Storm's explicit format, for Markov chains in discrete time of doubles or of rationals.

With the record that `tracebridge.export.drn.write_drn` puts into comments the written chain comes back. Files of Storm
are read for what they say; states are then called by their position, ``s=4``. Parameters, placeholders, intervals and
other types of model are refused. The value type of a file decides whether its numbers are rationals; where it gives
none they are doubles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.markov import MarkovChain
from tracebridge.errors import ModelError
from tracebridge.export.drn import MARKER, RECORD
from tracebridge.export.file_numbers import NumberColumn, reward_structure, reward_vector, transition_matrix
from tracebridge.export.name_record import checked_record, file_states, one_start, restore_names
from tracebridge.export.whole_file import LineFile, shown
from tracebridge.traces.text_document import parse_document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.export.name_record import NameRecord

_MAX_LABEL_ENTRIES = 10**9  # truth values of all labels; a short file could ask for far more
_MAX_REWARDS = 1_000
_MAX_RECORD_BYTES = 2**30

_STATE = re.compile(rb"state ([0-9]{1,18})[ \t]*+(?:\[([^\]]*)\])?[ \t]*+(.*)")
_ACTION = re.compile(rb"action (\S+)[ \t]*+(?:\[([^\]]*)\])?[ \t]*+")
_LABEL = re.compile(rb'"([^"]+)"|([^\s"]+)')
_LABELS = re.compile(rb'(?:(?:"[^"]+"|[^\s"]++)\s*+)*+')
_PIECE = re.compile(rb"((?:[ \t]*+[0-9]{1,18} : [0-9.eE+\-/]++[ \t]*+\n)++)|[^\n]*+\n")  # transitions, or another line
_COUNT = re.compile(rb"[0-9]{1,18}")
_NUMBER = re.compile(rb"[0-9.eE+\-/]++")
_HEADER_KEY = re.compile(r"\s*@(type|value_type|parameters|reward_models|nr_states|placeholders)\b")


def is_drn(head: str) -> bool:
    """Whether a text begins as DRN files do: with a key such as ``@type`` behind comments, or as ours do."""
    if head.startswith(MARKER):
        return True
    lines = (line for line in head.splitlines() if line.strip() and not line.startswith("//"))
    return _HEADER_KEY.match(next(lines, "")) is not None


def read_drn(path: str | Path, *, fix_deadlocks: bool = False) -> MarkovChain:
    """The chain in a DRN file.

    Args:
        path: the file. fix_deadlocks: give a loop to states without transitions, which are refused otherwise, and take
            those labelled ``deadlock`` as ordinary states.

    Raises:
        ModelError: the file cannot be read, is malformed or breaks an invariant; with the line.
    """
    with LineFile(Path(path)) as file:
        header = _header(file)
        body = _Body(file, header)
        for first, block in file.blocks():
            body.take(first, block)
        return body.chain(fix_deadlocks=fix_deadlocks)


# ---------------------------------------------------------------- the head


@dataclass(slots=True, kw_only=True)
class _Header:
    exact: bool = False
    n: int = 0
    rewards: list[str] = field(default_factory=list)
    record: NameRecord | None = None


def _header(file: LineFile) -> _Header:
    header = _Header()
    seen: set[bytes] = set()
    record: list[bytes] = []
    size = 0
    while (line := file.next_line()) != b"@model":
        if line is None:
            file.refuse("the file ends before a line @model", line=None)
        if line.startswith(RECORD.encode()) and line != MARKER.encode():
            record.append(line[len(RECORD) :])
            size += len(line)
            if size > _MAX_RECORD_BYTES:
                file.refuse(f"the names take more than {_MAX_RECORD_BYTES} bytes")
        if not line or line.startswith(b"//"):
            continue
        key, _, value = line.partition(b":")
        if key in seen:
            file.refuse(f"{shown(key)} is given twice")
        seen.add(key)
        _take_key(file, header, key, value.strip())
    if b"@type" not in seen or not header.n:
        file.refuse("the file gives no @type, or no states in @nr_states, before @model")
    if record:
        data = parse_document(b"\n".join(record).decode("utf-8", "replace"), str(file.path))
        header.record = checked_record(data, str(file.path))
    return header


def _take_key(file: LineFile, header: _Header, key: bytes, value: bytes) -> None:
    match key:
        case b"@type":
            if value.upper() != b"DTMC":
                file.refuse(f"this is a model of type {shown(value)}; tracebridge reads DTMCs")
        case b"@value_type":
            if value not in {b"double", b"rational"}:
                file.refuse(f"the values are of type {shown(value)}; tracebridge reads double and rational")
            header.exact = value == b"rational"
        case b"@parameters":
            if names := file.next_line():
                file.refuse(f"the model has the parameters {shown(names)}", "instantiate them before writing the file")
        case b"@placeholders":
            file.refuse("placeholders are not read", "write the file without: allow_placeholders = False")
        case b"@reward_models":
            header.rewards = [name.decode("utf-8", "replace") for name in (file.next_line() or b"").split()]
            if len(set(header.rewards)) != len(header.rewards) or len(header.rewards) > _MAX_REWARDS:
                file.refuse(f"two reward models have the same name, or there are more than {_MAX_REWARDS}")
        case b"@nr_states" | b"@nr_choices":
            text = file.next_line() or b""
            if not _COUNT.fullmatch(text) or (header.n and int(text) != header.n):
                file.refuse(f"{shown(text)} should be the number of states, the same in @nr_states and @nr_choices")
            header.n = int(text)
        case _:
            file.refuse(f"{shown(key)} is no key of a DRN file")


# ---------------------------------------------------------------- the states


class _Rewards:
    """The rewards of one kind, of states or of actions: one column a structure, zeros left out."""

    def __init__(self, file: LineFile, names: list[str], *, exact: bool) -> None:
        self._file = file
        self._names = names
        self._pending: list[tuple[list[bytes], list[int]]] = [([], []) for _ in names]
        self._positions: list[list[int]] = [[] for _ in names]
        self._columns = [NumberColumn(file, exact=exact) for _ in names]

    def take(self, texts: bytes | None, state: int, line: int) -> None:
        if texts is None:
            return
        numbers = [text.strip() for text in texts.split(b",")]
        if len(numbers) != len(self._names):
            message = f"{len(numbers)} rewards where @reward_models names {len(self._names)}"
            self._file.refuse(message, line=line)
        for k, number in enumerate(numbers):
            if number != b"0":
                _check_number(self._file, number, line)
                self._pending[k][0].append(number)
                self._pending[k][1].append(line)
                self._positions[k].append(state)

    def flush(self) -> None:
        for column, (tokens, lines) in zip(self._columns, self._pending, strict=True):
            if tokens:
                column.add(tokens, lines)
        self._pending = [([], []) for _ in self._names]

    def column(self, k: int) -> tuple[NDArray[np.int64], NumberColumn]:
        return np.array(self._positions[k], dtype=np.int64), self._columns[k]


class _Body:
    """The lines behind @model, block by block."""

    def __init__(self, file: LineFile, header: _Header) -> None:
        self._file = file
        self._header = header
        self._state = -1
        self._has_action = False
        self._sources: list[NDArray[np.int64]] = []
        self._targets: list[NDArray[np.int64]] = []
        self._values = NumberColumn(file, exact=header.exact)
        self._labels: dict[bytes, list[int]] = {}
        self._of_states = _Rewards(file, header.rewards, exact=header.exact)
        self._of_actions = _Rewards(file, header.rewards, exact=header.exact)

    def take(self, first: int, block: bytes) -> None:
        """Some whole lines; ``first`` is the number of the first one."""
        targets: list[bytes] = []
        values: list[bytes] = []
        runs: list[tuple[int, int, int]] = []  # of transitions: the state, the first line, how many
        line = first
        for match in _PIECE.finditer(block):
            if match[1] is None:
                self._take_line(match[0].strip(), line)
                line += 1
                continue
            if not self._has_action:
                self._file.refuse("a transition must stand below an action of a state", line=line)
            words = match[1].split()  # target, colon and number
            targets += words[0::3]
            values += words[2::3]
            runs.append((self._state, line, len(words) // 3))
            line += len(words) // 3
        states, starts, lengths = np.array(runs, dtype=np.int64).reshape(-1, 3).T
        offsets = np.arange(len(targets)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        self._sources.append(np.repeat(states, lengths))
        self._targets.append(np.array(list(map(int, targets)), dtype=np.int64))
        self._values.add(values, np.repeat(starts, lengths) + offsets)
        self._of_states.flush()
        self._of_actions.flush()

    def _take_line(self, text: bytes, line: int) -> None:
        if text.startswith(b"state "):
            self._take_state(text, line)
        elif text.startswith(b"action "):
            self._take_action(text, line)
        elif text and not text.startswith(b"//"):
            target, colon, value = text.partition(b" : ")
            if colon and _COUNT.fullmatch(target):
                _check_number(self._file, value, line)
            self._file.refuse(f"{shown(text)} is no state, action or transition, such as '3 : 0.5'", line=line)

    def _take_state(self, text: bytes, line: int) -> None:
        match = _STATE.fullmatch(text)
        if match is None or not _LABELS.fullmatch(match[3]):
            self._file.refuse(f"{shown(text)} is no line 'state 0 [rewards] labels'", line=line)
        self._state += 1
        self._has_action = False
        if int(match[1]) != self._state or self._state >= self._header.n:
            message = f"state {int(match[1])} where state {self._state} of {self._header.n} should be"
            self._file.refuse(message, "states are numbered from 0 without gaps", line=line)
        self._of_states.take(match[2], self._state, line)
        for quoted, bare in _LABEL.findall(match[3]):
            self._labels.setdefault(quoted or bare, []).append(self._state)

    def _take_action(self, text: bytes, line: int) -> None:
        match = _ACTION.fullmatch(text)
        if match is None or self._state < 0:
            self._file.refuse(f"{shown(text)} is no line 'action name [rewards]' below a state", line=line)
        if self._has_action:
            self._file.refuse(f"state {self._state} has a second action; the states of a DTMC have one", line=line)
        self._has_action = True
        self._of_actions.take(match[2], self._state, line)

    def chain(self, *, fix_deadlocks: bool) -> MarkovChain:
        """The chain that the lines make up."""
        file, header = self._file, self._header
        n = header.n
        if self._state != n - 1:
            file.refuse(f"the file has {self._state + 1} states where it announces {n}", line=None)
        sources, targets = np.concatenate(self._sources), np.concatenate(self._targets)
        matrix = transition_matrix(n, sources, targets, self._values, fix_deadlocks=fix_deadlocks)
        labels = self._masks()
        start = self._start(labels.pop("init", None))
        deadlock = labels.pop("deadlock", None)
        if deadlock is not None and not fix_deadlocks:
            state = int(np.flatnonzero(deadlock)[0])
            message = f'the label "deadlock" holds in state {state}, but no state of a chain is one'
            file.refuse(message, "Storm gave the state a loop: take the label away, or have deadlocks fixed", line=None)
        try:
            found = MarkovChain(
                states=file_states(n, {}),
                transitions=matrix,
                initial=one_start(start, n, exact=header.exact),  # type: ignore[arg-type]  # takes a RationalVector too
                labels=labels,
                rewards={name: self._reward(k) for k, name in enumerate(header.rewards)},
            )
        except ModelError as error:
            placed = (replace(each, location=replace(each.location, path=str(file.path))) for each in error.problems)
            raise ModelError(placed) from error
        return found if header.record is None else restore_names(found, header.record, path=str(file.path))

    def _start(self, init: NDArray[np.bool_] | None) -> int:
        start = np.zeros(0, dtype=np.int64) if init is None else np.flatnonzero(init)
        if len(start) != 1:
            message = f'the label "init" holds in {len(start) or "no"} states, and the file gives no probabilities'
            hint = "give one initial state; one that leads to the others makes a spread start"
            self._file.refuse(message, hint, line=None)
        return int(start[0])

    def _masks(self) -> dict[str, NDArray[np.bool_]]:
        n = self._header.n
        if n * len(self._labels) > _MAX_LABEL_ENTRIES:
            message = f"{len(self._labels)} labels over {n} states are more than can be held"
            self._file.refuse(message, line=None)
        masks = {}
        for name, positions in self._labels.items():
            try:
                text = name.decode("utf-8")
            except UnicodeDecodeError:
                self._file.refuse(f"the label {shown(name)} is not UTF-8", line=None)
            masks[text] = np.zeros(n, dtype=np.bool_)
            masks[text][positions] = True
        return masks

    def _reward(self, k: int) -> RewardStructure:
        n = self._header.n
        positions, values = self._of_actions.column(k)
        action = reward_vector(n, positions, values) if len(positions) else None
        return reward_structure(reward_vector(n, *self._of_states.column(k)), action)


def _check_number(file: LineFile, text: bytes, line: int) -> None:
    if not _NUMBER.fullmatch(text):
        hint = "placeholders and parameters are not read" if text.startswith(b"$") else None
        file.refuse(f"{shown(text)} is no finite, non-negative number", hint, line=line)
