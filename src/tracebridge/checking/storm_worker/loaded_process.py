"""A decision process that was sent, and Storm's model of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from stormpy import Rational
from stormpy.datastructures import SparseMatrixBuilder
from stormpy.models import SparseMdp

from .loaded_chain import model_components
from .number_codec import StormRewards, decode, decode_indices, one, zero
from .protocol import LoadModel, WorkerError, unpack_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Indices = NDArray[np.int64]


class LoadedProcess:
    """A decision process in memory: its numbers, and Storm's model of it."""

    def __init__(self, request: LoadModel) -> None:
        self.groups = decode_indices(request.groups or b"")
        self.indptr = decode_indices(request.indptr)
        self.indices = decode_indices(request.indices)
        self.exact = isinstance(request.values, list)
        self.n = len(self.groups) - 1
        self.values = decode(request.values)
        for starts, end in ((self.groups, len(self.indptr) - 1), (self.indptr, len(self.indices))):
            if len(starts) < 2 or starts[0] != 0 or starts[-1] != end or not (np.diff(starts) > 0).all():
                raise WorkerError("protocol", "the arrays of a decision process do not fit together")
        if len(self.values) != len(self.indices):
            raise WorkerError("protocol", "the arrays of a decision process do not fit together")
        if not (self.indices.min() >= 0 and self.indices.max() < self.n):
            raise WorkerError("protocol", "a transition leads to no state")
        self.initial = unpack_mask(request.initial, self.n)
        m = len(self.indptr) - 1
        rewards: StormRewards = {
            f"r{i}": (decode(held.state, self.n), None if held.action is None else decode(held.action, m))
            for i, held in enumerate(request.rewards)
        }
        self.model = _build(self.groups, self.indptr, self.indices, self.values, self.initial, rewards, self.exact)

    def reward_size(self, *, bounded: bool) -> int:
        """How many numbers a reward has that is sent with a question: one a state and one, or one a choice and one."""
        return len(self.indptr) if bounded else self.n + 1

    def leaving(self, mask: NDArray[np.bool_], state_rewards: list[list[Any]], *, halting: bool) -> Any:
        """A model with one more state, to which those in the mask move, and the state rewards ``v0``, ``v1``, ...

        Args:
            mask: shape (n,). state_rewards: n + 1 numbers each. halting: they are m + 1 instead, see `_spending`.
        """
        if halting:
            return self._spending(mask, state_rewards)
        owner = np.repeat(np.arange(self.n), np.diff(self.groups))
        first = np.zeros(len(owner), dtype=np.bool_)
        first[self.groups[:-1]] = True
        kept = first | ~mask[owner]  # states in the mask have one choice
        gone = kept & mask[owner]
        lengths = np.where(gone, 1, np.diff(self.indptr))[kept]
        indptr = np.concatenate([[0], np.cumsum(np.append(lengths, 1))])
        targets = np.full(indptr[-1], self.n, dtype=np.int64)
        values = [one(exact=self.exact)] * len(targets)
        places = np.flatnonzero(np.append(np.repeat(~gone[kept], lengths), False))
        entries = np.flatnonzero(np.repeat(kept & ~gone, np.diff(self.indptr)))
        targets[places] = self.indices[entries]
        for place, entry in zip(places.tolist(), entries.tolist(), strict=True):
            values[place] = self.values[entry]
        sizes = np.bincount(owner[kept], minlength=self.n)
        groups = np.concatenate([[0], np.cumsum(np.append(sizes, 1))])
        rewards: StormRewards = {f"v{i}": (reward, None) for i, reward in enumerate(state_rewards)}
        return _build(groups, indptr, targets, values, np.append(self.initial, False), rewards, self.exact)

    def _spending(self, mask: NDArray[np.bool_], rewards: list[list[Any]]) -> Any:
        """A model whose choices lead to a state each, which earns its reward and goes where the choice did.

        All states are initial, those in the mask move to the last one, and m + 1 rewards are those of the choices and
        of the last state.
        """
        n, m = self.n, len(self.indptr) - 1
        last = n + m
        sizes = np.where(mask, 1, np.diff(self.groups))
        kept = np.repeat(~mask, np.diff(self.groups))
        chosen = np.full(int(sizes.sum()), last, dtype=np.int64)
        chosen[np.repeat(~mask, sizes)] = n + np.flatnonzero(kept)
        groups = np.concatenate([[0], np.cumsum(np.concatenate([sizes, np.ones(m + 1, dtype=np.int64)]))])
        lengths = np.concatenate([np.ones(len(chosen), dtype=np.int64), np.diff(self.indptr), [1]])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        certain = one(exact=self.exact)
        nothing = zero(exact=self.exact)
        earned: StormRewards = {f"v{i}": ([nothing] * n + reward, None) for i, reward in enumerate(rewards)}
        return _build(
            groups,
            indptr,
            np.concatenate([chosen, self.indices, [last]]),
            [certain] * len(chosen) + list(self.values) + [certain],
            np.ones(last + 1, dtype=np.bool_),
            earned,
            self.exact,
        )


def _build(
    groups: Indices,
    indptr: Indices,
    indices: Indices,
    values: list[Any],
    initial: NDArray[np.bool_],
    rewards: StormRewards,
    exact: bool,
    chunk: int = 20_000,
) -> Any:
    """Storm's sparse MDP with these states and choices in this order, built in chunks of states to bound the memory."""
    number = Rational if exact else float
    n, m = len(groups) - 1, len(indptr) - 1
    builder = SparseMatrixBuilder[number](
        rows=m, columns=n, entries=len(indices), has_custom_row_grouping=True, row_groups=n
    )
    for start in range(0, n, chunk):
        rows = slice(int(groups[start]), int(groups[min(n, start + chunk)]))
        first, last = int(indptr[rows.start]), int(indptr[rows.stop])
        row_of_entry = np.repeat(np.arange(rows.start, rows.stop), np.diff(indptr[rows.start : rows.stop + 1]))
        builder.add_next_values(
            row_of_entry.tolist(),
            indices[first:last].tolist(),
            values[first:last],
            groups[start : min(n, start + chunk)].tolist(),
        )
    return SparseMdp[number](model_components(builder.build(), initial, rewards, exact=exact))
