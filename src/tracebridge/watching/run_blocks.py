"""Blocks of runs in a row, counted by the passages between kinds of step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from tracebridge.states.features import OUTCOMES
from tracebridge.states.flow import RunFlow, closed_walk

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracebridge.states.features import EncodedRuns

_CODE_BITS = 30  # a key packs outcome, source and target
_CODE_MASK = (1 << _CODE_BITS) - 1


@dataclass(slots=True, eq=False)
class RunBlock:
    """Some runs in a row, up to the ``last`` of the stream: passages by key, and how often each occurred."""

    last: int
    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def n_runs(self) -> int:
        """How many they are."""
        return int(self.counts[sources_of(self.keys) == 0].sum())


def passage_keys(encoded: EncodedRuns, numbers: Sequence[int]) -> NDArray[np.int64]:
    """One key a passage, run after run: outcome, source and target; place i is i + 1, and 0 is the outside.

    Args:
        encoded: the runs. numbers: the place of each of their vectors.
    """
    # the last entry is what the walk has outside of runs
    number = np.array([*(each + 1 for each in numbers), 0], dtype=np.int64)
    walk = number[closed_walk(encoded.codes, encoded.offsets, -1)]
    outcomes = np.repeat(encoded.outcomes.astype(np.int64), np.diff(encoded.offsets) + 1)
    return (outcomes << (2 * _CODE_BITS)) | (walk[:-1] << _CODE_BITS) | walk[1:]


def flows_of(
    keys: NDArray[np.int64], counts: NDArray[np.int64], places: Sequence[int], size: int
) -> dict[str, RunFlow]:
    """The flow of each outcome after place i became ``places[i]`` among so many."""
    moved = np.array([size, *places], dtype=np.int64)
    flows = {}
    for code, outcome in enumerate(OUTCOMES):
        mine = keys >> (2 * _CODE_BITS) == code
        ends = moved[sources_of(keys[mine])], moved[keys[mine] & _CODE_MASK]
        flows[outcome.value] = RunFlow.from_entries(*ends, counts[mine], size)
    return flows


class BlockDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A block as JSON values: one entry a passage."""

    last: int
    outcomes: list[int]
    sources: list[int]
    targets: list[int]
    counts: list[int]


def block_to_dict(block: RunBlock) -> dict[str, Any]:
    """The values of a `BlockDocument`."""
    return {
        "last": block.last,
        "outcomes": (block.keys >> (2 * _CODE_BITS)).tolist(),
        "sources": sources_of(block.keys).tolist(),
        "targets": (block.keys & _CODE_MASK).tolist(),
        "counts": block.counts.tolist(),
    }


def block_of(block: BlockDocument, n_vectors: int) -> RunBlock:
    """The block of a document over so many kinds of step. Raises ValueError for one that no runs can have made."""
    columns = (block.outcomes, block.sources, block.targets, block.counts)
    if len({len(column) for column in columns}) != 1:
        raise ValueError("passages need as many outcomes as sources, targets and counts")
    limits = (len(OUTCOMES), n_vectors + 1, n_vectors + 1, 2**40)
    for column, limit in zip(columns, limits, strict=True):
        if column and not 0 <= min(column) <= max(column) < limit:
            raise ValueError(f"a number of a passage is not in 0..{limit - 1}")
    outcomes, sources, targets, counts = (np.array(column, dtype=np.int64) for column in columns)
    found = RunBlock(block.last, (outcomes << (2 * _CODE_BITS)) | (sources << _CODE_BITS) | targets, counts)
    surplus = np.bincount(sources, counts, n_vectors + 1) - np.bincount(targets, counts, n_vectors + 1)
    if surplus.any():
        raise ValueError("runs enter a kind of step more often than they leave it")
    return found


def sources_of(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where passages come from; 0 is the outside."""
    return (keys >> _CODE_BITS) & _CODE_MASK


def summed(
    keys: Sequence[NDArray[np.int64]], counts: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct keys, ascending, and the sums of their counts."""
    none = np.empty(0, dtype=np.int64)
    distinct, place = np.unique(np.concatenate([none, *keys]), return_inverse=True)
    sums = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(sums, place.ravel(), np.concatenate([none, *counts]))
    return distinct, sums
