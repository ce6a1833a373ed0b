"""Decision processes as JSON documents, by the names of states and actions, in the manner of chains (`document`).

Rows stand in a list for each state, in the order of its choices. What is written is read back number by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tracebridge.chain.decision import DecisionProcess
from tracebridge.chain.document import (
    Number,
    _lowest_terms,
    _Reader,
    chain_from_dict,
    chain_to_dict,
    checked_document,
    read_document,
    write_document,
)
from tracebridge.chain.markov import MarkovChain
from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.chain.reward_structure import RewardStructure
from tracebridge.errors import Location, ModelError

KIND = "decision-process"

SCHEMA_VERSION = 1


class _ChoiceDocument(msgspec.Struct, forbid_unknown_fields=True):
    action: str
    transitions: dict[str, Number]


class _RewardDocument(msgspec.Struct, forbid_unknown_fields=True):
    """``action`` has for each state what its choices earn, in their order; states that earn nothing are left out."""

    state: dict[str, Number]
    action: dict[str, list[Number]] | None = None


class _DecisionDocument(msgspec.Struct, forbid_unknown_fields=True):
    """As that of a chain, but for ``choices`` in the place of ``transitions``, and the rewards of actions."""

    kind: str
    schema_version: int
    states: list[str]
    initial: dict[str, Number]
    choices: dict[str, list[_ChoiceDocument]]
    labels: dict[str, list[str]]
    rewards: dict[str, _RewardDocument]
    variables: dict[str, Any] = {}
    constants: dict[str, Any] = {}


# ---------------------------------------------------------------- writing


def decision_to_dict(process: DecisionProcess) -> dict[str, Any]:
    """The process as a JSON document; zeros are left out.

    Numbers that are known exactly are strings, in lowest terms; the others are doubles.
    """
    frame = chain_to_dict(process.frame)
    states = process.states
    matrix: csr_array | RationalMatrix = process.transitions
    values: Sequence[Any] = process.transitions.data.tolist()
    if (exact := process.rationals) is not None:
        bottoms = exact.denominators[exact.row_of_entry].tolist()
        values = [_lowest_terms(*pair) for pair in zip(exact.numerators.tolist(), bottoms, strict=True)]
        matrix = exact
    indptr, indices = matrix.indptr.tolist(), matrix.indices.tolist()
    rows = [{states[indices[k]]: values[k] for k in range(start, end)} for start, end in pairwise(indptr)]
    names = [name for names in process.actions for name in names]
    choices = [{"action": name, "transitions": row} for name, row in zip(names, rows, strict=True)]
    rewards = frame["rewards"]
    for name, held in process.rewards.items():
        if held.action is not None:
            earned = _by_state(process, _numbers(held.action, held.exact_action))
            rewards[name]["action"] = {state: numbers for state, numbers in earned.items() if any(map(_value, numbers))}
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "states": list(states),
        "initial": frame["initial"],
        "choices": _by_state(process, choices),
        "labels": frame["labels"],
        "rewards": rewards,
        **{key: frame[key] for key in ("variables", "constants") if key in frame},
    }


def _by_state(process: DecisionProcess, of_choices: list[Any]) -> dict[str, list[Any]]:
    starts = process.choice_starts.tolist()
    return {state: of_choices[starts[i] : starts[i + 1]] for i, state in enumerate(process.states)}


def _numbers(values: NDArray[np.float64], exact: RationalVector | None) -> list[Number]:
    if exact is None:
        return [float(value) for value in values.tolist()]
    return [_lowest_terms(top, exact.denominator) for top in exact.numerators.tolist()]


def _value(number: Number) -> bool:
    return number not in {"0/1", 0.0}


# ---------------------------------------------------------------- reading


def decision_from_dict(data: Any, path: str | None = None) -> DecisionProcess:
    """Read `decision_to_dict`'s document.

    Args:
        data: what `json.loads` gives. path: where it comes from, for messages.

    Raises:
        ModelError: naming the field and state: an unknown version, a wrong type, an unknown or repeated state, exact
            numbers among doubles, or a process that breaks an invariant.
    """
    document = checked_document(data, _DecisionDocument, kind=KIND, version=SCHEMA_VERSION, path=path)
    frame = _frame(document, path)
    reader = _ChoiceReader(document.states, path)
    choices = reader.by_state(document.choices, "choices")
    fields = [f"choices.{state}" for state, held in zip(document.states, choices, strict=True) for _ in held]
    rows = [choice.transitions for held in choices for choice in held]
    rewards = {
        name: reader.with_actions(frame.rewards[name], held.action, [len(held) for held in choices], f"rewards.{name}")
        for name, held in document.rewards.items()
    }
    try:
        return DecisionProcess(
            states=frame.states,
            actions=tuple(tuple(choice.action for choice in held) for held in choices),
            transitions=reader.rows(rows, fields),
            initial=frame.initial if frame.initial_rationals is None else frame.initial_rationals,  # type: ignore[arg-type]
            labels=frame.labels,
            rewards=rewards,
            variables=frame.variables,
            constants=frame.constants,
        )
    except ModelError as error:
        if path is None or any(problem.location.path for problem in error.problems):
            raise
        raise ModelError([replace(problem, location=Location(path=path)) for problem in error.problems]) from error


def _frame(document: _DecisionDocument, path: str | None) -> MarkovChain:
    """All but the choices, as the chain in which no state is left (`DecisionProcess.frame`)."""
    words = {"variables": document.variables, "constants": document.constants}
    return chain_from_dict(
        {
            "kind": "markov-chain",
            "schema_version": 2,
            "states": document.states,
            "initial": document.initial,
            "transitions": {state: {state: 1.0} for state in document.states},
            "labels": document.labels,
            "rewards": {name: {"state": held.state} for name, held in document.rewards.items()},
            **words,
        },
        path,
    )


class _ChoiceReader(_Reader):
    """Rows and rewards of choices."""

    def by_state(self, held: Mapping[str, list[Any]], field: str) -> list[list[Any]]:
        """The lists in the order of the states; empty where a state has none."""
        lists: list[list[Any]] = [[] for _ in self._position]
        for state, entries in held.items():
            lists[self._index(state, field)] = entries
        return lists

    def rows(self, rows: list[dict[str, Number]], fields: list[str]) -> RationalMatrix | csr_array:
        """Some rows over all states; ``fields`` say where each stands."""
        kinds: set[bool] = set()
        entries: list[list[tuple[int, Any]]] = []
        denominators: list[int] = []
        for row, field in zip(rows, fields, strict=True):
            numbers: list[Any] = list(row.values())
            denominator = 1
            if row:
                kinds.add(self._is_exact(numbers, field))
            if len(kinds) > 1:
                self._refuse("some numbers are exact and some are doubles", "choices")
            if True in kinds:
                numbers, denominator = self._over_one_denominator(numbers, field)
            positions = [self._index(name, field) for name in row]
            entries.append(sorted((j, number) for j, number in zip(positions, numbers, strict=True) if number))
            denominators.append(denominator)
        indptr = np.array([0, *accumulate(map(len, entries))], dtype=np.int64)
        indices = np.array([j for row_ in entries for j, _ in row_], dtype=np.int64)
        numbers = [number for row_ in entries for _, number in row_]
        n = len(self._position)
        if True in kinds:
            tops, bottoms = np.array(numbers, dtype=object), np.array(denominators, dtype=object)
            return RationalMatrix(indptr, indices, tops, bottoms, n)
        return csr_array((np.array(numbers, dtype=np.float64), indices, indptr), shape=(len(rows), n))

    def with_actions(
        self, frame: RewardStructure, held: Mapping[str, list[Number]] | None, sizes: list[int], field: str
    ) -> RewardStructure:
        """The state rewards with those of the choices, of which each state has so many."""
        if held is None:
            return frame
        field = f"{field}.action"
        lists = self.by_state(held, field)
        numbers: list[Number] = []
        kinds = self._is_exact(_joined(held.values()), field)
        for state, earned, size in zip(self._position, lists, sizes, strict=True):
            if state in held and len(earned) != size:
                self._refuse(f"{len(earned)} rewards for the {size} choices of {state!r}", field)
            numbers += earned or [("0/1" if kinds else 0.0)] * size
        if not kinds:
            return replace(frame, action=np.array(numbers, dtype=np.float64))
        tops, bottom = self._over_one_denominator(numbers, field)
        exact = RationalVector(np.array(tops, dtype=object), bottom)
        return replace(frame, action=exact.to_float(), exact_action=exact)


def _joined(lists: Iterable[list[Number]]) -> list[Number]:
    return [number for each in lists for number in each]


# ---------------------------------------------------------------- files


def read_decision(path: str | Path) -> DecisionProcess:
    """The process in a JSON file.

    Raises:
        ModelError: as `read_document` and `decision_from_dict` do.
    """
    return decision_from_dict(read_document(path), str(path))


def write_decision(path: str | Path, process: DecisionProcess) -> None:
    """Write the process as a ``decision-process`` document."""
    write_document(path, decision_to_dict(process))
