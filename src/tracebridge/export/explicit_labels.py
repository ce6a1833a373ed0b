"""The labels and the variables of explicit files: ``.lab`` in PRISM's and in Storm's dialect, and PRISM's ``.sta``."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from tracebridge.export.explicit_tables import first_data_line
from tracebridge.export.whole_file import LineFile, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

_MAX_ENTRIES = 10**9  # truth values of all labels, or values of all variables; a short file could ask for far more

_NUMBERED_NAME = re.compile(rb'([0-9]{1,9})="([^"]+)"')
_NUMBERED_NAMES = re.compile(rb'(?:[0-9]{1,9}="[^"]+"[ \t]*+)*+')
_STATE_LABELS = re.compile(rb"([0-9]{1,18})(?:[ \t]*+:[ \t]*+|[ \t]++)(.+)")
_STATE = re.compile(rb"([0-9]{1,18})[ \t]*:[ \t]*\(([^()]*)\)")
_VALUE = re.compile(rb"-?[0-9]{1,18}|true|false")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*")


def read_labels(path: Path, n: int, *, dialect: str) -> dict[str, NDArray[np.bool_]]:
    """The labels of a file over ``n`` states, each of shape (n,), with ``init`` and ``deadlock`` if they are there.

    Raises:
        ModelError: a malformed line, a state out of range or a label that is not declared; with its line.
    """
    with LineFile(path) as file:
        names = _numbered_names(file) if dialect == "prism" else _declared_names(file)
        if n * len(names) > _MAX_ENTRIES:
            file.refuse(f"{len(names)} labels over {n} states are more than can be held", line=None)
        spelled = [str(k).encode() for k in range(len(names))] if dialect == "prism" else names
        position = {spelling: k for k, spelling in enumerate(spelled)}
        masks = np.zeros((len(names), n), dtype=np.bool_)
        for first, texts in _lines(file):
            kinds: list[int] = []
            states: list[int] = []
            for line, text in enumerate(texts, start=first):
                if not text or (text.startswith(b"#")):
                    continue
                match = _STATE_LABELS.fullmatch(text)
                if match is None:
                    file.refuse(f"{shown(text)} is no line 'state: labels'", line=line)
                state = int(match[1])
                if state >= n:
                    file.refuse(f"there is no state {state}: there are {n}, from 0 to {n - 1}", line=line)
                for word in match[2].split():
                    if word not in position:
                        file.refuse(f"the label {shown(word)} is not declared at the head of the file", line=line)
                    kinds.append(position[word])
                    states.append(state)
            masks[kinds, states] = True
    return {_text(file, name): masks[k] for k, name in enumerate(names)}


def read_states(path: Path, n: int) -> dict[str, NDArray[Any]]:
    """The variables of a ``.sta`` file over ``n`` states, each an array of int64 or bool of shape (n,).

    Raises:
        ModelError: a malformed line, a value of another type, or a state that is missing or given twice.
    """
    with LineFile(path) as file:
        head, _ = first_data_line(file)
        names = [name.strip() for name in head.removeprefix(b"(").removesuffix(b")").split(b",")]
        if not (head.startswith(b"(") and head.endswith(b")")) or not all(map(_WORD.fullmatch, names)):
            file.refuse(f"{shown(head)} should be the names of the variables, such as (s,d)")
        if len(set(names)) != len(names):
            file.refuse("two variables have the same name")
        if n * len(names) > _MAX_ENTRIES:
            file.refuse(f"{len(names)} variables over {n} states are more than can be held", line=None)
        values = np.zeros((n, len(names)), dtype=np.int64)
        seen = np.zeros(n, dtype=np.bool_)
        kinds: list[bool] | None = None
        for first, texts in _lines(file):
            for line, text in enumerate(texts, start=first):
                if not text or text.startswith(b"#"):
                    continue
                match = _STATE.fullmatch(text)
                words = [word.strip() for word in match[2].split(b",")] if match else []
                if match is None or len(words) != len(names) or not all(map(_VALUE.fullmatch, words)):
                    message = f"{shown(text)} is no line 'state:(values)' with {len(names)} integers or truth values"
                    file.refuse(message, line=line)
                types = [word in {b"true", b"false"} for word in words]
                kinds = kinds or types
                if types != kinds:
                    file.refuse("a variable is an integer in one state and a truth value in another", line=line)
                state = int(match[1])
                if state >= n or seen[state]:
                    what = "is given twice" if state < n else f"does not exist: there are {n}, from 0 to {n - 1}"
                    file.refuse(f"state {state} {what}", line=line)
                seen[state] = True
                values[state] = [
                    word == b"true" if is_bool else int(word) for word, is_bool in zip(words, types, strict=True)
                ]
        if not seen.all():
            file.refuse(f"state {int(np.flatnonzero(~seen)[0])} is missing", line=None)
    is_bool = kinds or [False] * len(names)
    return {
        name.decode("ascii"): values[:, k].astype(np.bool_) if is_bool[k] else values[:, k].copy()
        for k, name in enumerate(names)
    }


def _lines(file: LineFile) -> Iterator[tuple[int, list[bytes]]]:
    for first, block in file.blocks():
        yield first, [text.strip() for text in block.split(b"\n")[:-1]]


def _numbered_names(file: LineFile) -> list[bytes]:
    head, _ = first_data_line(file)
    pairs = _NUMBERED_NAME.findall(head)
    if not _NUMBERED_NAMES.fullmatch(head) or [int(k) for k, _ in pairs] != list(range(len(pairs))):
        file.refuse(f'{shown(head)} should declare the labels, such as 0="init" 1="done"')
    return _unique(file, [name for _, name in pairs])


def _declared_names(file: LineFile) -> list[bytes]:
    line = file.next_line()
    if line != b"#DECLARATION":
        file.refuse(f"{shown(line or b'')} should be #DECLARATION")
    names: list[bytes] = []
    while (line := file.next_line()) != b"#END":
        if line is None:
            file.refuse("the file ends before #END")
        names += line.split()
    return _unique(file, names)


def _unique(file: LineFile, names: list[bytes]) -> list[bytes]:
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        file.refuse(f"the label {shown(twice)} is declared twice")
    return names


def _text(file: LineFile, name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        file.refuse(f"the label {shown(name)} is not UTF-8", line=None)
