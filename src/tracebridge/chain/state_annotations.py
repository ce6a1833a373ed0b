"""What a chain says of its states, as it is kept and what may be wrong with it: names, labels, variables, constants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracebridge.chain.model_problems import problem
from tracebridge.errors import Problem

#: Labels that every chain has without being given them.
IMPLICIT_LABELS = ("init", "deadlock")

_BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def checked_names(states: Sequence[str]) -> tuple[set[str], list[Problem]]:
    """The names as a set, and what is wrong with them: looked for one by one only where something is."""
    names = set(states)
    sound = len(names) == len(states) and "" not in names and set(map(type, states)) <= {str}
    return names, [] if sound else _name_problems(states)


def _name_problems(states: Sequence[str]) -> list[Problem]:
    seen: set[str] = set()
    problems = []
    for name in states:
        if not isinstance(name, str) or not name:
            problems.append(problem(f"{name!r} cannot be the name of a state"))
        elif name in seen:
            problems.append(problem(f"two states are called {name!r}"))
        seen.add(name)
    return problems


def checked_labels(
    given: Mapping[str, Any], states: Sequence[str], names: set[str]
) -> tuple[dict[str, NDArray[np.bool_]], list[Problem]]:
    """The labels as read-only arrays, and what is wrong with them; ``names`` are those of the states."""
    labels, problems = {}, []
    for name, values in given.items():
        mask = _frozen(np.array(values, dtype=np.bool_))
        labels[name] = mask
        if not name or name in IMPLICIT_LABELS:
            problems.append(problem(f"{name!r} cannot be given as a label", "init and deadlock follow from the chain"))
        elif mask.shape != (len(states),):
            problems.append(problem(f"label {name!r} has shape {mask.shape} for {len(states)} states"))
        elif name in names and (mask.sum() != 1 or states[int(mask.argmax())] != name):
            problems.append(
                problem(f"label {name!r} is the name of a state but holds elsewhere too", "rename the state")
            )
    return labels, problems


def checked_variables(given: Mapping[str, Any], states: Sequence[str]) -> tuple[dict[str, NDArray[Any]], list[Problem]]:
    """The variables as read-only arrays of int64, bool or float64, and what is wrong with them."""
    variables, problems = {}, []
    for name, entries in given.items():
        values = np.array(entries)
        if values.dtype.kind in "iu" and np.can_cast(values.dtype, np.int64):
            values = values.astype(np.int64)
        elif values.dtype.kind == "f":
            values = values.astype(np.float64)
        variables[name] = _frozen(values)
        if not _is_bare_word(name):
            problems.append(problem(f"{name!r} cannot be the name of a variable", "use letters, digits and _"))
        elif values.shape != (len(states),):
            problems.append(problem(f"variable {name!r} has shape {values.shape} for {len(states)} states"))
        elif values.dtype not in (np.int64, np.bool_, np.float64):
            problems.append(
                problem(f"variable {name!r} has values of type {values.dtype}", "give int64, bool or float64")
            )
        elif values.dtype == np.float64:
            for i in np.flatnonzero(~np.isfinite(values)).tolist():
                problems.append(problem(f"state {states[i]!r}: variable {name!r} is {float(values[i])!r}"))
    return variables, problems


def constant_problems(constants: Mapping[str, Any], variables: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the constants of a program that has these variables."""
    problems = []
    for name, value in constants.items():
        if not _is_bare_word(name):
            problems.append(problem(f"{name!r} cannot be the name of a constant", "use letters, digits and _"))
        elif name in variables:
            problems.append(problem(f"{name!r} is both a variable and a constant", "rename one of them"))
        elif not isinstance(value, Fraction | bool):
            problems.append(problem(f"constant {name!r} is {value!r}", "give a Fraction, or true or false"))
    return problems


def _is_bare_word(name: object) -> bool:
    return isinstance(name, str) and _BARE_WORD.fullmatch(name) is not None


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
