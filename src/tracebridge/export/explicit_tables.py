"""The tables of explicit files: lines of state numbers with a probability or a reward, read in blocks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.export.file_numbers import NumberColumn
from tracebridge.export.whole_file import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.export.whole_file import LineFile

_COUNTS = re.compile(rb"([0-9]{1,18})[ \t]+([0-9]{1,18})")
_TYPE_HEADER = re.compile(rb"# Transitions \(([A-Za-z]+)\)")
_BLANK = re.compile(rb"[ \t]*+(?:#[^\n]*+)?\n")

_NUMBER = rb"[0-9.eE+\-/]++"
_FORMS = {1: "state reward", 2: "source target number"}

# A block of lines with so many state numbers as tools write them, and one such line as a hand may have left it: with
# other white space and, behind a number of PRISM's, an action.
_REGULAR = {k: re.compile(rb"(?:" + rb"[0-9]{1,18} " * k + _NUMBER + rb"\n)*+") for k in _FORMS}
_SINGLE = {
    k: re.compile(
        rb"[ \t]*+" + rb"([0-9]{1,18})[ \t]++" * k + rb"(" + _NUMBER + rb")(?:[ \t]++[A-Za-z_]\w*+)?[ \t]*+\n"
    )
    for k in _FORMS
}


def read_table(file: LineFile, k: int, *, exact: bool) -> tuple[NDArray[np.int64], NDArray[np.int64], NumberColumn]:
    """The rest of a file as lines of ``k`` state numbers, one or two, and a number; comments start with ``#``.

    Returns:
        The first and the last state number of each line (the same where ``k`` is one), and the numbers.

    Raises:
        ModelError: another line, or a number that is negative or not finite.
    """
    columns: list[list[NDArray[np.int64]]] = [[np.zeros(0, dtype=np.int64)] for _ in range(k)]
    values = NumberColumn(file, exact=exact)
    for first, block in file.blocks():
        if _REGULAR[k].fullmatch(block):
            tokens = block.split()
            lines = np.arange(first, first + len(tokens) // (k + 1))
        else:
            tokens, lines = _single_lines(file, first, block, k)
        for c, column in enumerate(columns):
            column.append(np.array(list(map(int, tokens[c :: k + 1])), dtype=np.int64))
        values.add(tokens[k :: k + 1], lines)
    joined = [np.concatenate(column) for column in columns]
    return joined[0], joined[-1], values


def _single_lines(file: LineFile, first: int, block: bytes, k: int) -> tuple[list[bytes], NDArray[np.int64]]:
    tokens: list[bytes] = []
    lines = []
    for line, text in enumerate(block.split(b"\n")[:-1], start=first):
        match = _SINGLE[k].fullmatch(text + b"\n")
        if match:
            tokens += match.groups()
            lines.append(line)
        elif not _BLANK.fullmatch(text + b"\n"):
            hint = "state numbers and a finite, non-negative number, separated by spaces"
            file.refuse(f"{shown(text)} is no line '{_FORMS[k]}'", hint, line=line)
    return tokens, np.array(lines, dtype=np.int64)


def read_counts(file: LineFile, line: bytes, of_what: str) -> tuple[int, int]:
    """The two counts of a line. Raises ModelError for another line."""
    match = _COUNTS.fullmatch(line)
    if match is None:
        file.refuse(f"{shown(line)} should be the numbers of {of_what}", "two integers with a space between them")
    return int(match[1]), int(match[2])


def first_data_line(file: LineFile) -> tuple[bytes, list[bytes]]:  # noqa: RET503 - `refuse` does not return
    """The first line that is no comment, and the comments before it.

    Raises:
        ModelError: there is none, or a comment says that the model is no DTMC.
    """
    comments: list[bytes] = []
    while (line := file.next_line()) is not None:
        header = _TYPE_HEADER.fullmatch(line)
        if header and header[1] != b"DTMC":
            file.refuse(f"this is a model of type {header[1].decode()}; explicit files are read of type DTMC")
        if line and not line.startswith(b"#"):
            return line, comments
        comments.append(line)
    file.refuse("the file has no line of numbers", line=None)


def is_tra(head: str) -> bool:
    """Whether a text begins as explicit transitions do, of PRISM (two counts) or Storm (``dtmc`` alone on a line)."""
    lines = [line.strip() for line in head.splitlines()[:50]]
    data = [line for line in lines if line and not line.startswith("#")][:2]
    if len(data) < 2:
        return False
    is_headed = data[0] == "dtmc" or re.fullmatch(r"[0-9]+\s+[0-9]+", data[0], re.ASCII) is not None
    return is_headed and re.fullmatch(r"[0-9]+\s+[0-9]+\s+[0-9.eE+\-/]+(\s+\w+)?", data[1], re.ASCII) is not None
