"""The files that PRISM writes: states, a vector of values, and results; read strictly, because they are foreign.

* ``-exportstates``: the line ``(s)`` and then a line ``3:(7)`` for each state, number and valuation.
* ``-exportvector``: a line for each state in the same order, ``0.25``, ``1.0E-5``, ``Infinity``, ``NaN`` or ``true``.
* ``-exportresults FILE:csv``: a block of lines for each property, parted by an empty line: the property in quotes where
  there are several, the line ``Result``, and the result: a number, a fraction, or what went wrong.

Formats: PRISM 4.10, StateValues.java, StateListExplicit.java and ResultsExporter.java.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.errors import EngineError, UnsupportedError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_BYTES_A_STATE = 64
_BYTES_A_FILE = 1 << 16
_BYTES_A_RESULT = 1 << 20

_DOUBLE = re.compile(r"-?(\d+(\.\d+)?([eE][-+]?\d+)?|Infinity)|NaN", re.ASCII)
_RATIONAL = re.compile(r"(-?\d{1,100000})(?:/(\d{1,100000}))?", re.ASCII)
_LACKING = re.compile(r"not (yet )?(currently )?support|does not yet|not currently|only (implement|support)", re.I)


def read_states(path: Path, n: int) -> NDArray[np.int64]:
    """Which state of the chain each of PRISM's states is: the value of ``s`` in it, shape (n,).

    Raises:
        EngineError: the file does not list every state once.
    """
    lines = _lines(path, _BYTES_A_FILE + _BYTES_A_STATE * n)
    if not lines or lines[0] != "(s)":
        raise EngineError(f"PRISM's list of states does not begin with (s) but with {_shown(lines[:1])}")
    if len(lines) != n + 1:
        raise EngineError(f"PRISM lists {len(lines) - 1} states of a chain that has {n}")
    order = np.empty(n, dtype=np.int64)
    for i, line in enumerate(lines[1:]):
        number, _, valuation = line.partition(":")
        if number != str(i) or not re.fullmatch(r"\(\d{1,18}\)", valuation, re.ASCII):
            raise EngineError(f"PRISM's list of states has no state {i} but {_shown([line])}")
        order[i] = int(valuation[1:-1])
    if not np.array_equal(np.sort(order), np.arange(n)):
        raise EngineError("PRISM's list of states does not have every value of s once")
    return order


def read_vector(path: Path, order: NDArray[np.int64]) -> NDArray[np.float64]:
    """The values in the order of the chain's states; truth values as 1 and 0.

    Args:
        order: see `read_states`.

    Raises:
        EngineError: the file is no list of as many numbers, or one of them is NaN.
    """
    n = len(order)
    lines = _lines(path, _BYTES_A_FILE + _BYTES_A_STATE * n)
    if len(lines) != n:
        raise EngineError(f"PRISM gives {len(lines)} values for {n} states")
    values = np.empty(n)
    for i, (state, line) in enumerate(zip(order.tolist(), lines, strict=True)):
        if line in {"true", "false"}:
            values[state] = line == "true"
        elif _DOUBLE.fullmatch(line):
            values[state] = float(line)
        else:
            raise EngineError(f"PRISM's value {i + 1} of {n} is no number: {_shown([line])}")
    undefined = np.flatnonzero(np.isnan(values))
    if len(undefined):
        raise EngineError(
            f"PRISM has no number (NaN) in {len(undefined)} of {n} states, the first being s={undefined[0]}"
        )
    return values


def read_rationals(path: Path, names: list[str]) -> list[Fraction | float]:
    """The results of properties with these names, in rationals; infinity is a float.

    Raises:
        UnsupportedError: PRISM says that it does not support the property. EngineError: a result is no rational.
    """
    values: list[Fraction | float] = []
    for name, text in zip(names, _results(path, names), strict=True):
        if text == "Infinity":
            values.append(inf)
        elif (found := _RATIONAL.fullmatch(text)) and (found[2] is None or found[2].strip("0")):
            values.append(Fraction(_integer(found[1]), _integer(found[2] or "1")))
        else:
            raise _refusal(text, f"for {name}, which is no rational")
    return values


def refuse_error(path: Path) -> None:
    """Raise if the one property that was checked ended in an error instead of a result.

    Raises:
        UnsupportedError, EngineError: see `read_rationals`.
    """
    (text,) = _results(path, ["question"])
    if not (_DOUBLE.fullmatch(text) or text in {"true", "false"}):
        raise _refusal(text, "as a result")


def _results(path: Path, names: list[str]) -> list[str]:
    """The result of each property, as text."""
    lines = _lines(path, _BYTES_A_FILE + _BYTES_A_RESULT * len(names))
    blocks = [""] if not lines else "\n".join(lines).split("\n\n")
    if len(blocks) != len(names):
        raise EngineError(f"PRISM's file of results has {len(blocks)} of {len(names)} results: {_shown(lines[-3:])}")
    results = []
    for name, block in zip(names, blocks, strict=True):
        parts = block.split("\n")
        headed = len(names) > 1
        if headed and f'"{name}"' not in parts[0].replace('""', '"'):
            raise EngineError(f"PRISM's file of results has {_shown(parts[:1])} in the place of {name}")
        if len(parts) < 2 + headed or parts[headed] != "Result":
            raise EngineError(f"PRISM's file of results has no result for {name}: {_shown(parts)}")
        results.append(" ".join(parts[1 + headed :]))  # what went wrong may take several lines
    return results


def _refusal(text: str, instead: str) -> EngineError:
    kind = UnsupportedError if _LACKING.search(text) else EngineError
    return kind(f"PRISM gives {_shown([text])} {instead}")


def _lines(path: Path, limit: int) -> list[str]:
    """The lines of a text file of at most so many bytes, without the empty end."""
    try:
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise EngineError(f"PRISM did not write its file {path.name}: {error.strerror}") from None
    if len(data) > limit:
        raise EngineError(f"PRISM's file {path.name} is larger than the {limit:,} bytes that its contents can take")
    text = data.decode("ascii", errors="replace").replace("\r\n", "\n")
    if text and not text.endswith("\n"):
        raise EngineError(f"PRISM's file {path.name} ends in the middle of a line: {_shown([text[-40:]])}")
    return text.rstrip("\n").split("\n") if text.strip() else []


def _integer(digits: str) -> int:
    from flint import fmpz  # Python itself stops at 4,300 digits

    return int(fmpz(digits))


def _shown(lines: list[str]) -> str:
    return repr(" | ".join(lines)[:200])
