"""The reward files of an explicit model: ``.srew`` for states and ``.trew`` for transitions, in both dialects.

A chain here earns by leaving a state, not by where it goes. Rewards of transitions become the expected reward of
leaving the state, which is the same in every expectation, and the very number where all transitions of a state earn it.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tracebridge.chain.rational import RationalMatrix, RationalVector
from tracebridge.export.explicit_tables import first_data_line, read_counts, read_table
from tracebridge.export.file_numbers import objects, ratios_at, reward_structure, reward_vector
from tracebridge.export.whole_file import LineFile, refuse_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from tracebridge.chain.reward_structure import RewardStructure
    from tracebridge.export.file_numbers import NumberColumn, Numbers

_NAME = re.compile(rb'# Reward structure "([A-Za-z0-9_]+)"')


def read_rewards(
    files: Sequence[tuple[Path, Path]], matrix: csr_array | RationalMatrix, *, dialect: str
) -> dict[str, RewardStructure]:
    """The reward structures of pairs of a ``.srew`` and a ``.trew`` file, of which one may be missing.

    A structure that its file gives no name is called ``rewards``, or ``rewards_1`` and so on where there are several.

    Raises:
        ModelError: a malformed line, a state out of range or given twice, or a transition that is not there.
    """
    exact = isinstance(matrix, RationalMatrix)
    n = matrix.shape[0]
    rewards: dict[str, RewardStructure] = {}
    for k, (of_states, of_transitions) in enumerate(files, start=1):
        state: Numbers = (np.zeros(n), RationalVector(np.zeros(n, dtype=np.int64), 1) if exact else None)
        action: Numbers | None = None
        names = []
        if of_states.exists():
            with LineFile(of_states) as file:
                name, positions, _, values = _read(file, 1, n, dialect=dialect, exact=exact)
                state = reward_vector(n, positions, values)
                names.append(name)
        if of_transitions.exists():
            with LineFile(of_transitions) as file:
                name, sources, targets, values = _read(file, 2, n, dialect=dialect, exact=exact)
                leaving = _leaving(matrix, sources, targets, values)
                action = leaving if leaving[0].any() else None
                names.append(name)
        if len(set(names)) > 1:
            refuse_file(
                of_transitions, f"the reward structure is {names[1]!r} here and {names[0]!r} in {of_states.name}"
            )
        name = names[0] or ("rewards" if len(files) == 1 else f"rewards_{k}")
        if name in rewards:
            refuse_file(of_states, f"two reward structures are called {name!r}")
        rewards[name] = reward_structure(state, action)
    return rewards


def _read(
    file: LineFile, k: int, n: int, *, dialect: str, exact: bool
) -> tuple[str | None, NDArray[np.int64], NDArray[np.int64], NumberColumn]:
    if dialect == "storm":
        return None, *read_table(file, k, exact=exact)
    line, comments = first_data_line(file)
    matches = [match for match in map(_NAME.fullmatch, comments) if match]
    states, count = read_counts(file, line, "states and of rewards")
    if states != n:
        file.refuse(f"the rewards are for {states} states and the transitions for {n}")
    first, last, values = read_table(file, k, exact=exact)
    if len(first) != count:
        file.refuse(f"the file has {len(first)} rewards where it announces {count}", line=None)
    return matches[0][1].decode() if matches else None, first, last, values


def _leaving(
    matrix: csr_array | RationalMatrix, sources: NDArray[np.int64], targets: NDArray[np.int64], values: NumberColumn
) -> Numbers:
    """The expected reward of leaving each state, shape (n,)."""
    n = matrix.shape[0]
    positions = _positions(matrix, sources, targets, values)
    indptr = matrix.indptr
    if not isinstance(matrix, RationalMatrix):
        earned = np.zeros(len(matrix.indices))
        earned[positions] = values.floats()
        lowest, highest = (each.reduceat(earned, indptr[:-1]) for each in (np.minimum, np.maximum))
        mean = np.add.reduceat(earned * matrix.data, indptr[:-1])
        return np.where(lowest == highest, highest, mean), None
    tops, bottoms = objects([0] * len(matrix.indices)), objects([1] * len(matrix.indices))
    tops[positions], bottoms[positions] = values.ratios()
    all_tops, all_bottoms = [], []
    rows = np.unique(sources)
    for i in rows.tolist():
        row = slice(indptr[i], indptr[i + 1])
        held = list(zip(tops[row], bottoms[row], strict=True))
        top, bottom = held[0]
        if any(pair != held[0] for pair in held):
            weights = matrix.numerators[row].tolist()
            total = sum(weight * Fraction(*pair) for weight, pair in zip(weights, held, strict=True))
            top, bottom = (total / int(matrix.denominators[i])).as_integer_ratio()
        all_tops.append(top)
        all_bottoms.append(bottom)
    return ratios_at(n, rows, objects(all_tops), objects(all_bottoms), values.file)


def _positions(
    matrix: csr_array | RationalMatrix, sources: NDArray[np.int64], targets: NDArray[np.int64], values: NumberColumn
) -> NDArray[np.int64]:
    """Where in the matrix each transition stands, all different."""
    file, lines = values.file, values.lines
    n = matrix.shape[0]
    keys = np.repeat(np.arange(n), np.diff(matrix.indptr)) * n + matrix.indices
    in_range = (sources < n) & (targets < n)
    wanted = np.where(in_range, np.minimum(sources, n) * n + np.minimum(targets, n), 0)
    positions = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    bad = np.flatnonzero(~in_range | (keys[positions] != wanted))
    if len(bad):
        k = bad[0]
        file.refuse(f"there is no transition from {sources[k]} to {targets[k]}", line=int(lines[k]))
    order = np.argsort(positions, kind="stable")
    twice = np.flatnonzero(np.diff(positions[order]) == 0)
    if len(twice):
        k = order[twice[0] + 1]
        file.refuse(f"the transition from {sources[k]} to {targets[k]} has a reward already", line=int(lines[k]))
    return positions
